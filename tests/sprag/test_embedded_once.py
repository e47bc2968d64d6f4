"""Each chunk is embedded once; other vectors come when a search first needs them."""

import logging

import pytest
from llama_index.core import StorageContext, load_index_from_storage
from llama_index.core.schema import MetadataMode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from tests.sprag.corpus import SPLIT, letter, report

from llama_index.ragkit.testing import HashEmbedding
from llama_index.sprag import RuleContext, SpRAGIndex
from llama_index.sprag.descriptions import Descriptions

QUESTION = "What did the pilots ask for?"
FIRST_PAGE = "a-harbour_report.pdf-1"


@pytest.fixture
def model():
    return HashEmbedding()


@pytest.fixture
def index(model):
    return SpRAGIndex.from_documents(
        [*report(), letter(), *report(["One line."], path="9f86d081884c7d65.pdf")],
        transformations=SPLIT,
        extractor=RuleContext(),
        embed_model=model,
    )


def nearness(index, **options):
    found = index.as_retriever(mode="chunks", similarity_top_k=50, **options).retrieve(QUESTION)
    return [(result.node.node_id, round(result.score, 6)) for result in found]


def test_a_build_embeds_each_chunk_once_with_its_header_if_it_has_one(index, model):
    chunks = [node.get_content() for node in index.docstore.docs.values()]
    headers = [index.header_of(node_id) for node_id in index.docstore.docs]
    assert "" in headers
    texts = [text for text in model.texts if "quick brown fox" not in text]
    assert sorted(texts) == sorted(
        f"{header}\n\n{text}" if header else text for header, text in zip(headers, chunks, strict=True)
    )


def test_a_question_embeds_nothing_else_by_default(index, model):
    model.texts.clear()
    index.as_retriever().retrieve(QUESTION)
    assert model.texts in ([], [QUESTION])


def test_a_weight_of_plain_chunks_embeds_them_once_and_keeps_them(index, model, tmp_path):
    model.texts.clear()
    ranked = nearness(index, context_weight=0.5)
    with_header = [i for i in index.docstore.docs if index.header_of(i)]
    assert sorted(set(model.texts) - {QUESTION}) == sorted(index.docstore.docs[i].get_content() for i in with_header)
    model.texts.clear()
    assert nearness(index, context_weight=0.5) == ranked
    assert model.texts in ([], [QUESTION])
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, extractor=RuleContext(), embed_model=model)
    model.texts.clear()
    assert nearness(loaded, context_weight=0.5) == ranked
    assert model.texts in ([], [QUESTION])


def test_chunks_that_a_delete_leaves_without_a_header_are_embedded_by_it(index, model, monkeypatch):
    monkeypatch.setattr(Descriptions, "headers", lambda self, document, found: {n.node_id: "" for n in document.nodes})
    model.texts.clear()
    index.delete_ref_doc(FIRST_PAGE, delete_from_docstore=True)
    left = [node.get_content() for node in index.docstore.docs.values() if "tenant" in node.metadata]
    assert set(model.texts) == {text for text in left if text != "One line."}
    model.texts.clear()
    assert len({score for _, score in nearness(index, lexical_weight=0.0)}) > 2
    assert model.texts in ([], [QUESTION])


def test_a_search_by_words_embeds_no_chunk(index, model):
    index.delete_ref_doc(FIRST_PAGE, delete_from_docstore=True)
    model.texts.clear()
    assert nearness(index, lexical_weight=1.0, context_weight=0.5)
    assert model.texts in ([], [QUESTION])


def test_an_index_that_may_not_write_answers_all_the_same(index, model, tmp_path, caplog):
    index.storage_context.persist(str(tmp_path))
    context = StorageContext.from_defaults(persist_dir=str(tmp_path))
    loaded = load_index_from_storage(context, extractor=RuleContext(first_lines=3), embed_model=model)
    with caplog.at_level(logging.WARNING):
        assert nearness(loaded, context_weight=0.5) == nearness(index)
    assert "15 chunks could not be embedded without their headers" in caplog.text


def test_a_vector_store_of_the_user_gets_complete_chunks(model):
    store = SimpleVectorStore()
    index = SpRAGIndex.from_documents(
        [*report(), letter()],
        transformations=SPLIT,
        extractor=RuleContext(),
        embed_model=model,
        storage_context=StorageContext.from_defaults(vector_store=store),
        vector_store=store,
    )
    stored = store.data.embedding_dict
    assert stored.keys() == index.docstore.docs.keys()
    assert all(any(vector) for vector in stored.values())
    assert nearness(index, context_weight=0.5)


class ByDocument(SimpleVectorStore):
    """A store that deletes whole documents alone: what stays of one is written to it again."""

    def delete_nodes(self, *args, **kwargs):
        raise NotImplementedError


@pytest.mark.parametrize("store_cls", [SimpleVectorStore, ByDocument])
def test_a_vector_store_of_the_user_keeps_chunks_as_they_are_whatever_becomes_of_their_headers(model, store_cls):
    store = store_cls()
    index = SpRAGIndex.from_documents(
        report(), transformations=SPLIT, extractor=RuleContext(), embed_model=model, vector_store=store
    )
    index.delete_nodes([next(iter(index.ref_doc_info[FIRST_PAGE].node_ids))], delete_from_docstore=True)
    index.insert(letter())
    index.delete_ref_doc("a-harbour_report.pdf-2", delete_from_docstore=True)
    stored = store.data.embedding_dict
    assert stored.keys() == index.docstore.docs.keys()
    for node_id, vector in stored.items():
        text = index.docstore.docs[node_id].get_content(metadata_mode=MetadataMode.EMBED)
        assert vector == pytest.approx(model.get_text_embedding(text), abs=1e-6)
    model.texts.clear()
    assert nearness(index, context_weight=0.5)
    assert set(model.texts) <= {QUESTION}


def test_a_model_that_gives_zeros_is_asked_once():
    class Silent(HashEmbedding):
        def _get_text_embedding(self, text):
            return [0.0] * len(super()._get_text_embedding(text))

    model = Silent()
    index = SpRAGIndex.from_documents([letter()], extractor=RuleContext(), embed_model=model)
    generation = index.index_struct.generation
    assert index.as_retriever().retrieve("lamp")
    assert index.index_struct.generation == generation


def test_a_write_whose_embedding_fails_shows_nothing_and_is_taken_up_again(index, model):
    before = nearness(index)
    new = report(["Zanzibar. The pilots sailed for cloves. The pilots came back."], path="voyage.pdf")
    model.fail_on = "Zanzibar"
    with pytest.raises(RuntimeError, match="fails"):
        index.insert(new[0])
    assert nearness(index) == before
    assert nearness(index, context_weight=0.5)
    model.fail_on = ""
    index.insert(letter().model_copy(update={"id_": "second", "text": "A second letter. It is short."}))
    assert not any("cloves" in r.node.get_content() for r in index.as_retriever(mode="chunks").retrieve("cloves"))
    assert index.refresh_ref_docs(new) == [True]
    assert "cloves" in index.as_retriever(mode="chunks").retrieve("cloves")[0].node.get_content()
