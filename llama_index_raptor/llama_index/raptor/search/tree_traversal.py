"""Tree traversal retrieval: a beam search from the roots to the leaves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from llama_index.ragkit.vectors.snapshot import Mask
from llama_index.raptor.search.node_scores import NodeScores
from llama_index.raptor.state import RaptorState, ScoredNode

__all__ = ["Descent", "traversal_steps", "traverse_tree"]


@dataclass(frozen=True)
class Descent:
    """Which nodes a traversal keeps and visits.

    Attributes
    ----------
    beam_width : the best nodes of each step that are kept, at least 1; None for no limit
    min_cosine : least cosine of a node that is kept, in [-1, 1]; None for no limit
    start_layer : the layer of the first step, 0 for the leaves; None for the roots
    num_layers : steps at most, at least 1; None for all down to the leaves
    """

    beam_width: int | None = None
    min_cosine: float | None = None
    start_layer: int | None = None
    num_layers: int | None = None


def traverse_tree(scores: NodeScores, descent: Descent) -> list[ScoredNode]:
    """All nodes kept by a traversal, best first, each id once, with scores in standard deviations.

    Paper section "Querying", tree traversal retrieval: the nodes kept at every step are the result.

    Parameters
    ----------
    scores, descent : see :func:`traversal_steps`
    """
    return scores.ranked({node for step in traversal_steps(scores, descent) for node, _ in step})


def traversal_steps(scores: NodeScores, descent: Descent) -> Iterator[list[ScoredNode]]:
    """The nodes kept at each step of a traversal, with their scores, best first.

    The candidates of a step are the children of the nodes kept in the previous one. A node that is not written yet, or
    does not pass the filter, is replaced by its children.

    Deviation: the threshold of the authors' code keeps the nodes whose *distance* is larger, those unlike the question.

    Parameters
    ----------
    scores : of the nodes that pass the filter; the paper's are cosines, in the same order with a lexical weight of 0
    descent : which nodes are kept
    """
    state, allowed = scores.state, scores.allowed
    kept: set[str] = set()
    frontier = state.from_roots() if descent.start_layer is None else state.layer(descent.start_layer)
    summaries_allowed = state.summary_mask(allowed)
    for _ in count() if descent.num_layers is None else range(descent.num_layers):
        if not frontier:
            return
        candidates = _visible(state, frontier, allowed, summaries_allowed)
        best = _kept(scores, scores.ranked(candidates), descent)
        if best:
            yield best
        kept.update(node for node, _ in best)
        below = {child for node, _ in best for child in state.tree.children(node)}
        frontier = sorted(below - kept)


def _kept(scores: NodeScores, ranked: Sequence[ScoredNode], descent: Descent) -> list[ScoredNode]:
    near = [
        (node, score)
        for node, score in ranked
        if descent.min_cosine is None or (scores.cosine(node) or 0.0) >= descent.min_cosine
    ]
    return near[: descent.beam_width]


def _visible(
    state: RaptorState, nodes: Sequence[str], allowed: Mask | None, summaries_allowed: Mask | None
) -> list[str]:
    """The nodes, with those that are unwritten or do not pass the filter replaced by their children."""
    visible: set[str] = set()
    todo = list(nodes)
    while todo:
        node = todo.pop()
        if node in state.tree.summaries:
            row = int(state.summaries.rows_of([node])[0])
            if row >= 0 and (summaries_allowed is None or summaries_allowed[row]):
                visible.add(node)
            else:
                todo.extend(state.tree.children(node))
        else:
            row = int(state.chunks.rows_of([node])[0])
            if row >= 0 and (allowed is None or allowed[row]):
                visible.add(node)
    return sorted(visible)
