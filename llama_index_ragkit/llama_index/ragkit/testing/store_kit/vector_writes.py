"""Does a vector store keep what it is given, and lose what it is told to delete?"""

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.testing.store_kit.vector_harness import VectorStoreHarness, ids_of, row, rows

__all__ = ["VectorAddTests", "VectorClearTests", "VectorDeleteNodesTests", "VectorDeleteTests", "VectorReplaceTests"]


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
