"""The interface of clusterings, and functions that they share; pure functions on arrays.

A cluster is a sorted integer array of positions: row numbers of the vectors that were clustered.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from llama_index.ragkit.blas import one_blas_thread
from llama_index.ragkit.errors import EmbeddingError
from llama_index.ragkit.vectors.kernels import opaque_rows, unit_rows

__all__ = ["Clustering", "Distinct", "canonical", "directions", "fingerprint_of", "halves", "limit_weight"]


class Clustering(Protocol):
    """Groups the items of one layer of the tree."""

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and parameters, which are stored with an index."""

    def cluster(self, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
        """Group the rows of ``vectors``, shape (n, d); ``weights``, shape (n,), are the tokens of each item.

        Every row is in at least one cluster, possibly in several; no cluster is empty; the same input gives the
        same clusters, in the order of :func:`canonical`.
        """


def directions(vectors: np.ndarray) -> np.ndarray:
    """Check vectors and scale them to unit length, as float32 without negative zeros; zero rows stay zero.

    Raises
    ------
    EmbeddingError
        If they are not an array of shape (n, d), d >= 1, of finite numbers.
    """
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise EmbeddingError(f"Vectors must be an array of shape (n, d) with d >= 1, not {vectors.shape}.")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise EmbeddingError(
            f"{len(bad)} of {len(vectors)} vectors have NaN or infinite values, the first at row {bad[0]}."
        )
    unit: np.ndarray = unit_rows(vectors) + np.float32(0)
    return unit


@dataclass(frozen=True)
class Distinct:
    """The distinct directions among vectors, in an order that does not depend on the order of the vectors.

    Clustering these rows makes the partition independent of the input order and treats equal texts as one point.

    rows : float32, shape (u, d), unit length, no two equal, ordered by their bytes
    copies : for each row, the positions of the vectors equal to it
    empty : the positions of zero vectors, which have no direction
    """

    rows: np.ndarray
    copies: list[np.ndarray]
    empty: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> "Distinct":
        """Normalise, check and sort ``vectors``, shape (n, d); errors as in :func:`directions`."""
        unit = directions(vectors)
        filled = unit.any(axis=1)
        positions, empty = np.flatnonzero(filled), np.flatnonzero(~filled)
        if not len(positions):
            return cls(unit[:0], [], empty)
        _, first, inverse = np.unique(opaque_rows(unit[positions]), return_index=True, return_inverse=True)
        ends = np.cumsum(np.bincount(inverse))
        copies = np.split(positions[np.argsort(inverse, kind="stable")], ends[:-1])
        return cls(unit[positions[first]], copies, empty)

    def clusters(self, parts: Iterable[np.ndarray]) -> list[np.ndarray]:
        """Translate clusters of rows into clusters of positions; zero vectors join the smallest cluster."""
        clusters = [np.concatenate([self.copies[row] for row in part]) for part in parts]
        if not clusters:
            return [self.empty] if len(self.empty) else []
        smallest = min(range(len(clusters)), key=lambda i: len(clusters[i]))
        clusters[smallest] = np.concatenate([clusters[smallest], self.empty])
        return clusters


def fingerprint_of(clustering: Any) -> dict[str, str]:
    """Class name and parameters of a clustering that is a dataclass."""
    return {"class": type(clustering).__name__} | {name: str(value) for name, value in asdict(clustering).items()}


def canonical(clusters: Iterable[np.ndarray]) -> list[np.ndarray]:
    """Sort the members of each cluster, then the clusters by their members; drop empty and repeated ones."""
    members = {tuple(np.unique(cluster).tolist()) for cluster in clusters if len(cluster)}
    return [np.array(cluster, dtype=np.int64) for cluster in sorted(members)]


def limit_weight(
    clusters: Iterable[np.ndarray],
    vectors: np.ndarray,
    weights: np.ndarray,
    max_weight: float,
    clustering: Clustering,
) -> list[np.ndarray]:
    """Split every cluster with a weight above ``max_weight``; only a single item may still weigh more.

    Such a cluster is clustered again on its own, as in the paper (section 3). If that makes too little progress (a part
    keeps over 3/4 of the items, or the parts overlap by more than a quarter), it is split by :func:`halves`, so
    that splitting terminates after a logarithmic number of rounds. The published code recurses without a bound.

    Parameters
    ----------
    clusters : arrays of positions
    vectors, weights : shapes (n, d) and (n,); weights are finite and not negative
    max_weight : positive

    Returns
    -------
    Clusters in the order of :func:`canonical`, which cover the same positions.
    """
    light: list[np.ndarray] = []
    pending = [np.asarray(cluster, dtype=np.int64) for cluster in clusters]
    while pending:
        divided, whole = [], []
        for cluster in pending:
            if len(cluster) <= 1 or weights[cluster].sum() <= max_weight:
                light.append(cluster)
                continue
            parts = clustering.cluster(vectors[cluster], weights[cluster])
            if _progress(parts, len(cluster)):
                divided += [cluster[part] for part in parts]
            else:
                whole.append(cluster)
        with one_blas_thread:
            pending = divided + [half for cluster in whole for half in halves(cluster, vectors, weights)]
    return canonical(light)


def _progress(parts: list[np.ndarray], n: int) -> bool:
    """Whether the parts cover all n items and are small enough for further splitting to terminate quickly."""
    sizes = [len(part) for part in parts]
    return (
        0 < max(sizes, default=0) <= 0.75 * n and sum(sizes) <= 1.25 * n and len(np.unique(np.concatenate(parts))) == n
    )


def halves(cluster: np.ndarray, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
    """Split a cluster of two or more items along its first principal direction, where the weights balance best.

    Always succeeds: equal vectors are ordered by position. Otherwise the order of the vectors has no influence.
    """
    rows = directions(vectors[cluster])
    by_content = np.argsort(opaque_rows(rows), kind="stable")
    cluster, rows = cluster[by_content], rows[by_content].astype(np.float64)
    rows -= rows.mean(axis=0)
    with one_blas_thread:
        # With many rows, the d x d scatter matrix is smaller and has the same leading direction.
        matrix = rows if len(rows) <= rows.shape[1] else rows.T @ rows
        direction = np.linalg.svd(matrix, full_matrices=False)[2][0]
        along = rows @ direction
    along *= np.sign(direction[np.abs(direction).argmax()])  # the sign of a singular vector is arbitrary
    cluster = cluster[np.argsort(along, kind="stable")]
    load = np.ones(len(cluster)) if weights is None or not weights[cluster].any() else weights[cluster]
    left = np.cumsum(load)[:-1]
    cut = int(np.abs(left - load.sum() / 2).argmin()) + 1
    return [cluster[:cut], cluster[cut:]]
