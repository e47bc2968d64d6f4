"""Explanations of retrieved nodes: their position in the tree and the paths to them from the roots."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from llama_index.core.schema import NodeWithScore

from llama_index.ragkit import Explanation
from llama_index.ragkit.index.results import result_fields
from llama_index.raptor.search.node_scores import NodeScores
from llama_index.raptor.state import RaptorState

__all__ = ["RaptorExplanation", "explain"]


@dataclass(frozen=True, kw_only=True)
class RaptorExplanation(Explanation):
    """Why a node was retrieved.

    Attributes
    ----------
    nearness : the score in standard deviations, see :mod:`llama_index.raptor.search.node_scores`
    cosine, lexical : cosine and BM25 score of question and node; BM25 is 0 for a summary and with `lexical_weight=0`
    lexical_weight : weight of BM25 in nearness for this question, in [0, 1]
    level : 0 for a chunk, larger for a summary
    paths : every path from a root to the node, as (node id, cosine to the question) pairs; the cosine of a summary that
        is not written yet is None
    sources : ids of the chunks below the node; a chunk is its own source
    """

    nearness: float
    cosine: float
    lexical: float
    lexical_weight: float
    level: int
    paths: list[list[tuple[str, float | None]]]
    sources: list[str]


def explain(scores: NodeScores, nodes: Sequence[NodeWithScore], fallback: str) -> list[RaptorExplanation]:
    """One explanation for each result, in the same order; paths leave out summaries that do not pass the filter."""
    state = scores.state
    mask = state.summary_mask(scores.allowed)
    names = state.summaries.ids
    hidden = set() if mask is None else {names[row] for row in np.flatnonzero(~mask)}
    explained = []
    for result in nodes:
        node_id = result.node.node_id
        explained.append(
            RaptorExplanation(
                **result_fields(result),
                nearness=dict(scores.ranked([node_id]))[node_id],
                cosine=scores.cosine(node_id) or 0.0,
                lexical=scores.lexical(node_id),
                lexical_weight=scores.nearness.lexical_weight,
                level=state.tree.level(node_id),
                paths=[[(n, scores.cosine(n)) for n in path] for path in _paths(state, node_id, hidden)],
                sources=sorted(state.tree.leaves(node_id)),
                by=state.written.get(node_id, {}).get("by", ""),
                fallback=fallback,
            )
        )
    return explained


def _paths(state: RaptorState, node: str, hidden: set[str]) -> list[list[str]]:
    parents: Sequence[str] = [parent for parent in state.tree.parents.get(node, ()) if parent not in hidden]
    return [[*path, node] for parent in parents for path in _paths(state, parent, hidden)] or [[node]]
