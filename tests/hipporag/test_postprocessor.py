"""HippoRAGPostprocessor on the nodes of any retriever."""

import asyncio

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.hipporag.test_retriever import CHAIN, index_of

from llama_index.hipporag import HippoRAGIndex, HippoRAGPostprocessor


@pytest.fixture(scope="module")
def index() -> HippoRAGIndex:
    return index_of(synonym_threshold=0.99)


def results(index: HippoRAGIndex, names: list[str]) -> list[NodeWithScore]:
    nodes = index.docstore.docs
    return [NodeWithScore(node=nodes[name], score=1 - 0.1 * place) for place, name in enumerate(names)]


def told(found: list[NodeWithScore]) -> list[tuple[str, float]]:
    return [(n.node.node_id, n.score) for n in found]


def test_what_the_graph_joins_to_the_question_moves_up(index: HippoRAGIndex):
    given = results(index, ["other", "silent", "museum", "engine"])
    ranked = told(HippoRAGPostprocessor(index=index, node_weight=0.05).postprocess_nodes(given, query_str="Ada Byron"))
    assert ranked[0] == ("engine", 1.0)
    assert {name for name, _ in ranked} == {"other", "silent", "museum", "engine"}
    assert [n.score for n in given] == [1.0, 0.9, 0.8, 0.7000000000000001] or given[0].score == 1.0


def test_without_a_question_the_nodes_decide(index: HippoRAGIndex):
    given = results(index, ["ada", "other", "engine"])
    post = HippoRAGPostprocessor(index=index)
    assert told(post.postprocess_nodes(given))[0][0] == "ada"
    asked = told(post.postprocess_nodes(given, query_str="zzz"))
    assert told(post.postprocess_nodes(given)) == asked


def test_nodes_that_the_index_does_not_know_keep_their_places(index: HippoRAGIndex):
    stranger = NodeWithScore(node=TextNode(id_="stranger", text="Who am I?"), score=0.95)
    given = results(index, ["other", "engine"])
    given.insert(1, stranger)
    ranked = told(HippoRAGPostprocessor(index=index, node_weight=0.05).postprocess_nodes(given, query_str="Ada Byron"))
    assert [name for name, _ in ranked] == ["engine", "stranger", "other"]
    scores = [score for _, score in ranked]
    assert scores == sorted(scores, reverse=True)
    only = HippoRAGPostprocessor(index=index).postprocess_nodes([stranger], query_str="Ada Byron")
    assert told(only) == [("stranger", 1.0)]


def test_foreign_nodes_are_known_by_their_text(index: HippoRAGIndex):
    copy = index.docstore.docs["engine"].model_copy(update={"id_": "copy"})
    copy.relationships = {}
    given = [*results(index, ["other"]), NodeWithScore(node=copy, score=0.1)]
    ranked = HippoRAGPostprocessor(index=index, node_weight=0.05).postprocess_nodes(given, query_str="Ada Byron")
    assert told(ranked)[0][0] == "copy"


def test_sync_equals_async_and_limits_hold(index: HippoRAGIndex):
    given = VectorStoreIndex(list(index.docstore.docs.values())).as_retriever(similarity_top_k=5).retrieve("machine")
    post = HippoRAGPostprocessor(index=index, top_n=2)
    ranked = post.postprocess_nodes(given, query_str="Ada Byron")
    assert len(ranked) == 2
    assert told(asyncio.run(post.apostprocess_nodes(given, query_bundle=QueryBundle("Ada Byron")))) == told(ranked)
    assert HippoRAGPostprocessor(index=index, token_budget=1).postprocess_nodes(given, query_str="x") == []
    assert post.postprocess_nodes([], query_str="x") == []
    assert "_index" not in post.to_dict()


def test_a_filter_keeps_the_walk_out_of_hidden_passages(index: HippoRAGIndex):
    given = results(index, ["museum", "ada"])
    tenant = MetadataFilters(filters=[MetadataFilter(key="tenant", value="A")])
    free = dict(
        told(HippoRAGPostprocessor(index=index, node_weight=0.01).postprocess_nodes(given, query_str="Ada Byron"))
    )
    kept = dict(
        told(
            HippoRAGPostprocessor(index=index, node_weight=0.01, filters=tenant).postprocess_nodes(
                given, query_str="Ada Byron"
            )
        )
    )
    assert kept["museum"] < free["museum"]
    assert set(kept) == {"museum", "ada"} <= set(CHAIN)
