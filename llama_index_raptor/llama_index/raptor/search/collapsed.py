"""Collapsed tree retrieval: the nodes of all layers ranked together."""

import math

import numpy as np

from llama_index.ragkit.vectors.question_scores import best_rows
from llama_index.raptor.search.node_scores import NodeScores
from llama_index.raptor.state import ScoredNode

__all__ = ["search_collapsed_tree"]


def search_collapsed_tree(scores: NodeScores, top_k: int, margin: float | None = None) -> list[ScoredNode]:
    """The `top_k` nodes of all layers nearest to a question.

    Paper section "Querying", collapsed tree retrieval: all nodes are one layer, ranked by cosine. `margin` is not in
    the paper and has no effect by default. For a question about a detail one chunk stands out from all others and from
    every summary; for a thematic one summaries are as near as the nearest chunk, and only then do they take part.

    Parameters
    ----------
    top_k : at least 1
    margin : how much less than those of the nearest chunk the cosine and the score of a summary may be, in standard
        deviations, at least 0; None for no limit

    Returns
    -------
    Ids with scores in standard deviations, best first, each id once.
    """
    state = scores.state
    least = -math.inf if margin is None else scores.nearest_chunk - margin
    summaries = np.flatnonzero(np.isfinite(scores.standard_cosines) & (scores.standard_cosines >= least))
    nodes = [state.chunks.ids[row] for row in best_rows(scores.nearness.scores, top_k, state.chunks)]
    ranked = scores.ranked([*nodes, *(state.summaries.ids[row] for row in summaries)])
    if margin is not None:
        lowest = scores.nearness.scores.max(initial=-math.inf) - margin
        ranked = [(node, score) for node, score in ranked if score >= lowest or node in state.chunks]
    return ranked[:top_k]
