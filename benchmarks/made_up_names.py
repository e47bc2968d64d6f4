"""A made-up corpus of passages with names, facts and questions, in shards; every passage follows from its number.

A passage has nine phrases: six names of its own, which no other passage has, and three places by a power law, so that
some are in thousands of passages. Its first name stands in a fact with each of the others. Names have a first word that
others share and a last word of twenty.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from llama_index.hipporag.graph.passage import Passage
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT, Nearness

__all__ = ["Question", "nearness_of", "passages", "questions"]

OWN, SHARED = 6, 3  # phrases of a passage
FIRST_NAMES, SURNAME = 2_000, 20
EXPONENT = 0.78  # of the frequencies of places
SHARD = 1_000  # passages drawn together
_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxz", "aeiou"


class Question(NamedTuple):
    """A question, with the number of the passage that it was made from."""

    text: str
    passage: int


def _word(number: int) -> str:
    """A word of two syllables or more."""
    syllables = ""
    number += 100
    while number:
        number, rest = divmod(number, 100)
        syllables += _CONSONANTS[rest // 5] + _VOWELS[rest % 5]
    return syllables


def _name(number: int) -> str:
    return f"{_word(number % FIRST_NAMES)} {_word(FIRST_NAMES + number // SURNAME)}"


def _places(total: int, first: int, last: int) -> np.ndarray:
    """The places of passages `first` to `last`, shape (last - first, SHARED)."""
    count = max(SHARED, total // 5)
    share = np.cumsum(np.arange(1, count + 1) ** -EXPONENT)
    found = []
    for shard in range(first // SHARD, -(-last // SHARD)):
        drawn = np.random.default_rng([shard, 1]).random((SHARD, SHARED))
        found.append(np.searchsorted(share / share[-1], drawn).clip(max=count - 1))
    return np.concatenate(found)[first % SHARD :][: last - first]


def _phrases(number: int, places: Sequence[int]) -> list[str]:
    own = [_name(OWN * number + k) for k in range(OWN)]
    return list(dict.fromkeys([*own, *(f"{_word(place)}stadt" for place in places)]))


def passages(total: int, first: int, last: int) -> dict[str, Passage]:
    """Passages `first` to `last` of a corpus of `total`."""
    found = {}
    for number, places in enumerate(_places(total, first, last).tolist(), first):
        phrases = _phrases(number, places)
        facts = {(phrases[0], "knows", other): 1 for other in phrases[1:]}
        found[f"p{number:07d}"] = Passage(named=dict.fromkeys(phrases, 1), statements=facts)
    return found


def questions(total: int, count: int, seed: int) -> Iterator[Question]:
    """Questions that name two names and a place of a passage, in random order."""
    rng = np.random.default_rng([seed, 2])
    for number in rng.choice(total, count, replace=False).tolist():
        (places,) = _places(total, number, number + 1).tolist()
        phrases = _phrases(number, places)
        one, other = rng.choice(OWN, 2, replace=False)
        names = [phrases[one].title(), phrases[other].title(), phrases[OWN].title()]
        yield Question("What do {} and {} have to do with {}?".format(*names), number)


def nearness_of(question: Question, total: int, seed: int) -> Nearness:
    """Cosines by chance, with the passage of the question and twenty others nearer, and words in some two hundred."""
    rng = np.random.default_rng([seed, question.passage, 3])
    cosines = rng.normal(0.2, 0.05, total)
    cosines[rng.integers(0, total, 20)] += 0.15
    cosines[question.passage] += 0.2
    lexical = np.zeros(total)
    lexical[rng.integers(0, total, 200)] = rng.gamma(2.0, 2.0, 200)
    lexical[question.passage] += 8.0
    return Nearness.of(cosines, lexical, LEXICAL_WEIGHT)
