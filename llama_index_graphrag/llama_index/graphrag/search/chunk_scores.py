"""Scores of chunks from the entities that a question leads to.

With weight l_e of a link to entity e, its neighbours x by the weights w_ex of the pairs, S_e = sum_x w_ex, a spread d,
and D_e the chunks that name e:

    a_e = l_e + d sum_x l_x w_xe / S_x                       activation
    s_c = sum over the entities e of c of a_e / |D_e|        share of chunk c, scaled so that the best is 1

An entity that is everywhere says little about where to look, so its activation is shared among all its chunks. Shares
are added to nearness as far as they can be trusted, see :mod:`llama_index.ragkit.vectors.trust`.

Source: none of the published searches mixes both; microsoft/graphrag ranks chunks only by entities.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.graph_arrays import Naming
from llama_index.graphrag.graph.sorted_rows import RowValues
from llama_index.graphrag.search.linking import Link

__all__ = ["activations", "chunk_shares", "scaled"]

Floats = NDArray[np.float64]

_DECIMALS = 10  # hides the order of a sum


def activations(entities: EntityGraph, links: Iterable[Link], spread: float) -> RowValues:
    """The activation of each entity, by key; `spread` is d, in [0, 1)."""
    found = np.zeros(len(entities))
    linked = [(entities.position[link.entity], link.weight) for link in links if link.entity in entities.position]
    for row, weight in linked:
        found[row] += weight
    for row, weight in linked if spread else ():
        entries = slice(entities.indptr[row], entities.indptr[row + 1])
        weights = entities.weights[entries]
        strength = int(weights.sum() if entities.sums is None else entities.sums[row])
        found[entities.indices[entries]] += spread * weight * weights / max(1, strength)
    return RowValues(entities.names, found)


def chunk_shares(naming: Naming, active: RowValues) -> RowValues:
    """The share of each chunk that names an active entity, in (0, 1], the best 1; by id."""
    of_each = active.numbers / np.maximum(naming.counts, 1)
    shares = np.bincount(naming.where, np.repeat(of_each, naming.counts), len(naming.chunks))
    return RowValues(naming.chunks, scaled(shares.astype(np.float64)))


def scaled(shares: Floats) -> Floats:
    """Shares in proportion to the best, which is 1; rounded, so the order of sums does not matter."""
    best = float(shares.max(initial=0.0))
    found: Floats = (shares / best).round(_DECIMALS) if best > 0 else np.zeros(len(shares))
    return found
