"""The two searches of the paper: all layers ranked together, and a beam search from the roots to the leaves."""

import math
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.vectors.question_scores import best_rows
from llama_index.ragkit.vectors.snapshot import Mask
from llama_index.raptor.config import TreeSearchConfig
from llama_index.raptor.search.node_scores import NodeScores
from llama_index.raptor.state import RaptorState, ScoredNode

__all__ = ["Reach", "search_collapsed_tree", "traverse_tree"]


def search_collapsed_tree(scores: NodeScores, top_k: int, margin: float | None = None) -> list[ScoredNode]:
    """The `top_k` nodes of all layers nearest to a question, with scores in standard deviations, best first.

    Paper section "Querying", collapsed tree retrieval: all nodes are one layer, ranked by cosine. `margin` is not in
    the paper and has no effect by default. If a question asks about a detail, one chunk stands out from all others and
    from every summary, by its vector or by its words. For a thematic question, summaries are as near as the nearest
    chunk; only then do they take part: the cosine of a summary, the lexical score of the best chunk below it, and its
    whole score may be at most `margin` standard deviations below those of the best chunk.
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


Reach = Callable[[NodeScores, Sequence[str]], Steps[NodeScores]]
"""Gives scores whose state has some nodes; a node that is hidden or not written is replaced by the nodes below it."""


def traverse_tree(
    scores: NodeScores, options: TreeSearchConfig, start: Sequence[str], reach: Reach
) -> Steps[tuple[NodeScores, list[list[ScoredNode]]]]:
    """Scores of all visited nodes, and the nodes kept at each step of a traversal, with their scores, best first.

    Paper section "Querying", tree traversal retrieval: the nodes kept at every step are the result. The candidates of a
    step are the children of the nodes kept in the previous one. A node that is not written yet, or does not pass the
    filter, is replaced by its children. With a lexical weight of 0 the order is that of the paper's cosines.

    Deviation: the threshold of the authors' code keeps the nodes whose *distance* is larger, those unlike the question.
    """
    kept: set[str] = set()
    steps = []
    frontier = start
    for _ in count() if options.num_layers is None else range(options.num_layers):
        if not frontier:
            break
        scores = yield from reach(scores, frontier)
        best = yield from offload(_best, scores, frontier, options)
        if best:
            steps.append(best)
        kept.update(node for node, _ in best)
        below = {child for node, _ in best for child in scores.state.tree.children(node)}
        frontier = sorted(below - kept)
    return scores, steps


def _best(scores: NodeScores, frontier: Sequence[str], options: TreeSearchConfig) -> list[ScoredNode]:
    ranked = scores.ranked(_visible(scores.state, frontier, scores.allowed))
    least = options.min_cosine
    near = [pair for pair in ranked if least is None or (scores.cosine(pair[0]) or 0.0) >= least]
    return near[: options.beam_width]


def _visible(state: RaptorState, nodes: Sequence[str], allowed: Mask | None) -> list[str]:
    """The nodes, with those that are unwritten or do not pass the filter replaced by their children."""
    shown = state.summary_mask(allowed)
    visible: set[str] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        is_summary = node in state.tree.summaries
        part, mask = (state.summaries, shown) if is_summary else (state.chunks, allowed)
        if node in part and (mask is None or mask[part.row_of(node)]):
            visible.add(node)
        else:
            todo.extend(state.tree.children(node))
    return sorted(visible)
