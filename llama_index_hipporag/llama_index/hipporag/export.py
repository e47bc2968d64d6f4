"""Export of the knowledge graph: as plain rows, to networkx, and to a LlamaIndex property graph."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, LabelledNode, PropertyGraphStore, Relation
from scipy.sparse import triu

from llama_index.hipporag.graph.passage import Fact
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import Steps
from llama_index.ragkit.extras import need
from llama_index.ragkit.steps import call
from llama_index.ragkit.storage.derived_nodes import NodeFetch
from llama_index.ragkit.storage.nodes import plain_text

__all__ = ["to_networkx", "to_property_graph"]

_BATCH = 1000  # nodes or relations in one call of a property graph store


def _facts_of(state: HippoRAGState) -> Iterator[tuple[Fact, int, list[str]]]:
    """Every fact in the order of the graph's columns, how often it is stated, and the passages that state it."""
    statements, ids = state.graph.statements.tocsc(), state.chunks.ids
    for fact, (start, end) in zip(state.facts, pairwise(statements.indptr), strict=True):
        yield fact, int(statements.data[start:end].sum()), [ids[row] for row in statements.indices[start:end]]


def _synonym_edges_of(state: HippoRAGState) -> Iterator[tuple[str, str, float]]:
    """Two phrases on each other's lists, and their cosine; each pair once."""
    upper = triu(state.graph.synonym_edges, k=1).tocoo()
    for i, j, cosine in zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True):
        yield state.phrases.at(i), state.phrases.at(j), cosine


def _mentions_of(state: HippoRAGState) -> Iterator[tuple[str, str, bool]]:
    """Every passage with each phrase in it, and whether the phrase is its subject."""
    about = state.graph.about
    for row, node_id in enumerate(state.chunks.ids):
        own, subjects = state.graph.phrases_of(row), about.indices[about.indptr[row] : about.indptr[row + 1]]
        for phrase, subject in zip(own.tolist(), np.isin(own, subjects).tolist(), strict=True):
            yield node_id, state.phrases.at(phrase), subject


def to_networkx(state: HippoRAGState, texts: Mapping[str, str]) -> Any:
    """Chunks with their texts, and phrases, with the edges between them."""
    networkx = need("networkx", "to_networkx()", "llama-index-hipporag[networkx]")
    exported = networkx.MultiDiGraph()
    for record in state.chunks.records:
        exported.add_node(record.id, kind="chunk", text=texts.get(record.id, ""), document=record.ref_doc_id or "")
    for phrase in state.phrases:
        exported.add_node(("phrase", phrase), kind="phrase", text=phrase)
    for (head, relation, tail), times, node_ids in _facts_of(state):
        ends = ("phrase", head), ("phrase", tail)
        exported.add_edge(*ends, kind="fact", weight=times, relation=relation, node_ids=node_ids)
    for one, other, cosine in _synonym_edges_of(state):
        exported.add_edge(("phrase", one), ("phrase", other), kind="near", weight=cosine)
    for node_id, phrase, subject in _mentions_of(state):
        exported.add_edge(node_id, ("phrase", phrase), kind="mention", weight=1, subject=subject)
    return exported


def to_property_graph(state: HippoRAGState, fetch: NodeFetch, store: PropertyGraphStore) -> Steps[None]:
    """Write the graph into a property graph store; see :meth:`~llama_index.hipporag.HippoRAGIndex.export_to`."""
    nodes: list[LabelledNode] = [EntityNode(name=phrase, label="phrase") for phrase in state.phrases if phrase]
    for node_id in state.chunks.ids:
        node = yield from fetch(node_id)
        if node is not None:
            nodes.append(ChunkNode(id_=node_id, text=plain_text(node), properties=dict(node.metadata)))
    known = {node.id for node in nodes}
    relations = [
        Relation(label=fact[1] or "is related to", source_id=fact[0], target_id=fact[2],
                 properties={"times": times, "node_ids": ", ".join(node_ids)})
        for fact, times, node_ids in _facts_of(state)
    ]  # fmt: skip
    relations += [
        Relation(label="NEAR", source_id=one, target_id=other, properties={"cosine": cosine})
        for one, other, cosine in _synonym_edges_of(state)
    ]
    relations += [
        Relation(label="MENTIONS", source_id=node_id, target_id=phrase, properties={"subject": subject})
        for node_id, phrase, subject in _mentions_of(state)
    ]
    whole = [relation for relation in relations if relation.source_id in known and relation.target_id in known]
    for start in range(0, len(nodes), _BATCH):
        yield from call(store.upsert_nodes, store.aupsert_nodes, nodes[start : start + _BATCH])
    for start in range(0, len(whole), _BATCH):
        yield from call(store.upsert_relations, store.aupsert_relations, whole[start : start + _BATCH])
