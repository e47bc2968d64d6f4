"""Scores passages by a walk over a graph in addition to their nearness to a question, and how far to trust the walk.

A walk starts from the names in the question and from the passages nearest to it (:func:`passage_seeds`). The score of a
passage is its nearness plus the logarithm of its share of the walk, which counts as far as the walk can be trusted
(:func:`trust`, :func:`combine`).

A walk is trusted if it reaches the passage that is nearest to the question, if it is concentrated, and if it agrees
with nearness about the passages near the question. If the names of a question lead elsewhere than its other words, or
to every passage alike, as in a report with the same names on every page, nearness is the better guide. In a chain of
facts, the walk finds passages that contain no word of the question.
"""

import math

import numpy as np

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.largest import largest

__all__ = ["FLOOR", "NEAREST_POWER", "PASSAGE_SEEDS", "combine", "gain", "lead", "passage_seeds", "rarity", "trust"]

NEAREST_POWER = 0.45  # of the share of the nearest passage, wherever it stands
FLOOR = 1e-4  # minimum share of the walk, relative to the best passage, for passages that the walk does not reach
PASSAGE_SEEDS = 100  # passages that a walk starts from
_SEED_POWER = 4
_CONCENTRATION = 6  # passages of the walk whose shares tell how concentrated it is
_DIFFUSE = 3.5
_MANY = 0.1  # of the square root of the number of passages
_FEW = 2.0  # passages
_SEEN = 100  # passages nearest to the question, over which walk and nearness are compared
_FEWEST = 20  # passages; fewer show nothing
_NO_AGREEMENT, _AGREEMENT = 0.4, 0.6  # correlations
_EQUAL = 1e-9  # nearness within the error of rounding


def passage_seeds(
    cosines: np.ndarray, count: int = PASSAGE_SEEDS, power: float = _SEED_POWER
) -> tuple[np.ndarray, np.ndarray]:
    """The passages that a walk starts from: the `count` nearest, by ``((cos - lowest) / (highest - lowest)) ** power``.

    Parameters
    ----------
    cosines : (p,) of the question and each passage

    Returns
    -------
    rows, weights : (k,) int64 ascending and float64 with sum 1; empty where there are no passages

    Raises
    ------
    ConfigurationError
        If `count` is below 1 or `power` is not positive.

    >>> passage_seeds(np.array([0.1, 0.5, 0.9]), power=1)
    (array([1, 2]), array([0.33333333, 0.66666667]))
    """
    if count < 1 or not power > 0:
        raise ConfigurationError(f"count must be at least 1 and power positive, not {count} and {power}.")
    if not len(cosines):
        return np.empty(0, dtype=np.int64), np.empty(0)
    floor = cosines[largest(cosines, min(count, len(cosines)))].min()
    rows = np.flatnonzero(
        cosines >= floor
    )  # including all that are equal to the last one, so that their order does not matter
    spread = cosines[rows].max() - floor
    weights = ((cosines[rows] - floor) / spread) ** power if spread > 0 else np.ones(len(rows))
    rows, weights = rows[weights > 0], weights[weights > 0]
    return rows, weights / weights.sum()


def trust(
    nearness: np.ndarray,
    walked: np.ndarray,
    power: float = NEAREST_POWER,
    candidates: np.ndarray | None = None,
) -> float:
    """How far to trust a walk for a question, in [0, 1]: ``exp(-3.5 m) * s ** power * a``.

    m is the mean share of the passages that the walk ranks second to sixth. Near 1, the walk does not tell passages
    apart. s is the share of the passage that is nearest to the question. At 0, walk and nearness are unrelated. a is 0
    if nearness and the logarithm of the share have a correlation of at most 0.4 over the hundred nearest passages, 1
    from 0.6 on, and linear between. It is 1 for fewer than 20 passages, or if nearness or share is constant.

    Parameters
    ----------
    nearness : (p,) of the question and each passage that may be shown
    walked : (p,) each passage's score in the walk as a share of the best, in [0, 1]
    power : how much s counts, at least 0
    candidates : (p,), from which the hundred nearest passages are chosen, see
        :attr:`~llama_index.ragkit.vectors.nearness.Nearness.candidates`; None for all

    >>> trust(np.array([2.0, 0.0, -1.0]), np.array([1.0, 0.0, 0.0]))
    1.0
    >>> trust(np.array([2.0, 0.0, -1.0]), np.array([0.0, 1.0, 0.1]))
    0.0
    """
    if not walked.size or not walked.any():
        return 0.0
    best = np.sort(walked[largest(walked, min(_CONCENTRATION, walked.size))])[::-1]
    others = float(best[1:].mean()) if walked.size > 1 else 0.0
    nearest = walked[nearness >= nearness.max() - _EQUAL]
    reached = float(nearest.max())
    if not reached:
        return 0.0
    compared = slice(None) if candidates is None else candidates
    agreement = _agreement(nearness[compared], walked[compared])
    return math.exp(-_DIFFUSE * others) * math.pow(reached, power) * agreement


def lead(nearness: np.ndarray) -> float:
    """How far the nearest passage is ahead of the sixth (or the last, if fewer) in standard deviations; at least 0.

    Parameters
    ----------
    nearness : (p,) of the question and each passage that may be shown

    >>> lead(np.array([2.0, 5.0, 1.0, 1.5, 1.0, 1.0, 0.0]))
    4.0
    """
    if not nearness.size:
        return 0.0
    best = nearness[largest(nearness, min(_CONCENTRATION, nearness.size))]
    return float(best.max() - best.min())


def rarity(frequency: float, count: float) -> float:
    """How specific a name is, by the number of passages with its words: ``1 / (1 + ((f - 1) / s) ** 2)``.

    s is a tenth of the square root of `count`, at least 2: in more passages, more may be about one thing. A name that
    is a common word, or a first name in a chat, has its words in many passages.

    Parameters
    ----------
    frequency : f, the number of passages with its words; less than 1 counts as 1
    count : the number of all passages; 0 if unknown, which gives 1

    >>> rarity(1, 400), rarity(3, 400)
    (1.0, 0.5)
    """
    if count <= 0:
        return 1.0
    return 1.0 / (1.0 + (max(0.0, frequency - 1.0) / max(_FEW, _MANY * math.sqrt(count))) ** 2)


def _agreement(nearness: np.ndarray, walked: np.ndarray) -> float:
    """How far a walk agrees with nearness about the hundred nearest passages and those that tie with the last."""
    if len(nearness) < _FEWEST:
        return 1.0
    rows = nearness >= nearness[largest(nearness, min(_SEEN, len(nearness)))].min()
    near, shares = nearness[rows], _log_share(walked[rows])
    near, shares = near - near.mean(), shares - shares.mean()
    spread = math.sqrt(float(near @ near) * float(shares @ shares))
    if spread <= _EQUAL:  # nearness or share is the same for all
        return 1.0
    correlation = float(near @ shares) / spread
    return min(1.0, max(0.0, (correlation - _NO_AGREEMENT) / (_AGREEMENT - _NO_AGREEMENT)))


def combine(nearness: np.ndarray, walked: np.ndarray, weight: float) -> np.ndarray:
    """Scores of passages: ``nearness + weight * log((walked + FLOOR) / (1 + FLOOR))``.

    Parameters
    ----------
    nearness : (p,) standardised, see :func:`llama_index.ragkit.vectors.nearness.hybrid_nearness`
    walked : (p,) each passage's score in the walk as a share of the best, in [0, 1]
    weight : 0 for nearness only; the higher, the more the walk counts

    Returns
    -------
    (p,) : at most the nearness; equal to it for the best passage of the walk

    Raises
    ------
    ConfigurationError
        If `weight` is negative or not finite.

    >>> combine(np.array([2.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.01]), weight=0.5).round(3)
    array([-2.605,  1.   , -1.298])
    """
    if not 0 <= weight < np.inf:
        raise ConfigurationError(f"The weight of the walk must be finite and not negative, not {weight}.")
    scores: np.ndarray = nearness + weight * _log_share(walked) if weight else nearness
    return scores


def _log_share(walked: np.ndarray) -> np.ndarray:
    shares: np.ndarray = np.log((walked + FLOOR) / (1.0 + FLOOR))
    return shares


def gain(walked: np.ndarray, weight: float) -> np.ndarray:
    """The derivative of a :func:`combine` score with respect to the logarithm of the walk's share."""
    found: np.ndarray = weight * walked / (walked + FLOOR)
    return found
