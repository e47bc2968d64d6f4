"""The interface of clusterings of Graph RAG."""

from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement import scope_of

__all__ = ["Clustering", "clustered", "fingerprint_of"]


class Clustering(Protocol):
    """Finds the communities of a graph."""

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and parameters, stored with an index."""

    def cluster(self, graph: EntityGraph) -> Hierarchy:
        """The communities of a graph. They depend only on the graph; every entity is in one."""


def fingerprint_of(clustering: Any) -> dict[str, str]:
    """Class name and parameters of a clustering that is a dataclass."""
    return {"class": type(clustering).__name__} | {name: str(value) for name, value in asdict(clustering).items()}


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
