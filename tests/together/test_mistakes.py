"""Arguments of another kind are refused by name before anything is read or written."""

from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Document
from llama_index.core.prompts import PromptTemplate
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters
from tests.cases import CASES, QUESTION, Case, chunks
from tests.together.plugins import postprocessor

from llama_index.graphrag import GraphRAGIndex
from llama_index.hipporag import HippoRAGIndex
from llama_index.ragkit import LLMSummarizer
from llama_index.ragkit.check_llm import check_llm
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.testing import HashEmbedding
from llama_index.raptor import RaptorIndex

each_method = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
BY_TYPE = MetadataFilters(filters=[MetadataFilters(filters=[MetadataFilter(key="_node_type", value="TextNode")])])


@each_method
def test_an_iterator_is_no_list_of_nodes(case: Case) -> None:
    index = case.build(chunks("d", 3))
    for write in (index.insert_nodes, index.refresh_ref_docs, case.from_documents):
        with pytest.raises(ConfigurationError, match="A list of documents or nodes is needed, not generator"):
            write(document for document in [Document(text="Oban rings.")])


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"filters": {"a": 1}}, r"filters must be MetadataFilters\(filters=\[...\]\), not dict"),
        ({"node_ids": "n1"}, "node_ids must be a list of ids"),
        ({"doc_ids": "d1"}, "doc_ids must be a list of ids"),
        ({"doc_ids": iter(["d1"])}, "doc_ids must be a list of ids, not list_iterator"),
        ({"filters": BY_TYPE}, "no filter by '_node_type'"),
    ],
    ids=["filters", "node_ids", "doc_ids", "iterator", "class"],
)
@each_method
def test_what_restricts_a_question_is_checked_when_the_retriever_is_made(
    case: Case, wrong: dict[str, Any], told: str
) -> None:
    index = case.build(chunks("d", 3))
    with pytest.raises(ConfigurationError, match=told):
        index.as_retriever(**wrong)


@each_method
def test_what_is_deleted_is_named_by_ids_in_a_list(case: Case) -> None:
    index = case.build(chunks("d", 3))
    mistakes: list[Any] = ["n1", None, iter(index.docstore.docs)]
    for wrong in mistakes:
        with pytest.raises(ConfigurationError, match="node_ids must be a list of ids"):
            index.delete_nodes(wrong, delete_from_docstore=True)
    document: Any = Document(text="Oban rings.", id_="d")
    with pytest.raises(ConfigurationError, match="ref_doc_id must be the id of a document, not Document"):
        index.delete_ref_doc(document)
    assert len(index.docstore.docs) == 3


@each_method
def test_a_question_may_be_a_vector_alone(case: Case) -> None:
    index = case.build(chunks("d", 6))
    vector = index.embed_model.get_query_embedding(QUESTION)
    none, empty = (
        index.as_retriever().retrieve(QueryBundle(query_str=text, embedding=vector))  # type: ignore[arg-type]
        for text in (None, "")
    )
    assert [(each.node.node_id, each.score) for each in none] == [(each.node.node_id, each.score) for each in empty]


@each_method
def test_an_index_has_no_prompts_beside_those_of_its_components(case: Case) -> None:
    index = case.build(chunks("d", 3))
    with pytest.raises(ConfigurationError, match=r"The index has no prompts \['entities'\]"):
        index.update_prompts({"entities": PromptTemplate("{text}")})


def test_a_postprocessor_takes_a_question_that_is_a_vector_alone(with_postprocessor: Case) -> None:
    index = with_postprocessor.build(chunks("d", 6))
    vector = index.embed_model.get_query_embedding(QUESTION)
    given, reranker = index.as_retriever().retrieve(QUESTION), postprocessor(with_postprocessor, index)
    none, empty = (
        reranker.postprocess_nodes(given, QueryBundle(query_str=text, embedding=vector))  # type: ignore[arg-type]
        for text in (None, "")
    )
    assert [(each.node.node_id, each.score) for each in none] == [(each.node.node_id, each.score) for each in empty]


def _openai(model: str) -> Any:
    return pytest.importorskip("llama_index.llms.openai").OpenAI(model=model, api_key="none", api_base="http://[::1]:9")


@pytest.mark.parametrize(
    ("llm", "told"),
    [
        (lambda: "gpt-4o", "An LLM is an object of LlamaIndex.*not 'gpt-4o'"),
        (lambda: _openai("qwen2.5:7b"), "OpenAI has no metadata of its model: Unknown model 'qwen2.5:7b'.*OpenAILike"),
    ],
    ids=["name", "model of another server"],
)
def test_what_is_no_usable_model_is_refused_by_name(llm: Callable[[], Any], told: str) -> None:
    documents, given = [Document(text="Ada kept the lamp. It burned oil. She was paid.")], llm()
    for cls in (HippoRAGIndex, GraphRAGIndex):
        with pytest.raises(ConfigurationError, match=told):
            cls.estimate(documents, llm=given)
    with pytest.raises(ConfigurationError, match=told):
        RaptorIndex.from_documents(documents, summarizer=LLMSummarizer(given), embed_model=HashEmbedding())
    with pytest.raises(ConfigurationError, match=told):
        check_llm(given)
