"""Exact cosine search over the rows of one float32 matrix: a fast product, then exact scores of the candidates.

For a query q and rows x_i of length d:

1. a = (X u) * w in float32, by BLAS or NumPy, with u = q / |q| and w_i = 1 / |x_i| (0 for a row of zeros).
2. |a_i - cos(x_i, q)| <= e = (d + 16) * 2**-24: the forward error bound of a dot product of length d
   in any order of summation (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.1),
   with an allowance for the rounding of u, w and their products. So every row of the true top k has
   a_i >= a_(k) - 2e, where a_(k) is the k-th largest.
3. These candidates are scored again in float64. Products of two float32 are exact there and each row is summed
separately, so a score depends only on the two vectors, not on the position of the row, the other rows, the BLAS or its
threads. 4. They are sorted by (-score, order of the row), where the caller defines the order by content, not position.

All pairs above a threshold are found in the same way: see :mod:`llama_index.ragkit.vectors.pairs`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

__all__ = [
    "Doubles",
    "Floats",
    "Order",
    "Rows",
    "all_cosines",
    "approximate",
    "cosines",
    "error_bound",
    "inverse_norms",
    "largest",
    "mmr",
    "opaque_rows",
    "pair_cosines",
    "squared_norms",
    "top_k",
    "unit_rows",
]

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Order = Callable[[int], Any]

_BLOCK = 1 << 24  # scores in memory at once in a search with many queries: 64 MiB of float32
_ROWS = 256  # rows converted to float64 at once: fits in the processor's cache
# The product of one vector and a matrix larger than the caches is memory-bound: NumPy's own loop reads 100,000 x 384 in
# half the time of OpenBLAS, and does not wait for a second thread.
_STREAMED = 1 << 12
_GATHER = 4  # below one row in four, copying the chosen rows is faster than multiplying all
_SAFE = (1e-15, 1e15)  # norms between which float32 products of unit vectors neither over- nor underflow


def error_bound(dim: int) -> float:
    """The maximum error of a float32 cosine of two vectors of this length: e of the module's docstring."""
    return (dim + 16) * 2.0**-24


def _wide_blocks(matrix: Floats) -> Iterator[tuple[slice, Doubles]]:
    for start in range(0, len(matrix), _ROWS):
        part = slice(start, start + _ROWS)
        yield part, matrix[part].astype(np.float64, order="C")  # the order of summation


def squared_norms(matrix: Floats) -> Doubles:
    """Squared length of each row, shape (n,); finite exactly where the row is."""
    squares = np.empty(len(matrix))
    for part, block in _wide_blocks(matrix):
        squares[part] = (block * block).sum(axis=1)
    return squares


def inverse_norms(squares: Doubles) -> Floats:
    """1 / norm of each row, from its :func:`squared_norms`, shape (n,).

    It is 0 for a zero row, and NaN where float32 could not multiply the row safely.
    """
    norms = np.sqrt(squares)
    inverse = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    inverse[(norms > 0) & ((norms < _SAFE[0]) | (norms > _SAFE[1]))] = np.nan
    return inverse.astype(np.float32)


def unit_rows(matrix: Floats) -> Floats:
    """Rows scaled to length one in float64, then rounded to float32, shape (n, d); rows of zeros stay zero."""
    units = np.empty(matrix.shape, np.float32)
    for part, block in _wide_blocks(matrix):
        norms = np.sqrt((block * block).sum(axis=1))[:, np.newaxis]
        units[part] = np.divide(block, norms, out=np.zeros_like(block), where=norms > 0)
    return units


def opaque_rows(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Each row as one void value, shape (n,), which compares and sorts by the bytes of the row; d >= 1."""
    rows = np.ascontiguousarray(matrix)
    opaque: npt.NDArray[Any] = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return opaque


def pair_cosines(one: Floats, other: Floats, squares_of_one: Doubles | None = None) -> Doubles:
    """Exact cosine of each row of `one` with the same row of `other`, shape (n,), in [-1, 1]; 0 where either is zero.

    Equal rows score exactly 1.

    Parameters
    ----------
    one : shape (n, d)
    other : shape (n, d), or (1, d) for one vector that is compared with all
    squares_of_one : its :func:`squared_norms`, if they are known: half of the work
    """
    scores = np.zeros(len(one))
    for part, a in _wide_blocks(one):
        if part.start == 0 or len(other) > 1:
            b = (other[part] if len(other) > 1 else other).astype(np.float64, order="C")
            squares = (b * b).sum(axis=1)
        own = (a * a).sum(axis=1) if squares_of_one is None else squares_of_one[part]
        scale = np.sqrt(own * squares)
        a *= b
        np.divide(a.sum(axis=1), scale, out=scores[part], where=scale > 0)
    return np.clip(scores, -1.0, 1.0, out=scores)


def cosines(matrix: Floats, vector: Floats, squares: Doubles | None = None) -> Doubles:
    """Exact cosine of each row with the vector, shape (n,), in [-1, 1]: see :func:`pair_cosines`."""
    return pair_cosines(matrix, vector[np.newaxis], squares)


def all_cosines(matrix: Floats, inverse: Floats, queries: Floats) -> Floats:
    """Cosine of every row with every query, shape (n, q), each within :func:`error_bound` of the exact value.

    For callers that need all scores, not just the best; BLAS multiplies faster with the rows as the first operand.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores: Floats = matrix @ unit_rows(queries).T
        scores *= inverse[:, np.newaxis]
    for row, column in zip(*np.nonzero(np.isnan(scores)), strict=True):
        scores[row, column] = cosines(matrix[row : row + 1], queries[column])[0]
    return scores


def approximate(matrix: Floats, inverse: Floats, queries: Floats, rows: Rows | None) -> Iterator[Floats]:
    """Cosines of each query with the chosen rows, one array per query, each within :func:`error_bound`."""
    units = unit_rows(queries)
    gathered = rows is not None and rows.size * _GATHER < len(matrix)
    factor, scale = (matrix[rows], inverse[rows]) if gathered else (matrix, inverse)
    step = max(1, _BLOCK // max(1, len(factor)))
    for start in range(0, len(units), step):
        with np.errstate(over="ignore", invalid="ignore"):
            if len(units) == 1 and len(factor) >= _STREAMED:
                block = np.einsum("ij,j->i", factor, units[0])[np.newaxis]
            else:
                block = units[start : start + step] @ factor.T
            block *= scale
        for scores, query in zip(block, queries[start : start + step], strict=True):
            chosen = scores if rows is None or gathered else scores[rows]
            wild = np.flatnonzero(np.isnan(chosen))
            if wild.size:
                chosen[wild] = cosines(matrix[wild if rows is None else rows[wild]], query)
            yield chosen


def _at(positions: Rows, rows: Rows | None) -> Rows:
    return positions if rows is None else rows[positions]


def top_k(
    matrix: Floats, inverse: Floats, queries: Floats, k: int, rows: Rows | None, order: Order
) -> Iterator[tuple[Rows, Doubles]]:
    """The k rows nearest to each query by cosine, best first.

    Parameters
    ----------
    matrix : shape (n, d), finite
    inverse : shape (n,), the :func:`inverse_norms` of its rows
    queries : shape (q, d), finite
    k : at least 0; if larger than the number of rows, all are returned
    rows : the rows to search, or None for all
    order : row of the matrix -> sort key that breaks ties between equal scores

    Yields
    ------
    Rows of the matrix and their cosines, shapes (min(k, rows),), for each query.
    """
    for query, near in zip(queries, approximate(matrix, inverse, queries, rows), strict=True):
        size = min(k, near.size)
        if size == 0:
            yield np.empty(0, np.intp), np.empty(0)
            continue
        if size < near.size:
            floor = np.partition(near, near.size - size)[near.size - size] - 2 * error_bound(matrix.shape[1])
            found = _at(np.flatnonzero(near >= floor), rows)
        else:
            found = _at(np.arange(near.size), rows)
        scores = cosines(matrix[found], query)
        if size < found.size:
            kept = scores >= np.partition(scores, found.size - size)[found.size - size]
            found, scores = found[kept], scores[kept]
        best = sorted(range(found.size), key=lambda i: (-scores[i], order(int(found[i]))))[:size]
        yield found[best], scores[best]


def mmr(
    matrix: Floats, inverse: Floats, query: Floats, k: int, threshold: float, rows: Rows | None, order: Order
) -> tuple[Rows, Doubles]:
    """Up to k rows by maximal marginal relevance, in the order of selection.

    Each pick has the highest `threshold * cos(row, query) - (1 - threshold) * cos(row, last pick)`, which
    is its score. As in llama-index-core, and unlike Carbonell and Goldstein (1998), who take the maximum
    over all earlier picks, only the previous pick counts.
    """
    relevance = next(approximate(matrix, inverse, query[np.newaxis], rows))
    picked: list[int] = []  # positions in `relevance`
    scores: list[float] = []
    last = np.zeros_like(query)
    while len(picked) < min(k, relevance.size):
        overlap = next(approximate(matrix, inverse, last[np.newaxis], rows)) if picked else np.float32(0)
        near = threshold * relevance - (1 - threshold) * overlap
        near[picked] = -np.inf
        positions = np.flatnonzero(near >= near.max() - 2 * error_bound(matrix.shape[1]))
        found = _at(positions, rows)
        exact = threshold * cosines(matrix[found], query) - (1 - threshold) * cosines(matrix[found], last)
        best = min(range(found.size), key=lambda i: (-exact[i], order(int(found[i]))))
        picked.append(int(positions[best]))
        scores.append(float(exact[best]))
        last = matrix[found[best]]
    return _at(np.array(picked, np.intp), rows), np.array(scores)


_BLOCKS = 8  # for each value that is looked for: few values above the floor. Shorter blocks cost more than they save


def largest(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """The places of the `count` largest values, in any order; of equal ones, any.

    `np.argpartition` takes up to a hundred times as long where most values are equal, and longer than a scan for a
    maximum in any case. So it is given only the values above a floor: the `count`-th largest of the maxima of blocks,
    which at least `count` values reach.

    Parameters
    ----------
    values : shape (n,)
    count : from 0 to n

    >>> sorted(largest(np.array([0.0, 3.0, 0.0, 1.0, 0.0]), 2).tolist())
    [1, 3]
    """
    if not count:
        return np.empty(0, np.intp)
    floor = _floor(values, count)
    above = np.flatnonzero(values > floor)
    if len(above) > count:
        return above[np.argpartition(values[above], len(above) - count)[-count:]]
    return np.concatenate([above, np.flatnonzero(values == floor)[: count - len(above)]])


def _floor(values: NDArray[Any], count: int) -> Any:
    """A value that at least `count` of the values reach."""
    width = len(values) // (_BLOCKS * count)
    if width < _BLOCKS:
        return values.min()
    maxima = np.maximum.reduceat(values, np.arange(0, len(values), width))
    return np.partition(maxima, len(maxima) - count)[len(maxima) - count]
