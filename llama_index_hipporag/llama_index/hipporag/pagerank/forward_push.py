"""Personalised PageRank of large graphs: forward push near the seeds, then steps over the whole graph if needed.

The algorithm maintains a lower bound p of the result and the residual r, the mass that has not been walked yet
(Andersen, Chung, Lang 2006, "Local graph partitioning using PageRank vectors", section 3). Pushing node u keeps (1 -
d) r_u at u and moves d r_u to its neighbours. Only nodes with ``r_u > epsilon s_u`` are pushed (s_u the weight of all
edges of u), so that the work is at most ``1 / (epsilon (1 - d))`` edges of weight 1 *whatever the size of the graph*.
Whole frontiers are pushed at once, as arrays.

The remaining residual is spread in small amounts over very many nodes, above all hubs, since a hub is not pushed for
less than epsilon times its thousands of edges. Mass that returns to hubs would be missing from their scores, which
would be some percent too low, enough to change a ranking. Hence two deviations from the paper at the end, both for
undirected graphs:

1. Every node moves its residual once more, but only to the hubs, and the walk among the hubs is solved (`Hubs`).
These are actual walks, so p remains a lower bound. 2. The rest is spread in proportion to strength, to which a walk
converges from any start: ordinary nodes are one step from a hub, and hubs get the share d of theirs. Mass that a hub
has just moved to its neighbours is not part of the hubs' share, since its return is counted in 1.

With G the operator of a walk that ends at nodes without edges, the exact vector is G v scaled to sum 1, and G v = p +
G r. So the sum of p is too low by the missing mass, and its value at node u by at most ``epsilon s_u`` (from ``G_uw
s_u = G_wu s_w``, which requires symmetry). That bound is far larger than observed errors, so it is not used to decide
whether a list of passages is correct.

Instead, after the push every node of the graph is pushed once per step, and each step leaves at most the share d of
the mass, hence of the error. The change of the last step therefore bounds that of all later steps: at most ``d / (1 -
d)`` times as much, if errors decrease everywhere as they do in total. A list is settled when three times that could
not change it (:func:`settled`), which on graphs of a million nodes holds for two of three questions after the first
step. Where two passages nearly tie, steps continue until the result is exact.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from llama_index.hipporag.pagerank.power_iteration import Ordered, check_reset
from llama_index.ragkit.vectors.kernels import largest

__all__ = ["PUSH_FROM", "PageRankEstimate", "PushState", "refinements", "settled"]

PUSH_FROM = 100_000  # nodes; below, the exact computation takes less than 50 ms
EPSILON = 4e-7  # residual that the push leaves, per weight of edges
_EXACT = 1e-10  # mass that may be missing at the end
_SAFETY = 3.0  # safety factor on the expected change of all later steps
_LOOK = 10  # times the number of requested passages: candidates that could become one of them
_WHOLE = 4  # a frontier with more edges than 1 / _WHOLE of the nodes is summed over the whole graph


class PageRankEstimate(NamedTuple):
    """An approximate personalised PageRank vector.

    Attributes
    ----------
    scores : (n,) float64, of the nodes in the order of :class:`power_iteration.Ordered`; not negative, with a sum
        of at most 1
    missing : mass that has not been walked yet; the L1 distance to the exact vector is at most twice this
    earlier : nodes in that order -> their scores before the last step; only valid until the next estimate
    uncertainty : bound of all later changes, as a multiple of the last one, if errors decrease everywhere as in total;
        times three for safety
    steps : number of steps of all nodes after the push
    """

    scores: np.ndarray
    missing: float
    earlier: Callable[[np.ndarray], np.ndarray]
    uncertainty: float
    steps: int

    def gain(self, projection: sp.csr_matrix, passage_scores: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The contribution of the last step to some rows of ``passage_scores = projection @ scores``, for a
        `projection` of shape (p, n).
        """
        part = projection[rows]
        nodes, places = np.unique(part.indices, return_inverse=True)
        few = sp.csr_matrix((part.data, places, part.indptr), shape=(len(rows), len(nodes)))
        gained: np.ndarray = passage_scores[rows] - few @ self.earlier(nodes)
        return gained


def refinements(
    graph: Ordered, nodes: np.ndarray, weights: np.ndarray, *, damping: float = 0.5, epsilon: float = EPSILON
) -> Iterator[PageRankEstimate]:
    """Increasingly exact personalised PageRank from a few nodes: a push, then 1, 2, 4, 8 ... steps of all nodes.

    The last is exact except for rounding: the residual of the push, some percent of the mass, is walked in single
    precision. The push may leave a residual of `epsilon` per weight of edges.

    Parameters
    ----------
    nodes, weights : (k,) the reset, by the numbers that nodes had before; at least one weight is positive, and a
        repeated node has the sum of its weights
    """
    account = PushState(graph, nodes, weights, damping, epsilon)
    account.push()
    steps = 1
    while True:
        for _ in range(steps - 1):
            account.step()
        estimate = account.estimate(account.step())
        yield estimate
        if estimate.missing <= _EXACT:
            break
        steps = estimate.steps


def settled(scores: np.ndarray, k: int, changes: Callable[[np.ndarray], np.ndarray], uncertainty: float) -> bool:
    """Whether the k best scores, (p,), remain the k best if `uncertainty` times the last change is added or subtracted.

    Parameters
    ----------
    changes : rows -> the change of their scores in the last step; called for the `_LOOK` k best
    uncertainty : bound of all later changes, as a multiple of the last one

    >>> common = lambda rows: np.full(len(rows), 0.1)  # the same for all: no order changes
    >>> settled(np.array([0.5, 0.3, 0.2]), 2, common, 3.0)
    True
    >>> settled(np.array([0.5, 0.3, 0.2]), 2, lambda rows: np.array([0.0, 0.05, 0.0])[rows], 3.0)
    False
    """
    if k >= len(scores):
        return True
    near = largest(scores, min(_LOOK * k, len(scores)))
    near = near[np.argsort(-scores[near])]
    found, change = scores[near], uncertainty * changes(near)
    on, back = found + change, found - change
    return bool(on[:k].min() >= on[k:].max() and back[:k].min() >= back[k:].max())


class _Closed(NamedTuple):
    """A result from p and r: the mass of the hubs, the share of r of other nodes, and the mass spread over them."""

    hubs: np.ndarray
    of_residual: float
    spread: float
    missing: float


class PushState:
    """p (`kept`) and r (`residual`) of one walk, over the nodes by falling strength."""

    def __init__(self, graph: Ordered, nodes: np.ndarray, weights: np.ndarray, damping: float, epsilon: float) -> None:
        size = len(graph.strength)
        self.graph = graph
        self.damping, self.bound, self.steps = damping, epsilon, 0
        self.kept = np.zeros(size)  # zeroed memory is mapped on first use: the cost is that of the reached nodes
        self.residual = np.zeros(size)
        self.seeds = graph.place[nodes]
        np.add.at(self.residual, self.seeds, check_reset(weights))

    def push(self) -> None:
        """Push until no node has a residual of more than epsilon times its strength."""
        graph, residual = self.graph, self.residual
        frontier = np.unique(self.seeds)
        while True:
            frontier = frontier[residual[frontier] > self.bound * graph.strength[frontier]]
            if not len(frontier):
                break
            mass = residual[frontier]
            self.kept[frontier] += (1.0 - self.damping) * mass
            residual[frontier] = 0.0
            frontier = self._spread(frontier, self.damping * mass)

    def _spread(self, frontier: np.ndarray, mass: np.ndarray) -> np.ndarray:
        """Spread mass of the frontier over its edges, and return the nodes that may have to be pushed next."""
        graph, residual = self.graph, self.residual
        edges, strength = graph.outward[frontier], graph.strength[frontier]
        per_weight = np.divide(mass, strength, out=np.zeros(len(mass)), where=strength > 0)
        if edges.nnz * _WHOLE > len(residual):
            residual += edges.T @ per_weight
            return np.flatnonzero(residual > self.bound * graph.strength)
        np.add.at(residual, edges.indices, np.repeat(per_weight, np.diff(edges.indptr)) * edges.data)
        over = np.sort(edges.indices[residual[edges.indices] > self.bound * graph.strength[edges.indices]])
        return over[np.diff(over, prepend=-1) > 0]  # `np.unique` takes three times as long

    def step(self) -> _Closed:
        """Push every node once, and return the result before the step, except that `kept` already includes the kept
        residual.

        The residual needs no double precision, and without it a step takes two thirds of the time.
        """
        following = self.graph.step @ self.residual.astype(np.float32)
        before = self.closed(following)._replace(of_residual=0.0)
        self.residual *= 1.0 - self.damping
        self.kept += self.residual
        self.residual = following
        self.residual *= np.float32(self.damping)
        self.bound *= self.damping
        self.steps += 1
        return before

    def closed(self, following: np.ndarray | None = None) -> _Closed:
        """Distribute the residual over hubs and other nodes.

        The residual after a step, `following`, saves summing the mass that enters the hubs.
        """
        ends = 1.0 - self.damping
        left = float(self.residual.sum())
        hubs, h = self.graph.hubs, self.graph.hubs.size
        on_hubs, ordinary = self.residual[:h], self.residual[h:]
        entering = hubs.entering @ ordinary if following is None else following[:h] - hubs.direct.T @ on_hubs
        visiting = hubs.visits(on_hubs + self.damping * entering, self.damping)
        landed = self.damping * float(visiting @ (1.0 - hubs.direct.sum(axis=1)))
        missing = max(0.0, left - ends * (left - float(on_hubs.sum()) + float(visiting.sum())))
        strength, everywhere = self.graph.strength[:h], self.graph.total_strength
        on_hub = min(self.bound, self.damping * max(0.0, missing - ends * landed) / everywhere) if h else 0.0
        of_hubs = float(strength.sum())
        of_others = everywhere - of_hubs
        spread = min(self.bound, (missing - on_hub * of_hubs) / of_others) if of_others > 0 else 0.0
        return _Closed(self.kept[:h] + ends * visiting + on_hub * strength, ends, spread, missing)

    def estimate(self, before: _Closed) -> PageRankEstimate:
        """The current estimate, with the one before."""
        now, strength = self.closed(), self.graph.strength
        h = len(now.hubs)
        total = float(self.kept.sum()) + float(self.residual.sum())  # 1, less the mass that ended in sinks
        scores = now.spread * strength
        scores += self.kept
        scores += self.residual * self.residual.dtype.type(now.of_residual)
        scores[:h] = now.hubs
        scores /= total

        def earlier(nodes: np.ndarray) -> np.ndarray:
            found = self.kept[nodes] + before.of_residual * self.residual[nodes] + before.spread * strength[nodes]
            found[nodes < h] = before.hubs[nodes[nodes < h]]
            scaled: np.ndarray = found / total
            return scaled

        uncertainty = _SAFETY * self.damping / (1.0 - self.damping)
        return PageRankEstimate(scores, now.missing / total, earlier, uncertainty, self.steps)
