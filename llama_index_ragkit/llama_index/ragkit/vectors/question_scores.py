"""Scores of all rows for one question: their cosines, the best of them, and scores as numbers in [0, 1]."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.kernels import cosines
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["best_rows", "question_cosines", "sorted_rows", "squashed"]

_EXACT = 50_000  # rows; their exact cosines take some 25 ms
_LARGEST = 1e13  # scores beyond have the same squashed value
_DECIMALS = 9  # rows that differ by the order of a sum only are equal


def question_cosines(rows: Snapshot, vector: NDArray[np.float32], exact: int = _EXACT) -> NDArray[np.float64]:
    """Cosine of a question and every row, shape (n,): exact up to `exact` rows, otherwise to six decimals."""
    if not len(rows):
        return np.zeros(0)
    if len(rows) <= exact:
        return cosines(rows.matrix, vector, rows.squares)
    near: NDArray[np.float64] = rows.cosines([vector])[:, 0].astype(np.float64).round(6)
    return near


def best_rows(scores: NDArray[np.float64], k: int, rows: Snapshot) -> list[int]:
    """The k rows with the best scores, best first, of equal ones the first in canonical order; none of score -inf.

    Parameters
    ----------
    scores : shape (n,)
    """
    count = min(k, int(np.isfinite(scores).sum()))
    if not count:
        return []
    near = scores.round(_DECIMALS)
    least = np.partition(near, len(near) - count)[len(near) - count]
    found: Sequence[int] = np.flatnonzero(near >= least).tolist()
    return sorted_rows(dict(zip(found, near[found].tolist(), strict=True)), rows)[:count]


def sorted_rows(scores: Mapping[int, float], rows: Snapshot) -> list[int]:
    """Some rows by their scores, best first, of equal ones the first in canonical order.

    Parameters
    ----------
    scores : row -> its score
    """
    records = rows.records
    return sorted(scores, key=lambda row: (-round(scores[row], _DECIMALS), records[row].key, records[row].id))


def squashed(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores as numbers in [0, 1] in the same order: ``(1 + s / (1 + |s|)) / 2``, so 0.5 for 0.

    Unlike the logistic function it keeps scores far from 0 apart.

    >>> squashed(np.array([-np.inf, -40.0, -39.0, 0.0, 3.0])).round(4).tolist()
    [0.0, 0.0122, 0.0125, 0.5, 0.875]
    """
    bounded = np.clip(scores, -_LARGEST, _LARGEST)
    found: NDArray[np.float64] = np.round((1.0 + bounded / (1.0 + np.abs(bounded))) / 2.0, 12)
    return found
