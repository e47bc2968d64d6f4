"""`LeidenClustering`: the communities of the published pipeline, found by graspologic-native."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from llama_index.graphrag.clustering.hierarchy import Hierarchy, fingerprint_of, hierarchy
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.ragkit.extras import need
from llama_index.ragkit.validation import CheckedFields, Count, count, number

__all__ = ["LeidenClustering"]


@dataclass(frozen=True)
class LeidenClustering(CheckedFields):
    """Hierarchical Leiden (Traag, Waltman and van Eck 2019, arXiv 1810.08473) as the published pipeline runs it.

    Leiden on modularity gives the roots. Each community of more than `max_cluster_size` entities is clustered again by
    itself, as long as that divides it. Edges are given in the order of their names, so the communities are a function
    of the graph; they also depend on the version of the library.

    A change anywhere in the graph can change communities everywhere, and their reports.

    Parameters
    ----------
    max_cluster_size : the largest number of entities of a community that is not divided, at least 1 [10, as published]
    resolution : above 0; a higher one gives more communities [1]
    randomness : above 0 [0.001]
    iterations : iterations of the whole procedure, at least 1 [1]
    seed : at least 0 [0xDEADBEEF]
    largest_component : whether only the largest connected component is clustered, as published. Each other entity is
        then a community; the published pipeline leaves them out

    Raises
    ------
    ConfigurationError
        If a parameter is out of range.
    ImportError
        If graspologic-native is not installed.
    """

    method: ClassVar[str] = "graphrag"
    max_cluster_size: Count = 10
    resolution: Annotated[float, number(0, above=True)] = 1.0
    randomness: Annotated[float, number(0, above=True)] = 0.001
    iterations: Count = 1
    seed: Annotated[int, count(0)] = 0xDEADBEEF
    largest_component: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _native()

    @classmethod
    def paper(cls) -> "LeidenClustering":
        """The clustering with the published parameters."""
        return cls(largest_component=True)

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and parameters."""
        return fingerprint_of(self)

    def cluster(self, graph: EntityGraph) -> Hierarchy:
        """The communities of a graph."""
        n = len(graph)
        use = graph.rows < graph.indices
        if self.largest_component and n:
            # Deferred: it imports the solvers of scipy.linalg, which takes a tenth of a second.
            from scipy.sparse.csgraph import connected_components

            component = connected_components(graph.adjacency(), directed=False)[1]
            use &= component[graph.rows] == np.bincount(component).argmax()
        sources, targets = graph.rows[use].tolist(), graph.indices[use].tolist()
        if not sources:
            return hierarchy(n, [])
        weights = graph.weights[use].astype(np.float64).tolist()
        names = graph.names
        found = _native().hierarchical_leiden(
            [(names[i], names[j], w) for i, j, w in zip(sources, targets, weights, strict=True)],
            resolution=self.resolution,
            randomness=self.randomness,
            iterations=self.iterations,
            use_modularity=True,
            max_cluster_size=self.max_cluster_size,
            seed=self.seed,
        )
        # Clusters are numbered throughout all levels; the numbers below n are the entities that were not given.
        labels = np.arange(n)
        levels = []
        for level in range(1 + max(entry.level for entry in found)):
            entries = [entry for entry in found if entry.level == level]
            labels = labels.copy()
            labels[[graph.position[entry.node] for entry in entries]] = [n + entry.cluster for entry in entries]
            levels.append(np.unique(labels, return_inverse=True)[1].reshape(-1))
        return hierarchy(n, levels)


def _native() -> Any:
    return need("graspologic_native", "LeidenClustering", "llama-index-graphrag[leiden]")
