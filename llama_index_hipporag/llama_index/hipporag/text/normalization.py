"""Normalisation of phrases."""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Literal, get_args

from llama_index.ragkit.text import characters
from llama_index.ragkit.validation import check_choice

__all__ = ["Normalizer", "normal_form", "normalise", "significant"]

Normalizer = Literal["unicode", "legacy"]

_NOT_LEGACY = re.compile("[^A-Za-z0-9 ]")


def normalise(text: str, mode: Normalizer = "unicode") -> str:
    """The form in which phrases are compared; it may be empty.

    `unicode`: :func:`llama_index.ragkit.text.characters.normalise`, which keeps all scripts.

    `legacy`: the published code's rule, for parity with its graphs: lower case, every character but ``[A-Za-z0-9 ]``
    becomes a space, the ends are stripped. Runs of spaces are kept, and letters outside ASCII are lost ("Göttingen" is
    "g ttingen"), so that names in another script cannot be distinguished.

    >>> normalise("U.S. Army", "legacy"), normalise("Göttingen", "legacy"), normalise("东京", "legacy")
    ('u s  army', 'g ttingen', '')
    """
    check_choice("normalizer", mode, get_args(Normalizer))
    if mode == "legacy":
        return _NOT_LEGACY.sub(" ", text.lower()).strip()
    return characters.normalise(text)


@lru_cache
def normal_form(mode: Normalizer) -> Callable[[str], str]:
    """:func:`normalise` in one mode, for many texts."""
    return characters.normalise if mode == "unicode" else partial(normalise, mode=mode)


def significant(phrase: str) -> int:
    """How many letters and digits a phrase has; those with 2 or fewer have no synonyms (as published)."""
    return sum(char.isalnum() for char in phrase)
