"""Does a vector store find what it should?"""

import math

from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.testing.corpus import each_condition, each_operator, odd_or_above_3, where
from llama_index.ragkit.testing.store_kit.harness import VectorStoreHarness, ids_of, row, rows

__all__ = [
    "VectorDocumentIdTests",
    "VectorEmptyTests",
    "VectorFilterTests",
    "VectorGetNodesTests",
    "VectorNestedFilterTests",
    "VectorNodeIdTests",
    "VectorQueryTests",
    "VectorTextTests",
]

SHUFFLED = (3, 0, 5, 1, 4, 2)


class VectorQueryTests(VectorStoreHarness):
    """`query(VectorStoreQuery)` returns the nearest rows, nearest first.

    Scores mean different things in different stores, so the only demand is that a nearer row has a higher score.
    """

    def test_the_nearest_rows_come_first(self, store: BasePydanticVectorStore) -> None:
        """Whatever the order in which they came."""
        store.add(rows("d", SHUFFLED))
        assert self.found(store) == ids_of(rows("d", range(6)))
        assert self.found(store, number=5) == ids_of(rows("d", range(5, -1, -1)))

    def test_as_many_rows_as_asked_for_come_back(self, store: BasePydanticVectorStore) -> None:
        """`similarity_top_k` of them, or all there are."""
        store.add(rows("d", SHUFFLED))
        assert self.found(store, top_k=2) == ids_of(rows("d", range(2)))
        assert len(self.found(store, top_k=1_000)) == 6

    def test_scores_are_finite_and_fall(self, store: BasePydanticVectorStore) -> None:
        """There is one for each row."""
        store.add(rows("d", SHUFFLED))
        result = store.query(self.query())
        scores = [float(score) for score in result.similarities or []]
        assert len(scores) == len(self.ids_in(result)) == 6
        assert all(map(math.isfinite, scores))
        assert scores == sorted(scores, reverse=True)


class VectorEmptyTests(VectorStoreHarness):
    """A store without rows is an ordinary store."""

    def test_an_empty_store_finds_nothing(self, store: BasePydanticVectorStore) -> None:
        """A query before the first row is no error."""
        assert self.found(store) == []

    def test_an_empty_store_has_nothing_to_delete(self, store: BasePydanticVectorStore) -> None:
        """Nor is a delete, or the addition of no rows."""
        store.delete("nowhere")
        assert list(store.add([])) == []
        assert self.found(store) == []


class VectorTextTests(VectorStoreHarness):
    """A store with `stores_text` returns whole nodes, so that a plain `VectorStoreIndex` works over it."""

    def test_nodes_come_back_whole(self, store: BasePydanticVectorStore) -> None:
        """With id, text, metadata and document."""
        given = [row(i, page=i, name=f"page {i}") for i in range(3)]
        given.append(row(3).model_copy(update={"text": "漢字 'quoted' \"twice\" {braces} %s \\ 👩‍👩‍👧 "}))
        assert store.stores_text
        store.add(given)
        nodes = store.query(self.query()).nodes or []
        facts = [[(n.node_id, n.get_content(), n.metadata, n.ref_doc_id) for n in each] for each in (nodes, given)]
        assert facts[0] == facts[1]


class VectorGetNodesTests(VectorStoreHarness):
    """`get_nodes(node_ids)` returns stored nodes."""

    def test_nodes_are_got_by_their_ids(self, store: BasePydanticVectorStore) -> None:
        """Those that are there, whole, and no others."""
        given = [row(i, page=i) for i in range(6)]
        store.add(given)
        got = store.get_nodes(ids_of([given[4], given[1], row(0, "nowhere")]))
        facts = {node.node_id: (node.get_content(), node.metadata, node.ref_doc_id) for node in got}
        assert facts == {n.node_id: (n.get_content(), n.metadata, n.ref_doc_id) for n in (given[4], given[1])}
        assert len(got) == 2


class VectorNodeIdTests(VectorStoreHarness):
    """`node_ids` of a query restricts it to these rows."""

    def test_only_these_nodes_are_searched(self, store: BasePydanticVectorStore) -> None:
        """The best of these nodes come back, not only those among the best of all nodes."""
        store.add(rows("d", SHUFFLED))
        wanted = ids_of([row(5), row(3), row(0, "nowhere")])
        assert self.found(store, top_k=2, node_ids=wanted) == ids_of([row(3), row(5)])


class VectorDocumentIdTests(VectorStoreHarness):
    """`doc_ids` of a query restricts it to the rows of these documents."""

    def test_only_these_documents_are_searched(self, store: BasePydanticVectorStore) -> None:
        """The best rows of these documents come back, not only those among the best of all rows."""
        store.add([*rows("d", range(3)), *rows("e", range(3, 6)), *rows("f", range(6, 9))])
        assert self.found(store, top_k=4, doc_ids=["f", "e", "nowhere"]) == ids_of(
            [*rows("e", range(3, 6)), row(6, "f")]
        )


class VectorFilterTests(VectorStoreHarness):
    """`filters` of a query restricts it to rows by their metadata, one filter or several with AND or OR."""

    def numbers(self, store: BasePydanticVectorStore, filters: MetadataFilters, top_k: int = 50) -> list[int]:
        """Numbers of the rows that pass, nearest first, of six rows with a number and a tenant."""
        nodes = [row(i, number=i, tenant="odd" if i % 2 else "even") for i in range(6)]
        store.add(nodes)
        return [ids_of(nodes).index(node_id) for node_id in self.found(store, top_k=top_k, filters=filters)]

    @each_operator()
    def test_rows_pass_as_the_operator_says(
        self, store: BasePydanticVectorStore, filter_: MetadataFilter, wanted: set[int]
    ) -> None:
        """And come back nearest first."""
        assert self.numbers(store, MetadataFilters(filters=[filter_])) == sorted(wanted)

    @each_condition
    def test_conditions_combine_filters(
        self, store: BasePydanticVectorStore, condition: FilterCondition, wanted: set[int]
    ) -> None:
        """Both must pass, or one of them."""
        assert self.numbers(store, odd_or_above_3(condition)) == sorted(wanted)

    def test_the_best_of_what_passes_come_back(self, store: BasePydanticVectorStore) -> None:
        """The filter does not merely sift the best rows."""
        assert self.numbers(store, MetadataFilters(filters=[where("tenant", "odd")]), top_k=2) == [1, 3]


class VectorNestedFilterTests(VectorFilterTests):
    """Filters may hold filters, and NOT negates."""

    def test_filters_may_be_nested(self, store: BasePydanticVectorStore) -> None:
        """(odd and below 3) or 4."""
        low = MetadataFilters(filters=[where("tenant", "odd"), where("number", 3, FilterOperator.LT)])
        either = MetadataFilters(filters=[low, where("number", 4)], condition=FilterCondition.OR)
        assert self.numbers(store, either) == [1, 4]

    def test_not_means_none_of_them(self, store: BasePydanticVectorStore) -> None:
        """Neither odd nor above 3."""
        assert self.numbers(store, odd_or_above_3(FilterCondition.NOT)) == [0, 2]
