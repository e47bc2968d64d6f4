"""The runner: any retriever, any query engine, sync and async, and honest about what failed."""

import threading

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation import (
    Evaluation,
    LabelledQuery,
    aevaluate_query_engine,
    aevaluate_retriever,
    comparison_table,
    difference_table,
    evaluate_query_engine,
    evaluate_retriever,
    multi_aspect_metrics,
    retrieval_metrics,
    score_rankings,
)


class Scripted(BaseRetriever):
    """Answers "a b" with the nodes a and b; "boom" raises. Remembers which of its two methods was used."""

    def __init__(self):
        super().__init__()
        self.used = set()
        self.threads = set()

    def _nodes(self, query_bundle):
        if query_bundle.query_str == "boom":
            raise RuntimeError("no answer")
        nodes = []
        for name in query_bundle.query_str.split():
            node = TextNode(id_=name, text=name)
            node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id=name.upper())
            nodes.append(NodeWithScore(node=node, score=1.0))
        return nodes

    def _retrieve(self, query_bundle: QueryBundle):
        self.used.add("sync")
        self.threads.add(threading.get_ident())
        return self._nodes(query_bundle)

    async def _aretrieve(self, query_bundle: QueryBundle):
        self.used.add("async")
        return self._nodes(query_bundle)


class Echo(BaseQueryEngine):
    def __init__(self):
        super().__init__(CallbackManager([]))

    def _query(self, query_bundle):
        if query_bundle.query_str == "boom":
            raise RuntimeError("no answer")
        return Response(query_bundle.query_str)

    async def _aquery(self, query_bundle):
        return Response(query_bundle.query_str + " async")

    def _get_prompt_modules(self):
        return {}


QUERIES = [
    LabelledQuery("q1", "a x b", gold=("a", "b")),
    LabelledQuery("q2", "x y a", gold=("a",)),
]


@pytest.mark.parametrize("num_workers", [1, 3])
def test_retriever_scores_by_question(num_workers):
    retriever = Scripted()
    result = evaluate_retriever(retriever, QUERIES, metrics=retrieval_metrics([1, 3]), num_workers=num_workers)
    assert result.name == "Scripted"
    assert result.ids == ("q1", "q2")
    assert result.scores["R@1"] == (0.5, 0.0)
    assert result.scores["R@3"] == (1.0, 1.0)
    assert result.scores["all@3"] == (1.0, 1.0)
    assert result.scores["MRR"] == (1.0, 1 / 3)
    assert retriever.used == {"sync"}


@pytest.mark.asyncio
async def test_async_uses_async_methods_and_gives_the_same_scores():
    retriever = Scripted()
    result = await aevaluate_retriever(retriever, QUERIES, num_workers=2)
    assert retriever.used == {"async"}
    assert result == evaluate_retriever(Scripted(), QUERIES)


@pytest.mark.asyncio
async def test_sync_works_inside_a_running_loop():
    assert evaluate_retriever(Scripted(), QUERIES).ids == ("q1", "q2")


def test_gold_may_be_documents_or_sources_of_derived_nodes():
    queries = [LabelledQuery("q", "x a", gold=("A",))]
    assert evaluate_retriever(Scripted(), queries, id_of=lambda n: n.node.ref_doc_id).scores["MRR"] == (0.5,)
    queries = [LabelledQuery("q", "x a", gold=("x2",))]
    sources = evaluate_retriever(Scripted(), queries, id_of=lambda n: [n.node.node_id + "1", n.node.node_id + "2"])
    assert sources.scores["MRR"] == (0.5,)
    nothing = evaluate_retriever(Scripted(), queries, id_of=lambda n: None)
    assert nothing.scores["MRR"] == (0.0,)


def test_an_error_is_raised_or_recorded_never_scored():
    queries = [*QUERIES, LabelledQuery("q3", "boom", gold=("a",))]
    with pytest.raises(RuntimeError, match="no answer"):
        evaluate_retriever(Scripted(), queries)
    result = evaluate_retriever(Scripted(), queries, on_error="record")
    assert result.ids == ("q1", "q2")
    assert result.failures == {"q3": "RuntimeError: no answer"}
    assert "2 (1 failed)" in result.table()


def test_a_system_that_always_fails_is_tabulated_as_such():
    for run, kwargs in ((evaluate_retriever, {"gold": ("a",)}), (evaluate_query_engine, {"answers": ("a",)})):
        system = Scripted() if run is evaluate_retriever else Echo()
        result = run(system, [LabelledQuery("q", "boom", **kwargs)], on_error="record")
        assert result.ids == ()
        assert "0 (1 failed)" in result.table()


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([], "no questions"),
        ([LabelledQuery("q7", "a")], "'q7' has no gold"),
        ([LabelledQuery("q7", "a", gold=("a",))] * 2, "Two questions have the id 'q7'"),
    ],
)
def test_questions_are_checked_before_any_is_asked(queries, message):
    retriever = Scripted()
    with pytest.raises(ConfigurationError, match=message):
        evaluate_retriever(retriever, queries)
    assert not retriever.used


def test_an_iterator_of_questions_is_evaluated():
    queries = [LabelledQuery("q7", "a", gold=("a",))]
    assert evaluate_retriever(Scripted(), iter(queries)) == evaluate_retriever(Scripted(), queries)
    assert score_rankings("x", {"q7": ["a"]}, iter(queries)).scores["MRR"] == (1.0,)


def test_unknown_on_error_is_refused():
    with pytest.raises(ConfigurationError, match="'ignore'"):
        evaluate_retriever(Scripted(), QUERIES, on_error="ignore")
    with pytest.raises(ConfigurationError, match="num_workers"):
        evaluate_retriever(Scripted(), QUERIES, num_workers=0)


def test_query_engine_is_scored_by_em_and_f1():
    queries = [
        LabelledQuery("q1", "The red dog.", answers=("red dog",)),
        LabelledQuery("q2", "red dog", answers=("red cat", "blue")),
    ]
    result = evaluate_query_engine(Echo(), queries, num_workers=2)
    assert result.scores == {"EM": (1.0, 0.0), "F1": (1.0, 0.5)}
    with pytest.raises(ConfigurationError, match="no answers"):
        evaluate_query_engine(Echo(), QUERIES)


@pytest.mark.asyncio
async def test_query_engine_async():
    result = await aevaluate_query_engine(Echo(), [LabelledQuery("q", "red", answers=("red async",))])
    assert result.scores["EM"] == (1.0,)


def test_multi_aspect_metrics_of_a_ranking():
    metrics = multi_aspect_metrics({"a": "tea", "b": "rice", "c": "rice"})
    result = score_rankings("mine", {"q": ["a", "c", "b"]}, [LabelledQuery("q", "?", gold=("a", "b"))], metrics)
    assert result.scores == {"success@n": (0.5,), "category@n": (1.0,), "weighted@n": (pytest.approx(2 / 3),)}


def test_a_ranking_that_is_missing_is_an_error():
    with pytest.raises(ConfigurationError, match="q2"):
        score_rankings("mine", {"q1": ["a"]}, QUERIES)


def test_comparison_joins_by_id_not_by_place():
    one = Evaluation("one", ("q1", "q2"), {"MRR": (1.0, 0.5)})
    two = Evaluation("two", ("q2", "q1"), {"MRR": (0.5, 1.0)})
    gap = one.difference(two, "MRR")
    assert (gap.low, gap.mean, gap.high) == (0, 0, 0)
    with pytest.raises(ConfigurationError, match="q2"):
        one.difference(Evaluation("three", ("q1",), {"MRR": (1.0,)}), "MRR")
    with pytest.raises(ConfigurationError, match="'R@9'"):
        one.interval("R@9")


def test_tables_are_markdown():
    one = Evaluation("one", ("q1", "q2"), {"MRR": (1.0, 1.0), "R@2": (0.0, 0.0)})
    two = Evaluation("two", ("q1", "q2"), {"MRR": (0.5, 0.5), "R@2": (0.0, 0.0)})
    assert comparison_table([one, two], ["MRR"]).splitlines() == [
        "| system | questions | MRR |",
        "| --- | --- | --- |",
        "| one | 2 | 1.000 [1.000, 1.000] |",
        "| two | 2 | 0.500 [0.500, 0.500] |",
    ]
    assert difference_table([one], two).splitlines()[-1] == (
        "| one - two | **+0.500 [+0.500, +0.500]** | +0.000 [+0.000, +0.000] |"
    )
    with pytest.raises(ConfigurationError, match="empty"):
        comparison_table([])
