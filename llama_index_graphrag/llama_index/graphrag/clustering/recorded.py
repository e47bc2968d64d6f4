"""`RecordedClustering`: the communities of an earlier run, as long as its entities exist."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.clustering.agglomerative import AgglomerativeClustering
from llama_index.graphrag.clustering.hierarchy import Hierarchy, hierarchy
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement import bare, digest
from llama_index.graphrag.published.run import PublishedRun, opened
from llama_index.ragkit.text.characters import normalise

__all__ = ["RecordedClustering"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class RecordedClustering:
    """Recorded communities, so that you can reuse the reports about them.

    A recorded entity stays in its communities. A new entity joins the lowest community to which it is most strongly
    linked, or of equal ones that of the least number. :class:`AgglomerativeClustering` clusters the entities that are
    linked to no recorded entity. The communities are thus a function of the graph and of the record; after many inserts
    they fit the graph less well.

    Attributes
    ----------
    paths : (normalised name, numbers of its communities, a root first), sorted
    """

    method: ClassVar[str] = "graphrag"
    paths: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def from_published(cls, run: PublishedRun | str | Path) -> "RecordedClustering":
        """The communities of a run of the command-line tool.

        Parameters
        ----------
        run : the run as read, or its `output` folder, with the errors of :func:`~llama_index.graphrag.read_parquet`
        """
        read = opened(run)
        paths: dict[str, list[int]] = {}
        for community in sorted(read.communities.values(), key=lambda community: (community.level, community.number)):
            for name in {normalise(name) for name in community.names}:
                above = paths.setdefault(name, [])
                if community.parent == (above[-1] if above else -1):
                    above.append(community.number)
        return cls(tuple(sorted((name, tuple(numbers)) for name, numbers in paths.items() if numbers)))

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and hash of the communities."""
        return {"class": type(self).__name__, "communities": digest(self.paths)}

    @cached_property
    def _path_of(self) -> dict[str, tuple[int, ...]]:
        return dict(self.paths)

    def cluster(self, graph: EntityGraph) -> Hierarchy:
        """The communities of a graph."""
        n = len(graph)
        recorded = [self._path_of.get(bare(name), ()) for name in graph.names]
        paths = [path or _strongest(graph, row, recorded) for row, path in enumerate(recorded)]
        alone = np.array([row for row in range(n) if not paths[row]], np.int64)
        rest = AgglomerativeClustering().cluster(_among(graph, alone))
        apart = [rest.partition(level) for level in range(1 + int(rest.level.max(initial=0)))]
        depth = max([len(path) for path in paths] + [len(apart) if len(alone) else 0], default=0)
        levels = []
        for level in range(depth):
            labels = np.array([path[min(level, len(path) - 1)] if path else 0 for path in paths], np.int64)
            labels[alone] = -1 - apart[min(level, len(apart) - 1)]
            levels.append(np.unique(labels, return_inverse=True)[1].reshape(-1))
        return hierarchy(n, levels)


def _strongest(graph: EntityGraph, row: int, paths: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The path to the community to which an entity is most strongly linked; empty if it is linked to none."""
    weights: dict[tuple[int, ...], int] = {}
    for entry in range(int(graph.indptr[row]), int(graph.indptr[row + 1])):
        path = paths[graph.indices[entry]]
        weights[path] = weights.get(path, 0) + int(graph.weights[entry])
    weights.pop((), None)
    return min(weights, key=lambda path: (-weights[path], path[-1]), default=())


def _among(graph: EntityGraph, rows: Integers) -> EntityGraph:
    """Some entities, and the edges between them."""
    place = np.full(len(graph), -1, np.int64)
    place[rows] = np.arange(len(rows))
    kept = (place[graph.rows] >= 0) & (place[graph.indices] >= 0) & (graph.rows < graph.indices)
    return EntityGraph.of(
        [graph.names[row] for row in rows],
        place[graph.rows[kept]],
        place[graph.indices[kept]],
        graph.weights[kept],
        graph.tokens[kept],
        graph.node_tokens[rows],
    )
