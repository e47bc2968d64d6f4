"""Does a vector store serve coroutines and threads, and outlive the process?"""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.testing.store_kit.vector_harness import VectorStoreHarness, ids_of, row, rows

__all__ = ["VectorAsyncTests", "VectorPersistTests", "VectorThreadTests"]


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
