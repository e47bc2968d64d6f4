"""Tree traversal retrieval: a beam search from the roots to the leaves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from llama_index.ragkit.steps import Steps, immediate, offload
from llama_index.ragkit.vectors.snapshot import Mask
from llama_index.raptor.search.node_scores import NodeScores
from llama_index.raptor.state import RaptorState, ScoredNode

__all__ = ["Descent", "Reach", "everywhere", "traversal_steps", "traverse_tree"]


@dataclass(frozen=True)
class Descent:
    """Which nodes a traversal keeps and visits.

    Attributes
    ----------
    beam_width : the number of best nodes kept at each step, at least 1; None for no limit
    min_cosine : least cosine of a node that is kept, in [-1, 1]; None for no limit
    start_layer : the layer of the first step, 0 for the leaves; None for the roots
    num_layers : the largest number of steps, at least 1; None for all down to the leaves
    """

    beam_width: int | None = None
    min_cosine: float | None = None
    start_layer: int | None = None
    num_layers: int | None = None


Reach = Callable[[NodeScores, Sequence[str]], Steps[NodeScores]]
"""Gives scores whose state has some nodes; a node that is hidden or not written is replaced by the nodes below it."""


@immediate
def everywhere(scores: NodeScores, nodes: Sequence[str]) -> NodeScores:
    """The `Reach` of a state that has all nodes."""
    return scores


def traverse_tree(
    scores: NodeScores, descent: Descent, start: Sequence[str], reach: Reach = everywhere
) -> Steps[tuple[NodeScores, list[ScoredNode]]]:
    """All nodes kept by a traversal, best first, each id once, with scores in standard deviations.

    Paper section "Querying", tree traversal retrieval: the nodes kept at every step are the result.

    Parameters
    ----------
    scores, descent, start, reach : see :func:`traversal_steps`

    Returns
    -------
    Scores of all visited nodes, and the result.
    """
    scores, steps = yield from traversal_steps(scores, descent, start, reach)
    kept = {node for step in steps for node, _ in step}
    return scores, (yield from offload(scores.ranked, kept))


def traversal_steps(
    scores: NodeScores, descent: Descent, start: Sequence[str], reach: Reach = everywhere
) -> Steps[tuple[NodeScores, list[list[ScoredNode]]]]:
    """The nodes kept at each step of a traversal, with their scores, best first.

    The candidates of a step are the children of the nodes kept in the previous one. A node that is not written yet, or
    does not pass the filter, is replaced by its children.

    Deviation: the threshold of the authors' code keeps the nodes whose *distance* is larger, those unlike the question.

    Parameters
    ----------
    scores : scores of nodes that pass the filter; with a lexical weight of 0 their order is that of the paper's cosines
    descent : which nodes are kept
    start : the candidates of the first step
    reach : gives the scores of more nodes

    Returns
    -------
    Scores of all visited nodes, and the steps that kept any node.
    """
    kept: set[str] = set()
    steps = []
    frontier = start
    for _ in count() if descent.num_layers is None else range(descent.num_layers):
        if not frontier:
            break
        scores = yield from reach(scores, frontier)
        best = yield from offload(_best, scores, frontier, descent)
        if best:
            steps.append(best)
        kept.update(node for node, _ in best)
        below = {child for node, _ in best for child in scores.state.tree.children(node)}
        frontier = sorted(below - kept)
    return scores, steps


def _best(scores: NodeScores, frontier: Sequence[str], descent: Descent) -> list[ScoredNode]:
    return _kept(scores, scores.ranked(_visible(scores.state, frontier, scores.allowed)), descent)


def _kept(scores: NodeScores, ranked: Sequence[ScoredNode], descent: Descent) -> list[ScoredNode]:
    near = [
        (node, score)
        for node, score in ranked
        if descent.min_cosine is None or (scores.cosine(node) or 0.0) >= descent.min_cosine
    ]
    return near[: descent.beam_width]


def _visible(state: RaptorState, nodes: Sequence[str], allowed: Mask | None) -> list[str]:
    """The nodes, with those that are unwritten or do not pass the filter replaced by their children."""
    summaries_allowed = state.summary_mask(allowed)
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
