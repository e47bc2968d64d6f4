"""The k nearest rows of every row of a large matrix, among the rows of the cells that are nearest to it.

All pairs of a million rows are too many to compare. The rows are grouped into about sqrt(n) cells by spherical k-means
(Dhillon and Modha 2001, "Concept decompositions for large sparse text data using clustering"), and each row is compared
with the rows of the `PROBES` cells whose centres are nearest to it, as in an inverted file (Jegou, Douze and Schmid
2011, "Product quantization for nearest neighbor search", section IV): n * PROBES * sqrt(n) products. Rows in other
cells are missed; the products that are compared are exact.
"""

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.neighbors import best_of, nearest_neighbors

__all__ = ["PROBES", "approximate_neighbors"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

PROBES = 24
_ROUNDS = 8
_ROWS_A_CELL = 64  # of the sample from which the cells are found
_BLOCK = 1 << 24  # products in memory at once: 64 MiB


def approximate_neighbors(
    rows: Floats, k: int, *, cells: int | None = None, probes: int = PROBES, seed: int = 0
) -> tuple[Ints, Floats]:
    """Return up to ``k`` other rows with large dot products with each row, best first.

    Parameters
    ----------
    rows : float32, shape (n, d), unit length
    k : 1 <= k < n
    cells : number of cells; default sqrt(n)
    probes : number of cells whose rows are compared with each row
    seed : of the sample from which the cells are found

    Returns
    -------
    indices : int64, shape (n, k)
    similarities : float32, shape (n, k)
    """
    n = len(rows)
    centres = _centres(rows, min(n, cells or round(n**0.5)), seed)
    probed = _nearest_cells(rows, centres, min(probes, len(centres)))
    members = _grouped(probed[:, 0], len(centres))
    askers = [places // probed.shape[1] for places in _grouped(probed.ravel(), len(centres))]
    indices = np.full((n, k), -1, dtype=np.int64)
    similarities = np.full((n, k), -np.inf, dtype=np.float32)
    for own in members:
        if (most := min(k, len(own) - 1)) > 0:
            near, products = nearest_neighbors(rows[own], rows[own], most, skip_self=True)
            indices[own, :most], similarities[own, :most] = own[near], products
    for cell, (own, asking) in enumerate(zip(members, askers, strict=True)):
        others = asking[probed[asking, 0] != cell]
        step = max(1, _BLOCK // max(1, len(own)))
        for start in range(0, len(others) if len(own) else 0, step):
            some = others[start : start + step]
            _improve(indices, similarities, some, own, rows[some] @ rows[own].T)
    few = np.flatnonzero(np.isneginf(similarities).any(axis=1))
    if len(few):  # rows whose cells hold too few others
        near, products = nearest_neighbors(rows[few], rows, k + 1)
        products[near == few[:, None]] = -np.inf
        indices[few], similarities[few] = best_of(products, near, k)
    return indices, similarities


def _improve(indices: Ints, similarities: Floats, asking: Ints, found: Ints, products: Floats) -> None:
    """Replace rows in `indices` and `similarities` by nearer rows that were found.

    Only products that reach the least of the k best so far are sorted; they are few.

    Parameters
    ----------
    asking, found : rows; no pair of them was compared before
    products : shape (len(asking), len(found))
    """
    at, column = np.nonzero(products >= similarities[asking, -1][:, None])
    if not len(at):
        return
    improved, first, count = np.unique(at, return_index=True, return_counts=True)
    place = np.repeat(np.arange(len(improved)), count)
    slot = np.arange(len(at)) - np.repeat(first, count)
    values = np.full((len(improved), int(count.max())), -np.inf, np.float32)
    ids = np.full(values.shape, -1, np.int64)
    values[place, slot], ids[place, slot] = products[at, column], found[column]
    rows, k = asking[improved], indices.shape[1]
    both = np.hstack([similarities[rows], values]), np.hstack([indices[rows], ids])
    indices[rows], similarities[rows] = best_of(*both, k)


def _centres(rows: Floats, count: int, seed: int) -> Floats:
    """Unit vectors in the middle of cells, shape (count, d)."""
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(len(rows), min(len(rows), _ROWS_A_CELL * count), replace=False))
    sample = rows[chosen]
    centres = sample[np.sort(random.choice(len(sample), count, replace=False))]
    for _ in range(_ROUNDS):
        groups = _grouped(_nearest_cells(sample, centres, 1)[:, 0], count)
        filled = np.flatnonzero([len(group) for group in groups])
        sums = np.array([sample[groups[cell]].sum(axis=0, dtype=np.float64) for cell in filled])
        norms = np.linalg.norm(sums, axis=1)
        moved = norms > 0
        centres[filled[moved]] = sums[moved] / norms[moved, None]
    return centres


def _nearest_cells(rows: Floats, centres: Floats, count: int) -> Ints:
    """The cells nearest to each row, best first, shape (n, count)."""
    found = np.empty((len(rows), count), np.int64)
    step = max(1, _BLOCK // len(centres))
    for start in range(0, len(rows), step):
        found[start : start + step] = nearest_neighbors(rows[start : start + step], centres, count)[0]
    return found


def _grouped(labels: Ints, count: int) -> list[Ints]:
    """The positions with each label, ascending."""
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=count))[:-1])
