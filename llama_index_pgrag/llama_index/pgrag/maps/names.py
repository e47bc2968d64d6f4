"""The names of mind map cells, and how they are found in a text."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from llama_index.ragkit.text.mentions import mentions, normalise
from llama_index.ragkit.text.scripts import UNSPACED

__all__ = ["MOST_WORDS", "CellNames", "cell_name", "name_of", "words_of"]

_LONGEST = 100  # characters of a name; longer cells are sentences
_UNSPACED = re.compile(f"[{UNSPACED}]")

MOST_WORDS = 6
"""Largest number of words of a name in a sentence; of characters in scripts without spaces."""

_ADDED = re.compile(r"(?<!\s)\s*\([^()]*\)\s*$")  # the name of "The Glass Wall (film)" is "The Glass Wall"


@dataclass(frozen=True)
class CellNames:
    """Names to find in sentences, normalised by :func:`~llama_index.ragkit.text.mentions.normalise`."""

    names: Collection[str]

    def names_in(self, text: str, but: str = "") -> list[str]:
        """The names in a text, exact matches only, in the order of the text; if the text capitalises names, lower-case
        matches do not count.

        Parameters
        ----------
        but : a name to ignore
        """
        if not _UNSPACED.search(text):
            words = normalise(text).split()  # a quick look, since few texts have a name
            begun = (i for i, word in enumerate(words) if word in self._first_words)
            if not any(self._begins(words, i, but) for i in begun):
                return []
        found = dict.fromkeys(phrase for phrase, _, _ in mentions(text, self.names, longest=MOST_WORDS))
        return [phrase for phrase in found if phrase != but]

    def may_be_in(self, words: str) -> bool:
        """Whether a text may have one of the names, by its :func:`words_of`.

        >>> names = CellNames(["lewis range"])
        >>> names.may_be_in("the lewis range is long"), names.may_be_in("lewis ranges over it")
        (True, False)
        """
        if _UNSPACED.search(words):
            return True
        padded = f" {words} "
        return any(name in padded for name in self._padded)

    def _begins(self, words: list[str], start: int, but: str) -> bool:
        """Whether a name begins at a word."""
        ends = range(start + 1, min(start + MOST_WORDS, len(words)) + 1)
        runs = (" ".join(words[start:end]) for end in ends)
        return any(run in self.names and run != but for run in runs)

    @cached_property
    def _padded(self) -> list[str]:
        return [f" {name} " for name in self.names]

    @cached_property
    def _first_words(self) -> set[str]:
        return {name.split(" ", 1)[0] for name in self.names}


def words_of(text: str) -> str:
    """A text as :meth:`CellNames.may_be_in` looks at it: normalised, or as it is in scripts without spaces."""
    return text if _UNSPACED.search(text) else normalise(text)


def name_of(text: str) -> str:
    """The name of a cell, normalised, without an addition in brackets at its end."""
    return normalise(_ADDED.sub("", text))


def cell_name(text: str) -> str:
    """The name by which a cell is found; "" if the cell is too long to be a name."""
    return name_of(text) if len(text) <= _LONGEST else ""
