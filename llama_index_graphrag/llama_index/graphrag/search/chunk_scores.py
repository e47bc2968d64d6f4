"""Scores of chunks from the entities that a question leads to.

With weight l_e of a link to entity e, its neighbours x by the weights w_ex of the pairs, S_e = sum_x w_ex, a spread d,
and D_e the chunks that name e:

    a_e = l_e + d sum_x l_x w_xe / S_x                       activation
    s_c = sum over the entities e of c of a_e / |D_e|        share of chunk c, scaled so that the best is 1
    score_c = nearness_c + b t log((s_c + f) / (1 + f)),     t = exp(-4 m) u ** (1 / 4)

where f = 0.0001, m is the mean of the second to the sixth best share, and u the share of the chunk that is nearest to
the question. The structure is trusted where it points at few chunks, and where the nearest chunk is one of them. An
entity that is everywhere says little about where to look, so its activation is shared among all its chunks.

Source: none of the published searches mixes both; microsoft/graphrag ranks chunks by entities alone.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.search.linking import Link

__all__ = ["activations", "chunk_shares", "combined", "trust"]

Floats = NDArray[np.float64]

_DECIMALS = 10  # hides the order of a sum
_STEEPNESS = 4.0
_FIRST = 6  # shares that tell whether few chunks have most
_AGREEMENT = 0.25
_FLOOR = 1e-4
_EQUAL = 1e-9  # nearness within the error of rounding


def activations(entities: EntityGraph, links: Iterable[Link], spread: float) -> dict[str, float]:
    """The activation of each entity, by key.

    Parameters
    ----------
    spread : d, in [0, 1)
    """
    found: dict[str, float] = {}
    linked = [(entities.position[link.entity], link.weight) for link in links if link.entity in entities.position]
    for row, weight in linked:
        found[entities.names[row]] = found.get(entities.names[row], 0.0) + weight
    if not spread:
        return found
    for row, weight in linked:
        entries = slice(entities.indptr[row], entities.indptr[row + 1])
        shares = spread * weight * entities.weights[entries] / max(1, int(entities.strengths[row]))
        for other, share in zip(entities.indices[entries].tolist(), shares.tolist(), strict=True):
            found[entities.names[other]] = found.get(entities.names[other], 0.0) + share
    return found


def chunk_shares(graph: StatementGraph, active: Mapping[str, float]) -> dict[str, float]:
    """The share of each chunk that names an active entity, in (0, 1], the best 1; by id."""
    shares: dict[str, float] = {}
    for key in sorted(active):
        where = graph.entities.get(key, ())
        for chunk in where:
            shares[chunk] = shares.get(chunk, 0.0) + active[key] / len(where)
    best = max(shares.values(), default=0.0)
    return {chunk: round(share / best, _DECIMALS) for chunk, share in shares.items()} if best > 0 else {}


def trust(nearness: Floats, shares: Floats) -> float:
    """How far shares are to be trusted: t, in [0, 1]; 0 without shares.

    Parameters
    ----------
    nearness, shares : shape (n,), of the chunks that may be shown

    >>> trust(np.array([2.0, 0.0]), np.array([1.0, 0.0])), trust(np.array([2.0, 0.0]), np.array([0.0, 1.0]))
    (1.0, 0.0)
    """
    if not shares.any():
        return 0.0
    first = min(_FIRST, len(shares))
    best = np.sort(np.partition(shares, len(shares) - first)[len(shares) - first :])[::-1]
    others = float(best[1:].sum()) / (_FIRST - 1)
    nearest = float(shares[nearness >= nearness.max() - _EQUAL].max())
    return math.exp(-_STEEPNESS * others) * math.pow(nearest, _AGREEMENT)


def combined(nearness: Floats, shares: Floats, weight: float) -> Floats:
    """The scores of chunks, shape (n,), in standard deviations; at most the nearness, which the best share keeps.

    Parameters
    ----------
    nearness : shape (n,), standardised for the question
    shares : shape (n,), in [0, 1]
    weight : b t, at least 0

    >>> combined(np.array([2.0, 1.0]), np.array([0.0, 1.0]), 0.5).round(3).tolist()
    [-2.605, 1.0]
    """
    scores: Floats = nearness + weight * np.log((shares + _FLOOR) / (1 + _FLOOR)) if weight else nearness
    return scores
