"""Mentions of known phrases in a text, in any script and without a model."""

import re
import unicodedata
from collections.abc import Callable, Container
from itertools import accumulate, islice
from typing import NamedTuple

from llama_index.ragkit.text.function_words import FUNCTION_WORDS
from llama_index.ragkit.text.scripts import MARKS, UNSPACED
from llama_index.ragkit.text.unprinted import nfkc, without_format, without_unprinted

__all__ = ["is_name", "mentions", "names_part", "normalise", "possible_mentions"]

# Marks are part of letters in many scripts (Devanagari vowels, Arabic points); the underscore is neither.
_WORD_CATEGORIES = frozenset("LMN")
_ASCII_TABLE = {code: " " for code in range(128) if not chr(code).isalnum()}

_OPTIONAL = re.compile(
    "(?<=[\u0400-\u052f])[\u0300\u0301]+"  # stress on Cyrillic letters
    "|[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7]+"  # points of Hebrew
    "|[\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed]+"  # those of Arabic
)
_SAME_LETTERS = {0x06CC: 0x064A, 0x06A9: 0x0643}

_LONGEST = 14  # maximum units of a phrase
_MOST_UNITS = 1_000  # most units of a question that are searched for names; a longer text is a document
# A word, or one character of a script without spaces, where any run of characters may be a word.
_UNIT = re.compile(f"[{UNSPACED}]|[^\\W_{UNSPACED}](?:[^\\W_{UNSPACED}]|[{MARKS}])*")


class _Unit(NamedTuple):
    start: int
    end: int
    strong: bool  # whether it may be a word of a name


def normalise(text: str) -> str:
    """The form in which phrases are compared; it may be empty.

    NFKC and full case folding. Every character that is not a letter, a mark or a number becomes a space, an apostrophe
    too, so that a name is found in its genitive. Runs of spaces become one space. All scripts are kept. Format
    characters vanish, and so do marks that writers may leave out: stress in Cyrillic, points in Hebrew and Arabic.
    Persian and Urdu forms of letters become the Arabic ones.

    >>> normalise("  The U.S. Army"), normalise("ＧÖＴＴＩＮＧＥＮ"), normalise("Straße"), normalise("东京（日本）")
    ('the u s army', 'göttingen', 'strasse', '东京 日本')
    """
    if text.isascii():
        return " ".join(text.lower().translate(_ASCII_TABLE).split())
    # Folding can undo a composition, and composition can produce a capital. So Unicode's rule for caseless matching
    # (The Unicode Standard, section 3.13, D146) is to repeat both.
    folded = nfkc(nfkc(nfkc(without_format(text)).casefold()).casefold())
    folded = _OPTIONAL.sub("", folded).translate(_SAME_LETTERS)
    kept = (char if unicodedata.category(char)[0] in _WORD_CATEGORIES else " " for char in folded)
    return " ".join("".join(kept).split())


def is_name(phrase: str) -> bool:
    """Whether a phrase may be a name. A function word, a number or a single letter may not."""
    return any(
        len(word) > 1 and word.casefold() not in FUNCTION_WORDS and not word.isdigit() for word in phrase.split()
    )


def names_part(question: str) -> str:
    """The part of a question in which names are looked up: its first 1,000 words, or characters in scripts without
    spaces. Its letters are composed, as in the passages of an index.

    Every run of up to 14 words may be a name, which takes 14 look-ups for each word.

    >>> names_part("Who was Ada? " * 1_000) == "Who was Ada? " * 333 + "Who "
    True
    """
    question = without_unprinted(question)
    beyond = next(islice(_UNIT.finditer(question), _MOST_UNITS, None), None)
    return question if beyond is None else question[: beyond.start()]


def mentions(
    text: str,
    known: Container[str],
    normal: Callable[[str], str] = normalise,
    longest: int = _LONGEST,
    lower_case: bool = False,
) -> list[tuple[str, int, int]]:
    """The known phrases that occur in a text: (normalised phrase, start, end in the text), by position.

    Longer phrases take precedence, and matches do not overlap. In a text that marks names by capitals, a phrase needs
    one; in other texts any phrase except function words matches. Each run of words takes one look-up.

    Parameters
    ----------
    known : normalised phrases
    normal : the normalisation of `known`
    longest : maximum words of a phrase; characters in a script without spaces
    lower_case : whether a phrase without a capital matches too in a text that marks names by capitals

    >>> known = {"the glass wall", "maxwell shane", "film", "wall"}
    >>> mentions("Is Maxwell Shane's film The Glass Wall?", known)
    [('maxwell shane', 3, 16), ('the glass wall', 24, 38)]
    >>> mentions("Maxwell Shane's wife", {"maxwell shane", "wife"})
    [('maxwell shane', 0, 13)]
    >>> mentions("东京有多大", {"东京"}), mentions("which film?", known)
    ([('东京', 0, 2)], [('film', 6, 10)])
    """
    units, cased = _units(text)
    strong = [0, *accumulate(unit.strong for unit in units)]  # how many of the first
    taken = bytearray(len(units))
    found = []
    for length in range(min(longest, len(units)), 0, -1):
        for first in range(len(units) - length + 1):
            last = first + length - 1
            if any(taken[first : last + 1]) or not (lower_case or strong[last + 1] > strong[first]):
                continue
            start, end = units[first].start, units[last].end
            phrase = normal(text[start:end])
            if phrase in known and (is_name(phrase) or (length > 1 and cased)):  # "Who" is not a name, "The Who" is
                found.append((phrase, start, end))
                taken[first : last + 1] = b"x" * length
    return sorted(found, key=lambda mention: mention[1])


class _LookedUp(dict[str, None]):
    """Has no key, but keeps every key that was looked up."""

    def __contains__(self, phrase: object) -> bool:
        self[str(phrase)] = None
        return False


def possible_mentions(text: str, longest: int = _LONGEST) -> list[str]:
    """Every phrase that :func:`mentions` looks up in a text, once, longer ones first.

    >>> possible_mentions("the Glass Wall")
    ['the glass wall', 'the glass', 'glass wall', 'glass', 'wall']
    """
    looked_up = _LookedUp()
    mentions(text, looked_up, longest=longest)
    return [phrase for phrase in list(looked_up) if phrase]


def _units(text: str) -> tuple[list[_Unit], bool]:
    """Words and characters, and whether names have capitals, so that a phrase needs a word with one."""
    matches = list(_UNIT.finditer(text))
    capitals = [_has_case(match.group()) and not match.group().islower() for match in matches]
    cased = any(capitals[1:])  # the first word always has a capital: it counts if it is not a function word
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
