"""All methods take the same names for the same things, and refuse the same mistakes in the same words."""

import asyncio
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.schema import Document, NodeWithScore
from tests.cases import CASES, QUESTION, Case, chunks
from tests.together.plugins import ONCE, has_postprocessor, postprocessor
from tests.together.server import served
from tests.together.test_observing import recorded

from llama_index.ragkit import DerivedRetriever, FallbackEvent
from llama_index.ragkit.errors import ConfigurationError

METHODS = [case for case in CASES if has_postprocessor(case)]
each_method = pytest.mark.parametrize("case", METHODS, ids=lambda case: case.name)


def given(case: Case) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=1.0 - i / 10) for i, node in enumerate(chunks("d", 6))]


@each_method
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"topn": 5}, "has no parameter 'topn'. Did you mean top_n=? It has "),
        ({"top_n": 0}, "top_n must be a whole number of at least 1"),
        ({"top_n": "3"}, "top_n must be a whole number of at least 1"),
        ({"top_n": True}, "top_n must be a whole number of at least 1"),
        ({"token_budget": 0}, "token_budget must be a whole number of at least 1 or None, not 0"),
        ({"filters": "no"}, "filters"),
    ],
    ids=str,
)
def test_a_postprocessor_refuses_what_it_does_not_know(case: Case, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        postprocessor(case, case.build(chunks("d", 3)), **wrong)


@each_method
def test_a_postprocessor_keeps_to_a_budget_of_tokens(case: Case) -> None:
    index = case.build(chunks("d", 6))
    count = sum(1 for _ in postprocessor(case, index).postprocess_nodes(given(case), query_str=QUESTION))
    kept = postprocessor(case, index, token_budget=12).postprocess_nodes(given(case), query_str=QUESTION)
    assert len(kept) < count
    assert postprocessor(case, index, token_budget=1).postprocess_nodes(given(case), query_str=QUESTION) == []


@each_method
def test_a_postprocessor_gives_at_most_top_n_nodes_unless_it_grows_to_them(case: Case) -> None:
    index = case.build(chunks("d", 6))
    kept = postprocessor(case, index, top_n=2).postprocess_nodes(given(case), query_str=QUESTION)
    assert len(kept) == (6 if case.name == "gemrag" else min(2, len(kept)))


@each_method
def test_whole_numbers_of_numpy_are_whole_numbers(case: Case) -> None:
    index = case.build(chunks("d", 3))
    assert len(index.as_retriever(similarity_top_k=np.int64(2)).retrieve(QUESTION)) <= 2
    assert postprocessor(case, index, top_n=np.int32(2)).top_n == 2


def _thresholds(kind: Callable[..., Any], annotation: str) -> list[str]:
    """Parameters of a class with this annotation, as a text or as a type."""
    found = inspect.signature(kind.__init__).parameters.values()
    return [p.name for p in found if getattr(p.annotation, "__name__", str(p.annotation)) == annotation]


@each_method
@pytest.mark.parametrize("bad", ["3", True, float("nan")], ids=str)
def test_a_retriever_takes_no_text_and_no_boolean_for_a_number(case: Case, bad: Any) -> None:
    index = case.build(chunks("d", 3))
    kind = type(index.as_retriever())
    names = [*_thresholds(kind, "int"), *_thresholds(kind, "float"), "similarity_top_k", "token_budget"]
    for name in names:
        with pytest.raises(ConfigurationError, match=f"{name} must be a (whole )?number"):
            kind(index, **{name: bad})


@each_method
def test_an_index_takes_no_text_and_no_boolean_for_a_number(case: Case) -> None:
    for name in [*_thresholds(case.cls, "int | None"), *_thresholds(case.cls, "float | None")]:
        for bad in ("3", True):
            with pytest.raises(ConfigurationError, match=f"{name} must be a (whole )?number"):
                case.build(**{name: bad})


# How each method asks a language model at query time, if it can.
ASKING: dict[str, dict[str, Any]] = {
    "graphrag": {"mode": "drift"},
    "hipporag": {"linking": "entities", "question_entities": "llm"},
    "mrag": {"aspects": "llm"},
    "pgrag": {"key_points": "llm"},
    "sprag": {"auto_query": True},
}


@pytest.mark.parametrize("case", [case for case in METHODS if case.name in ASKING], ids=lambda case: case.name)
@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_model_that_fails_costs_no_answer_and_it_is_said(case: Case, how: str) -> None:
    index = case.build(chunks("d", 6))
    with served(lambda asked: "") as (server, llm), recorded() as (events, _):
        retriever = index.as_retriever(llm=llm, retry=ONCE, **ASKING[case.name])
        assert isinstance(retriever, DerivedRetriever)
        found = retriever.retrieve(QUESTION) if how == "sync" else asyncio.run(retriever.aretrieve(QUESTION))
        assert server.asked
        explained = retriever.explain(QUESTION)
    told = [event for event in events if isinstance(event, FallbackEvent)]
    assert [(event.question, event.method) for event in told] == [(QUESTION, case.name)] * 2
    assert [why.node_id for why in explained] == [result.node.node_id for result in found]
    assert {why.fallback for why in explained} == {told[0].reason}
    assert "No usable reply of the LLM" in told[0].reason


@each_method
def test_every_result_has_an_explanation_of_one_form(case: Case) -> None:
    retriever = case.build(chunks("d", 6)).as_retriever()
    found = [(r.node.node_id, r.node.get_content(), r.get_score()) for r in retriever.retrieve(QUESTION)]
    with recorded() as (events, _):
        explained = retriever.explain(QUESTION)
    assert [(why.node_id, why.text, why.score) for why in explained] == found
    reasons = {event.reason for event in events if isinstance(event, FallbackEvent)}
    assert {why.fallback for why in explained} - {""} == reasons
    assert type(explained[0]).__name__.removesuffix("Explanation") in type(retriever).__name__


@each_method
def test_the_last_question_is_the_one_retrieved_for_until_something_is_deleted(case: Case) -> None:
    index = case.build(chunks("d", 6))
    retriever = index.as_retriever()
    retriever.explain("Who?")
    assert index.last_query is None
    found = retriever.retrieve(QUESTION)
    retriever.explain("Who?")
    assert index.last_query.question == QUESTION
    assert index.last_query.answer == [(result.node.node_id, result.get_score()) for result in found]
    index.insert_nodes(chunks("e", 2))
    assert index.last_query is not None
    index.delete_nodes(["e-0"])
    assert index.last_query is None


@each_method
def test_nodes_that_another_index_deleted_do_not_shorten_an_answer(case: Case) -> None:
    index = case.build([*chunks("d", 6), *chunks("e", 6)])
    options = {"pgrag": {"return_source": True}, "sprag": {"mode": "chunks"}}.get(case.name, {})
    retriever = index.as_retriever(similarity_top_k=3, **options)
    gone = [result.node.node_id for result in retriever.retrieve(QUESTION)]
    for node_id in gone:
        index.docstore.delete_document(node_id, raise_error=False)
    assert len(retriever.retrieve(QUESTION)) == 3


@each_method
def test_one_question_is_embedded_once(case: Case) -> None:
    index = case.build(chunks("d", 6))
    asked = []
    model = index.embed_model
    plain = type(model)._get_query_embedding
    seen = lambda self, query: asked.append(query) or plain(self, query)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), "_get_query_embedding", seen)
        index.as_retriever().explain(QUESTION)
    assert asked == [QUESTION]


@each_method
def test_a_page_is_made_by_the_same_call_everywhere(case: Case, tmp_path: Path) -> None:
    index = case.build(chunks("d", 6))
    page = index.visualize(tmp_path / "page.html", query=QUESTION, similarity_top_k=2)
    assert len(index.last_query.answer) <= 2
    assert QUESTION in page.read_text(encoding="utf-8")


@each_method
def test_a_cost_is_told_by_the_same_call_everywhere(case: Case) -> None:
    documents = [Document(text=node.text) for node in chunks("d", 3)]
    parts = {name: part for name, part in case.components().items() if name in ("extractor", "summarizer")}
    assert case.cls.estimate(documents, **parts, llm=MockLLM()).calls == 0
    if case.cls.default_extractor is not None:
        assert case.cls.estimate(documents, llm=MockLLM()).calls >= 3


@each_method
def test_chunks_are_counted_everywhere(case: Case) -> None:
    index = case.build(chunks("d", 4))
    index.delete_nodes(["d-1"])
    assert index.index_struct.counters["chunks"] == 3
    assert all(name.isidentifier() for name in index.index_struct.counters)


@each_method
def test_a_graph_of_networkx_has_kinds_texts_and_weights(case: Case) -> None:
    pytest.importorskip("networkx")
    index = case.build(chunks("d", 6))
    if not hasattr(index, "to_networkx"):
        pytest.skip("the method has no graph to give away")
    graph = index.to_networkx()
    assert {name for name, kind in graph.nodes(data="kind") if kind == "chunk"} == {f"d-{i}" for i in range(6)}
    assert graph.nodes["d-0"]["text"] == index.docstore.docs["d-0"].get_content()
    assert all(isinstance(text, str) for _, text in graph.nodes(data="text"))
    assert all(kind is not None for *_, kind in graph.edges(data="kind"))
    assert all(float(weight) == weight for *_, weight in graph.edges(data="weight"))
