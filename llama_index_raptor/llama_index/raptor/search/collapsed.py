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
    the paper and has no effect by default. If a question asks about a detail, one chunk stands out from all others and
    from every summary, by its vector or by its words. For a thematic question, summaries are as near as the nearest
    chunk; only then do they take part.

    Parameters
    ----------
    top_k : at least 1
    margin : how far the cosine of a summary, the lexical score of the best chunk below it, and its whole score may be
        below those of the best chunk, in standard deviations, at least 0; None for no limit

    Returns
    -------
    Ids with scores in standard deviations, best first, each id once.
    """
    state = scores.state
    least = -math.inf if margin is None else scores.nearest_chunk - margin
    near = np.flatnonzero(np.isfinite(scores.standard_cosines) & (scores.standard_cosines >= least))
    summaries = [state.summaries.ids[row] for row in near]
    if margin is not None:
        summaries = [name for name in summaries if _has_words(scores, name, margin)]
    nodes = [state.chunks.ids[row] for row in best_rows(scores.nearness.scores, top_k, state.chunks)]
    ranked = scores.ranked([*nodes, *summaries])
    if margin is not None:
        lowest = scores.nearness.scores.max(initial=-math.inf) - margin
        ranked = [(node, score) for node, score in ranked if score >= lowest or node in state.chunks]
    return ranked[:top_k]


def _has_words(scores: NodeScores, summary: str, margin: float) -> bool:
    """Whether no chunk stands out by its words from all chunks below a summary."""
    words = scores.standard_words
    # If the tree is in stores, chunks that were not read have no more of the words than those that were.
    below = words[scores.state.leaf_rows[summary]].max(initial=words.min(initial=0.0))
    return bool(below >= words.max(initial=0.0) - margin)
