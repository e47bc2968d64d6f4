"""Are results what LlamaIndex's other parts, and users, expect of a retriever, and do metadata filters hold?"""

import json
import math

import pytest
from llama_index.core import Document
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from llama_index.ragkit.testing.corpus import (
    QUESTION,
    TEXTS,
    chunks,
    each_condition,
    each_operator,
    odd_or_above_3,
    where,
)
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness

__all__ = ["FilterTests", "RetrievalTests"]


class RetrievalTests(IndexHarness):
    """Results are fresh objects around the user's own nodes; a retriever always sees its index as it is now."""

    def _results(self, index: Index, top_k: int = 50) -> list[NodeWithScore]:
        return self.retriever(index, similarity_top_k=top_k).retrieve(QUESTION)

    def test_at_most_top_k_results_come_back(self) -> None:
        """`similarity_top_k` bounds the results, whatever they were derived from."""
        index = self.build([*chunks("d", 6), *chunks("e", 6)])
        for top_k in (1, 3):
            assert 1 <= len(self._results(index, top_k)) <= top_k

    def test_scores_are_finite_floats_best_first(self) -> None:
        """Fusion, cutoffs and JSON need Python floats, and higher is better."""
        scores = [result.score for result in self._results(self.build([*chunks("d", 6), *chunks("e", 3)]))]
        assert all(type(score) is float and math.isfinite(score) for score in scores)
        assert scores == sorted(scores, key=lambda score: -(score or 0.0))

    def test_no_node_comes_back_twice(self) -> None:
        """Ids are unique within the results."""
        ids = [result.node.node_id for result in self._results(self.build([*chunks("d", 6), *chunks("e", 3)]))]
        assert len(ids) == len(set(ids))

    def test_nodes_come_back_as_they_were_given(self) -> None:
        """Id, text, metadata, hidden keys and relationships are the user's own."""
        neighbours = {NodeRelationship.NEXT: RelatedNodeInfo(node_id="elsewhere")}
        nodes = [
            node.model_copy(
                update={
                    "metadata": {"page": i, "tags": ["a", "b"]},
                    "excluded_embed_metadata_keys": ["page"],
                    "relationships": {**node.relationships, **neighbours},
                }
            )
            for i, node in enumerate(chunks("d", 4))
        ]
        given = {node.node_id: node.model_dump(exclude={"embedding"}) for node in nodes}
        found = {result.node.node_id: result.node for result in self._results(self.build(nodes))}
        assert {i: node.model_dump(exclude={"embedding"}) for i, node in found.items() if i in given} == given

    def test_results_are_fresh_objects(self) -> None:
        """Writing into a result changes neither the next answer nor the docstore."""
        index = self.build(chunks("d", 4))
        retriever = self.retriever(index, similarity_top_k=50)
        before = [(result.node.node_id, result.node.hash, result.score) for result in retriever.retrieve(QUESTION)]
        for result in retriever.retrieve(QUESTION):
            result.score = -1.0
            result.node.metadata["written"] = "by the user"
        after = [(result.node.node_id, result.node.hash, result.score) for result in retriever.retrieve(QUESTION)]
        assert after == before
        assert all("written" not in node.metadata for node in index.docstore.docs.values())

    def test_results_can_be_written_as_json(self) -> None:
        """Observability and web services serialise them."""
        for result in self._results(self.build(chunks("d", 4))):
            assert json.loads(json.dumps(result.to_dict()))["score"] == result.score

    def test_the_query_bundle_is_neither_trusted_nor_changed(self) -> None:
        """Core's retrievers leave the vectors of their own models in it."""
        retriever = self.retriever(self.build(chunks("d", 4)), similarity_top_k=50)
        plain, foreign = QueryBundle(QUESTION), QueryBundle(QUESTION, embedding=[9.0])
        answers = [[(r.node.node_id, r.score) for r in retriever.retrieve(bundle)] for bundle in (plain, foreign)]
        assert answers[0] == answers[1] != []
        assert (plain.embedding, foreign.embedding) == (None, [9.0])

    def test_a_retriever_sees_what_was_written_after_it_was_made(self) -> None:
        """Inserts and deletes reach retrievers, and the engines that hold them."""
        index = self.build(chunks("d", 3))
        retriever = self.retriever(index, similarity_top_k=50)
        index.insert(Document(text="Zanzibar exports cloves.", id_="z"))
        assert any("Zanzibar" in result.node.get_content() for result in retriever.retrieve("cloves"))
        index.delete_ref_doc("z", delete_from_docstore=True)
        assert not any("Zanzibar" in result.node.get_content() for result in retriever.retrieve("cloves"))

    def test_the_same_question_has_the_same_answer(self) -> None:
        """A question leaves nothing behind that changes the next one."""
        index = self.build([*chunks("d", 6), *chunks("e", 3)])
        before = self.ask(index)
        self.ask(index, "Who drew the engine?")
        assert self.ask(index) == before

    def test_a_text_is_found_by_itself(self) -> None:
        """A text that is asked as a question is among the best three results."""
        nodes = [*chunks("d", 6), TextNode(id_="z", text="Zanzibar exports cloves.")]
        best = self.ask(self.build(nodes), "Zanzibar exports cloves.", top_k=3)
        assert any("Zanzibar" in text for text, _ in best)

    @pytest.mark.parametrize("question", ["", " ", "?", "silk " * 500, "漢字", TEXTS[0] + "\x00"])
    def test_any_question_is_answered(self, question: str) -> None:
        """An empty, endless or foreign question is no error."""
        assert isinstance(self.ask(self.build(chunks("d", 3)), question), list)

    def test_a_misspelt_option_of_a_retriever_is_refused(self) -> None:
        """`filter=` for `filters=` must not return what the filter was to hide."""
        with pytest.raises((TypeError, ValueError), match="misspelt_option"):
            self.retriever(self.build(chunks("d", 3)), misspelt_option=1)


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

    @each_operator((where("tenant", "eve", FilterOperator.TEXT_MATCH), {0, 2, 4}))
    def test_an_operator_lets_through_what_it_says(self, filter_: MetadataFilter, wanted: set[int]) -> None:
        """Texts that do not pass are in no result, not even as a part of a derived one."""
        assert self._found(self._numbered(), MetadataFilters(filters=[filter_])) == wanted

    @each_condition
    def test_filters_are_combined(self, condition: FilterCondition, wanted: set[int]) -> None:
        """Both, or one of them."""
        assert self._found(self._numbered(), odd_or_above_3(condition)) == wanted

    def test_a_filter_that_nothing_passes_finds_nothing(self) -> None:
        """No result, and no error."""
        assert self._found(self._numbered(), MetadataFilters(filters=[where("tenant", "nobody")])) == set()

    def test_the_best_are_taken_from_what_passes(self) -> None:
        """A filter does not merely sift what was found: a `similarity_top_k` of three finds the three that pass."""
        odd = MetadataFilters(filters=[where("tenant", "odd")])
        assert self._found(self._numbered(), odd, top_k=3) == {1, 3, 5}

    def test_a_filter_holds_for_what_comes_later(self) -> None:
        """A retriever with a filter applies it to documents that are inserted after it was made."""
        index = self._numbered(TEXTS[:3])
        odd = MetadataFilters(filters=[where("tenant", "odd")])
        retriever = self.retriever(index, similarity_top_k=50, filters=odd)
        index.insert(Document(text="Zanzibar exports cloves.", id_="a", metadata={"tenant": "odd"}))
        index.insert(Document(text="Pemba exports cloves.", id_="b", metadata={"tenant": "even"}))
        index.insert(Document(text="Cloves have no tenant.", id_="c"))
        found = " ".join(result.node.get_content() for result in retriever.retrieve("cloves"))
        assert "Zanzibar" in found
        assert "Pemba" not in found
        assert "no tenant" not in found
