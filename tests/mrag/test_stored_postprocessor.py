"""The heads of an index that is served from stores vote on the nodes of any retriever, whose rows alone are read."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.cases import QUESTION, chunks
from tests.mrag.stored import Twins

from llama_index.mrag import MRAGIndex, MRAGPostprocessor

MANY = "The Analytical Engine used cards. The loom wove silk in Lyon, by the river."


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    return Twins(tmp_path, lambda **options: MRAGIndex(chunks("d", 12), **options))


def given(nodes: Any) -> list[NodeWithScore]:
    return [NodeWithScore(node=node, score=5.0 - i) for i, node in enumerate(nodes)]


@pytest.mark.parametrize("question", [QUESTION, MANY])
@pytest.mark.parametrize("options", [{}, {"aspects": "none", "vote_weight": 1}, {"lexical_weight": 1}])
def test_it_ranks_as_the_index_in_memory_does(twins: Twins, question: str, options: dict[str, Any]):
    nodes = given(node for node in chunks("d", 12) if node.node_id in {"d-7", "d-1", "d-4", "d-11", "d-2"})
    nodes.insert(2, NodeWithScore(node=TextNode(text="foreign", id_="f"), score=2.5))
    ours, theirs = (
        MRAGPostprocessor(index=index, **options).postprocess_nodes(nodes, query_str=question)
        for index in (twins.stored, twins.memory)
    )
    assert [each.node_id for each in ours] == [each.node_id for each in theirs]
    assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-9)
    assert ours[2].node_id == "f"
    post = MRAGPostprocessor(index=twins.stored, **options)
    found = asyncio.run(post.apostprocess_nodes(nodes, query_bundle=QueryBundle(question)))
    assert [(each.node_id, each.score) for each in found] == [(each.node_id, each.score) for each in ours]


def test_nodes_that_a_filter_hides_are_dropped_and_copies_under_other_ids_are_ranked(twins: Twins):
    ids = ["d-3", "d-0", "d-2"]
    nodes = given({node.node_id: node for node in chunks("d", 12)}[i] for i in ids)
    only = MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value="e")])
    hidden = MRAGPostprocessor(index=twins.stored, filters=only).postprocess_nodes(nodes, query_str=MANY)
    assert hidden == []
    copies = given(TextNode(text=each.node.get_content(), id_=f"copy {each.node_id}") for each in nodes)
    ours, theirs = (
        MRAGPostprocessor(index=index).postprocess_nodes(copies, query_str=MANY)
        for index in (twins.stored, twins.memory)
    )
    assert [each.node_id for each in ours] == [each.node_id for each in theirs] != [each.node_id for each in copies]
    assert [each.score for each in ours] == pytest.approx([each.score for each in theirs], abs=1e-9)
    twins.stored.delete_nodes(["d-3"])
    left = MRAGPostprocessor(index=twins.again()).postprocess_nodes(nodes, query_str=MANY)
    assert left[0].node_id == "d-3"


def test_without_a_question_or_nodes_of_the_index_nothing_moves(twins: Twins, tmp_path_factory: Any):
    nodes = given(chunks("d", 3))
    post = MRAGPostprocessor(index=twins.stored)
    assert [(each.node_id, each.score) for each in post.postprocess_nodes(nodes)] == [
        (each.node_id, each.score) for each in nodes
    ]
    foreign = given([TextNode(text="a", id_="a"), TextNode(text="b", id_="b")])
    assert [each.node_id for each in post.postprocess_nodes(foreign, query_str="b")] == ["a", "b"]
    empty = Twins(tmp_path_factory.mktemp("empty"), partial(MRAGIndex, []))
    assert len(MRAGPostprocessor(index=empty.stored).postprocess_nodes(foreign, query_str="b")) == 2
