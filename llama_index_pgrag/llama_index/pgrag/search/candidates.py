"""The candidate mind maps of a question (section 2.4, steps 1 to 3), and vectors of words for cells that have none.

1. Seed topics: the topics nearest to the question.
2. Topic walk: topics that share a super-topic with a seed.
3. Fact walk: topics of facts that share a super-fact with a fact of a seed. This is in the paper but not in the
   published code.
4. Entry by facts: topics of the facts nearest to a key point. This is not in the paper, whose steps 1 to 3 reach at
   most `max_topics` maps, and only through their titles.

Topics from steps 2 and 3 are ranked by their cosine to the question; steps 1 to 3 together give at most `max_topics`.

Facts that were read without a language model are sentences of the text that is embedded anyway. Their own vectors find
nothing that their words and the vector of their node do not. So the nodes nearest to a question are chosen first, and
then their cells are ranked by BM25 among each other. The scores take the place of cosines in the walk over the
candidate maps. A cell has the coordinates s_k, its scores for the key points k as shares of the best score, and one
more that makes its length 1, so its cosine to the unit vector of k is s_k.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.config import SearchConfig
from llama_index.pgrag.fusion.super_nodes import SuperNodes
from llama_index.pgrag.state import KINDS, FactPath, PseudoGraph, cells_of
from llama_index.ragkit.text.lexical_index import lexical_terms, scores_of_few
from llama_index.ragkit.vectors.question_scores import best_rows
from llama_index.ragkit.vectors.row_buffer import Record
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["MORE_NODES", "Allowed", "Candidate", "Reason", "Vector", "cells_by_words", "find_candidates"]

Vector = NDArray[np.float32]
Reason = Literal["seed topic", "topic walk", "fact walk", "fact"]
MORE_NODES = 10
"""Nodes whose cells are compared in addition to the number of wanted results: some have no fact, or a shared one."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Allowed:
    """Masks of the rows that pass a filter, and the ids of these nodes; None means no restriction.

    A topic passes if at least one of its facts passes.
    """

    chunks: Mask | None = None
    facts: Mask | None = None
    topics: Mask | None = None
    nodes: frozenset[str] | None = None

    def fact(self, fact: FactPath) -> bool:
        """Whether a fact passes the filter."""
        return self.nodes is None or fact.passes(self.nodes)

    @classmethod
    def of(cls, graph: PseudoGraph, chunks: Mask | None) -> "Allowed":
        """The facts of the chunks that pass, and their topics."""
        if chunks is None:
            return cls()
        ids = graph.chunks.ids
        nodes = frozenset(ids[row] for row in np.flatnonzero(chunks))
        if not len(graph.facts):
            return cls(chunks, np.zeros(0, np.bool_), np.zeros(0, np.bool_), nodes)
        facts = chunks[graph.node_rows]
        hidden = [fact.id for fact in graph.with_others if not fact.passes(nodes)]
        facts[graph.facts.rows_of(hidden)] = False
        topics = np.zeros(len(graph.topics), dtype=np.bool_)
        topics[graph.topic_rows[facts]] = True
        return cls(chunks, facts, topics, nodes)


@dataclass(frozen=True)
class Candidate:
    """A mind map to search, the reason for it, and the cosine of its topic to the question."""

    topic_id: str
    reason: Reason
    cosine: float


def find_candidates(
    graph: PseudoGraph, question: Vector, key_points: Sequence[Vector], config: SearchConfig, allowed: Allowed
) -> list[Candidate]:
    """The mind maps to search, each once, seeds first; question and key points are vectors."""
    if not len(graph.facts):
        return []
    found: dict[str, Candidate] = {}
    hits = graph.topics.search([question], min(config.seed_topics, config.max_topics), allowed.topics)[0]
    for topic_id, cosine in zip(hits.ids, hits.scores, strict=True):
        found[topic_id] = Candidate(topic_id, "seed topic", cosine)
    reached: dict[str, Reason] = {}
    if config.topic_walk:
        super_topics = _among(graph.super_topics, graph.topics, allowed.topics, list(found))
        for topic_id in found:
            for other in super_topics.together(topic_id):
                reached.setdefault(other, "topic walk")
    walked: set[str] = set()  # facts of walked super-facts, so that each super-fact is walked once
    facts = [f.id for topic_id in found for f in graph.maps[topic_id].facts if config.fact_walk and allowed.fact(f)]
    super_facts = _among(graph.super_facts, graph.facts, allowed.facts, facts)
    for fact_id in facts:
        if fact_id not in walked:
            together = super_facts.together(fact_id)
            walked.update(together)
            for other in together:
                reached.setdefault(graph.map_of[other], "fact walk")
    for topic_id, cosine in _nearest(graph, question, [i for i in reached if i not in found], allowed.topics):
        if len(found) < config.max_topics:
            found[topic_id] = Candidate(topic_id, reached[topic_id], cosine)
    if config.seed_facts:
        entered = [
            graph.map_of[fact_id]
            for hits in graph.facts.search(np.stack(key_points), config.seed_facts, allowed.facts)
            for fact_id in hits.ids
        ]
        for topic_id, cosine in _nearest(graph, question, [i for i in dict.fromkeys(entered) if i not in found], None):
            found[topic_id] = Candidate(topic_id, "fact", cosine)
    return list(found.values())


def _among(super_nodes: SuperNodes, rows: Snapshot, mask: Mask | None, of: Sequence[str]) -> SuperNodes:
    return super_nodes if mask is None else super_nodes.among(rows, mask, of)


def _nearest(
    graph: PseudoGraph, question: Vector, topic_ids: Sequence[str], mask: Mask | None
) -> list[tuple[str, float]]:
    """The topics that pass the mask, with their cosine to the question, best first."""
    if not topic_ids:
        return []
    chosen = np.zeros(len(graph.topics), dtype=np.bool_)
    chosen[graph.topics.rows_of(topic_ids)] = True
    hits = graph.topics.search([question], len(topic_ids), chosen if mask is None else chosen & mask)[0]
    return list(zip(hits.ids, hits.scores, strict=True))


def cells_by_words(
    graph: PseudoGraph, scores: Floats, wanted: int, key_points: Sequence[str]
) -> tuple[PseudoGraph, list[Vector]]:
    """The graph of the best nodes, with vectors of words for its cells; and the vectors of the key points.

    `scores` has the shape (nodes,), -inf for nodes that may not be shown; `wanted` results must be in the right order.
    """
    ids = graph.chunks.ids
    best = [ids[row] for row in best_rows(scores, wanted + MORE_NODES, graph.chunks)]
    of_node = {node_id: graph.of_node[node_id] for node_id in best if node_id in graph.of_node}
    part = PseudoGraph.of(of_node)
    cells = cells_of(part.maps, part.maps)
    document_of = {i: found.document for topic_id, found in part.maps.items() for i in (topic_id, *found.routes)}
    document_of |= {fact.id: fact.document for own in of_node.values() for fact in own}
    terms = {i: lexical_terms(cell.text) for kind in KINDS for i, cell in cells[kind].items()}
    vectors = dict(zip(terms, _vectors(terms.values(), key_points), strict=True))
    records = {i: Record(i, document_of[i], cell.key, "{}") for kind in KINDS for i, cell in cells[kind].items()}
    topics, routes, facts = (
        Snapshot.of(np.stack([vectors[i] for i in own]), [records[i] for i in own]) if own else Snapshot.empty()
        for own in cells.values()
    )
    part = replace(graph, maps=part.maps, map_of=part.map_of, of_node=of_node, fused=None, terms=terms)
    points = np.eye(len(key_points), len(key_points) + 1, dtype=np.float32)
    return replace(part, topics=topics, routes=routes, facts=facts), list(points)


def _vectors(cells: Collection[Counter[str]], key_points: Sequence[str]) -> NDArray[np.float32]:
    """The unit vectors of some cells by their terms, shape (cells, key points + 1)."""
    texts = list(cells)
    found = np.zeros((len(texts), len(key_points) + 1))
    for k, point in enumerate(key_points if texts else ()):
        scores = scores_of_few(texts, point)
        found[:, k] = scores / (scores.max() or 1.0) / np.sqrt(len(key_points))
    found[:, -1] = np.sqrt(np.maximum(0.0, 1.0 - (found * found).sum(axis=1)))
    return found.astype(np.float32)
