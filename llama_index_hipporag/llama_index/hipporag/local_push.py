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
2. What then remains, mass m, is estimated. The crumbs of the nodes that were pushed lie on one another's neighbours: a
   step brings such a node the share d of the crumbs near it, which per strength are those of all of them. The rest is
   spread as a walk forgets where it came from, in proportion to strength: ordinary nodes are one step from a hub, and
   hubs get the share d of theirs. What a hub has just left on them is none of it, since its way back is in 1.

With G the walk that ends at nodes without edges, the exact vector is G v scaled to sum 1, and G v = p + G r. So p is
too low by m in all, and at node u by at most ``epsilon s_u`` (from ``G_uw s_u = G_wu s_w``, which needs symmetry).

That bound is far above what the order of passages suffers. On two graphs of a million nodes the estimate is wrong by
some hundredths of it at ordinary nodes, and by a percent at hubs, alike for all passages of a hub. So a walk starts
coarse, and is made finer only while what is among the best passages could change places with what is not, if each
were wrong by `_DOUBT` times the bound (:func:`settled`). The 20 best were those of the exact walk for 499 of the 500
questions that `_DOUBT` was chosen on, and for 196 of 200 others; more than half of all after the first, coarsest walk.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from llama_index.hipporag.pagerank import Walk, check_damping, check_reset
from llama_index.ragkit.errors import ConfigurationError

__all__ = ["EPSILONS", "PUSH_FROM", "Pushed", "push", "refinements", "settled"]

PUSH_FROM = 100_000  # nodes; below, the exact answer takes less than 50 ms
EPSILONS = (4e-7, 5e-8, 1e-8)
_DOUBT = 0.025  # of the bound: how wrong a score is taken to be when the order is asked
_LOOK = 10  # times the passages that are wanted: what could come up among them
_WHOLE = 4  # a frontier with more edges than 1 / _WHOLE of the nodes is added up over the whole graph


class Pushed(NamedTuple):
    """A sparse estimate of a personalised PageRank vector.

    Attributes
    ----------
    nodes : (m,) int64, ascending : the nodes that were reached
    scores : (m,) float64, positive : their scores
    missing : mass that was not walked to its end; the L1 distance to the exact vector is at most twice this
    by_strength : the score of node u is wrong by at most this times its strength; infinite in a directed graph
    doubt : the same as is likely, of ordinary nodes; hubs have an error that all their neighbours share
    """

    nodes: np.ndarray
    scores: np.ndarray
    missing: float
    by_strength: float
    doubt: float


def push(
    walk: Walk, nodes: np.ndarray, weights: np.ndarray, *, damping: float = 0.5, epsilon: float = EPSILONS[-1]
) -> Pushed:
    """Personalised PageRank from a few nodes: the last of the :func:`refinements` down to one precision."""
    return next(refinements(walk, nodes, weights, damping=damping, epsilons=(epsilon,)))


def settled(scores: np.ndarray, k: int, doubts: Callable[[np.ndarray], np.ndarray]) -> bool:
    """Whether the k best scores, (p,), stay the k best, if each is wrong by as much as is likely.

    Parameters
    ----------
    doubts : rows -> by how much their scores may be wrong; asked for the `_LOOK` k best

    >>> little = lambda rows: np.full(len(rows), 0.01)
    >>> settled(np.array([0.5, 0.3, 0.2]), 2, little), settled(np.array([0.5, 0.21, 0.2]), 2, little)
    (True, False)
    """
    if k >= len(scores):
        return True
    near = np.arange(len(scores))
    if _LOOK * k < len(scores):
        near = np.argpartition(-scores, _LOOK * k)[: _LOOK * k]
    near = near[np.argsort(-scores[near])]
    found, wrong = scores[near], doubts(near)
    lowest, highest = (found - wrong)[:k].min(), (found + wrong)[k:].max()
    return bool(lowest > highest) or not found[k] > 0.0


def refinements(
    walk: Walk,
    nodes: np.ndarray,
    weights: np.ndarray,
    *,
    damping: float = 0.5,
    epsilons: Sequence[float] = EPSILONS,
) -> Iterator[Pushed]:
    """Personalised PageRank from a few nodes, finer and finer; each in time that hardly depends on the graph's size.

    Parameters
    ----------
    nodes, weights : (k,) the reset, at least one positive; a node that comes twice has the sum of its weights
    damping : probability of following an edge, 0 <= d < 1
    epsilons : residual that may stay unpushed, per weight of edges; positive, descending. What was walked at one is
        not walked again at the next

    Raises
    ------
    ConfigurationError
        If a node does not exist, weights are negative, not finite or all zero, or a parameter is out of range.
    """
    check_damping(damping)
    if not all(epsilon > 0 for epsilon in epsilons):
        raise ConfigurationError(f"epsilon must be positive, not {min(epsilons)}.")
    residual = _reset(walk, nodes, weights)
    kept = np.zeros(len(walk))
    frontier = np.unique(np.asarray(nodes, dtype=np.int64))
    for epsilon in epsilons:
        while True:
            frontier = frontier[residual[frontier] > epsilon * walk.strength[frontier]]
            if not len(frontier):
                break
            mass = residual[frontier]
            kept[frontier] += (1.0 - damping) * mass
            residual[frontier] = 0.0
            frontier = _hand_on(walk, frontier, damping * mass, residual, epsilon)
        yield _account(walk, kept, residual, damping, epsilon)
        frontier = np.flatnonzero(residual > 0.0)


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
    """Place what was not pushed, and say how much of it is a guess; the account of the walk stays as it is."""
    visiting, hubs, landed = np.empty(0), np.empty(0, np.int64), 0.0
    if walk.undirected:  # nothing is `entering` from a hub, so that the hubs' own residual counts once
        arriving = residual[walk.hubs.nodes] + damping * (walk.hubs.entering @ residual)
        visiting = walk.hubs.visits(arriving, damping)
        landed = damping * float(visiting @ (1.0 - walk.hubs.direct.sum(axis=1)))
        hubs, visiting = walk.hubs.nodes[visiting > 0.0], visiting[visiting > 0.0]
    seen = (kept > 0.0) | (residual > 0.0)  # of bools `flatnonzero` is several times faster than of numbers
    seen[hubs] = True
    reached = np.flatnonzero(seen)
    scores, left = kept[reached], residual[reached]
    core = scores > 0.0
    places = np.searchsorted(reached, hubs)
    core[places] = False
    crumbs = float(left[core].sum())
    total = float(scores.sum() + left.sum())  # 1, less what ended on nodes without edges
    left[places] = visiting
    scores += (1.0 - damping) * left
    missing = max(0.0, total - float(scores.sum()))
    strength = walk.strength[reached]
    doubt = _DOUBT * epsilon / total
    if not walk.undirected:
        return Pushed(reached, scores / total, missing / total, np.inf, doubt)
    on_hub, in_core, elsewhere = _shares(
        walk, damping, epsilon, missing, (1.0 - damping) * landed, crumbs, float(strength[core].sum())
    )
    scores += elsewhere * strength
    scores[core] += in_core * strength[core]
    scores[places] += (on_hub - elsewhere) * strength[places]
    return Pushed(reached, scores / total, missing / total, epsilon / total, doubt)


def _shares(
    walk: Walk, damping: float, epsilon: float, missing: float, ended: float, crumbs: float, strength: float
) -> tuple[float, float, float]:
    """What hubs, nodes that were pushed, and ordinary nodes have of the missing mass, per strength; at most epsilon.

    Parameters
    ----------
    ended : part of the missing mass that comes from a hub and ends at its neighbours
    crumbs, strength : residual of the ordinary nodes that were pushed, and their strength
    """
    if not walk.total_strength:
        return 0.0, 0.0, 0.0
    on_hub = damping * max(0.0, missing - ended) / walk.total_strength
    rest = missing - on_hub * walk.hubs.strength
    in_core = min(damping * (1.0 - damping) * crumbs, rest) / strength if strength else 0.0
    ordinary = walk.total_strength - walk.hubs.strength
    elsewhere = min(epsilon - in_core, (rest - in_core * strength) / ordinary) if ordinary > 0 else 0.0
    return on_hub, in_core, elsewhere
