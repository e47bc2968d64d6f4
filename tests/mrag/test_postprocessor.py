"""The heads vote on the nodes of any retriever."""

import asyncio

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.cases import QUESTION, chunks

from llama_index.mrag import MRAGIndex, MRAGPostprocessor
from llama_index.ragkit.errors import ConfigurationError


@pytest.fixture
def index() -> MRAGIndex:
    return MRAGIndex(chunks("d", 12))


def given(nodes) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=5.0 - i) for i, node in enumerate(nodes)]


def test_it_ranks_as_the_retriever_does_among_the_same_nodes(index):
    names = [f"d-{i}" for i in (7, 1, 4, 11, 2)]
    nodes = given(index.docstore.get_nodes(names))
    found = MRAGPostprocessor(index=index).postprocess_nodes(nodes, query_str=QUESTION)
    asked = index.as_retriever(similarity_top_k=5, node_ids=names).retrieve(QUESTION)
    assert [(r.node_id, r.score) for r in found] == [(r.node_id, r.score) for r in asked]
    assert [node.score for node in nodes] == [5.0, 4.0, 3.0, 2.0, 1.0]


def test_foreign_nodes_keep_their_places(index):
    known = index.docstore.get_nodes(["d-0", "d-2"])
    foreign = [TextNode(text=f"foreign {i}", id_=f"f{i}") for i in range(3)]
    found = MRAGPostprocessor(index=index).postprocess_nodes(
        given([foreign[0], known[0], foreign[1], known[1], foreign[2]]),
        query_str="The Analytical Engine used punched cards.",
    )
    assert [r.node_id for r in found] == ["f0", "d-2", "f1", "d-0", "f2"]
    scores = [r.score for r in found]
    assert scores == sorted(scores, reverse=True)


def test_nodes_that_a_filter_hides_are_dropped(index):
    ids = ["d-3", "d-0", "d-2"]
    only = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value="e")])
    found = MRAGPostprocessor(index=index, filters=only).postprocess_nodes(
        given(index.docstore.get_nodes(ids)), query_str="The Analytical Engine used punched cards."
    )
    assert found == []


def test_nodes_are_known_by_their_content_too(index):
    copies = [TextNode(text=node.text, id_=f"copy {node.node_id}") for node in index.docstore.get_nodes(["d-3", "d-2"])]
    found = MRAGPostprocessor(index=index).postprocess_nodes(given(copies), query_str=copies[1].text)
    assert [r.node_id for r in found] == ["copy d-2", "copy d-3"]
    assert found[0].node is not copies[1]


def test_doubles_are_kept(index):
    (node,) = index.docstore.get_nodes(["d-2"])
    assert len(MRAGPostprocessor(index=index).postprocess_nodes(given([node, node]), query_str="x")) == 2


def test_without_a_question_or_known_nodes_nothing_moves(index):
    nodes = given(index.docstore.get_nodes(["d-5", "d-1"]))
    post = MRAGPostprocessor(index=index)
    assert [(r.node_id, r.score) for r in post.postprocess_nodes(nodes)] == [("d-5", 5.0), ("d-1", 4.0)]
    unknown = given([TextNode(text="a", id_="a"), TextNode(text="b", id_="b")])
    assert [r.node_id for r in post.postprocess_nodes(unknown, query_str="b")] == ["a", "b"]
    assert MRAGPostprocessor(index=MRAGIndex([])).postprocess_nodes(unknown, query_str="b")


@pytest.mark.parametrize("weight", [0.0, 0.6, 1.0])
def test_lexical_weight_is_that_of_the_retriever(index, weight):
    names = [f"d-{i}" for i in (7, 1, 4, 11, 2)]
    nodes = given(index.docstore.get_nodes(names))
    found = MRAGPostprocessor(index=index, lexical_weight=weight).postprocess_nodes(nodes, query_str=QUESTION)
    asked = index.as_retriever(similarity_top_k=5, node_ids=names, lexical_weight=weight).retrieve(QUESTION)
    assert [(r.node_id, r.score) for r in found] == [(r.node_id, r.score) for r in asked]


@pytest.mark.parametrize("kwargs", [{"aspects": "none"}, {"vote": "decay"}, {"vote": "distance"}, {"vote_weight": 1}])
def test_sync_and_async_agree(index, kwargs):
    post = MRAGPostprocessor(index=index, **kwargs)
    nodes = VectorStoreIndex(chunks("d", 12)).as_retriever(similarity_top_k=6).retrieve(QUESTION)
    one = post.postprocess_nodes(nodes, query_str=QUESTION)
    other = asyncio.run(post.apostprocess_nodes(nodes, query_bundle=QueryBundle(QUESTION)))
    assert [(r.node_id, r.score) for r in one] == [(r.node_id, r.score) for r in other]


def test_bad_options_are_refused_and_the_index_is_not_serialised(index):
    with pytest.raises(ConfigurationError, match="veto"):
        MRAGPostprocessor(index=index, vote="veto")
    assert "index" not in MRAGPostprocessor(index=index).to_dict()
