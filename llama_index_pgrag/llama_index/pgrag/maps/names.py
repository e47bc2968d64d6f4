"""The names of mind map cells, and how they are found in a text."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from llama_index.ragkit.text.mentions import mentions, normalise
from llama_index.ragkit.text.scripts import UNSPACED

__all__ = ["MOST_WORDS", "PHRASES", "CellNames", "cell_name", "name_of", "units_of", "units_of_name"]

_LONGEST = 100  # characters of a name; longer cells are sentences
_UNSPACED = re.compile(f"[{UNSPACED}]")
_UNIT = re.compile(f"[{UNSPACED}]|[^\\s{UNSPACED}]+")

MOST_WORDS = 6
"""Largest number of words of a name in a sentence; of characters in scripts without spaces."""

PHRASES = " · "
"""Between the key phrases that are the topic of a passage without a title. Such a topic is no name: a question that has
"Maie" does not mean "Maie · husband · fish".
"""

_ADDED = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")  # the name of "The Glass Wall (film)" is "The Glass Wall"


@dataclass(frozen=True)
class CellNames:
    """Names to find in sentences, normalised by :func:`~llama_index.ragkit.text.mentions.normalise`."""

    names: Collection[str]

    def names_in(self, text: str, but: str = "") -> list[str]:
        """The names in a text except `but`, exact matches only, in the order of the text; if the text capitalises
        names, lower-case matches do not count.
        """
        if not _UNSPACED.search(text):
            words = normalise(text).split()  # a quick look, since few texts have a name
            begun = (i for i, word in enumerate(words) if word in self._first_words)
            if not any(self._begins(words, i, but) for i in begun):
                return []
        found = dict.fromkeys(phrase for phrase, _, _ in mentions(text, self.names, longest=MOST_WORDS))
        return [phrase for phrase in found if phrase != but]

    def _begins(self, words: list[str], start: int, but: str) -> bool:
        """Whether a name begins at a word."""
        ends = range(start + 1, min(start + MOST_WORDS, len(words)) + 1)
        runs = (" ".join(words[start:end]) for end in ends)
        return any(run in self.names and run != but for run in runs)

    @cached_property
    def _first_words(self) -> set[str]:
        return {name.split(" ", 1)[0] for name in self.names}


def units_of(text: str) -> set[str]:
    """The words of a text, and its characters of scripts without spaces, as names have them.

    >>> sorted(units_of("Lewis Range")), sorted(units_of("東京"))
    (['lewis', 'range'], ['京', '東'])
    """
    if not _UNSPACED.search(text):
        return set(normalise(text).split())
    # A name may begin or end between characters that normalisation joins.
    return {*units_of_name(normalise(text)), *units_of_name(normalise(" ".join(text)))}


def units_of_name(name: str) -> list[str]:
    """The words of a normalised name, and its characters of scripts without spaces."""
    return _UNIT.findall(name)


def name_of(text: str) -> str:
    """The name of a cell, normalised, without an addition in brackets at its end."""
    return normalise(_ADDED.sub("", text))


def cell_name(text: str) -> str:
    """The name by which a cell is found; "" if the cell is too long to be a name, or consists of key phrases."""
    return "" if len(text) > _LONGEST or PHRASES in text else name_of(text)
