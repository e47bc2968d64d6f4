"""Components of the wrong kind are refused by name, before anything is stored."""

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage
from llama_index.core.llms import MockLLM
from tests.cases import CASES, Case

from llama_index.graphrag import GraphRAGIndex, LeidenClustering
from llama_index.hipporag import HippoRAGIndex, HippoRAGPostprocessor, NounPhraseExtractor
from llama_index.pgrag import OutlineExtractor
from llama_index.ragkit import ExtractiveSummarizer
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import HashEmbedding
from llama_index.raptor import GraphClustering, RaptorIndex, RaptorPostprocessor

DOCUMENTS = [Document(text="Otto Lindqvist founded the Bergslund Glassworks.", id_="D")]


def refused(build, *parts, **keywords):
    context = StorageContext.from_defaults()
    with pytest.raises(ConfigurationError) as error:
        build(DOCUMENTS, storage_context=context, **keywords)
    assert all(part in str(error.value) for part in parts), str(error.value)
    assert not context.docstore.docs
    assert not context.index_store.index_structs()


def test_an_extractor_of_another_method_is_refused(case: Case):
    for extractor, method in ((OutlineExtractor(), "pgrag"), (NounPhraseExtractor(), "hipporag")):
        if case.cls.method != method:
            refused(case.from_documents, "extractor", type(extractor).__name__, repr(method), extractor=extractor)


def test_what_is_no_extractor_is_refused(case: Case):
    refused(case.from_documents, "extractor", "the class OutlineExtractor", "object", extractor=OutlineExtractor)
    refused(case.from_documents, "extractor", "'rules'", extractor="rules")
    refused(case.from_documents, "extractor", "HashEmbedding", extractor=HashEmbedding())


def test_models_and_stores_of_the_wrong_kind_are_refused(case: Case):
    refused(case.from_documents, "llm", "the class MockLLM", llm=MockLLM)
    refused(case.from_documents, "llm", "3", llm=3)
    refused(case.from_documents, "embed_model", "the class HashEmbedding", embed_model=HashEmbedding)
    refused(case.from_documents, "embed_model", "7", embed_model=7)
    refused(case.from_documents, "vector_store", "'chroma'", vector_store="chroma")
    refused(case.from_documents, "vector_store", "the class dict", vector_store=dict)


@pytest.mark.parametrize("index_cls", [RaptorIndex, GraphRAGIndex])
def test_summarizers_and_clusterings_of_the_wrong_kind_are_refused(index_cls):
    build = next(case for case in CASES if case.cls is index_cls).from_documents
    refused(build, "summarizer", "the class ExtractiveSummarizer", summarizer=ExtractiveSummarizer)
    refused(build, "summarizer", "'short'", summarizer="short")
    refused(build, "clustering", "'leiden'", clustering="leiden")
    refused(build, "clustering", "the class GraphClustering", clustering=GraphClustering)
    other, method = (GraphClustering(), "raptor") if index_cls is GraphRAGIndex else (LeidenClustering(), "graphrag")
    refused(build, "clustering", type(other).__name__, repr(method), clustering=other)


def test_the_message_names_extractors_of_the_method():
    with pytest.raises(
        ConfigurationError, match=r"OpenIEExtractor\(\) or NounPhraseExtractor\(\), not OutlineExtractor"
    ):
        HippoRAGIndex.from_documents(DOCUMENTS, extractor=OutlineExtractor())
    with pytest.raises(ConfigurationError, match=r"not OutlineExtractor, which belongs to 'pgrag'"):
        HippoRAGIndex.estimate(DOCUMENTS, extractor=OutlineExtractor())


def test_a_loaded_index_ignores_the_extractor_of_another_method():
    context = StorageContext.from_defaults()
    HippoRAGIndex.from_documents(DOCUMENTS, extractor=NounPhraseExtractor(), storage_context=context)
    assert load_index_from_storage(context, extractor=OutlineExtractor()).ref_doc_info.keys() == {"D"}
    with pytest.raises(ConfigurationError, match="'rules'"):
        load_index_from_storage(context, extractor="rules")


def test_a_postprocessor_over_the_index_of_another_method_is_refused():
    index = HippoRAGIndex.from_documents(DOCUMENTS, extractor=NounPhraseExtractor())
    assert HippoRAGPostprocessor(index=index)
    for wrong, found in ((index, "HippoRAGIndex"), (HippoRAGIndex, "class"), ("index", "str"), (None, "NoneType")):
        with pytest.raises(ConfigurationError, match=found):
            RaptorPostprocessor(index=wrong)
