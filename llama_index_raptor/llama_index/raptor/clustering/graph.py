"""`GraphClustering`, the default: communities of the nearest-neighbour graph, without UMAP.

The neighbour graph that UMAP starts from already contains the cluster structure; Leiden uses it directly.
"""

from dataclasses import dataclass
from typing import ClassVar

import graspologic_native
import numpy as np
import scipy.sparse as sp

from llama_index.ragkit.blas import one_blas_thread
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.neighbors import approximate_neighbors, nearest_neighbors
from llama_index.raptor.clustering.base import Distinct, canonical, fingerprint_of, halves
from llama_index.raptor.clustering.neighbor_graph import scaled_graph

__all__ = ["GraphClustering"]

SEARCH_STEPS = 24
SEARCH_TOLERANCE = 0.02
_EXACT_UP_TO = 200_000  # rows; comparing all pairs of more takes hours


@dataclass(frozen=True)
class GraphClustering:
    """Leiden communities of the cosine nearest-neighbour graph, with a chosen mean size.

    1. Equal vectors become one row; rows are put in a canonical order (:class:`Distinct`), so that neither the input
       order nor the number of threads has an influence.
    2. Each row is linked to its ``n_neighbors`` nearest rows, weighted by the local scale (:func:`scaled_graph`). They
       are exact for up to 200,000 rows; for more,
       :func:`~llama_index.ragkit.vectors.neighbors.approximate_neighbors` finds them.
    3. Leiden (Traag, Waltman, van Eck 2019, arXiv 1810.08473) on modularity with a resolution, bisected until the mean
       size is ``target_size``, within 2 % if the graph allows it.
    4. Communities under ``min_size`` are merged into the neighbour with which they share the most edge weight.
    5. Steps 3 and 4 are repeated within communities over ``max_size``; those that remain whole are split by
       :func:`halves`.
    6. With ``overlap_threshold``, a row also joins other clusters with at least that share of its edge weight, up to
       ``max_parents`` clusters in all and ``max_size`` rows per cluster.

    Three items or fewer form one cluster. Zero vectors have no neighbours; they join the smallest cluster.

    Parameters
    ----------
    target_size : mean number of items in a cluster; each cluster costs one summary. Small communities are merged, so
        the mean is larger if the target is near ``min_size``
    min_size, max_size : limits of a cluster; ``min_size <= target_size <= max_size`` and ``2 * min_size <= max_size``.
        Only parts of a split cluster can be under ``min_size``
    n_neighbors : neighbours of each row in the graph, at least 1
    overlap_threshold : above 0 and at most 1, or None for a partition
    max_parents : largest number of clusters of one item, at least 1
    seed : seed of Leiden

    Raises
    ------
    ConfigurationError
        If a parameter is out of range.
    """

    method: ClassVar[str] = "raptor"
    target_size: float = 12.0
    min_size: int = 3
    max_size: int = 35
    n_neighbors: int = 20
    overlap_threshold: float | None = None
    max_parents: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.min_size <= self.target_size <= self.max_size or 2 * self.min_size > self.max_size:
            raise ConfigurationError(
                f"1 <= min_size <= target_size <= max_size and 2 * min_size <= max_size must hold, not min_size="
                f"{self.min_size}, target_size={self.target_size}, max_size={self.max_size}."
            )
        if self.overlap_threshold is not None and not 0 < self.overlap_threshold <= 1:
            raise ConfigurationError(
                f"overlap_threshold must be above 0 and at most 1, or None, not {self.overlap_threshold}."
            )
        for name in ("n_neighbors", "max_parents"):
            if getattr(self, name) < 1:
                raise ConfigurationError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if self.seed < 0:
            raise ConfigurationError(f"seed must be at least 0, not {self.seed}.")

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and parameters."""
        return fingerprint_of(self)

    def cluster(self, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
        """Group the rows of ``vectors``, shape (n, d); see the class. ``weights`` have no influence.

        Raises
        ------
        EmbeddingError
            If the vectors are not a two-dimensional array of finite numbers.
        """
        if len(vectors) <= 3:
            return [np.arange(len(vectors))] if len(vectors) else []
        with one_blas_thread:
            distinct = Distinct.of(vectors)
            n = len(distinct.rows)
            several = round(n / self.target_size) > 1
            parts = self._parts(distinct) if several else [np.arange(n)] * bool(n)
            return canonical(self._cut(distinct.clusters(parts), vectors))

    def _parts(self, distinct: Distinct) -> list[np.ndarray]:
        """Steps 2 to 6 on the distinct rows."""
        rows, k = distinct.rows, min(self.n_neighbors, len(distinct.rows) - 1)
        exact = len(rows) <= _EXACT_UP_TO
        graph = scaled_graph(
            *(nearest_neighbors(rows, rows, k, skip_self=True) if exact else approximate_neighbors(rows, k))
        )
        copies = np.array([len(positions) for positions in distinct.copies])
        parts = self._communities(graph, copies)
        if self.overlap_threshold is not None and self.max_parents > 1:
            parts = self._overlapping(parts, graph, copies, self.overlap_threshold)
        return parts

    def _communities(self, graph: sp.csr_matrix, copies: np.ndarray) -> list[np.ndarray]:
        """Steps 3 to 5 on rows; indivisible communities are returned unchanged."""
        labels = self._search(graph, max(1, round(graph.shape[0] / self.target_size)))
        communities = []
        for part in _groups(_dissolved(graph, labels, copies, self.min_size)):
            if self.max_size < len(part) < graph.shape[0]:
                inner = self._communities(graph[part][:, part], copies[part])
                communities += [part[rows] for rows in inner]
            else:
                communities.append(part)
        return communities

    def _search(self, graph: sp.csr_matrix, wanted: int) -> np.ndarray:
        """Labels of the partition whose number of communities is nearest to ``wanted``."""
        best, best_miss = np.zeros(graph.shape[0], dtype=np.int64), abs(np.log(wanted))
        low, high, resolution = 0.0, np.inf, float(wanted)
        for _ in range(SEARCH_STEPS):
            if best_miss <= SEARCH_TOLERANCE:
                break
            labels = _leiden(graph, resolution, self.seed)
            found = int(labels.max()) + 1
            miss = abs(np.log(found / wanted))
            if miss < best_miss:
                best, best_miss = labels, miss
            if found < wanted:
                low = resolution
            else:
                high = resolution
            resolution = 2 * low if high == np.inf else high / 2 if not low else float(np.sqrt(low * high))
        return best

    def _cut(self, clusters: list[np.ndarray], vectors: np.ndarray) -> list[np.ndarray]:
        """Halve the clusters still over ``max_size``: indivisible communities, and many equal vectors."""
        small, pending = [], list(clusters)
        while pending:
            cluster = pending.pop()
            if len(cluster) <= self.max_size:
                small.append(cluster)
            else:
                pending += halves(cluster, vectors)
        return small

    def _overlapping(
        self, parts: list[np.ndarray], graph: sp.csr_matrix, copies: np.ndarray, threshold: float
    ) -> list[np.ndarray]:
        """Step 6: add rows to other communities, largest shares first."""
        label = np.empty(graph.shape[0], dtype=np.int64)
        for i, part in enumerate(parts):
            label[part] = i
        held = sp.coo_matrix(graph @ _membership(label))
        share = held.data / np.asarray(graph.sum(axis=1)).ravel()[held.row]
        joins = np.flatnonzero((share >= threshold) & (held.col != label[held.row]))
        joins = joins[np.lexsort((held.col[joins], held.row[joins], -share[joins]))]
        sizes, parents = np.bincount(label, weights=copies), np.ones(len(label))
        joined: list[list[int]] = [[] for _ in parts]
        for row, community in zip(held.row[joins], held.col[joins], strict=True):
            if parents[row] < self.max_parents and sizes[community] + copies[row] <= self.max_size:
                parents[row] += 1
                sizes[community] += copies[row]
                joined[community].append(row)
        return [
            np.concatenate([part, np.array(rows, dtype=np.int64)]) for part, rows in zip(parts, joined, strict=True)
        ]


def _leiden(graph: sp.csr_matrix, resolution: float, seed: int) -> np.ndarray:
    """Community labels 0 .. k - 1, shape (n,)."""
    indptr, indices = graph.indptr.astype(np.int64), graph.indices.astype(np.int32)
    n = graph.shape[0]
    _, found = graspologic_native.leiden_csr(indptr, indices, graph.data, n, resolution=resolution, seed=seed)
    return np.unique([found[row] for row in range(n)], return_inverse=True)[1]


def _groups(labels: np.ndarray) -> list[np.ndarray]:
    """The rows of each label."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def _membership(labels: np.ndarray) -> sp.csr_matrix:
    """The rows x communities membership matrix with a single 1 per row."""
    return sp.csr_matrix((np.ones(len(labels)), (np.arange(len(labels)), labels)))


def _dissolved(graph: sp.csr_matrix, labels: np.ndarray, copies: np.ndarray, min_size: int) -> np.ndarray:
    """Merge each community under ``min_size`` into the one with which it shares the most edge weight.

    Small communities may choose each other, so a chain of them can become one; no chain contains two large ones.
    """
    # Deferred: it imports the solvers of scipy.linalg, which takes a tenth of a second.
    from scipy.sparse.csgraph import connected_components

    while True:
        small = np.bincount(labels, weights=copies) < min_size
        member = _membership(labels)
        between = sp.coo_matrix(member.T @ graph @ member)
        leaving = (between.row != between.col) & small[between.row]
        source, target = between.row[leaving], between.col[leaving]
        order = np.lexsort((target, -between.data[leaving], source))
        source, first = np.unique(source[order], return_index=True)
        if not len(source):
            return labels
        links = sp.csr_matrix((np.ones(len(source)), (source, target[order][first])), shape=between.shape)
        labels = connected_components(links, directed=False)[1][labels]
