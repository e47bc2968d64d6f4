"""Clustering of rows by linked cosines, for knowledge fusion (section 2.3, Algorithm 2).

Two rows are linked if their cosine reaches a threshold. The paper only states that similar sets are clustered. Here a
super node is by default a connected component of the links, since components depend only on the vectors. The published
greedy procedure is :func:`leader_clusters`.

Results are exact: float32 products find the pairs that could reach the threshold, and float64 decides pairs within
rounding error of it (:mod:`llama_index.ragkit.vectors.pairs`). No n x n array is allocated.
"""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from llama_index.ragkit.vectors.kernels import cosines, error_bound, opaque_rows, pair_cosines
from llama_index.ragkit.vectors.pairs import Candidates, pairs_within

__all__ = ["MAX_CLUSTER", "components", "leader_clusters"]

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]

MAX_CLUSTER = 100  # largest cluster of the published procedure
_GATHER = 1 << 12  # pairs whose vectors are copied at once


def components(vectors: Floats, threshold: float) -> Labels:
    """Connected components of the graph of all pairs with a cosine of at least `threshold`.

    Parameters
    ----------
    vectors : shape (n, d), of any norm; a zero row is linked to nothing
    threshold : in (-1, 1]

    Returns
    -------
    Labels, shape (n,): rows of one component have the same label, the number of its first row.

    Notes
    -----
    Takes n^2 d / 2 multiplications; bitwise equal rows count once.
    """
    first, inverse = _distinct(vectors)
    rows = vectors[first]
    labels = np.arange(len(rows))
    for candidates in pairs_within(rows, threshold):
        labels = _merged(labels, rows, candidates, threshold)
    return _canonical(labels[inverse])


def leader_clusters(vectors: Floats, threshold: float, max_cluster: int = MAX_CLUSTER) -> Labels:
    """The published clustering: each unassigned row in turn starts a cluster of its nearest unassigned rows.

    A cluster has at most `max_cluster` rows, including its leader: the nearest that reach the threshold. The published
    code also includes rows of other clusters, so that clusters overlap. The result depends on the order of the rows; a
    cluster never spans several :func:`components`.

    Returns
    -------
    Labels, shape (n,): the number of the leading row.
    """
    labels = np.full(len(vectors), -1, dtype=np.int64)
    for leader in range(len(vectors)):
        if labels[leader] >= 0:
            continue
        labels[leader] = leader
        free = np.flatnonzero(labels < 0)
        scores = cosines(vectors[free], vectors[leader])
        near = np.flatnonzero(scores >= threshold)
        labels[free[near[np.argsort(-scores[near], kind="stable")[: max_cluster - 1]]]] = leader
    return labels


def _distinct(rows: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the first of each set of equal rows, in order, and for every row the one that it equals."""
    if not len(rows):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    _, first, inverse = np.unique(opaque_rows(rows), return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    empty = np.count_nonzero(rows[first], axis=1) == 0
    if empty[inverse].sum() > 1:  # zero rows have no direction, so no two are equal
        zero = np.flatnonzero(empty[inverse])
        first = np.concatenate([first, zero[1:]])
        inverse[zero[1:]] = np.arange(len(first) - len(zero) + 1, len(first))
    return first, inverse


def _merged(labels: Labels, rows: Floats, candidates: Candidates, threshold: float) -> Labels:
    """Labels after the links among some candidates are added."""
    # Deferred: it imports the solvers of scipy.linalg, which takes a tenth of a second.
    from scipy.sparse.csgraph import connected_components

    i, j, near = candidates
    apart = labels[i] != labels[j]
    i, j, near = i[apart], j[apart], near[apart]
    if not len(i):
        return labels
    linked: NDArray[np.bool_] = np.greater(near, np.float32(threshold + 2 * error_bound(rows.shape[1])))
    unsure = np.flatnonzero(~linked)
    for at in range(0, len(unsure), _GATHER):
        part = unsure[at : at + _GATHER]
        linked[part] = pair_cosines(rows[i[part]], rows[j[part]]) >= threshold
    ends = labels[i[linked]], labels[j[linked]]
    graph = sp.coo_matrix((np.ones(len(ends[0]), dtype=np.bool_), ends), shape=(len(labels), len(labels)))
    _, groups = connected_components(graph, directed=False)
    merged: Labels = groups.astype(np.int64)[labels]
    return merged


def _canonical(labels: Labels) -> Labels:
    """The same partition, each part labelled by its first row."""
    if not len(labels):
        return labels
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    named: Labels = first[inverse.ravel()].astype(np.int64)
    return named
