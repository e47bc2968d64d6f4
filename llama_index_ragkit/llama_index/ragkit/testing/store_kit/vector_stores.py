"""Does a vector store keep what it is given, lose what it is told to delete, serve threads, and outlive the process?"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.testing.store_kit.harness import VectorStoreHarness, ids_of, row, rows
from llama_index.ragkit.testing.store_kit.vector_reads import VectorQueryTests

__all__ = [
    "VectorAddTests",
    "VectorAsyncTests",
    "VectorClearTests",
    "VectorDeleteNodesTests",
    "VectorDeleteTests",
    "VectorPersistTests",
    "VectorReplaceTests",
    "VectorStoreConformance",
    "VectorThreadTests",
]


class VectorAddTests(VectorStoreHarness):
    """`add(nodes)` stores nodes that carry vectors, and returns their ids."""

    def test_rows_that_were_added_are_found(self, store: BasePydanticVectorStore) -> None:
        """The ids come back in the order of the nodes, and each row can be found."""
        nodes = rows("d", range(6))
        assert list(store.add(nodes)) == ids_of(nodes)
        assert set(self.found(store)) == set(ids_of(nodes))

    def test_rows_may_come_in_several_calls(self, store: BasePydanticVectorStore) -> None:
        """A later call keeps what earlier ones stored."""
        store.add(rows("d", range(3)))
        store.add(rows("d", range(3, 6)))
        store.add(rows("e", range(3)))
        assert set(self.found(store)) == set(ids_of([*rows("d", range(6)), *rows("e", range(3))]))

    def test_many_rows_in_one_call_are_all_kept(self, store: BasePydanticVectorStore) -> None:
        """Even more than one of the store's own batches."""
        nodes = [each for i in range(40) for each in rows(f"d{i}", range(16))]
        assert len(store.add(nodes)) == 640
        assert set(self.found(store, top_k=1_000)) == set(ids_of(nodes))

    def test_the_nodes_added_are_not_changed(self, store: BasePydanticVectorStore) -> None:
        """They are the caller's objects."""
        nodes = [row(i, page=i) for i in range(3)]
        before = [node.model_dump() for node in nodes]
        store.add(nodes)
        assert [node.model_dump() for node in nodes] == before


class VectorReplaceTests(VectorStoreHarness):
    """Adding a row again under its id replaces the old one."""

    def test_a_row_of_the_same_id_replaces_the_old(self, store: BasePydanticVectorStore) -> None:
        """There is one row of an id, with the vector that came last."""
        store.add(rows("d", range(6)))
        moved = row(0).model_copy(update={"embedding": row(9).embedding})
        store.add([moved])
        assert self.found(store) == ids_of([*rows("d", range(1, 6)), moved])


class VectorDeleteTests(VectorStoreHarness):
    """`delete(ref_doc_id)` removes the rows of one document."""

    def test_every_row_of_a_document_goes_and_no_other(self, store: BasePydanticVectorStore) -> None:
        """However many there are."""
        store.add([*rows("d", range(7)), *rows("e", range(3))])
        store.delete("d")
        assert set(self.found(store)) == set(ids_of(rows("e", range(3))))

    def test_deleted_rows_take_no_place_among_the_best(self, store: BasePydanticVectorStore) -> None:
        """The best k are the best k of what is left."""
        store.add([*rows("d", range(5)), *rows("e", range(10, 15))])
        store.delete("d")
        assert self.found(store, top_k=3) == ids_of(rows("e", range(10, 13)))

    def test_what_was_deleted_can_be_added_again(self, store: BasePydanticVectorStore) -> None:
        """Deletes and additions may alternate."""
        store.add([*rows("d", range(4)), *rows("e", range(8, 10))])
        store.delete("d")
        store.add(rows("d", range(2, 6)))
        assert self.found(store) == ids_of([*rows("d", range(2, 6)), *rows("e", range(8, 10))])

    def test_a_document_that_is_not_there_is_passed_over(self, store: BasePydanticVectorStore) -> None:
        """It is no error, and nothing else goes."""
        store.add(rows("d", range(3)))
        store.delete("nowhere")
        assert self.found(store) == ids_of(rows("d", range(3)))


class VectorDeleteNodesTests(VectorStoreHarness):
    """`delete_nodes(node_ids)` removes single rows. Without it, ragkit deletes and adds again whole documents."""

    def test_these_rows_go_and_no_others(self, store: BasePydanticVectorStore) -> None:
        """Ids that are not there are passed over."""
        store.add(rows("d", range(6)))
        store.delete_nodes(ids_of([row(1), row(4), row(0, "nowhere")]))
        assert self.found(store) == ids_of(rows("d", (0, 2, 3, 5)))

    def test_rows_may_be_added_after_a_delete(self, store: BasePydanticVectorStore) -> None:
        """New rows never take the place of old ones, and deleted ones may come back."""
        store.add(rows("d", range(4)))
        store.delete_nodes(ids_of(rows("d", range(2))))
        store.add([row(0), row(8), row(9)])
        assert self.found(store) == ids_of(rows("d", (0, 2, 3, 8, 9)))


class VectorClearTests(VectorStoreHarness):
    """`clear()` removes every row."""

    def test_a_store_may_be_emptied_and_filled_again(self, store: BasePydanticVectorStore) -> None:
        """Nothing is found in between."""
        store.add(rows("d", range(3)))
        store.clear()
        assert self.found(store) == []
        store.add(rows("e", range(2)))
        assert self.found(store) == ids_of(rows("e", range(2)))


class VectorAsyncTests(VectorStoreHarness):
    """`async_add`, `aquery` and `adelete` do what `add`, `query` and `delete` do, on any event loop."""

    def test_asynchronous_calls_equal_synchronous_ones(self, store: BasePydanticVectorStore) -> None:
        """Each sees what the others wrote."""

        async def write() -> list[str]:
            added = await store.async_add([*rows("d", range(4)), *rows("e", range(4, 6))])
            await store.adelete("e")
            return list(added)

        async def read() -> list[str]:
            return self.ids_in(await store.aquery(self.query()))

        assert asyncio.run(write()) == ids_of([*rows("d", range(4)), *rows("e", range(4, 6))])
        assert asyncio.run(read()) == self.found(store) == ids_of(rows("d", range(4)))
        store.delete("d")
        assert asyncio.run(read()) == []


class VectorThreadTests(VectorStoreHarness):
    """Threads may read and write at once."""

    def test_threads_lose_no_row_and_see_none_by_halves(self, store: BasePydanticVectorStore) -> None:
        """What one call adds is there as a whole or not at all."""
        store.add(rows("d", range(4)))
        stop = threading.Event()

        def read() -> bool:
            whole = True
            while not stop.is_set():
                seen = set(self.found(store, top_k=1_000))
                whole &= all(len(seen & set(ids_of(rows(f"d{i}", range(8))))) in (0, 8) for i in range(16))
            return whole

        with ThreadPoolExecutor(4) as pool:
            readers = [pool.submit(read) for _ in range(2)]
            try:
                list(pool.map(lambda i: store.add(rows(f"d{i}", range(8))), range(16)))
            finally:
                stop.set()
            assert all(reader.result() for reader in readers)
        assert len(set(self.found(store, top_k=1_000))) == 4 + 16 * 8


class VectorPersistTests(VectorStoreHarness):
    """A store comes back from where it was kept. The class must override `reopen`."""

    def test_a_reopened_store_answers_alike_and_goes_on(self, store: BasePydanticVectorStore, tmp_path: Path) -> None:
        """Rows, documents and scores come back, and further writes follow."""
        store.add([*rows("d", range(4)), *rows("e", range(4, 6))])
        again = self.reopen(store, tmp_path)
        before, after = store.query(self.query()), again.query(self.query())
        assert self.ids_in(after) == self.ids_in(before)
        assert after.similarities == before.similarities
        again.delete("d")
        again.add([row(9)])
        assert self.found(again) == ids_of([*rows("e", range(4, 6)), row(9)])

    def test_an_empty_store_comes_back(self, store: BasePydanticVectorStore, tmp_path: Path) -> None:
        """And takes its first rows then."""
        again = self.reopen(store, tmp_path)
        again.add(rows("d", range(3)))
        assert self.found(again) == ids_of(rows("d", range(3)))

    def test_no_byte_of_a_deleted_row_is_kept(self, store: BasePydanticVectorStore, tmp_path: Path) -> None:
        """Neither ids nor metadata; encoded files equal those from before the row came."""

        def stored(folder: str) -> dict[str, bytes]:
            (tmp_path / folder).mkdir()
            self.reopen(store, tmp_path / folder)
            files = (path for path in (tmp_path / folder).rglob("*") if path.is_file())
            return {str(path.relative_to(tmp_path / folder)): path.read_bytes() for path in files}

        gone = row(3, "gone", key="qzxcanary")
        store.add(rows("d", range(2)))
        before = stored("before")
        store.add([gone])
        between = stored("between")
        store.delete("gone")
        after = stored("after")
        words = [word.encode() for word in ("qzxcanary", gone.node_id)]
        if any(word in data for data in between.values() for word in words):
            assert not any(word in data for data in after.values() for word in words)
        else:
            assert after == before


class VectorStoreConformance(VectorAddTests, VectorQueryTests, VectorDeleteTests, VectorAsyncTests):
    """The part of `BasePydanticVectorStore` on which an index with `vector_store=` relies.

    Rows are written with `add` and `async_add`, never under an id that the store holds. They are deleted with
    `delete_nodes` if the store has it (`VectorDeleteNodesTests`), otherwise document by document with `delete`, which
    every store must have. A query gives candidates in order of nearness; their scores are not used. A plain
    `VectorStoreIndex` over the store also needs `VectorTextTests`.

    Further capabilities have separate classes. In addition to this class, inherit those that the store has:
    `VectorTextTests`, `VectorReplaceTests`, `VectorDeleteNodesTests`, `VectorGetNodesTests`, `VectorNodeIdTests`,
    `VectorDocumentIdTests`, `VectorFilterTests` or `VectorNestedFilterTests`, `VectorEmptyTests`,
    `VectorClearTests`, `VectorThreadTests`, `VectorPersistTests`.
    """
