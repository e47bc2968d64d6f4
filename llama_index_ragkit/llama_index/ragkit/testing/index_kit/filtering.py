"""Does a metadata filter hold?"""

from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index.ragkit.testing.corpus import TEXTS
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness

__all__ = ["FilterTests"]

ALL = set(range(len(TEXTS)))
Operator = FilterOperator


def _where(key: str, value: Any, operator: Operator = Operator.EQ) -> MetadataFilter:
    return MetadataFilter(key=key, value=value, operator=operator)


class FilterTests(IndexHarness):
    """`filters=` of a retriever restrict the results; a derived node passes only if all its sources do."""

    def _numbered(self, texts: list[str] = TEXTS) -> Index:
        """An index whose document i has the number i, and the tenant "even" or "odd"."""
        hidden = ["number", "tenant"]
        documents = [
            Document(
                text=text,
                id_=f"D{i}",
                metadata={"number": i, "tenant": "odd" if i % 2 else "even"},
                excluded_embed_metadata_keys=hidden,
                excluded_llm_metadata_keys=hidden,
            )
            for i, text in enumerate(texts)
        ]
        return self.from_documents(documents)

    def _found(self, index: Index, filters: MetadataFilters, top_k: int = 50) -> set[int]:
        """Numbers of the documents whose text is in any result, whole or as a part."""
        results = [text for text, _ in self.ask(index, top_k=top_k, filters=filters)]
        return {i for i, text in enumerate(TEXTS) if any(text[:-1] in result for result in results)}

    @pytest.mark.parametrize(
        ("filter_", "wanted"),
        [
            (_where("tenant", "odd"), {1, 3, 5}),
            (_where("tenant", "odd", Operator.NE), {0, 2, 4}),
            (_where("number", 2, Operator.LT), {0, 1}),
            (_where("number", 2, Operator.LTE), {0, 1, 2}),
            (_where("number", 3, Operator.GT), {4, 5}),
            (_where("number", 3, Operator.GTE), {3, 4, 5}),
            (_where("number", [1, 4], Operator.IN), {1, 4}),
            (_where("number", [1, 4], Operator.NIN), ALL - {1, 4}),
            (_where("tenant", "eve", Operator.TEXT_MATCH), {0, 2, 4}),
        ],
        ids=lambda value: value.operator.value if isinstance(value, MetadataFilter) else "",
    )
    def test_an_operator_lets_through_what_it_says(self, filter_: MetadataFilter, wanted: set[int]) -> None:
        """Texts that do not pass are in no result, not even as a part of a derived one."""
        assert self._found(self._numbered(), MetadataFilters(filters=[filter_])) == wanted

    @pytest.mark.parametrize(
        ("condition", "wanted"),
        [(FilterCondition.AND, {5}), (FilterCondition.OR, {1, 3, 4, 5})],
        ids=["and", "or"],
    )
    def test_filters_are_combined(self, condition: FilterCondition, wanted: set[int]) -> None:
        """Both, or one of them."""
        both: list[Any] = [_where("tenant", "odd"), _where("number", 3, Operator.GT)]
        assert self._found(self._numbered(), MetadataFilters(filters=both, condition=condition)) == wanted

    def test_a_filter_that_nothing_passes_finds_nothing(self) -> None:
        """No result, and no error."""
        assert self._found(self._numbered(), MetadataFilters(filters=[_where("tenant", "nobody")])) == set()

    def test_the_best_are_taken_from_what_passes(self) -> None:
        """A filter does not merely sift what was found: a `similarity_top_k` of three finds the three that pass."""
        odd = MetadataFilters(filters=[_where("tenant", "odd")])
        assert self._found(self._numbered(), odd, top_k=3) == {1, 3, 5}

    def test_a_filter_holds_for_what_comes_later(self) -> None:
        """A retriever with a filter applies it to documents that are inserted after it was made."""
        index = self._numbered(TEXTS[:3])
        odd = MetadataFilters(filters=[_where("tenant", "odd")])
        retriever = self.retriever(index, similarity_top_k=50, filters=odd)
        index.insert(Document(text="Zanzibar exports cloves.", id_="a", metadata={"tenant": "odd"}))
        index.insert(Document(text="Pemba exports cloves.", id_="b", metadata={"tenant": "even"}))
        index.insert(Document(text="Cloves have no tenant.", id_="c"))
        found = " ".join(result.node.get_content() for result in retriever.retrieve("cloves"))
        assert "Zanzibar" in found
        assert "Pemba" not in found
        assert "no tenant" not in found
