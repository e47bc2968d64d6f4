"""The memory walked on from other retrievers' nodes."""

import asyncio

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.gemrag.test_index import build, corpus

from llama_index.gemrag import GEMRAGIndex, GEMRAGPostprocessor
from llama_index.ragkit.testing import HashEmbedding


@pytest.fixture(scope="module")
def index() -> GEMRAGIndex:
    return build()


def given(*ids: str, score: float = 0.9) -> list[NodeWithScore]:
    by_id = {node.node_id: node for node in corpus()}
    return [NodeWithScore(node=by_id[i], score=score - 0.1 * k) for k, i in enumerate(ids)]


def test_it_goes_on_through_the_graph_up_to_the_budget(index):
    found = GEMRAGPostprocessor(index=index, top_n=5, max_summaries=0).postprocess_nodes(given("n2-00", "n2-05"))
    assert [r.node.node_id for r in found[:2]] == ["n2-00", "n2-05"]
    assert [r.score for r in found[:2]] == pytest.approx([0.9, 0.8])
    assert len(found) == 5
    assert {r.node.node_id[:2] for r in found} == {"n2"}
    assert all(r.score <= 0.8 for r in found[2:])


def test_the_themes_of_the_nodes_can_be_added(index):
    theme = index.state.themes_of["n2-00"][0]
    found = GEMRAGPostprocessor(index=index, top_n=4, add_themes=True).postprocess_nodes(given("n2-00"), query_str="x")
    assert found[1].node.node_id == theme
    none = GEMRAGPostprocessor(index=index, top_n=4, add_themes=True, max_summaries=0)
    assert theme not in [r.node.node_id for r in none.postprocess_nodes(given("n2-00"))]


def test_the_query_counts_beside_the_edges(index):
    by_edges = GEMRAGPostprocessor(index=index, top_n=2, edge_weight=1.0, max_summaries=0)
    by_query = GEMRAGPostprocessor(index=index, top_n=2, edge_weight=0.0, max_summaries=0)
    asked = {"query_str": "bread oven flour yeast number4 bread."}
    assert by_edges.postprocess_nodes(given("n2-00"), **asked)[1].node.node_id[:2] == "n2"
    assert by_query.postprocess_nodes(given("n2-00"), **asked)[1].node.node_id == "n3-04"


def test_words_of_the_query_count_by_their_weight(index):
    asked = {"query_str": "number4 flour"}
    for weight in (0.6, 1.0):
        processor = GEMRAGPostprocessor(index=index, top_n=2, edge_weight=0.0, max_summaries=0, lexical_weight=weight)
        best = index.as_retriever(similarity_top_k=2, lexical_weight=weight, max_summaries=0).retrieve("number4 flour")
        wanted = next(r.node_id for r in best if r.node_id != "n2-00")
        assert processor.postprocess_nodes(given("n2-00"), **asked)[1].node.node_id == wanted


def test_foreign_nodes_are_matched_by_content_or_kept(index):
    twin = TextNode(text=corpus()[0].text, metadata={"topic": 0}, excluded_embed_metadata_keys=["topic"])
    other = NodeWithScore(node=TextNode(text="something else"), score=None)
    found = GEMRAGPostprocessor(index=index, top_n=4, max_summaries=0).postprocess_nodes(
        [other, NodeWithScore(node=twin, score=0.5)]
    )
    assert [r.node.get_content() for r in found[:2]] == ["something else", twin.text]
    assert len(found) == 4
    only = GEMRAGPostprocessor(index=index, top_n=4).postprocess_nodes([other])
    assert [r.node.get_content() for r in only] == ["something else"]


def test_more_nodes_than_the_budget_are_all_kept_and_none_is_changed(index):
    nodes = given("n0-00", "n1-00", "n2-00")
    found = GEMRAGPostprocessor(index=index, top_n=2).postprocess_nodes(nodes)
    assert [r.node.node_id for r in found] == ["n0-00", "n1-00", "n2-00"]
    found[0].node.metadata["poison"] = 1
    assert "poison" not in nodes[0].node.metadata
    cut = GEMRAGPostprocessor(index=index, top_n=9, token_budget=25).postprocess_nodes(nodes)
    assert 1 <= len(cut) < 9


def test_filters_hold_for_what_is_added(index):
    filters = MetadataFilters(filters=[MetadataFilter(key="topic", value=1)])
    processor = GEMRAGPostprocessor(index=index, top_n=6, filters=filters, add_themes=True)
    first, *added = processor.postprocess_nodes(given("n2-00", "n1-00"), query_str="bread")
    assert first.node.node_id == "n1-00"
    assert added
    for result in added:
        members = index.themes.get(result.node.node_id, [result.node.node_id])
        assert {member[:2] for member in members} == {"n1"}


def test_sync_and_async_agree_and_the_index_is_not_serialised(index):
    retriever = VectorStoreIndex(corpus(), embed_model=HashEmbedding()).as_retriever(similarity_top_k=3)
    nodes = retriever.retrieve("loom")
    processor = GEMRAGPostprocessor(index=index, top_n=7)
    found = processor.postprocess_nodes(nodes, query_str="loom")
    assert found == asyncio.run(processor.apostprocess_nodes(nodes, query_bundle=QueryBundle("loom")))
    assert "index" not in processor.to_dict()
    assert processor.to_dict()["top_n"] == 7
