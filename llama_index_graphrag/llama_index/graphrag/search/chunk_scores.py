"""Scores of chunks from the entities that a question leads to.

With weight l_e of a link to entity e, its neighbours x by the weights w_ex of the pairs, S_e = sum_x w_ex, a spread d,
and D_e the chunks that name e:

    a_e = l_e + d sum_x l_x w_xe / S_x             activation
    s_c = sum over the entities e of c of a_e / |D_e|        share of chunk c, scaled so that the best is 1
    score_c = nearness_c + b t s_c,                t = exp(-4 m)

where m is the mean of the second to the sixth best share: the structure is trusted where it points at few chunks. An
entity that is everywhere says little about where to look, so its activation is shared among all its chunks.
"""

from collections.abc import Container, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.search.linking import Link

__all__ = ["activations", "chunk_scores", "chunk_shares", "trust"]

Floats = NDArray[np.float64]

_DECIMALS = 10  # hides the order of a sum
_STEEPNESS = 4.0


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


def chunk_shares(
    graph: StatementGraph, active: Mapping[str, float], allowed: Container[str] | None = None
) -> dict[str, float]:
    """The share of each chunk that names an active entity, in (0, 1], the best 1; by id.

    Parameters
    ----------
    allowed : ids of the chunks that count; None for all
    """
    shares: dict[str, float] = {}
    for key in sorted(active):
        where = [chunk for chunk in graph.entities.get(key, ()) if allowed is None or chunk in allowed]
        for chunk in where:
            shares[chunk] = shares.get(chunk, 0.0) + active[key] / len(where)
    best = max(shares.values(), default=0.0)
    return {chunk: round(share / best, _DECIMALS) for chunk, share in shares.items()} if best > 0 else {}


def trust(shares: Iterable[float]) -> float:
    """How far shares are to be trusted, in [exp(-4), 1]: 1 if one chunk has all; 0 without shares.

    >>> trust([1.0]), round(trust([1.0] * 9), 4), trust([])
    (1.0, 0.0183, 0.0)
    """
    ranked = np.sort(np.fromiter(shares, np.float64))[::-1]
    if not ranked.size:
        return 0.0
    return float(np.exp(-_STEEPNESS * ranked[1:6].sum() / 5))


def chunk_scores(nearness: Floats, shares: Floats, weight: float) -> Floats:
    """The scores of chunks, shape (n,).

    Parameters
    ----------
    nearness : shape (n,), standardised for the question
    shares : shape (n,), in [0, 1]
    weight : b, at least 0
    """
    scores: Floats = nearness + weight * trust(shares[shares > 0]) * shares
    return scores
