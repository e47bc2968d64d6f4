"""The k nearest rows of each of many queries, for neighbour graphs.

Neighbours are ranked by float32 dot products as BLAS computes them; :func:`llama_index.ragkit.vectors.kernels.top_k`
ranks by exact cosines at a higher cost per query. Every row is compared, with no approximate index: 50,000 rows of 384
take well under a minute on one core. No array is larger than a block.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_of", "nearest_neighbors"]

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
