"""Scores of all rows for one question: cosines, nearness by cosines and words, the best rows, and scores in [0, 1]."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_index import NOT_KNOWN, FullScore
from llama_index.ragkit.validation import check_number
from llama_index.ragkit.vectors.kernels import cosines, largest
from llama_index.ragkit.vectors.snapshot import Snapshot
from llama_index.ragkit.vectors.trust import lexical_share

__all__ = [
    "LEXICAL_WEIGHT",
    "NEAREST",
    "Nearness",
    "best_rows",
    "hybrid_nearness",
    "question_cosines",
    "result_scores",
    "sorted_rows",
    "squashed",
    "standardised",
    "with_words",
]

LEXICAL_WEIGHT = 0.5
"""The default weight of the lexical part in all methods, for a usual question."""

NEAREST = 100
"""The number of best scores of each part whose mean and deviation standardise it."""

_ALL = slice(None)  # selects without copying


@dataclass(frozen=True)
class Nearness:
    """How near all chunks are to a question.

    Attributes
    ----------
    cosines : shape (n,), of question and chunk
    lexical : shape (n,), BM25 scores
    lexical_weight : weight of the lexical part for this question, in [0, 1], see
        :func:`~llama_index.ragkit.vectors.trust.lexical_share`
    scores : shape (n,), both together, see :func:`hybrid_nearness`
    """

    cosines: NDArray[np.float64]
    lexical: NDArray[np.float64]
    lexical_weight: float
    scores: NDArray[np.float64]

    @cached_property
    def candidates(self) -> NDArray[np.bool_]:
        """The chunks that are better than the hundredth in one of the two parts; all if there are fewer, shape (n,).

        What one question reads of an index in stores has all of these, but not every chunk that is among the hundred
        nearest.
        """
        counted = np.isfinite(self.scores)
        found = np.zeros(len(self.scores), np.bool_)
        found[counted] = _above_the_hundredth(self.cosines[counted], -np.inf) | _above_the_hundredth(
            self.lexical[counted], 0.0
        )
        return found

    @classmethod
    def of(
        cls,
        cosines: NDArray[np.float64],
        lexical: NDArray[np.float64],
        lexical_weight: float,
        allowed: NDArray[np.bool_] | None = None,
        full_score: FullScore = NOT_KNOWN,
    ) -> "Nearness":
        """The nearness of chunks from its two parts; the parameters are those of :func:`hybrid_nearness`."""
        counted = _ALL if allowed is None else allowed
        dense = np.zeros(len(cosines))
        dense[counted] = standardised(cosines[counted])
        share = lexical_share(cosines[counted], lexical[counted], lexical_weight, full_score)
        return cls(cosines, lexical, share, with_words(dense, lexical, share, allowed))


def _above_the_hundredth(scores: NDArray[np.float64], least: float) -> NDArray[np.bool_]:
    """Which scores are higher than the hundredth, or than `least` if there are fewer."""
    return scores > (scores[largest(scores, NEAREST)].min() if len(scores) >= NEAREST else least)


def hybrid_nearness(
    cosines: NDArray[np.float64],
    lexical: NDArray[np.float64],
    lexical_weight: float,
    allowed: NDArray[np.bool_] | None = None,
    full_score: FullScore = NOT_KNOWN,
) -> NDArray[np.float64]:
    """``(1 - s) z(cosine) + s z(BM25)``, each standardised over its hundred best of this question.

    s is `lexical_weight` for a usual question, more if its words and less if its cosines tell more
    (:mod:`llama_index.ragkit.vectors.trust`).
    Shifting or stretching all cosines changes no ranking, so the scale of an embedding model's cosines has no
    influence. If no chunk has a word of the question, only the cosines count.

    Parameters
    ----------
    cosines, lexical : shape (n,)
    lexical_weight : in [0, 1]; 0 and 1 are the weight of every question
    allowed : shape (n,), the chunks that count; None for all
    full_score : shows how much of the question, or of a sentence of it, the best chunk has

    Returns
    -------
    Nearness, shape (n,); -inf where a chunk is not allowed.
    """
    check_number("lexical_weight", lexical_weight, 0, 1)
    return Nearness.of(cosines, lexical, lexical_weight, allowed, full_score).scores


def with_words(
    dense: NDArray[np.float64],
    lexical: NDArray[np.float64],
    lexical_weight: float,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """``(1 - w) dense + w z(BM25)``, for dense scores that are already in standard deviations.

    Parameters
    ----------
    dense, lexical : shape (n,)
    lexical_weight : w, in [0, 1]; if no chunk has a word of the question, only `dense` counts
    allowed : shape (n,), the chunks that count; None for all

    Returns
    -------
    Nearness, shape (n,); -inf where a chunk is not allowed.
    """
    counted = _ALL if allowed is None else allowed
    words, near = lexical[counted], dense[counted]
    if words.any():
        near = (1 - lexical_weight) * near + lexical_weight * standardised(words)
    elif lexical_weight < 1:
        near = (1 - lexical_weight) * near
    nearness = np.full(len(dense), -np.inf)
    nearness[counted] = near
    return nearness


def standardised(
    scores: NDArray[np.float64], by: NDArray[np.float64] | None = None, of: int = NEAREST
) -> NDArray[np.float64]:
    """Scores less the mean of the hundred best, divided by their standard deviation; 0 if those are all equal.

    Parameters
    ----------
    scores : shape (m,)
    by : shape (n,), the scores whose hundred best give mean and deviation; None for `scores` themselves
    of : how many of the best, if not a hundred

    >>> standardised(np.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    values = np.asarray(scores, np.float64)
    best = values if by is None else np.asarray(by, np.float64)
    best = best if len(best) <= of else best[largest(best, of)]
    spread = float(best.std()) if len(best) else 0.0
    # Rounding alone gives equal scores a deviation of some units in the last place.
    if spread <= 1e-9 * max(1.0, float(np.abs(best).max(initial=0.0))):
        return np.zeros_like(values)
    result: NDArray[np.float64] = (values - best.mean()) / spread
    return result


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
