"""Personalised PageRank by power iteration, exact to a stated tolerance, for many queries at once.

With W the weights of a graph, s_i the sum of row i, P_ij = W_ij / s_i the probability of walking from i to j, v the
reset distribution and d the damping,

    x = d (P^T x + m v) + (1 - d) v,        m = the mass of x on nodes without an edge.

d is the probability of *following an edge*, as in igraph and networkx. The paper (Gutierrez et al. 2024, section 3.4,
"the probability that PPR will restart") has 0.5 for 1 - d; the two agree only at 0.5.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import scipy.sparse as sp

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["Hubs", "Ordered", "Walk", "check_reset", "hubs_of", "pagerank"]


MOST_HUBS = 256
_ROUNDS = 40  # each term of the series is smaller by at least the damping


class Hubs(NamedTuple):
    """The strongest nodes of an undirected graph, its first h ones, and the probabilities of walking between them.

    A power-law graph has a few nodes with thousands of neighbours. Mass that reaches such a hub is spread over
    thousands of nodes in small amounts, and much of it is back at a hub two steps later. One step (hub to hub) and two
    steps (hub to an ordinary node to a hub) are small matrices between the hubs, computed once per graph.

    Attributes
    ----------
    direct : (h, h), the probability of stepping from hub to hub
    through : (h, h), that of getting from hub to hub in two steps through a node that is not a hub
    entering : (h, n - h) sparse, column w - h is that of stepping from ordinary node w to each hub
    """

    direct: np.ndarray
    through: np.ndarray
    entering: sp.csr_matrix

    @property
    def size(self) -> int:
        """h."""
        return len(self.direct)

    def visits(self, arriving: np.ndarray, damping: float) -> np.ndarray:
        """The mass that visits each hub, including returns in one and two steps, for the initial mass `arriving`, (h,).

        Solves ``y = a + (d D + d^2 T)^T y`` by its series, which converges from below.
        """
        returning = (damping * self.direct + damping**2 * self.through).T
        visiting = arriving
        for _ in range(_ROUNDS):
            following = arriving + returning @ visiting
            done = following.sum() - visiting.sum() <= 1e-12
            visiting = following
            if done:
                break
        return visiting


def hubs_of(outward: sp.csr_matrix, strength: np.ndarray) -> Hubs:
    """The first `MOST_HUBS` nodes; O(edges of the hubs)."""
    h = min(MOST_HUBS, int((strength > 0).sum()))
    per_weight = np.divide(1.0, strength, out=np.zeros(len(strength)), where=strength > 0)
    rows = outward[:h]
    leaving = (sp.diags(per_weight[:h]) @ rows).tocsc()
    entering = sp.csr_matrix(rows.tocsc()[:, h:] @ sp.diags(per_weight[h:]))
    through = (leaving[:, h:] @ entering.T).toarray()
    return Hubs(leaving[:, :h].toarray(), through, entering)


@dataclass(frozen=True)
class Walk:
    """A graph prepared for walks; create it once per graph with :meth:`of`.

    Attributes
    ----------
    outward : (n, n) float64, row i holds the weights of the edges that leave node i; columns ascend in each row
    inward : its transpose; the same object if the graph is undirected
    strength : (n,) sums of the rows of `outward`; 0 for a node without an edge
    """

    outward: sp.csr_matrix
    inward: sp.csr_matrix
    strength: np.ndarray

    @classmethod
    def of(cls, adjacency: sp.sparray | sp.spmatrix, *, undirected: bool = True) -> "Walk":
        """Check a graph and sum its weights.

        Parameters
        ----------
        adjacency : (n, n), entry (i, j) is the weight of the edge from i to j; parallel entries add up, zeros are not
            edges, and a loop is an edge like any other
        undirected : whether the matrix is symmetric, which saves the transpose; not checked

        Raises
        ------
        ConfigurationError
            If a weight is negative or not finite.
        """
        outward = sp.csr_matrix(adjacency, dtype=np.float64)
        if not (np.isfinite(outward.data) & (outward.data >= 0)).all():
            raise ConfigurationError("The weights of edges must be finite and not negative.")
        if not outward.has_canonical_format or not outward.data.all():
            outward = outward.copy()
            outward.sum_duplicates()
            outward.eliminate_zeros()
        inward = outward if undirected else outward.T.tocsr()
        return cls(outward, inward, np.asarray(outward.sum(axis=1)).ravel())

    def __len__(self) -> int:
        return int(self.outward.shape[0])

    @cached_property
    def ordered(self) -> "Ordered":
        """The same undirected graph with its nodes renumbered for walks of many steps; computed on first use."""
        order = np.argsort(-self.strength, kind="stable").astype(np.int32)
        place = np.empty(len(self), np.int32)
        place[order] = np.arange(len(self), dtype=np.int32)
        outward = self.outward[order][:, order]
        outward.sort_indices()
        strength = self.strength[order]
        per_weight = np.divide(1.0, strength, out=np.zeros(len(self)), where=strength > 0)
        data = (outward.data * per_weight[outward.indices]).astype(np.float32)
        step = sp.csr_matrix((data, outward.indices, outward.indptr), shape=outward.shape)
        hubs = hubs_of(outward, strength)
        return Ordered(_narrowed(outward), strength, order, place, step, hubs, float(strength.sum()))


class Ordered(NamedTuple):
    """An undirected graph with its nodes in descending strength: half of all edges end at few nodes, which then stay in
    the processor's cache, so that a step over the whole graph takes little more than half the time.

    Attributes
    ----------
    outward : (n, n), row i holds the weights of the edges that leave node i, in single precision if that is exact
    strength : (n,) sums of its rows
    order, place : (n,) int32, node i is node ``order[i]`` of the old graph, whose node i is node ``place[i]``
    step : (n, n), ``step @ mass`` is the mass after a step: column j is row j of the weights over its sum
    hubs : its first nodes
    total_strength : the sum of all strengths
    """

    outward: sp.csr_matrix
    strength: np.ndarray
    order: np.ndarray
    place: np.ndarray
    step: sp.csr_matrix
    hubs: Hubs
    total_strength: float


def pagerank(
    walk: Walk, resets: np.ndarray, *, damping: float = 0.5, tolerance: float = 1e-10, max_steps: int | None = None
) -> np.ndarray:
    """Personalised PageRank: the share of time that a random walk with restart to `resets` spends at each node.

    Every step multiplies the L1 distance to the exact result by d or less, so at most this many steps are needed:
    ``log(tolerance / 2) / log(d)`` steps: 36 at d = 0.5. The work of a step is the number of edges times the queries.

    Parameters
    ----------
    resets : (n,), or (q, n) for q queries; not negative, scaled to sum 1 here
    damping : probability of following an edge, 0 <= d < 1
    tolerance : upper bound of the L1 distance to the exact result, in (0, 1)
    max_steps : maximum number of edges that a walk follows, for an incomplete PageRank: with 0 the result is the reset

    Returns
    -------
    (n,) or (q, n) : not negative, each row sums to 1

    Raises
    ------
    ConfigurationError
        If a reset is negative, not finite or all zero.
    """
    single = resets.ndim == 1
    reset = check_reset(resets) if single else np.stack([check_reset(row) for row in resets], axis=1)
    dangling = walk.strength == 0
    scale = damping / np.where(dangling, 1.0, walk.strength)
    scale[dangling] = 0.0
    if not single:
        scale = scale[:, None]
    scores = reset
    # ||x_k - x*|| <= 2 d^k; with rounding, the change may never become as small as a very small tolerance.
    steps = math.ceil(math.log(tolerance / 2) / math.log(damping)) if damping else 1
    for _ in range(steps if max_steps is None else min(steps, max_steps)):
        walked = walk.inward @ (scores * scale)
        lost = 1.0 - walked.sum(axis=0)  # the restarting mass: (1 - d), and d times the mass on dangling nodes
        following = walked + lost * reset
        change = np.abs(following - scores).sum(axis=0).max(initial=0.0)
        scores = following
        # ||x_k+1 - x*|| <= d / (1 - d) ||x_k+1 - x_k||, since the map is a contraction by d in L1.
        if change * damping <= tolerance * (1.0 - damping):
            break
    return scores if single else np.ascontiguousarray(scores.T)


def _narrowed(weights: sp.csr_matrix) -> sp.csr_matrix:
    """Weights in single precision, unless it would change one: counts stay as they are."""
    narrow = weights.data.astype(np.float32)
    if not np.array_equal(narrow, weights.data):
        return weights
    return sp.csr_matrix((narrow, weights.indices, weights.indptr), shape=weights.shape)


def check_reset(weights: np.ndarray) -> np.ndarray:
    """Reset weights scaled to sum 1; a `ConfigurationError` if they are negative, not finite or all zero."""
    weights = np.asarray(weights, dtype=np.float64)
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ConfigurationError("Reset weights must be finite and not negative.")
    largest = weights.max(initial=0.0)
    if not largest > 0:
        raise ConfigurationError("A reset must have at least one positive weight, but all are zero.")
    scaled = weights / largest  # so that the sum neither overflows nor vanishes
    return cast(np.ndarray, scaled / scaled.sum())
