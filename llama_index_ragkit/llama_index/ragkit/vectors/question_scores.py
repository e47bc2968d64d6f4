"""Scores of all rows for one question: cosines, the best rows, and scores as numbers in [0, 1]."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.kernels import cosines
from llama_index.ragkit.vectors.largest import largest
from llama_index.ragkit.vectors.nearness import NEAREST, standardised
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["best_rows", "question_cosines", "result_scores", "sorted_rows", "squashed"]

_EXACT = 10_000  # rows; their exact cosines take some 5 ms, those of 32 bits a quarter of it
_LARGEST = 1e13  # scores beyond have the same squashed value
_CUTOFF = 1 / 3  # of the way from the mean of the hundred best to the best
_DECIMALS = 9  # makes scores equal that differ only by the order of a sum


def question_cosines(rows: Snapshot, vector: NDArray[np.float32], exact: int = _EXACT) -> NDArray[np.float64]:
    """Cosine of a question and every row, shape (n,): exact up to `exact` rows, otherwise to six decimals."""
    if not len(rows):
        return np.zeros(0)
    if len(rows) <= exact:
        return cosines(rows.matrix, vector, rows.squares)
    near: NDArray[np.float64] = rows.cosines([vector])[:, 0].astype(np.float64).round(6)
    return near


def best_rows(scores: NDArray[np.float64], k: int, rows: Snapshot) -> list[int]:
    """The k rows with the best scores, best first, equal ones in canonical order; rows of score -inf are left out.

    Parameters
    ----------
    scores : shape (n,)
    """
    count = min(k, int(np.isfinite(scores).sum()))
    if not count:
        return []
    least = scores[largest(scores, count)].min()
    found = np.flatnonzero(scores >= least - 10**-_DECIMALS)  # and those that are equal to it as rounded
    return sorted_rows(dict(zip(found.tolist(), scores[found].tolist(), strict=True)), rows)[:count]


def sorted_rows(scores: Mapping[int, float], rows: Snapshot) -> list[int]:
    """Some rows by their scores, best first, equal ones in canonical order.

    Parameters
    ----------
    scores : row -> its score
    """
    records = rows.records
    return sorted(scores, key=lambda row: (-round(scores[row], _DECIMALS), records[row].key, records[row].id))


def result_scores(scores: NDArray[np.float64], of: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores of a question's results as numbers in [0, 1] in the same order, for which a cutoff is meaningful.

    z is a score in standard deviations of the m best chunks, m being 100 or the number of chunks if there are fewer;
    z_best is that of the best chunk:

        x = z - z_best sqrt(m) / 30,  score = (1 + x / (1 + |x|)) / 2

    So 0.5 is a third of the way from the mean of the hundred best to the best: if a chunk stands out, the others are
    less likely to be relevant. A small corpus has fewer chunks far from the question, so its mean is higher. The spread
    of a question's scores, which a walk over a graph changes, has no influence. The constant was chosen on one half of
    the questions of all corpora so that 0.5 keeps nearly all relevant results (`benchmarks.cutoffs`). If all chunks
    have the same score, all results score 0.5. If the m best have, and others do not, m is the number of chunks.

    Parameters
    ----------
    scores : any shape, in any unit
    of : shape (n,), the scores of all chunks in that unit; -inf for those that do not count

    >>> of = np.array([10.0, 4.0, 1.0, 1.0])
    >>> result_scores(np.array([10.0, 4.4, 1.0, -np.inf]), of).round(2).tolist()
    [0.8, 0.5, 0.26, 0.0]
    """
    counted = of[np.isfinite(of)]
    part = _CUTOFF * math.sqrt(min(len(counted), NEAREST) / NEAREST)
    best = counted.max(initial=-np.inf)
    z_of_best, z = _standardised(best, scores, counted, NEAREST)
    if len(counted) > NEAREST and not z_of_best:  # the hundred best are equal
        z_of_best, z = _standardised(best, scores, counted, len(counted))
    found = squashed(z - part * z_of_best)
    shown: NDArray[np.float64] = np.where(np.isneginf(scores), 0.0, found)
    return shown


def _standardised(
    best: float, scores: NDArray[np.float64], by: NDArray[np.float64], of: int
) -> tuple[float, NDArray[np.float64]]:
    found = standardised(np.append(scores, best), by, of)
    return float(found[-1]), found[:-1].reshape(scores.shape)


def squashed(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores as numbers in [0, 1] in the same order: ``(1 + s / (1 + |s|)) / 2``, so 0.5 for 0.

    Unlike the logistic function it keeps scores far from 0 apart.

    >>> squashed(np.array([-np.inf, -40.0, -39.0, 0.0, 3.0])).round(4).tolist()
    [0.0, 0.0122, 0.0125, 0.5, 0.875]
    """
    bounded = np.clip(scores, -_LARGEST, _LARGEST)
    found: NDArray[np.float64] = np.round((1.0 + bounded / (1.0 + np.abs(bounded))) / 2.0, 12)
    return found
