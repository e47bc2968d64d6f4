"""Tree traversal retrieval: a beam search from the roots to the leaves."""

from collections.abc import Iterator, Sequence

from llama_index.ragkit.vectors.snapshot import Mask
from llama_index.raptor.search.node_scores import NodeScores
from llama_index.raptor.state import RaptorState, ScoredNode

__all__ = ["traversal_steps", "traverse_tree"]


def traverse_tree(scores: NodeScores, beam_width: int) -> list[ScoredNode]:
    """All nodes kept by a traversal, best first, each id once, with scores in standard deviations.

    Paper section "Querying", tree traversal retrieval: the nodes kept at every step are the result.

    Parameters
    ----------
    scores, beam_width : see :func:`traversal_steps`
    """
    return scores.ranked({node for step in traversal_steps(scores, beam_width) for node, _ in step})


def traversal_steps(scores: NodeScores, beam_width: int) -> Iterator[list[ScoredNode]]:
    """The nodes kept at each step of a traversal, with their scores, best first.

    The candidates of a step are the children of the nodes kept in the previous one. A node that is not written yet, or
    does not pass the filter, is replaced by its children.

    Parameters
    ----------
    scores : of the nodes that pass the filter; the paper's are cosines, in the same order with a lexical weight of 0
    beam_width : nodes kept at each step, at least 1
    """
    state, allowed = scores.state, scores.allowed
    kept: set[str] = set()
    frontier = state.roots
    summaries_allowed = state.summary_mask(allowed)
    while frontier:
        candidates = _visible(state, frontier, allowed, summaries_allowed)
        best = scores.ranked(candidates)[:beam_width]
        if best:
            yield best
        kept.update(node for node, _ in best)
        below = {child for node, _ in best for child in state.tree.children(node)}
        frontier = sorted(below - kept)


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
