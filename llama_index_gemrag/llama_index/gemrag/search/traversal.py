"""Best-first search of the memory graph, from the prompt or from given nodes. Pure functions on arrays.

The paper describes best-first search, but its Algorithm 1 uses no edges: on a complete graph every node is on the
frontier, so a search by similarity to the prompt is Algorithm 1. Here edges are part of the priority of a node n:

    priority(n) = (1 - b) * score(n) + b * max over the nodes c selected so far of weight(c -> n)

where weight(c -> n) is the mean cosine of c's blended questions with n's text, as the paper defines an edge. It is
computed when c is selected; edges are not stored. The term with b is not in the paper.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.layer import Layer
from llama_index.gemrag.state import GEMRAGState
from llama_index.ragkit.vectors.question_scores import standardised
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["Step", "Traversal", "best_first"]

Admit = Callable[[int, Collection[int]], bool]
Scores = NDArray[np.floating]
Step = tuple[int, float, int]
_DECIMALS = 5  # scores are float32; smaller differences count as ties


class Traversal:
    """A search of one state. Chunks are nodes 0..n-1, written themes n..n+k-1.

    Parameters
    ----------
    blend : weight of the question in the blended vectors from which edges are computed
    allowed : shape (n,), mask of the chunks that may be selected; a theme passes if all its members do
    """

    def __init__(self, state: GEMRAGState, blend: float, allowed: Mask | None = None) -> None:
        self._state = state
        self._blend = blend
        self._chunks = len(state.chunks)
        self._ids = [*state.chunks.ids, *state.theme_layer.texts.ids]
        shown = state.theme_mask(allowed)
        self._allowed = None if allowed is None or shown is None else np.concatenate([allowed, shown])

    def _places(self, node_ids: Sequence[str]) -> list[int]:
        """The numbers of the nodes that exist."""
        places = []
        for node_id in node_ids:
            for layer, offset in self._layers:
                row = int(layer.texts.rows_of([node_id])[0])
                if row >= 0:
                    places.append(row + offset)
                    break
        return places

    @property
    def _layers(self) -> list[tuple[Layer, int]]:
        return [(self._state.chunk_layer, 0), (self._state.theme_layer, self._chunks)]

    def run(
        self,
        scores: NDArray[np.float64] | None,
        count: int,
        edge_weight: float,
        start: Sequence[str] = (),
        keep_covered: bool = True,
        max_summaries: int | None = None,
    ) -> list[tuple[str, float, str | None]]:
        """Search; returns (node id, priority in standard deviations, id of the node whose edge was used).

        The scores, in standard deviations, are those of chunks, then of themes; the values of nodes that do not pass
        the filter are not used. Themes are admitted as by :func:`~llama_index.gemrag.search.memory_scores.rank_nodes`.
        """

        def admit(node: int, taken: Collection[int]) -> bool:
            if node < self._chunks:
                return True
            if max_summaries is not None and sum(other >= self._chunks for other in taken) >= max_summaries:
                return False
            members = set(self._state.themes[self._ids[node]].members)
            return keep_covered or not any(self._ids[other] in members for other in taken)

        if scores is not None:
            scores = np.where(np.isfinite(scores), scores, 0.0)
        places = self._places(start)
        steps = best_first(scores, self._edges, count, edge_weight, self._order, places, admit, self._allowed)
        return [(self._ids[node], value, None if via < 0 else self._ids[via]) for node, value, via in steps]

    def _edges(self, node: int) -> NDArray[np.float64]:
        """Weights of the edges from a node, in standard deviations of the edges to the hundred nearest chunks."""
        layer, offset = self._layers[node >= self._chunks]
        mean = layer.mean_questions([node - offset], self._blend)[0]
        found = [other.edges_from(mean).astype(np.float64) for other, _ in self._layers if len(other.texts)]
        usual = found[0] if self._allowed is None else found[0][self._allowed[: self._chunks]]
        return standardised(np.concatenate(found), usual)

    def _order(self, node: int) -> tuple[str, str]:
        return self._state.key(self._ids[node])

    def may_show(self, node_id: str) -> bool:
        """Whether a node exists and passes the filter."""
        return any(self._allowed is None or bool(self._allowed[place]) for place in self._places([node_id]))


def best_first(
    scores: Scores | None,
    edges: Callable[[int], Scores],
    count: int,
    edge_weight: float,
    order: Callable[[int], tuple[str, str]],
    start: Sequence[int] = (),
    admit: Admit = lambda node, taken: True,
    allowed: NDArray[np.bool_] | None = None,
) -> list[Step]:
    """Select up to `count` nodes, always the one with the best priority.

    Parameters
    ----------
    scores : shape (n,), similarity to the prompt; None to use edges only
    edges : function from a node to the weights of its edges to all nodes, shape (n,)
    edge_weight : b, in [0, 1]
    order : breaks ties between nodes with equal priority
    start : nodes that are already selected
    admit : called before a node is selected, with the nodes selected so far; rejected nodes are not tried again
    allowed : shape (n,), mask of the nodes that may be selected

    Returns
    -------
    The nodes selected after `start`, in order: (node, priority, the selected node whose edge was used, -1 for none).
    """
    taken = list(dict.fromkeys(start))
    steps: list[Step] = []
    if scores is None and not taken:
        return steps
    strongest: Scores | None = None
    via = np.empty(0, np.intp)
    open_: NDArray[np.bool_] | None = None if allowed is None else allowed.copy()
    todo = list(taken)
    while True:
        for node in todo:
            weights = edges(node)
            if strongest is None:
                strongest, via = weights.copy(), np.full(len(weights), node)
            else:
                stronger = weights > strongest
                strongest[stronger], via[stronger] = weights[stronger], node
        todo = []
        if len(steps) == count:
            return steps
        if strongest is None:
            priority = np.array(scores, copy=True)
        elif scores is None:
            priority = strongest.copy()
        else:
            priority = (1 - edge_weight) * scores + edge_weight * strongest
        if open_ is None:
            open_ = np.ones(len(priority), np.bool_)
        open_[taken] = False
        node = _first(priority, open_, order)
        while node >= 0 and not admit(node, taken):
            open_[node] = False
            node = _first(priority, open_, order)
        if node < 0:
            return steps
        steps.append((node, float(priority[node]), -1 if strongest is None else int(via[node])))
        taken.append(node)
        todo = [node]


def _first(priority: Scores, open_: NDArray[np.bool_], order: Callable[[int], tuple[str, str]]) -> int:
    rows = np.flatnonzero(open_)
    if not len(rows):
        return -1
    near = priority[rows].astype(np.float64).round(_DECIMALS)
    best = rows[near == near.max()]
    return int(best[0]) if len(best) == 1 else min(map(int, best), key=order)
