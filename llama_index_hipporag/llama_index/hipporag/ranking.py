"""The default ranking, which asks no LLM: where a walk starts, and how its result is joined with the dense one.

1. The phrases of the graph that stand in the question are linked (:func:`question_links`).
2. A walk starts from them, each with the weight 1 / (passages that have it), and from the passages nearest to the
   question (:func:`passage_seeds`), which together weigh `PASSAGE_WEIGHT`: next to nothing beside a name that stands in
   one or two passages, and more than a word that stands in hundreds.
3. A passage scores by its nearness to the question times a power of what the walk brought it (:func:`combine`).

A product, since it asks for both: a passage that is off the question's paths does not come up for sounding like it, nor
one on them that has nothing to do with what is asked. The power makes an order of magnitude in the walk worth about as
much as .4 in the cosine, which lets the second and third passage of a chain, where the walk is 10 to 100 times thinner,
stand beside the first.
"""

import re
from collections.abc import Container
from typing import NamedTuple

import numpy as np

from llama_index.hipporag.names import is_name
from llama_index.hipporag.phrases import Normalizer, normalise
from llama_index.ragkit.errors import ConfigurationError

__all__ = [
    "FLOOR",
    "PASSAGE_SEEDS",
    "PASSAGE_WEIGHT",
    "SUBJECT_WEIGHT",
    "WALK_POWER",
    "combine",
    "passage_seeds",
    "question_links",
]

SUBJECT_WEIGHT = 10.0  # of the edge between a passage and what it is about; what it only mentions has 1
WALK_POWER = 0.2
FLOOR = 1e-4  # of the best passage's walk: how little a passage can have that the walk does not reach
PASSAGE_SEEDS = 100  # passages that a walk starts from
PASSAGE_WEIGHT = 0.01  # of them together in the reset, where a phrase weighs 1 / (passages that have it)
_SEED_POWER = 4

_LONGEST = 14  # units of a phrase
# A word; or one character of a script without spaces, where any run of characters may be a word.
_UNIT = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〇]"
    "|[^\\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〇]"
    "[^\\W_\u3040-\u30ff\u3400-\u9fff]*"
)


class _Unit(NamedTuple):
    start: int
    end: int
    strong: bool  # may be a word of a name


def question_links(
    question: str, known: Container[str], mode: Normalizer = "unicode", longest: int = _LONGEST
) -> list[tuple[str, int, int]]:
    """The phrases that a question mentions word by word: (normalised phrase, start, end in the question), by place.

    The longest are found first and do not overlap. Where the question tells names by capitals, a phrase needs one;
    in a question without capitals any phrase counts but function words. Each run of words costs one look-up.

    >>> known = {"the glass wall", "maxwell shane", "film", "wall"}
    >>> question_links("Is Maxwell Shane's film The Glass Wall?", known)
    [('maxwell shane', 3, 16), ('the glass wall', 24, 38)]
    >>> question_links("Maxwell Shane's wife", {"maxwell shane", "wife"})
    [('maxwell shane', 0, 13)]
    >>> question_links("东京有多大", {"东京"}), question_links("which film?", known)
    ([('东京', 0, 2)], [('film', 6, 10)])
    """
    units, cased = _units(question)
    taken = [False] * len(units)
    found = []
    for length in range(min(longest, len(units)), 0, -1):
        for first in range(len(units) - length + 1):
            last = first + length - 1
            if any(taken[first : last + 1]) or not any(unit.strong for unit in units[first : last + 1]):
                continue
            start, end = units[first].start, units[last].end
            phrase = normalise(question[start:end], mode)
            if phrase in known and (is_name(phrase) or (length > 1 and cased)):  # "Who" is no name, "The Who" is
                found.append((phrase, start, end))
                taken[first : last + 1] = [True] * length
    return sorted(found, key=lambda link: link[1])


def _units(question: str) -> tuple[list[_Unit], bool]:
    """Words and characters; and whether capitals tell names, so that only words with one can make a phrase."""
    matches = list(_UNIT.finditer(question))
    capitals = [_has_case(match.group()) and not match.group().islower() for match in matches]
    cased = any(capitals[1:])  # the first word has a capital whatever it is: it counts if it is no function word
    capitals[:1] = [capital and is_name(matches[0].group()) for capital in capitals[:1]]
    units = [
        _Unit(
            match.start(), match.end(), capital or not (cased and (_has_case(match.group()) or match.group().isdigit()))
        )
        for match, capital in zip(matches, capitals, strict=True)
    ]
    return units, cased


def _has_case(word: str) -> bool:
    return word.lower() != word.upper()


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
    floor = np.partition(cosines, len(cosines) - min(count, len(cosines)))[len(cosines) - min(count, len(cosines))]
    rows = np.flatnonzero(cosines >= floor)  # all that are equal to the last one, or their order would decide
    spread = cosines[rows].max() - floor
    weights = ((cosines[rows] - floor) / spread) ** power if spread > 0 else np.ones(len(rows))
    rows, weights = rows[weights > 0], weights[weights > 0]
    return rows, weights / weights.sum()


def combine(cosines: np.ndarray, walked: np.ndarray, power: float = WALK_POWER) -> np.ndarray:
    """Scores of passages: ``(1 + cos) / 2 * ((walked / best walked + FLOOR) / (1 + FLOOR)) ** power``.

    Parameters
    ----------
    cosines : (p,) of the question and each passage
    walked : (p,) what the walk brought to each, not negative; where it brought nothing at all, only cosines count
    power : 0 for cosines only; the higher, the more the walk counts

    Returns
    -------
    (p,) in [0, 1] : 1 for the passage that the walk likes best if it says the same as the question

    Raises
    ------
    ConfigurationError
        If `power` is negative or not finite.

    >>> combine(np.array([1.0, 0.6, 0.6]), np.array([0.0, 0.5, 0.005])).round(3)
    array([0.158, 0.8  , 0.319])
    """
    if not 0 <= power < np.inf:
        raise ConfigurationError(f"The power of the walk must be finite and not negative, not {power}.")
    near = np.clip((1.0 + cosines) / 2.0, 0.0, 1.0)
    best = walked.max(initial=0.0)
    if not best > 0:
        return near
    scores: np.ndarray = near * ((walked / best + FLOOR) / (1.0 + FLOOR)) ** power
    return scores
