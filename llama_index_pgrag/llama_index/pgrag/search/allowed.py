"""Masks of the chunks, facts and topics that pass a filter."""

from dataclasses import dataclass

import numpy as np

from llama_index.pgrag.state import FactPath, PseudoGraph
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["Allowed"]


@dataclass(frozen=True)
class Allowed:
    """Rows that pass a filter; None means no restriction.

    Attributes
    ----------
    chunks, facts, topics : boolean masks over the rows; a topic passes if at least one of its facts passes
    nodes : ids of the nodes that pass
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
