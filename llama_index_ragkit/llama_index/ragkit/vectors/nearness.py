"""Dense and lexical scores of one question as one nearness."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_index import NOT_KNOWN, FullScore
from llama_index.ragkit.validation import check_number
from llama_index.ragkit.vectors.cosine_trust import lexical_share
from llama_index.ragkit.vectors.largest import largest

__all__ = ["LEXICAL_WEIGHT", "NEAREST", "Nearness", "hybrid_nearness", "standardised", "with_words"]

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
        :func:`~llama_index.ragkit.vectors.cosine_trust.lexical_share`
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
        check_number("lexical_weight", lexical_weight, 0, 1)
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
    (:mod:`llama_index.ragkit.vectors.cosine_trust`).
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
