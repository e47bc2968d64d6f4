"""Does a write change what it should, and nothing else?"""

from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode

from llama_index.ragkit.testing.corpus import TEXTS, chunks
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness, SyncOrAsync, both_ways, call

__all__ = ["UpdatingTests"]

LONG = " ".join(TEXTS)
NEW = Document(text="Zanzibar exports cloves.", id_="Z")


def _documents(*texts: str) -> list[Document]:
    return [Document(text=text, id_=f"D{i}") for i, text in enumerate(texts)]


class UpdatingTests(IndexHarness):
    """Inserts, updates and refreshes: the old version goes; what stayed the same is kept and costs nothing."""

    def _of_small_chunks(self, documents: list[Document], **options: Any) -> Index:
        return self.from_documents(
            documents, transformations=[SentenceSplitter(chunk_size=24, chunk_overlap=0)], **options
        )

    @both_ways
    def test_an_insert_is_found(self, how: SyncOrAsync) -> None:
        """A document is split, listed and retrieved."""
        index = self._of_small_chunks(_documents(LONG))
        call(how, index, "insert", NEW)
        assert set(index.ref_doc_info) == {"D0", "Z"}
        assert any("Zanzibar" in text for text, _ in self.ask(index, "cloves"))

    @both_ways
    def test_an_update_replaces_the_document(self, how: SyncOrAsync) -> None:
        """Nothing of the old version is left in the answers or in the docstore."""
        index = self._of_small_chunks(_documents(LONG, "Other words."))
        call(how, index, "update_ref_doc", Document(text=TEXTS[5], id_="D0"))
        assert sorted(node.get_content() for node in index.docstore.docs.values()) == [TEXTS[5], "Other words."]
        assert not any("Babbage" in text for text, _ in self.ask(index, "Babbage"))
        assert any(TEXTS[5] in text for text, _ in self.ask(index))

    @both_ways
    def test_an_update_embeds_only_the_chunks_that_changed(self, how: SyncOrAsync) -> None:
        """Chunks that stay the same keep their ids and vectors."""
        model = self.embed_model()
        # Two sentences a chunk: a summarizer may embed single ones.
        index = self._of_small_chunks(_documents(LONG, "Other words. And others."), embed_model=model)
        known = {(node.node_id, node.get_content()) for node in index.docstore.docs.values()}
        model.texts.clear()
        call(how, index, "update_ref_doc", Document(text=f"{LONG} {NEW.text}", id_="D0"))
        kept = known & {(node.node_id, node.get_content()) for node in index.docstore.docs.values()}
        assert len(kept) >= len(known) - 1, "the chunk before the new sentence may change"
        assert {text for _, text in kept}.isdisjoint(model.texts)
        assert any("Zanzibar" in text for text, _ in self.ask(index, "cloves"))

    @both_ways
    def test_a_refresh_writes_what_is_new_or_changed_and_nothing_else(self, how: SyncOrAsync) -> None:
        """Its result says which documents were written; unchanged ones are not even embedded."""
        model = self.embed_model()
        index = self._of_small_chunks(_documents(LONG, "two"), embed_model=model)
        model.texts.clear()
        assert call(how, index, "refresh_ref_docs", _documents(LONG, "two")) == [False, False]
        assert model.texts == []
        assert call(how, index, "refresh_ref_docs", _documents(LONG, "zwei", "three")) == [False, True, True]
        assert set(index.ref_doc_info) == {"D0", "D1", "D2"}
        found = {text for text, _ in self.ask(index, "zwei")}
        assert found >= {"zwei", "three"}
        assert "two" not in found

    @both_ways
    def test_the_same_nodes_again_change_nothing_and_cost_nothing(self, how: SyncOrAsync) -> None:
        """An insert may be repeated."""
        model = self.embed_model()
        index = self.build(chunks("d", 5), embed_model=model)
        before = self.ask(index)
        model.texts.clear()
        call(how, index, "insert_nodes", chunks("d", 5))
        assert model.texts == []
        assert self.ask(index) == before

    @both_ways
    def test_a_node_that_comes_again_with_another_text_replaces_the_old(self, how: SyncOrAsync) -> None:
        """A node id has one text."""
        index = self.build(chunks("d", 3))
        source = chunks("d", 1)[0].relationships
        call(how, index, "insert_nodes", [TextNode(id_="d-1", text=NEW.text, relationships=source)])
        found = [text for text, _ in self.ask(index, "cloves")]
        assert NEW.text in found
        assert not any(text.endswith("d 1") for text in found)
        assert index.docstore.docs["d-1"].get_content() == NEW.text

    @both_ways
    def test_a_write_that_fails_changes_no_answer_and_can_be_repeated(self, how: SyncOrAsync) -> None:
        """The error of the embedding model reaches the user; once it is gone, a refresh writes the document."""
        model = self.embed_model()
        index = self._of_small_chunks(_documents(LONG), embed_model=model)
        before = self.ask(index)
        model.fail_on = "Zanzibar"
        with pytest.raises(RuntimeError, match="HashEmbedding fails"):
            call(how, index, "insert", NEW)
        assert self.ask(index) == before
        model.fail_on = ""
        assert call(how, index, "refresh_ref_docs", [*_documents(LONG), NEW]) == [False, True]
        assert any("Zanzibar" in text for text, _ in self.ask(index, "cloves"))
