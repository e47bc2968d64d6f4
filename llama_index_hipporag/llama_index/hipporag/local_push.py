"""Personalised PageRank near its seeds only: forward push, a frontier at a time.

Kept are a lower bound p of the answer and a residual r, the mass that has not been walked yet (Andersen, Chung, Lang
2006, "Local graph partitioning using PageRank vectors", section 3). To push node u is to keep (1 - d) r_u at u and to hand
d r_u to its neighbours. Only nodes with ``r_u > epsilon s_u`` are pushed (s_u the weight of all edges of u), so that the
total work is at most ``1 / (epsilon (1 - d))`` edges of weight 1 *whatever the size of the graph*, and a hub is not opened
for a crumb. Whole frontiers are pushed at once, as arrays.

What is left undone is known. With G the walk that ends at nodes without edges, the exact vector is G v scaled to sum 1,
and G v = p + G r. Hence the distance to it is at most the share of r in p + r, and at a single node u of an undirected
graph at most ``max_w(r_w / s_w) s_u`` (from ``G_uw s_u = G_wu s_w``), over the sum of p + r.
"""

from typing import NamedTuple

import numpy as np
from llama_index.hipporag.pagerank import Walk, check_damping, check_reset

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["Pushed", "push"]


class Pushed(NamedTuple):
    """A sparse lower bound of a personalised PageRank vector.

    Attributes
    ----------
    nodes : (m,) int64, ascending : the nodes that were reached
    scores : (m,) float64, positive : their scores; the exact ones are the same or higher
    missing : the L1 distance to the exact vector is at most this
    missing_by_strength : in an undirected graph the score of node u is too low by at most this times the strength of u
    """

    nodes: np.ndarray
    scores: np.ndarray
    missing: float
    missing_by_strength: float


def push(walk: Walk, nodes: np.ndarray, weights: np.ndarray, *, damping: float = 0.5, epsilon: float = 1e-7) -> Pushed:
    """Personalised PageRank from a few nodes, in time that depends on `epsilon` and not on the graph.

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
    seeds = np.asarray(nodes, dtype=np.int64)
    if seeds.ndim != 1 or seeds.shape != np.shape(weights):
        raise ConfigurationError(f"{np.shape(nodes)} nodes need as many weights, not {np.shape(weights)}.")
    if len(seeds) and not (seeds.min() >= 0 and seeds.max() < len(walk)):
        raise ConfigurationError(f"Seeds must be nodes 0 to {len(walk) - 1}, not {seeds.min()} to {seeds.max()}.")
    # Zeroed memory is mapped when it is touched: these cost what is reached, not what there is.
    residual, kept = np.zeros(len(walk)), np.zeros(len(walk))
    np.add.at(residual, seeds, check_reset(weights))
    reached = [np.unique(seeds)]
    frontier = reached[0]
    while True:
        frontier = frontier[residual[frontier] > epsilon * walk.strength[frontier]]
        if not len(frontier):
            break
        mass = residual[frontier]
        kept[frontier] += (1.0 - damping) * mass
        residual[frontier] = 0.0
        targets, shares = _spread(walk, frontier, damping * mass)
        np.add.at(residual, targets, shares)
        frontier = np.unique(targets)
        reached.append(frontier)
    touched = np.unique(np.concatenate(reached))
    left = residual[touched]
    total = kept[touched].sum() + left.sum()  # below 1 by what ended on nodes without edges
    with np.errstate(divide="ignore", invalid="ignore"):
        highest = np.where(left > 0, left / walk.strength[touched], 0.0).max(initial=0.0)
    # Each node keeps (1 - d) of its residual at once: a lower bound still, and half of what is missing at d = 0.5.
    scores = (kept[touched] + (1.0 - damping) * left) / total
    positive = scores > 0
    return Pushed(touched[positive], scores[positive], float(damping * left.sum() / total), float(highest / total))


def _spread(walk: Walk, frontier: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What each neighbour gets from each node of the frontier, edge by edge."""
    indptr = walk.outward.indptr
    first = indptr[frontier].astype(np.int64)
    counts = indptr[frontier + 1] - first
    ends = np.cumsum(counts)
    edges = np.arange(ends[-1]) + np.repeat(first - (ends - counts), counts)
    per_weight = np.divide(mass, walk.strength[frontier], out=np.zeros(len(mass)), where=counts > 0)
    return walk.outward.indices[edges], walk.outward.data[edges] * np.repeat(per_weight, counts)
