"""Does an index hold what it was given, however it was given?"""

import pytest
from llama_index.core import Document
from llama_index.core.schema import TextNode

from llama_index.ragkit.testing.corpus import QUESTION, TEXTS, chunks
from llama_index.ragkit.testing.index_kit.harness import IndexHarness

__all__ = ["BuildingTests"]

QUESTIONS = (QUESTION, "silk from Lyon", "Who drew the engine?")


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
