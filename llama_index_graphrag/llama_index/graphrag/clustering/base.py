"""The interface of clusterings of Graph RAG."""

from dataclasses import asdict
from typing import Any, Protocol

from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.graph.entity_graph import EntityGraph

__all__ = ["Clustering", "fingerprint_of"]


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
