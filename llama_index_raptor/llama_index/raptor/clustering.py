"""What RAPTOR asks of a clustering, and what every clustering shares: pure functions on arrays.

A cluster is a sorted integer array of positions: row numbers of the vectors that were clustered.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from llama_index.ragkit.blas import one_blas_thread
from llama_index.ragkit.errors import ConfigurationError, EmbeddingError
from llama_index.raptor.distinct import content, unit_rows
from llama_index.raptor.knn import nearest

__all__ = ["Clustering", "assign", "canonical", "fingerprint_of", "halves", "limit_weight"]


class Clustering(Protocol):
    """Groups the items of one layer of the tree."""

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and parameters, stored with an index."""

    def cluster(self, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
        """Group the rows of ``vectors``, shape (n, d); ``weights``, shape (n,), are the tokens of each item.

        Every row is in at least one cluster, possibly in several; no cluster is empty; the same input gives the
        same clusters, in the order of :func:`canonical`.
        """


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
    """Split every cluster that weighs more than ``max_weight``; only a single item may still weigh more.

    A cluster that is too heavy is clustered again on its own, as in the paper (section 3). Where that makes no real
    progress (a part keeps over 3/4 of the items, or the parts overlap by more than a quarter), it is cut by
    :func:`halves`: the number of rounds is logarithmic and the end certain. The published code recurses unbounded.

    Parameters
    ----------
    clusters : arrays of positions
    vectors, weights : shapes (n, d) and (n,); weights are finite and not negative
    max_weight : positive

    Returns
    -------
    Clusters in the order of :func:`canonical`, which cover the same positions.

    Raises
    ------
    ConfigurationError
        If ``max_weight`` or a weight is out of range, or there is not one weight a vector.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if not max_weight > 0:
        raise ConfigurationError(f"max_weight must be a positive number of tokens, not {max_weight}.")
    if weights.shape != (len(vectors),):
        raise ConfigurationError(
            f"{len(vectors)} vectors need weights of shape ({len(vectors)},), not {weights.shape}."
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ConfigurationError("weights must be finite and not negative: they are the tokens of each item.")
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
    """Whether the parts cover all n items, and are smaller by enough that splitting them on must end soon."""
    sizes = [len(part) for part in parts]
    return (
        0 < max(sizes, default=0) <= 0.75 * n and sum(sizes) <= 1.25 * n and len(np.unique(np.concatenate(parts))) == n
    )


def halves(cluster: np.ndarray, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
    """Cut a cluster of two or more across its first principal direction, where the weights balance best.

    It always succeeds: equal vectors are told apart by their position. Otherwise the order of the vectors is nothing.
    """
    rows = unit_rows(vectors[cluster])
    by_content = np.argsort(content(rows), kind="stable")
    cluster, rows = cluster[by_content], rows[by_content].astype(np.float64)
    rows -= rows.mean(axis=0)
    with one_blas_thread:
        # Of many rows, the d x d scatter has the same leading direction and is smaller.
        matrix = rows if len(rows) <= rows.shape[1] else rows.T @ rows
        direction = np.linalg.svd(matrix, full_matrices=False)[2][0]
        along = rows @ direction
    along *= np.sign(direction[np.abs(direction).argmax()])  # a singular vector has no sign of its own
    cluster = cluster[np.argsort(along, kind="stable")]
    load = np.ones(len(cluster)) if weights is None or not weights[cluster].any() else weights[cluster]
    left = np.cumsum(load)[:-1]
    cut = int(np.abs(left - load.sum() / 2).argmin()) + 1
    return [cluster[:cut], cluster[cut:]]


def assign(
    vectors_new: np.ndarray, vectors_old: np.ndarray, labels_old: Sequence[np.ndarray], n_neighbors: int = 15
) -> np.ndarray:
    """Find the cluster of each new vector: its nearest old vectors vote, weighted by their cosine.

    Exact, O(n d) for one new vector. A neighbour in several clusters votes for each; at a tie the first cluster wins.

    Parameters
    ----------
    vectors_new, vectors_old : shapes (m, d) and (n, d)
    labels_old : the clusters, arrays of positions in ``vectors_old`` that together cover it
    n_neighbors : how many old vectors vote, at least 1

    Returns
    -------
    int64, shape (m,) : indices into ``labels_old``

    Raises
    ------
    ConfigurationError
        If there is nothing to join, an old vector is in no cluster, or ``n_neighbors`` is below 1.
    EmbeddingError
        If the vectors are not finite, or differ in length.
    """
    if n_neighbors < 1:
        raise ConfigurationError(f"n_neighbors must be at least 1, not {n_neighbors}.")
    old, new = unit_rows(vectors_old), unit_rows(vectors_new)
    if new.shape[1] != old.shape[1]:
        raise EmbeddingError(f"New vectors have {new.shape[1]} dimensions, the clustered ones {old.shape[1]}.")
    members = np.concatenate([np.empty(0, dtype=np.int64), *labels_old]).astype(np.int64)
    covered = len(np.unique(members))
    if not len(old) or covered != len(old):
        raise ConfigurationError(f"The clusters hold {covered} of {len(old)} old vectors; cluster all of them first.")
    owners = np.repeat(np.arange(len(labels_old)), [len(cluster) for cluster in labels_old])
    membership = sp.csr_matrix((np.ones(len(members)), (members, owners)), shape=(len(old), len(labels_old)))
    with one_blas_thread:
        indices, cosines = nearest(new, old, min(n_neighbors, len(old)))
    joined = np.empty(len(new), dtype=np.int64)
    for i, (voters, cosine) in enumerate(zip(indices, cosines, strict=True)):
        ballots = membership[voters]
        votes = np.maximum(cosine.astype(np.float64), 1e-9)  # a neighbour on the far side is still the nearest
        joined[i] = (ballots.T @ votes).argmax()
    return joined
