"""Personalised PageRank near its seeds only: forward push, a frontier at a time, and an account of the rest.

Kept are a lower bound p of the answer and a residual r, the mass that has not been walked yet (Andersen, Chung, Lang
2006, "Local graph partitioning using PageRank vectors", section 3). To push node u is to keep (1 - d) r_u at u and to
hand d r_u to its neighbours. Only nodes with ``r_u > epsilon s_u`` are pushed (s_u the weight of all edges of u), so
that the work is at most ``1 / (epsilon (1 - d))`` edges of weight 1 *whatever the size of the graph*. Whole frontiers
are pushed at once, as arrays.

What is left lies as crumbs on very many nodes, and above all on hubs, since a hub is not opened for less than epsilon
times its thousands of edges. Their own scores would be some percent too low by what returns to them, enough to change a
ranking. Hence two deviations from the paper at the end, both for undirected graphs:

1. Every node hands its crumb on once more, to the hubs alone, and the walk among the hubs is solved (`hubs.py`). These
   are real walks: p stays a lower bound.
2. What then remains, mass m, is spread as a walk forgets where it came from: in proportion to strength. It stands on
   ordinary nodes now and needs one more step to a hub, which therefore get the share d of theirs. This is an estimate.

With G the walk that ends at nodes without edges, the exact vector is G v scaled to sum 1, and G v = p + G r. So p is
too low by m in all, and at node u by at most ``epsilon s_u`` (from ``G_uw s_u = G_wu s_w``, which needs symmetry).
"""

from typing import NamedTuple

import numpy as np

from llama_index.hipporag.pagerank import Walk, check_damping, check_reset, pagerank
from llama_index.ragkit.errors import ConfigurationError

__all__ = ["EPSILON", "PUSH_FROM", "Pushed", "push", "walk_from"]

PUSH_FROM = 100_000  # nodes; below, the exact answer takes less than 50 ms
EPSILON = 3e-8
_WHOLE = 16  # a frontier with more edges than 1 / _WHOLE of the nodes is added up over the whole graph


class Pushed(NamedTuple):
    """A sparse estimate of a personalised PageRank vector.

    Attributes
    ----------
    nodes : (m,) int64, ascending : the nodes that were reached
    scores : (m,) float64, positive : their scores
    missing : mass that was not walked to its end; the L1 distance to the exact vector is at most twice this
    by_strength : the score of node u is wrong by at most this times its strength; infinite in a directed graph
    """

    nodes: np.ndarray
    scores: np.ndarray
    missing: float
    by_strength: float


def walk_from(
    walk: Walk, nodes: np.ndarray, weights: np.ndarray, *, damping: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Personalised PageRank from a few nodes: exact in small graphs, by :func:`push` from `PUSH_FROM` nodes on.

    Returns
    -------
    nodes, scores : (m,) the nodes that were reached, ascending, and their scores
    """
    if len(walk) >= PUSH_FROM:
        pushed = push(walk, nodes, weights, damping=damping)
        return pushed.nodes, pushed.scores
    scores = pagerank(walk, _reset(walk, nodes, weights), damping=damping)
    reached = np.flatnonzero(scores)
    return reached, scores[reached]


def push(
    walk: Walk, nodes: np.ndarray, weights: np.ndarray, *, damping: float = 0.5, epsilon: float = EPSILON
) -> Pushed:
    """Personalised PageRank from a few nodes, in time that hardly depends on the size of the graph.

    Parameters
    ----------
    nodes, weights : (k,) the reset, at least one positive; a node that comes twice has the sum of its weights
    damping : probability of following an edge, 0 <= d < 1
    epsilon : residual that may stay unpushed, per weight of edges; positive

    Raises
    ------
    ConfigurationError
        If a node does not exist, weights are negative, not finite or all zero, or a parameter is out of range.
    """
    check_damping(damping)
    if not epsilon > 0:
        raise ConfigurationError(f"epsilon must be positive, not {epsilon}.")
    residual = _reset(walk, nodes, weights)
    kept = np.zeros(len(walk))
    frontier = np.unique(np.asarray(nodes, dtype=np.int64))
    while True:
        frontier = frontier[residual[frontier] > epsilon * walk.strength[frontier]]
        if not len(frontier):
            break
        mass = residual[frontier]
        kept[frontier] += (1.0 - damping) * mass
        residual[frontier] = 0.0
        frontier = _hand_on(walk, frontier, damping * mass, residual, epsilon)
    return _account(walk, kept, residual, damping, epsilon)


def _reset(walk: Walk, nodes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The reset as a dense vector. Zeroed memory is mapped when it is touched: it costs what is reached."""
    seeds = np.asarray(nodes, dtype=np.int64)
    if seeds.ndim != 1 or seeds.shape != np.shape(weights):
        raise ConfigurationError(f"Seeds of shape {seeds.shape} need as many weights, not {np.shape(weights)}.")
    if len(seeds) and not (seeds.min() >= 0 and seeds.max() < len(walk)):
        raise ConfigurationError(f"Seeds must be nodes 0 to {len(walk) - 1}, not {seeds.min()} to {seeds.max()}.")
    reset = np.zeros(len(walk))
    np.add.at(reset, seeds, check_reset(weights))
    return reset


def _hand_on(walk: Walk, frontier: np.ndarray, mass: np.ndarray, residual: np.ndarray, epsilon: float) -> np.ndarray:
    """Spread the mass of the frontier over its edges; the nodes that may have to be pushed next."""
    edges = walk.outward[frontier]
    strength = walk.strength[frontier]
    per_weight = np.divide(mass, strength, out=np.zeros(len(mass)), where=strength > 0)
    if edges.nnz * _WHOLE > len(walk):
        residual += edges.T @ per_weight
        return np.flatnonzero(residual > epsilon * walk.strength)
    np.add.at(residual, edges.indices, np.repeat(per_weight, np.diff(edges.indptr)) * edges.data)
    over = residual[edges.indices] > epsilon * walk.strength[edges.indices]
    return np.unique(edges.indices[over]).astype(np.int64)


def _account(walk: Walk, kept: np.ndarray, residual: np.ndarray, damping: float, epsilon: float) -> Pushed:
    """Place what was not pushed, and say how much of it is a guess."""
    total = kept.sum() + residual.sum()  # 1, less what ended on nodes without edges
    if not walk.undirected:
        kept += (1.0 - damping) * residual
        reached = np.flatnonzero(kept)
        return Pushed(reached, kept[reached] / total, float(max(0.0, 1.0 - kept.sum() / total)), np.inf)
    hubs = walk.hubs
    arriving = residual[hubs.nodes]
    residual[hubs.nodes] = 0.0
    visiting = hubs.visits(arriving + damping * (hubs.entering @ residual), damping)
    residual *= 1.0 - damping
    kept += residual
    kept[hubs.nodes] += (1.0 - damping) * visiting
    missing = max(0.0, total - kept.sum())
    on_hub = damping * missing / walk.total_strength if walk.total_strength else 0.0  # per strength: below epsilon
    ordinary = walk.total_strength - hubs.strength
    elsewhere = min(epsilon, (missing - on_hub * hubs.strength) / ordinary) if ordinary > 0 else 0.0
    reached = np.flatnonzero(kept)
    scores = kept[reached]
    scores += elsewhere * walk.strength[reached]
    places = np.searchsorted(reached, hubs.nodes)
    known = places < len(reached)
    known[known] = reached[places[known]] == hubs.nodes[known]
    scores[places[known]] += (on_hub - elsewhere) * walk.strength[hubs.nodes[known]]
    return Pushed(reached, scores / total, float(missing / total), float(epsilon / total))
