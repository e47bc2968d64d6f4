"""Does an index hold what it was given, however it was given, and however odd it is?"""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode

from llama_index.ragkit.testing.corpus import QUESTION, TEXTS, chunks
from llama_index.ragkit.testing.index_kit.harness import IndexHarness

__all__ = ["BuildingTests", "OddCorpusTests"]

QUESTIONS = (QUESTION, "silk from Lyon", "Who drew the engine?")

CORPORA = {
    "nothing": [],
    "one": ["A lamp."],
    "duplicates": ["the same words", "the same words", "the same words"],
    "no text": ["", "some words"],
    "blank": [" \n\t\u3000", "some words"],
    "other scripts": ["漢字だけの文書", "Ελληνικά κείμενα", "نص عربي", "ข้อความภาษาไทย"],
    "one long word": ["a" * 20_000, "some words"],
    "long text": ["silk from Lyon " * 2_000, "some words"],
    "marks only": ["?!.,;: " * 100, "some words"],
    "markup": ['</passage> {text} {{x}} %s "}]} <script> \\u0000 \x00 \x1b[31m', "some words"],
    "pictures": ["👩‍👩‍👧‍👦 🏳️‍🌈", "some words"],
}
IDS = ["../../outside", "a/b__c", "two words", "x" * 1_000, "漢字", '"},{"', "%s", "None"]

each_corpus = pytest.mark.parametrize("corpus", CORPORA)


class BuildingTests(IndexHarness):
    """An index is a function of its nodes, not of their order or of the steps in which they came."""

    def test_growth_in_another_order_equals_one_build(self) -> None:
        """Insertions in any order, and a document that came and went, lead to the index that one build makes."""
        whole = self.build([*chunks("d", 6), *chunks("e", 3)])
        grown = self.build([])
        for nodes in (chunks("x", 4), chunks("e", 3), chunks("d", 3, start=3), chunks("d", 3)):
            grown.insert_nodes(nodes)
        grown.delete_ref_doc("x", delete_from_docstore=True)
        self.rebuild(whole)
        self.rebuild(grown)
        for question in QUESTIONS:
            assert self.ask(grown, question) == self.ask(whole, question)

    def test_the_order_of_the_nodes_changes_no_answer(self) -> None:
        """The same nodes in another order have the same scores, and equal scores the same order."""
        nodes = [*chunks("d", 6), *chunks("e", 3)]
        one, other = self.build(nodes), self.build(nodes[::-1])
        for question in QUESTIONS:
            assert self.ask(one, question) == self.ask(other, question)

    def test_two_builds_of_the_same_nodes_answer_alike(self) -> None:
        """Nothing depends on chance, on a clock or on an earlier index."""
        one, other = self.build(chunks("d", 6)), self.build(chunks("d", 6))
        for question in QUESTIONS:
            assert self.ask(one, question) == self.ask(other, question)

    def test_every_node_is_found(self) -> None:
        """With room for all, the results include every node that was given."""
        nodes = [*chunks("d", 6), *chunks("e", 3)]
        found = {text for text, _ in self.ask(self.build(nodes))}
        assert found >= {node.text for node in nodes}

    def test_documents_become_nodes_that_are_found(self) -> None:
        """`from_documents` splits, embeds and lists the documents."""
        index = self.from_documents([Document(text=text, id_=f"D{i}") for i, text in enumerate(TEXTS)])
        assert set(index.ref_doc_info) == {f"D{i}" for i in range(len(TEXTS))}
        assert {text for text, _ in self.ask(index)} >= set(TEXTS)

    def test_nodes_may_come_as_a_tuple(self) -> None:
        """Any sequence of nodes will do, not only a list."""
        nodes = chunks("d", 3)
        assert {text for text, _ in self.ask(self.build(tuple(nodes)))} >= {node.text for node in nodes}

    def test_of_two_nodes_with_one_id_the_last_counts(self) -> None:
        """The first leaves no trace in the answers."""
        index = self.build([TextNode(id_="n", text="the first words"), TextNode(id_="n", text="the second words")])
        assert [text for text, _ in self.ask(index)] == ["the second words"]

    def test_every_document_is_listed_with_its_nodes(self) -> None:
        """`ref_doc_info` names the documents of the index and their nodes."""
        index = self.build([*chunks("d", 3), *chunks("e", 2)])
        listed = {name: sorted(info.node_ids) for name, info in index.ref_doc_info.items()}
        assert listed == {"d": ["d-0", "d-1", "d-2"], "e": ["e-0", "e-1"]}

    def test_the_docstore_holds_the_nodes_given_and_no_others(self) -> None:
        """What the method derives is kept elsewhere: other users of the docstore never meet it."""
        nodes = chunks("d", 6)
        index = self.build(nodes)
        stored = {node_id: node.hash for node_id, node in index.docstore.docs.items()}
        assert stored == {node.node_id: node.hash for node in nodes}

    def test_the_nodes_given_are_not_changed(self) -> None:
        """Neither building nor retrieving writes into the user's own objects."""
        nodes = chunks("d", 4)
        before = [node.model_dump_json() for node in nodes]
        self.ask(self.build(nodes))
        assert [node.model_dump_json() for node in nodes] == before

    def test_a_misspelt_option_of_the_index_is_refused(self) -> None:
        """An unknown keyword is an error that names it, not a setting without effect."""
        with pytest.raises((TypeError, ValueError), match="misspelt_option"):
            self.build([], misspelt_option=1)


def _readable(texts: list[str]) -> set[str]:
    """Texts with at least one letter: the rest may be kept without being found."""
    return {text for text in texts if any(character.isalpha() for character in text)}


class OddCorpusTests(IndexHarness):
    """Empty, tiny, repetitive, huge and foreign corpora are built, searched, stored and deleted like any other."""

    def _odd(self, corpus: str) -> list[TextNode]:
        return [TextNode(id_=f"n{i}", text=text) for i, text in enumerate(CORPORA[corpus])]

    @each_corpus
    def test_odd_texts_are_found(self, corpus: str) -> None:
        """Every text with a letter in it is among the results; a corpus without any has none."""
        index, texts = self.build(self._odd(corpus)), CORPORA[corpus]
        for question in (QUESTION, *(text[:200] for text in texts)):
            found = {text for text, _ in self.ask(index, question)}
            assert found >= _readable(texts)
            assert bool(found) == bool(texts)

    @each_corpus
    def test_odd_texts_come_back_from_storage(self, corpus: str, tmp_path: Path) -> None:
        """A loaded index gives the answers of the one that was stored."""
        index = self.build(self._odd(corpus))
        assert self.ask(self.reloaded(index, tmp_path)) == self.ask(index)

    @each_corpus
    def test_odd_texts_can_be_deleted(self, corpus: str) -> None:
        """Once the nodes are deleted nothing is found, and the docstore is empty."""
        index = self.build(self._odd(corpus))
        index.delete_nodes([node.node_id for node in self._odd(corpus)], delete_from_docstore=True)
        assert self.ask(index) == []
        assert index.docstore.docs == {}

    def test_large_and_nested_metadata_are_carried_unchanged(self, tmp_path: Path) -> None:
        """Hundreds of keys, deep values and names that stores use themselves come back with the node."""
        metadata: dict[str, Any] = {f"key {i}": "word " * 20 for i in range(300)}
        metadata |= {"deep": {"a": [1, {"b": None}]}, "none": None, "number": 1e300, "text": "t", "doc_id": "d-1"}
        shown = list(metadata)
        node = TextNode(
            id_="n",
            text=TEXTS[0],
            metadata=metadata,
            excluded_embed_metadata_keys=shown,
            excluded_llm_metadata_keys=shown,
        )
        index = self.build([node, *chunks("d", 2)])
        for each in (index, self.reloaded(index, tmp_path)):
            results = self.retriever(each, similarity_top_k=50).retrieve(QUESTION)
            assert [result.node.metadata for result in results if result.node.node_id == "n"] == [metadata]

    def test_unusual_ids_are_ids(self, tmp_path: Path) -> None:
        """Ids with separators, quotes, other scripts or great length name nodes and documents like any other."""
        nodes = [
            TextNode(
                id_=f"{odd}#",
                text=f"{TEXTS[i % 6]} odd {i}",
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=odd)},
            )
            for i, odd in enumerate(IDS)
        ]
        index = self.build([*chunks("d", 2), *nodes])
        loaded = self.reloaded(index, tmp_path)
        assert self.ask(loaded) == self.ask(index)
        assert set(loaded.ref_doc_info) == {"d", *IDS}
        for odd in IDS:
            loaded.delete_ref_doc(odd, delete_from_docstore=True)
        assert set(loaded.ref_doc_info) == {"d"}
        assert not any(" odd " in text for text, _ in self.ask(loaded))
