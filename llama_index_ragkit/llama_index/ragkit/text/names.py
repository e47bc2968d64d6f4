"""Names in a text of a script with capitals: runs of capitalised words, and text in quotation marks.

Function words and numbers may occur inside a run ("Duke of Saxe-Eisenach", "Apollo 11", "2018 Winter Games"). The
first word of a sentence is always capitalised: it counts if a name continues after it, or if the text has it
capitalised elsewhere within a sentence, and never if it is a function word.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from llama_index.ragkit.text.mentions import FUNCTION_WORDS, is_name
from llama_index.ragkit.text.scripts import HAN, HANGUL, KANA
from llama_index.ragkit.text.sentences import sentence_spans

__all__ = ["WORD", "Mention", "names"]


class Mention(NamedTuple):
    """A phrase as written in a text: ``text[start:end]``."""

    text: str
    start: int
    end: int


# A word may contain apostrophes, hyphens and points, as in "O'Brien", "Saxe-Coburg" and "U.S".
WORD = re.compile(rf"[^\W_]+(?:['’.\-‐‑]?[^\W_{KANA}{HAN}{HANGUL}]+)*")
_QUOTED = re.compile(r"[\"“„«「『《]\s*([^\"“”„«»「」『』《》\n]{2,80}?)[\s,.;]*[\"”“»」』》]")
_GENITIVE = re.compile(r"['’]s?$")
_JOINTS = frozenset((" ", "-", " & ", "- ", "\u00a0"))
_ABBREVIATED = frozenset(("St", "Dr", "Mr", "Mrs", "Ms", "Jr", "Sr", "Mt", "Ft", "Prof", "Rev", "Gen", "Col", "Capt"))
_MOST_SMALL = 3  # "Prince of the House of", "Maria de los Angeles": no name has more consecutive small words

# Small words in names, in languages of Latin script.
_SMALL_TEXT = """
of the de la le los las les du des del della di da do dos das van von der den zu zur y e et and al el bin ibn ben av af
og i na no in on at to for a an und
"""
# Those that may also separate two names: both readings are returned.
_BETWEEN_TEXT = "and y e et und og i in on at to for"
_SMALL, _BETWEEN = (frozenset(words.split()) for words in (_SMALL_TEXT, _BETWEEN_TEXT))


def names(text: str) -> list[Mention]:
    """The names of a text by position, the longer first where two begin together.

    Where a small word may separate two names, the whole and its parts are returned. A genitive ending is dropped.

    >>> [name.text for name in names("The son of Adalbert II of Tuscany and Bertha. Guy's widow read “Of Ships”.")]
    ['Adalbert II of Tuscany and Bertha', 'Adalbert II of Tuscany', 'Bertha', 'Guy', 'Of Ships']
    """
    words = list(WORD.finditer(text))
    openers = _openers(text, words)
    inner = {word.group() for k, word in enumerate(words) if k not in openers and _is_capital(word.group())}
    found: set[tuple[int, int]] = {match.span(1) for match in _QUOTED.finditer(text)}
    k = 0
    while k < len(words):
        last = _run(text, words, openers, k)
        if last is None:
            k += 1
            continue
        first = _skip_openers(words, openers, k, last)
        if first < last or (first == last and (first not in openers or _counts(words[first].group(), inner))):
            found.update(_readings(words, first, last))
        k = last + 1
    trimmed = {(start, start + len(_GENITIVE.sub("", text[start:end]))) for start, end in found}
    order = sorted(trimmed, key=lambda span: (span[0], -span[1]))
    return [Mention(text[start:end], start, end) for start, end in order if is_name(text[start:end])]


def _counts(word: str, inner: set[str]) -> bool:
    """Whether a single capitalised word that begins a sentence is a name."""
    return word in inner or _GENITIVE.search(word) is not None


def _openers(text: str, words: Sequence[re.Match[str]]) -> set[int]:
    """Which words are the first of their sentence, or of a quotation or bracket."""
    first: set[int] = set()
    k = 0
    for start, end in sentence_spans(text):
        while k < len(words) and words[k].start() < start:
            k += 1
        if k < len(words) and words[k].start() < end:
            first.add(k)
    return first


def _is_capital(word: str) -> bool:
    return word[0].isupper() or word[0].istitle()


def _joined(text: str, left: re.Match[str], right: re.Match[str]) -> bool:
    """Whether two words are separated only by a joint, or the point of an initial or an abbreviation."""
    gap = text[left.end() : right.start()]
    if gap in _JOINTS or (gap.isspace() and gap.count("\n") < 2):
        return True
    initial = len(left.group()) == 1 or left.group() in _ABBREVIATED
    return initial and gap in (".", ". ") and right.group().casefold() not in FUNCTION_WORDS


def _run(text: str, words: Sequence[re.Match[str]], openers: set[int], first: int) -> int | None:
    """The last word of the name that begins with word `first`; None if none does."""
    if not _is_capital(words[first].group()) and not words[first].group()[0].isdigit():
        return None
    last, capitals = first, _is_capital(words[first].group())
    while True:
        following, small = last + 1, 0
        while (
            following < len(words)
            and small < _MOST_SMALL
            and words[following].group() in _SMALL
            and _joined(text, words[following - 1], words[following])
        ):
            following, small = following + 1, small + 1
        if following >= len(words) or not _joined(text, words[following - 1], words[following]):
            break
        word = words[following].group()
        initial = text[words[following - 1].end() : words[following].start()].startswith(".")
        if (following in openers and not initial) or not (_is_capital(word) or (word[0].isdigit() and not small)):
            break
        last, capitals = following, capitals or _is_capital(word)
    return last if capitals else None


def _skip_openers(words: Sequence[re.Match[str]], openers: set[int], first: int, last: int) -> int:
    """The start of the name without the function words that begin its sentence."""
    begin = first
    if first in openers:
        while begin <= last and words[begin].group().casefold() in FUNCTION_WORDS:
            begin += 1
        while first < begin <= last and words[begin].group() in _SMALL:
            begin += 1
    return begin


def _readings(words: Sequence[re.Match[str]], first: int, last: int) -> set[tuple[int, int]]:
    """The run as a whole and, where small words may separate it, its parts."""
    spans = {(words[first].start(), words[last].end())}
    begin = first
    for k in range(first + 1, last + 1):
        if words[k].group() in _BETWEEN:
            if begin < k:
                spans.add((words[begin].start(), words[k - 1].end()))
            begin = k + 1
    while begin <= last and words[begin].group() in _SMALL:
        begin += 1
    if begin <= last:
        spans.add((words[begin].start(), words[last].end()))
    return spans
