"""All pairs of vectors whose cosine reaches a threshold, by float32 products of bounded size.

The error of the approximate cosine of a pair is at most e, :func:`~llama_index.ragkit.vectors.kernels.error_bound`.
Every pair with an approximate cosine of at least the threshold - 2e is returned, so none is missed, but a few may lie
just below the threshold. If these matter, check the pairs within 2e of the threshold by
:func:`~llama_index.ragkit.vectors.kernels.pair_cosines`.
"""

from collections.abc import Iterator

import numpy as np

from llama_index.ragkit.vectors.kernels import (
    Floats,
    Rows,
    all_cosines,
    cosines,
    error_bound,
    squared_norms,
    unit_rows,
)

__all__ = ["Candidates", "head_length", "pairs_between", "pairs_within"]

Candidates = tuple[Rows, Rows, Floats]

_TILE = 2048  # rows and columns of a tile of cosines: 16 MiB of float32
_FEW = 20  # below one candidate in that many pairs, candidates are processed individually


def pairs_within(matrix: Floats, threshold: float) -> Iterator[Candidates]:
    """Every pair of rows of one matrix whose cosine may reach the threshold, once.

    Takes n^2 d / 2 multiplications.

    Parameters
    ----------
    matrix : shape (n, d), finite, rows of any norm; a zero row has the cosine 0 with all
    threshold : in [-1, 1]

    Yields
    ------
    Rows i, rows j < i, and their approximate cosines, tile by tile.
    """
    units = unit_rows(matrix)
    least = np.float32(threshold - 2 * error_bound(matrix.shape[1]))
    for top in range(0, len(units), _TILE):
        block = units[top : top + _TILE]
        for left in range(0, top + len(block), _TILE):
            scores = block @ units[left : min(left + _TILE, top + len(block))].T
            i, j = np.divmod(np.flatnonzero(scores >= least), scores.shape[1])
            below = i + top > j + left
            i, j = i[below], j[below]
            yield i + top, j + left, scores[i, j]


def head_length(dim: int, threshold: float) -> int:
    """How many coordinates :func:`pairs_between` uses in its first pass: enough to exclude most random directions."""
    return min(dim, max(1, round(dim * (1.15 - threshold))))


def pairs_between(matrix: Floats, inverse: Floats, tails: Floats, queries: Floats, threshold: float) -> Candidates:
    """Every pair of a row and a query whose cosine may reach the threshold.

    With x = (x1, x2) and u = (u1, u2) cut at :func:`head_length`, x . u <= x1 . u1 + |x2| |u2| (Cauchy and Schwarz):
    most pairs are excluded by the first part of the vectors, which at a threshold of 0.8 is a third of the data.

    Parameters
    ----------
    matrix : shape (n, d), finite
    inverse : shape (n,), the :func:`~llama_index.ragkit.vectors.kernels.inverse_norms` of its rows
    tails : shape (n,), lengths of the second parts of the rows
    queries : shape (q, d), finite
    threshold : above 0

    Returns
    -------
    Rows, queries, and their approximate cosines.
    """
    cut = head_length(matrix.shape[1], threshold)
    units = unit_rows(queries)
    least = threshold - 2 * error_bound(matrix.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        bound = matrix[:, :cut] @ units[:, :cut].T
        bound += tails[:, np.newaxis] * np.sqrt(squared_norms(units[:, cut:])).astype(np.float32)
        bound *= inverse[:, np.newaxis]
        rows, columns = np.divmod(np.flatnonzero(~(bound < least)), len(queries))  # NaN is a candidate
    if rows.size * _FEW > bound.size:
        scores = all_cosines(matrix, inverse, queries)
        rows, columns = np.divmod(np.flatnonzero(scores >= least), len(queries))
        return rows, columns, scores[rows, columns]
    found = np.empty(rows.size, np.float32)
    for column in np.unique(columns):
        mine = np.flatnonzero(columns == column)
        found[mine] = cosines(matrix[rows[mine]], queries[column])
    keep = found >= least
    return rows[keep], columns[keep], found[keep]
