"""A hierarchy for each scope of a graph, joined into one: entities of different scopes never share a community."""

import numpy as np

from llama_index.graphrag.clustering.base import Clustering
from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement import scope_of

__all__ = ["clustered"]


def clustered(graph: EntityGraph, clustering: Clustering) -> Hierarchy:
    """The communities of a graph, found in each scope independently of the others.

    Parameters
    ----------
    graph : no edge joins two scopes
    """
    scopes = [scope_of(name) for name in graph.names]
    starts = [i for i in range(len(scopes)) if not i or scopes[i] != scopes[i - 1]]
    if len(starts) < 2:
        return clustering.cluster(graph)
    parts = [clustering.cluster(_part(graph, *run)) for run in zip(starts, [*starts[1:], len(scopes)], strict=True)]
    communities = np.cumsum([0, *map(len, parts)]).tolist()
    return Hierarchy(
        order=np.concatenate([part.order + start for part, start in zip(parts, starts, strict=True)]),
        first=np.concatenate([part.first + start for part, start in zip(parts, starts, strict=True)]),
        last=np.concatenate([part.last + start for part, start in zip(parts, starts, strict=True)]),
        parent=np.concatenate(
            [np.where(part.parent < 0, -1, part.parent + n) for part, n in zip(parts, communities, strict=False)]
        ),
    )


def _part(graph: EntityGraph, start: int, stop: int) -> EntityGraph:
    """The rows of a scope as a separate graph."""
    first, last = graph.indptr[start], graph.indptr[stop]
    return EntityGraph(
        graph.names[start:stop],
        graph.indptr[start : stop + 1] - first,
        graph.indices[first:last] - start,
        graph.weights[first:last],
        graph.tokens[first:last],
        graph.node_tokens[start:stop],
    )
