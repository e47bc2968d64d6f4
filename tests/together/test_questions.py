"""What comes with a question: strings to embed, a vector, the engine's language model, filters that a model infers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core import Document, Settings
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.indices.vector_store.retrievers import VectorIndexAutoRetriever, VectorIndexRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import TransformQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores.types import MetadataInfo, VectorStoreInfo
from tests.cases import CASES, QUESTION, TEXTS, Case, ask, chunks, retriever, told
from tests.together.plugins import has_postprocessor, postprocessor

from llama_index.graphrag import PublishedOptions
from llama_index.ragkit import AutoRetriever, HybridRetriever, MatrixVectorStore
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import ScriptedLLM

METHODS = [case for case in CASES if has_postprocessor(case)]
each_method = pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)
ANSWER = "Lyon lies on the Rhone."  # of no word with the questions here
INFO = VectorStoreInfo(content_info="history", metadata_info=[MetadataInfo(name="part", type="str", description="")])


@pytest.fixture(params=["memory", "stores"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """Builds an index in memory, or in an SQLite file."""

    def made(case: Case, **kwargs: Any) -> Any:
        if request.param == "stores":
            vectors: dict[str, MatrixVectorStore] = {}
            kwargs["storage_context"] = storage_context(
                f"sqlite:///{tmp_path}/index.db",
                vectors=lambda space, _: vectors.setdefault(space, MatrixVectorStore()),
            )
        nodes = chunks("d", 6)
        for number, node in enumerate(nodes):
            node.metadata["part"] = "ab"[number % 2]
        return case.build(nodes, **kwargs)

    return made


@each_method
def test_strings_to_embed_and_a_vector_decide_what_is_near(case: Case, build: Callable[..., Any]) -> None:
    index = build(case)
    asked = retriever(index, similarity_top_k=6, lexical_weight=0)
    plain = told(asked.retrieve("thing?"))
    strings = told(asked.retrieve(QueryBundle("thing?", custom_embedding_strs=[ANSWER])))
    vector = index.embed_model.get_query_embedding(ANSWER)
    assert ANSWER in strings[0][0]
    assert ANSWER not in plain[0][0]
    if case.name != "pgrag":  # which also follows the names in strings: they are key points
        assert told(asked.retrieve(QueryBundle("thing?", embedding=vector))) == strings
    assert told(asked.retrieve(QueryBundle("thing?", embedding=[np.nan] * len(vector)))) == plain


@each_method
def test_the_mean_of_several_strings_counts(case: Case, build: Callable[..., Any]) -> None:
    if case.name in ("pgrag", "sprag"):
        pytest.skip("each string is a key point, or a query, of its own")
    index = build(case)
    given = QueryBundle("thing?", custom_embedding_strs=[ANSWER, TEXTS[0]])
    mean = index.embed_model.get_agg_embedding_from_queries([ANSWER, TEXTS[0]])
    asked = retriever(index, similarity_top_k=6)
    assert told(asked.retrieve(given)) == told(asked.retrieve(QueryBundle("thing?", embedding=mean)))


@each_method
def test_a_postprocessor_takes_strings_to_embed_too(case: Case, build: Callable[..., Any]) -> None:
    index = build(case)
    reranks = postprocessor(case, index)
    if "lexical_weight" not in type(reranks).model_fields or case.name == "gemrag":
        pytest.skip("it does not score the nodes that it is given")
    nodes = retriever(index, similarity_top_k=6).retrieve(QUESTION)
    given = QueryBundle("thing?", custom_embedding_strs=[ANSWER])
    vector = QueryBundle("thing?", embedding=index.embed_model.get_query_embedding(ANSWER))
    answers = [told(reranks.postprocess_nodes(nodes, query_bundle=each)) for each in (given, vector)]
    assert answers[0] == answers[1] != told(reranks.postprocess_nodes(nodes, query_bundle=QueryBundle("thing?")))


@each_method
def test_a_hypothetical_document_finds_what_it_is_like(case: Case) -> None:
    index = case.build(chunks("d", 6))
    engine = index.as_query_engine(llm=ScriptedLLM("yes"), similarity_top_k=3, lexical_weight=0)
    hypothetical = HyDEQueryTransform(llm=ScriptedLLM(ANSWER), include_original=False)
    found = TransformQueryEngine(engine, hypothetical).query("thing?").source_nodes
    assert any("Lyon" in each.node.get_content() for each in found)


def test_nearness_alone_takes_them_as_well() -> None:
    near = HybridRetriever(chunks("d", 6), METHODS[0].embed_model(), similarity_top_k=1, lexical_weight=0)
    assert ANSWER in near.retrieve(QueryBundle("thing?", custom_embedding_strs=[ANSWER]))[0].node.get_content()


STEPS: list[tuple[str, dict[str, Any]]] = [
    ("graphrag", {"mode": "drift"}),
    ("graphrag", {"mode": "global", "rating_threshold": 3}),
    ("graphrag", {"mode": "global", "published": PublishedOptions(relevance_budget=3)}),
    ("sprag", {"auto_query": True}),
    ("hipporag", {"question_entities": "llm", "linking": "entities"}),
    ("hipporag", {"filter_facts": True, "linking": "facts"}),
    ("pgrag", {"key_points": "llm"}),
    ("mrag", {"aspects": "llm"}),
]


@pytest.mark.parametrize(("method", "options"), STEPS, ids=str)
@pytest.mark.parametrize("chat", [False, True], ids=["query", "chat"])
def test_the_language_model_of_an_engine_makes_the_steps_of_retrieval(
    method: str, options: dict[str, Any], chat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(each for each in CASES if each.name == method)
    index, mine, other = case.build(chunks("d", 6)), ScriptedLLM("{}"), ScriptedLLM("{}")
    monkeypatch.setattr(Settings, "_llm", other)
    if chat:
        index.as_chat_engine(chat_mode="context", llm=mine, **options).chat(QUESTION)
    else:
        index.as_query_engine(llm=mine, **options).query(QUESTION)
    assert len(mine.prompts) > 1
    assert not other.prompts
    assert retriever(index).llm is other  # others than those of the engine are as they were


@each_method
def test_a_model_infers_filters_and_top_k(case: Case) -> None:
    index = case.build(
        [node.model_copy(update={"metadata": {"part": "ab"[i % 2]}}) for i, node in enumerate(chunks("d", 6))]
    )
    spec = '{"query": "engine", "filters": [{"key": "part", "operator": "==", "value": "b"}], "top_k": 2}'
    found = AutoRetriever(index, INFO, llm=ScriptedLLM(spec)).retrieve("Which engines are in part b?")
    assert 0 < len(found) <= 2
    assert all(each.node.metadata.get("part", "b") == "b" for each in found)
    with pytest.raises(TypeError, match="Did you mean similarity_top_k="):
        AutoRetriever(index, INFO, llm=ScriptedLLM(spec), similarity_topk=2)


@each_method
def test_a_keyword_of_another_index_is_named_and_no_other_is_suggested(case: Case) -> None:
    index: Any = case.build(chunks("d", 2))
    with pytest.raises(TypeError, match=r"vector_store_query_mode= belongs to VectorStoreIndex\.") as refused:
        index.as_retriever(vector_store_query_mode="mmr")
    assert "Did you mean" not in str(refused.value)


@each_method
def test_retrievers_of_a_vector_store_name_the_way(case: Case) -> None:
    index: Any = case.build(chunks("d", 2))
    assert not hasattr(index, "vector_store")
    with pytest.raises(ConfigurationError, match=r"as_retriever\(\)"):
        VectorIndexRetriever(index)
    with pytest.raises(ConfigurationError, match="AutoRetriever"):
        VectorIndexAutoRetriever(index, INFO, llm=ScriptedLLM("{}")).retrieve(QUESTION)


MODES: list[tuple[str, dict[str, Any]]] = [
    *((case.name, {}) for case in METHODS),
    *(("graphrag", {"mode": mode}) for mode in ("basic", "global")),
    ("graphrag", {"context": "mixed"}),
    ("sprag", {"mode": "chunks"}),
    ("sprag", {"order": "value"}),
    ("raptor", {"mode": "tree_traversal"}),
    ("gemrag", {"mode": "best_first"}),
]


@pytest.mark.parametrize(("method", "options"), MODES, ids=str)
def test_no_more_than_top_k_are_found_with_scores_from_0_to_1(method: str, options: dict[str, Any]) -> None:
    case = next(each for each in CASES if each.name == method)
    index = case.build([*chunks("d", 20), *chunks("e", 20)])
    for question in (QUESTION, "Lyon"):
        found = index.as_retriever(similarity_top_k=2, **options).retrieve(question)
        assert 0 < len(found) <= 2
        assert all(0 <= each.get_score() <= 1 for each in found)


@pytest.mark.parametrize("case", [c for c in METHODS if c.name != "mrag"], ids=lambda case: case.name)
def test_a_missing_language_model_is_told_before_anything_is_embedded(case: Case) -> None:
    model = case.embed_model()
    with pytest.raises(ConfigurationError, match=r"needs a language model.*(extractor|summarizer)="):
        case.cls.from_documents([Document(text=text) for text in TEXTS], embed_model=model, llm=MockLLM())
    assert not model.texts


@each_method
def test_what_is_no_document_or_node_is_refused_by_name(case: Case) -> None:
    index = case.build(chunks("d", 2))
    wrong: list[Callable[[], object]] = [
        lambda: case.from_documents(["a text"]),
        lambda: index.insert("a text"),  # type: ignore[arg-type]
        lambda: index.insert_nodes(["a text"]),  # type: ignore[list-item]
        lambda: index.refresh_ref_docs(["a text"]),  # type: ignore[list-item]
        lambda: index.update_ref_doc("a text"),  # type: ignore[arg-type]
        lambda: case.cls.estimate(["a text"]),  # type: ignore[list-item]
    ]
    for write in wrong:
        with pytest.raises(ConfigurationError, match=r"not str 'a text': wrap the text, Document\(text=...\)"):
            write()
    document: Any = Document(text="a text")
    for write in (lambda: case.from_documents(document), lambda: index.insert_nodes(document)):
        with pytest.raises(ConfigurationError, match="put it into a list"):
            write()
    with pytest.raises(ConfigurationError, match="list of ids"):
        index.delete_nodes("d")  # type: ignore[arg-type]
    assert ask(index)


def test_a_document_that_is_written_again_has_its_new_metadata() -> None:
    case = METHODS[0]
    for write in ("refresh_ref_docs", "update_ref_doc", "insert"):
        index = case.from_documents([Document(text=TEXTS[0], id_="a", metadata={"old": 1, "both": 1})])
        document = Document(text=TEXTS[0], id_="a", metadata={"both": 2})
        getattr(index, write)([document] if write == "refresh_ref_docs" else document)
        stored = index.docstore.get_ref_doc_info("a")
        assert index.ref_doc_info["a"].metadata == {"both": 2}, write
        assert stored is not None
        assert stored.metadata == {"both": 2}, write
