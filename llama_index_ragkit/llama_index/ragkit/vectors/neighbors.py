"""The k nearest rows of each of many queries, for neighbour graphs.

Neighbours are ranked by float32 dot products as BLAS computes them; :func:`llama_index.ragkit.vectors.kernels.top_k`
ranks by exact cosines at a higher cost per query. Every row is compared, with no approximate index: 50,000 rows of 384
take well under a minute on one core. No array is larger than a block.

For :func:`approximate_neighbors`, since all pairs of a million rows are too many to compare, the rows are grouped into
about sqrt(n) cells by spherical k-means (Dhillon and Modha 2001, "Concept decompositions for large sparse text data
using clustering"), and each row is compared with the rows of the `PROBES` cells whose centres are nearest to it, as in
an inverted file (Jegou, Douze and Schmid 2011, "Product quantization for nearest neighbor search", section IV): n *
PROBES * sqrt(n) products. Rows in other cells are missed; the products that are compared are exact.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["PROBES", "approximate_neighbors", "best_of", "nearest_neighbors"]

Floats = NDArray[np.float32]

_BLOCK = 1 << 24  # products in memory at once: 64 MiB
_GROUP = 16  # columns per group, of which the maximum is used in the first selection


def nearest_neighbors(
    queries: Floats, rows: Floats, k: int, *, skip_self: bool = False
) -> tuple[NDArray[np.int64], Floats]:
    """Return the ``k`` rows with the largest dot product with each query, best first; the lower row wins a tie.

    Parameters
    ----------
    queries, rows : float32, shapes (m, d) and (n, d), finite
    k : 1 <= k <= n, or n - 1 with ``skip_self``
    skip_self : whether query i is row i and not its own neighbour

    Returns
    -------
    indices : int64, shape (m, k)
    similarities : float32, shape (m, k)

    Notes
    -----
    Selecting k of n values costs more than computing them, so the columns are first ranked in groups of 16
    by their maxima. The k first groups, ties to the left, contain the k best columns: every group before that of a
    given column contains a column that ranks before it.
    """
    groups = -(-len(rows) // _GROUP)
    padded = np.zeros((groups * _GROUP, rows.shape[1]), dtype=np.float32)
    padded[: len(rows)] = rows
    indices = np.empty((len(queries), k), dtype=np.int64)
    similarities = np.empty((len(queries), k), dtype=np.float32)
    step = max(1, _BLOCK // len(padded))
    for start in range(0, len(queries), step):
        block = np.asarray(queries[start : start + step], dtype=np.float32) @ padded.T
        block[:, len(rows) :] = -np.inf
        if skip_self:
            block[np.arange(len(block)), np.arange(start, start + len(block))] = -np.inf
        maxima = block.reshape(len(block), groups, _GROUP).max(axis=2)
        best, _ = best_of(maxima, np.arange(groups), min(k, groups))
        columns = (best[:, :, None] * _GROUP + np.arange(_GROUP)).reshape(len(block), -1)
        chosen = best_of(np.take_along_axis(block, columns, axis=1), columns, k)
        indices[start : start + step], similarities[start : start + step] = chosen
    return indices, similarities


def best_of(values: Floats, ids: NDArray[np.int64], k: int) -> tuple[NDArray[np.int64], Floats]:
    """The k largest values of each row, largest first, the lower id at a tie: their ids, and the values.

    Value and id are packed into one integer, so that a single partition sorts by both.

    Parameters
    ----------
    values : shape (m, n)
    ids : in [-1, 2**32 - 1), of a shape that broadcasts to that of the values
    k : at most n
    """
    bits = (values + np.float32(0)).view(np.int32)  # + 0: no negative zero
    keys = (_ordered(bits).astype(np.int64) << 32) | (0xFFFFFFFE - ids)
    if k < keys.shape[1]:
        keys = np.partition(keys, keys.shape[1] - k, axis=1)[:, -k:]
    keys = np.sort(keys, axis=1)[:, ::-1]
    found: Floats = _ordered((keys >> 32).astype(np.int32)).view(np.float32)
    return 0xFFFFFFFE - (keys & 0xFFFFFFFF), found


def _ordered(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Integers in the order of the floats with these bits; applied twice, the bits again."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


Ints = NDArray[np.int64]

PROBES = 24
_ROUNDS = 8
_ROWS_A_CELL = 64  # of the sample from which the cells are found


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
