"""Does a write change what it should and nothing else, and is what was deleted gone from everywhere?"""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode

from llama_index.ragkit.testing.corpus import TEXTS, chunks
from llama_index.ragkit.testing.index_kit.harness import Index, IndexHarness, SyncOrAsync, both_ways, call

__all__ = ["DeletingTests", "UpdatingTests"]

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


def _stored_bytes(index: Index, folder: Path) -> bytes:
    index.storage_context.persist(str(folder))
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()).lower()


class DeletingTests(IndexHarness):
    """A delete is complete: in the answers, in the lists of documents, in the docstore, and in every stored byte."""

    @both_ways
    def test_every_node_of_a_document_goes(self, how: SyncOrAsync) -> None:
        """Core's own delete passes over every second node, and its asynchronous one leaves stale entries."""
        index = self.build([*chunks("d", 7), *chunks("e", 3)])
        call(how, index, "delete_ref_doc", "d", delete_from_docstore=True)
        assert set(index.ref_doc_info) == {"e"}
        found = [text for text, _ in self.ask(index)]
        assert not any(" d " in text for text in found)
        assert sum(" e " in text for text in found) >= 3

    @both_ways
    def test_the_docstore_keeps_no_trace(self, how: SyncOrAsync) -> None:
        """Nodes, their hashes and the entry of the document are gone."""
        index = self.build([*chunks("d", 7), *chunks("e", 3)])
        call(how, index, "delete_ref_doc", "d", delete_from_docstore=True)
        assert set(index.docstore.docs) == {"e-0", "e-1", "e-2"}
        assert set(index.docstore.get_all_ref_doc_info() or {}) == {"e"}
        assert [index.docstore.get_document_hash(f"d-{i}") for i in range(7)] == [None] * 7

    @both_ways
    def test_the_docstore_keeps_its_nodes_unless_asked_to_delete_them(self, how: SyncOrAsync) -> None:
        """Other indexes may need the nodes: only this index forgets them."""
        index = self.build([*chunks("d", 3), *chunks("e", 3)])
        call(how, index, "delete_ref_doc", "d")
        assert set(index.docstore.docs) >= {"d-0", "d-1", "d-2"}
        assert not any(" d " in text for text, _ in self.ask(index))

    @both_ways
    def test_single_nodes_go_and_the_others_of_their_document_stay(self, how: SyncOrAsync) -> None:
        """Unknown ids among them are passed over."""
        index = self.build(chunks("d", 4))
        call(how, index, "delete_nodes", ["d-1", "d-2", "unknown"], delete_from_docstore=True)
        assert set(index.docstore.docs) == {"d-0", "d-3"}
        listed = index.docstore.get_ref_doc_info("d")
        assert listed is not None
        assert sorted(index.ref_doc_info["d"].node_ids) == sorted(listed.node_ids) == ["d-0", "d-3"]
        found = [text for text, _ in self.ask(index)]
        assert any(text.endswith("d 0") for text in found)
        assert not any(text.endswith(("d 1", "d 2")) for text in found)

    def test_no_stored_byte_remains(self, tmp_path: Path) -> None:
        """A word of a document, in its text or metadata, is in no persisted file after the delete."""
        documents = [Document(text=" ".join([*TEXTS[i:], *TEXTS[:i]]), id_=f"D{i}") for i in range(3)]
        canary = Document(text=f"{TEXTS[2]} Qzxcanary was here. {TEXTS[3]}", id_="C", metadata={"key": "qzxcanary"})
        small = [SentenceSplitter(chunk_size=32, chunk_overlap=0)]
        index = self.from_documents([*documents, canary], transformations=small)
        assert b"qzxcanary" in _stored_bytes(index, tmp_path / "before")
        index.delete_ref_doc("C", delete_from_docstore=True)
        assert b"qzxcanary" not in _stored_bytes(index, tmp_path / "after")

    def test_an_index_may_be_emptied_and_filled_again(self) -> None:
        """What was deleted can come back, and then answers as before."""
        index = self.build(chunks("d", 5))
        before = self.ask(index)
        index.delete_ref_doc("d", delete_from_docstore=True)
        assert self.ask(index) == []
        index.insert_nodes(chunks("d", 5))
        assert self.ask(index) == before

    @both_ways
    def test_unknown_documents_are_passed_over(self, how: SyncOrAsync) -> None:
        """The delete of a document that is not there changes nothing and is no error."""
        index = self.build(chunks("d", 3))
        before = self.ask(index)
        call(how, index, "delete_ref_doc", "nowhere", delete_from_docstore=True)
        assert self.ask(index) == before
