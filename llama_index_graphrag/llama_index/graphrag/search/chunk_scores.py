"""Scores of chunks from the entities that a question leads to.

With weight l_e of a link to entity e, its neighbours x by the weights w_ex of the pairs, S_e = sum_x w_ex, a spread d,
and D_e the chunks that name e:

    a_e = l_e + d sum_x l_x w_xe / S_x                       activation
    s_c = sum over the entities e of c of a_e / |D_e|        share of chunk c, scaled so that the best is 1

An entity that is everywhere says little about where to look, so its activation is shared among all its chunks. Shares
are added to nearness as far as they can be trusted, see :mod:`llama_index.ragkit.vectors.walk_trust`.

Source: none of the published searches mixes both; microsoft/graphrag ranks chunks only by entities.
"""

from collections.abc import Iterable, Mapping

from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.search.linking import Link

__all__ = ["activations", "chunk_shares", "scaled"]

_DECIMALS = 10  # hides the order of a sum


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
    return scaled(shares)


def scaled(shares: Mapping[str, float]) -> dict[str, float]:
    """Shares in proportion to the best, which is 1; rounded, so the order of sums does not matter."""
    best = max(shares.values(), default=0.0)
    return {chunk: round(share / best, _DECIMALS) for chunk, share in shares.items()} if best > 0 else {}
