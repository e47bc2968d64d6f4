"""When two phrases are the same: one spelling for every way of writing them."""

import re
import unicodedata
from typing import Literal, get_args

from llama_index.ragkit.checks import check_choice

__all__ = ["NORMALIZERS", "Normalizer", "check_normalizer", "normalise", "significant"]

Normalizer = Literal["unicode", "legacy"]
NORMALIZERS: tuple[Normalizer, ...] = get_args(Normalizer)

_NOT_LEGACY = re.compile("[^A-Za-z0-9 ]")
# Marks are part of letters in many scripts (Devanagari vowels, Arabic points); the underscore is none of both.
_WORD_CATEGORIES = frozenset("LMN")
_ASCII_TABLE = {code: " " for code in range(128) if not chr(code).isalnum()}


def check_normalizer(mode: str) -> None:
    """Raise a `ConfigurationError` unless the normalizer exists."""
    check_choice("normalizer", mode, NORMALIZERS)


def normalise(text: str, mode: Normalizer = "unicode") -> str:
    """The form in which phrases are compared; it may be empty, and is then no phrase.

    `unicode`: NFKC and full case folding; every character that is neither letter nor mark nor number becomes a space,
    an apostrophe too, so that a name is found in its genitive; runs of spaces are one space. All scripts are kept.

    `legacy`: the published code's rule, for parity with its graphs: lower case, every character but ``[A-Za-z0-9 ]``
    becomes a space, the ends are stripped. Runs of spaces stay, and letters outside ASCII are lost ("Göttingen" is
    "g ttingen"), so that two names in another script cannot be told apart.

    >>> normalise("  The U.S. Army"), normalise("ＧÖＴＴＩＮＧＥＮ"), normalise("Straße"), normalise("东京（日本）")
    ('the u s army', 'göttingen', 'strasse', '东京 日本')
    >>> normalise("U.S. Army", "legacy"), normalise("Göttingen", "legacy"), normalise("东京", "legacy")
    ('u s  army', 'g ttingen', '')
    """
    check_normalizer(mode)
    if mode == "legacy":
        return _NOT_LEGACY.sub(" ", text.lower()).strip()
    if text.isascii():
        return " ".join(text.lower().translate(_ASCII_TABLE).split())
    # Folding can undo a composition, and composing can make a capital: Unicode's own rule for caseless matching
    # (The Unicode Standard, section 3.13, D146) is to go round once more.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    folded = unicodedata.normalize("NFKC", folded.casefold())
    kept = (char if unicodedata.category(char)[0] in _WORD_CATEGORIES else " " for char in folded)
    return " ".join("".join(kept).split())


def significant(phrase: str) -> int:
    """How many letters and digits a phrase has; those with 2 or fewer have no synonyms (as published)."""
    return sum(char.isalnum() for char in phrase)
