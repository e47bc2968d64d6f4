"""Citations of an answer, against the passages that hold the evidence."""

import re
from collections.abc import Collection, Hashable

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["citation_precision", "citation_recall", "cited_places", "without_citations"]

_CITATION = re.compile(r"[\[【]\s*(\d+(?:\s*[,;、]\s*\d+)*)\s*[\]】]")
_NUMBER = re.compile(r"\d+")


def cited_places(answer: str, count: int) -> tuple[int, ...]:
    """Places, from 0, of the passages that an answer cites as `[1]`, `[2, 3]`; each once, in the order of the answer.

    Numbers beyond `count`, the number of passages, cite nothing.

    >>> cited_places("Oil [2], then coal [1, 2][9].", 3)
    (1, 0)
    """
    numbers = (int(number) for group in _CITATION.findall(answer) for number in _NUMBER.findall(group))
    return tuple(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= count))


def without_citations(answer: str) -> str:
    """The answer without its citations.

    >>> without_citations("Oil [2], then coal [1, 2].")
    'Oil, then coal.'
    """
    return "".join(part.rstrip() for part in _CITATION.sub("\0", answer).split("\0")).strip()


def citation_precision(cited: Collection[Hashable], gold: Collection[Hashable]) -> float:
    """Share of the cited passages that are gold; 0.0 if nothing is cited."""
    return len(set(cited) & _gold(gold)) / len(set(cited)) if cited else 0.0


def citation_recall(cited: Collection[Hashable], gold: Collection[Hashable]) -> float:
    """Share of the gold passages that are cited."""
    return len(set(cited) & _gold(gold)) / len(_gold(gold))


def _gold(gold: Collection[Hashable]) -> set[Hashable]:
    if not gold:
        raise ConfigurationError("gold is empty: citations can only be scored if it is known what to cite.")
    return set(gold)
