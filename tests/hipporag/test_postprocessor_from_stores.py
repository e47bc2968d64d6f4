"""The walk over a graph in a database reranks the nodes of any retriever as the walk in memory does."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.cases import QUESTION, chunks

from llama_index.hipporag import HippoRAGIndex, HippoRAGPostprocessor, NounPhraseExtractor
from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.sql import storage_context
from llama_index.ragkit.testing import HashEmbedding

NODES = [*chunks("d", 12), *chunks("e", 5)]


def build(nodes: list[TextNode], **options: Any) -> HippoRAGIndex:
    return HippoRAGIndex(nodes, embed_model=HashEmbedding(), extractor=NounPhraseExtractor(), **options)


def stored(folder: Path, nodes: list[TextNode]) -> HippoRAGIndex:
    made: dict[str, MatrixVectorStore] = {}
    context = storage_context(
        f"sqlite:///{folder}/x.db", vectors=lambda space, _: made.setdefault(space, MatrixVectorStore())
    )
    return build(nodes, storage_context=context)


def given(*ids: str) -> list[NodeWithScore]:
    held = {node.node_id: node for node in NODES}
    nodes = [held.get(each) or TextNode(text="foreign", id_=each) for each in ids]
    return [NodeWithScore(node=node, score=9.0 - i) for i, node in enumerate(nodes)]


def ranked(index: HippoRAGIndex, nodes: list[NodeWithScore], question: str | None, **options: Any) -> Any:
    post = HippoRAGPostprocessor(index=index, **options)
    found = post.postprocess_nodes(nodes, query_str=question)
    bundle = None if question is None else QueryBundle(question)
    later = asyncio.run(post.apostprocess_nodes(nodes, query_bundle=bundle))
    assert [(each.node_id, each.score) for each in later] == [(each.node_id, each.score) for each in found]
    return [each.node_id for each in found], [each.score for each in found]


@pytest.mark.parametrize("question", [QUESTION, "Where does the Rhone meet the Saone?", "Nothing named.", None])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"node_weight": 0.9},
        {"top_n": 3},
        {"filters": MetadataFilters(filters=[MetadataFilter(key="ref_doc_id", value="e")])},
    ],
    ids=["default", "nodes", "three", "filtered"],
)
def test_it_ranks_as_the_index_in_memory_does(tmp_path: Path, question: str | None, options: dict[str, Any]) -> None:
    nodes = given("d-7", "e-1", "foreign", "d-1", "d-4", "d-7", "e-3", "other")
    ours, theirs = (
        ranked(stored(tmp_path, NODES), nodes, question, **options),
        ranked(build(NODES), nodes, question, **options),
    )
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], abs=1e-3)


def test_foreign_nodes_and_an_empty_index_change_nothing(tmp_path: Path) -> None:
    for index in (stored(tmp_path, []), build([])):
        assert ranked(index, given("a", "b"), QUESTION) == (["a", "b"], [1.0, 1.0])
        assert HippoRAGPostprocessor(index=index).postprocess_nodes([], query_str=QUESTION) == []


def test_deleted_nodes_are_foreign(tmp_path: Path) -> None:
    index, twin = stored(tmp_path, NODES), build(NODES)
    for each in (index, twin):
        each.delete_nodes(["d-1"])
    nodes = given("d-1", "d-7", "e-1")
    assert ranked(index, nodes, QUESTION)[0] == ranked(twin, nodes, QUESTION)[0]
