"""Scores of retrievers and rerankers as absolute relevance in [0, 1].

Relevant segment extraction weighs a chunk's relevance against the price of carrying an irrelevant one. This works only
if relevance means the same for every question and every retriever: with raw cosines of .3 to .6, the published presets
would return nothing. The published code maps the scores of two rerankers by a beta distribution. Without a reranker it
takes the cosine, or on request a constant. The other calibrations are ours.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import CheckedFields, check_choice, number

__all__ = [
    "CALIBRATIONS",
    "BetaCalibration",
    "Calibration",
    "ConstantCalibration",
    "MinMaxCalibration",
    "NoCalibration",
    "SigmoidCalibration",
    "automatic_calibration",
    "beta_cdf",
    "calibration_of",
    "check_calibration",
]

_TERMS = 300  # of the fraction, more than it needs for parameters below 1,000
_TINY = 1e-300


@runtime_checkable
class Calibration(Protocol):
    """Maps the scores of one query to relevance."""

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Relevance in [0, 1] of each score, shape of `scores`; a higher score is never less relevant."""
        ...


@dataclass(frozen=True)
class ConstantCalibration(CheckedFields):
    """The same relevance for every retrieved chunk, so that only its rank counts.

    Without a reranker the published code takes .8 on request (`ignore_absolute_relevance`), otherwise the cosine. Its
    first generation used only ranks, which is a value of 1.
    """

    value: Annotated[float, number(0, 1, above=True)] = 0.8

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """The constant, for every score."""
        return np.full(np.shape(scores), float(self.value))


@dataclass(frozen=True)
class BetaCalibration(CheckedFields):
    """The distribution function of a beta distribution, for scores in [0, 1]; scores outside are clipped.

    Published: a = b = 0.4 for Cohere's rerank-english-v3.0 [default], a = 0.5 and b = 1.8 for Voyage's rerank-1. Both
    spread the scores of their reranker about evenly over [0, 1].
    """

    a: Annotated[float, number(0, 1000, above=True)] = 0.4
    b: Annotated[float, number(0, 1000, above=True)] = 0.4

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """P(X <= score) of a beta-distributed X."""
        return beta_cdf(np.clip(_finite(scores), 0, 1), self.a, self.b)


@dataclass(frozen=True)
class SigmoidCalibration(CheckedFields):
    """``1 / (1 + exp((midpoint - score) / scale))``, for unbounded scores: logits of a cross-encoder [0, 1]."""

    midpoint: Annotated[float, number(-np.inf)] = 0.0
    scale: Annotated[float, number(0, above=True)] = 1.0

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """Half at the midpoint."""
        relevance: NDArray[np.float64] = 0.5 * (1 + np.tanh((_finite(scores) - self.midpoint) / (2 * self.scale)))
        return relevance


@dataclass(frozen=True)
class MinMaxCalibration:
    """The best score of a query becomes 1 and its lowest 0; equal scores become 1. It is relative to each query."""

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """``(score - lowest) / (best - lowest)``."""
        given = _finite(scores)
        if not given.size or given.max() == given.min():
            return np.ones_like(given)
        # Halves, so that the difference of extreme scores stays finite.
        low, high = given.min() / 2, given.max() / 2
        relevance: NDArray[np.float64] = np.clip((given / 2 - low) / (high - low), 0, 1)
        return relevance


@dataclass(frozen=True)
class NoCalibration:
    """Scores that are already relevance, clipped to [0, 1]."""

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """The score itself."""
        return np.clip(_finite(scores), 0, 1)


CALIBRATIONS: Mapping[str, Calibration] = MappingProxyType(
    {
        "rank": ConstantCalibration(1.0),
        "constant": ConstantCalibration(0.8),
        "beta": BetaCalibration(),
        "sigmoid": SigmoidCalibration(),
        "min-max": MinMaxCalibration(),
        "none": NoCalibration(),
    }
)


def check_calibration(calibration: str | Calibration) -> None:
    """Refuse a value that is neither a name of a calibration, nor "auto", nor a function.

    Raises
    ------
    ConfigurationError
    """
    if isinstance(calibration, str):
        check_choice("calibration", calibration, ("auto", *CALIBRATIONS))
    elif not callable(calibration):
        raise ConfigurationError(
            f"calibration must be one of {', '.join(map(repr, ['auto', *CALIBRATIONS]))} or a function from scores to "
            f"relevance, not {calibration!r}."
        )


def calibration_of(calibration: str | Calibration, scores: ArrayLike, *, reranked: bool = False) -> Calibration:
    """The calibration of a name, `"auto"` being :func:`automatic_calibration`; any other object as it is."""
    if not isinstance(calibration, str):
        return calibration
    return automatic_calibration(scores, reranked=reranked) if calibration == "auto" else CALIBRATIONS[calibration]


def automatic_calibration(scores: ArrayLike, *, reranked: bool) -> Calibration:
    """The calibration that suits the scores of one query.

    Cosines, BM25 scores, sums of ranks and the like say little about absolute relevance. So without a reranker only the
    rank counts (`"rank"`; the published constant of .8 only makes every price a quarter higher). A reranker's scores
    count as probabilities if all are in [0, 1] (`"beta"`), as logits if one is negative (`"sigmoid"`), and otherwise
    relative to each other (`"min-max"`). Rankings whose scores are missing or all equal are treated as without a
    reranker.

    Parameters
    ----------
    scores : shape (k,), of one query; NaN for a chunk without a score
    reranked : whether they are a reranker's
    """
    given = np.asarray(scores, dtype=np.float64)
    if not reranked or not given.size or not np.isfinite(given).all() or given.max() == given.min():
        return CALIBRATIONS["rank"]
    if given.min() < 0:
        return CALIBRATIONS["sigmoid"]
    return CALIBRATIONS["beta" if given.max() <= 1 else "min-max"]


def _finite(scores: ArrayLike) -> NDArray[np.float64]:
    given = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(given).all():
        raise ConfigurationError(
            'Scores are missing, NaN or infinite; calibration="rank" and "constant" need no scores.'
        )
    return given


def beta_cdf(x: ArrayLike, a: float, b: float) -> NDArray[np.float64]:
    """The regularised incomplete beta function I_x(a, b) (NIST Digital Library, 8.17.22, by Lentz's method).

    Parameters
    ----------
    x : any shape, in [0, 1]
    a, b : above 0

    >>> [round(float(value), 4) for value in beta_cdf([0.0, 0.25, 0.5, 1.0], 0.5, 0.5)]
    [0.0, 0.3333, 0.5, 1.0]
    """
    points = np.asarray(x, dtype=np.float64)
    # The fraction converges fast only below the mean; above it, I_x(a, b) = 1 - I_{1-x}(b, a).
    low = points < (a + 1) / (a + b + 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = _fraction(np.where(low, points, 0.0), a, b)
        above = 1 - _fraction(np.where(low, 0.0, 1 - points), b, a)
    return np.where(low, below, above)


def _fraction(x: NDArray[np.float64], a: float, b: float) -> NDArray[np.float64]:
    log_scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) - math.log(a)
    scale = np.exp(log_scale + a * np.log(x) + b * np.log1p(-x))
    c = np.ones_like(x)
    d = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    value = d.copy()
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            value *= c * d
        if (np.abs(c * d - 1) < 1e-15).all():
            break
    result: NDArray[np.float64] = scale * value
    return result


def _away_from_zero(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.abs(x) < _TINY, _TINY, x)
