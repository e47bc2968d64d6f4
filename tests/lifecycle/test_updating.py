"""Inserts and updates, beyond what the conformance kit says of them."""

import pytest
from llama_index.core import Document
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode
from tests.cases import TEXTS, Case, ask, chunks

from llama_index.ragkit.errors import EmbeddingError

SPLIT = [SentenceSplitter(chunk_size=24, chunk_overlap=0)]
LONG = " ".join(TEXTS)


def documents(*texts: str) -> list[Document]:
    return [Document(text=text, id_=f"D{i}") for i, text in enumerate(texts)]


def test_of_documents_with_the_same_id_the_last_replaces_the_others_and_is_then_unchanged(case: Case):
    same = [Document(text=text, id_="D") for text in TEXTS[:3]]
    index = case.build()
    for expected in (True, False, False):
        assert index.refresh_ref_docs([*same, *documents(LONG)]) == [expected] * 4
        assert sorted(node.text for node in index.docstore.docs.values()) == sorted([TEXTS[2], LONG])


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_vectors_that_are_not_finite_are_refused_before_anything_is_written(case: Case, bad: float):
    index = case.build(chunks("d", 3))
    before, docs = ask(index), set(index.docstore.docs)
    with pytest.raises(EmbeddingError, match="NaN"):
        index.insert_nodes([TextNode(text="broken", embedding=[bad] * 32), TextNode(text="fine")])
    assert set(index.docstore.docs) == docs
    assert ask(index) == before
    index.insert_nodes([TextNode(text="fine")])
    assert "fine" in [text for text, _ in ask(index, "fine")]


def test_vectors_of_another_length_are_refused(case: Case):
    index = case.build(chunks("d", 3))
    with pytest.raises(EmbeddingError, match="32"):
        index.insert_nodes([TextNode(text="short", embedding=[1.0, 0.0])])


def test_an_embedding_that_a_node_carries_is_used_and_not_stored_in_the_docstore(case: Case):
    model = case.embed_model()
    node = TextNode(id_="n", text="words", embedding=model.vector("other words entirely"))
    index = case.build([node], embed_model=model)
    assert "words" not in [text for text in model.texts if text == "words" and case.name not in ("toy", "pgrag")]
    assert index.docstore.docs["n"].embedding is None
    assert node.embedding is not None


def test_a_node_with_no_text_is_kept_but_not_searched(case: Case):
    index = case.build([TextNode(id_="empty", text=""), TextNode(id_="full", text="words")])
    assert set(index.docstore.docs) == {"empty", "full"}
    assert [text for text, _ in ask(index)] == ["words"]
    index.delete_nodes(["empty"], delete_from_docstore=True)
    assert set(index.docstore.docs) == {"full"}


def test_a_derivation_that_fails_leaves_the_document_unfinished(case: Case, monkeypatch):
    index = case.from_documents(documents(LONG), transformations=SPLIT)
    put = type(index.storage.records).put

    def broken(self, collection, pairs):
        if collection not in ("nodes", "documents", "meta") and pairs:
            raise OSError("disk full")
        return (yield from put(self, collection, pairs))

    apply = type(index.builder).apply

    def failing(self, state, change):
        yield from apply(self, state, change)
        raise OSError("disk full")

    monkeypatch.setattr(type(index.builder), "apply", failing)
    new = Document(text="Zanzibar exports cloves.", id_="Z")
    with pytest.raises(OSError, match="disk full"):
        index.insert(new)
    monkeypatch.undo()
    assert index.index_struct.building
    assert index.refresh_ref_docs([new]) == [True]
    assert not index.index_struct.building
    assert any("Zanzibar" in text for text, _ in ask(index, "Zanzibar"))
