"""Known names in a text: the same words, the same words inflected, or a part of a longer name.

"Москве" finds "Москва", and "서울은" finds "서울"; "Planck" and "Max Planck" find "Physiker Max Planck". A name is part
of a known phrase if the phrase begins or ends with it. Scripts with spaces but without capitals do not show where a
name begins; there the phrase may also contain it. An unknown name is looked up again without its first words
("Physiker Planck").
"""

import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.text.characters import CASELESS, MARKS, UNSPACED, normalise, without_unprinted
from llama_index.ragkit.text.function_words import function_words, is_name, written_language
from llama_index.ragkit.text.layered_mapping import LayeredMapping
from llama_index.ragkit.text.names import WORD, Mention, names, uncased_phrases
from llama_index.ragkit.text.packed_words import PackedPhrases, SplitPhrases
from llama_index.ragkit.text.stems import PhraseTable, stems

__all__ = [
    "MORE_CHARACTERS",
    "MORE_WORDS",
    "MOST_PHRASES",
    "KnownName",
    "KnownNames",
    "Lookups",
    "lookups",
    "mentions",
    "names_part",
    "possible_mentions",
]

_LONGEST = 14  # maximum units of a phrase
_MOST_UNITS = 1_000  # most units of a question that are searched for names; a longer text is a document
# A word, or one character of a script without spaces, where any run of characters may be a word.
_UNIT = re.compile(f"[{UNSPACED}]|[^\\W_{UNSPACED}](?:[^\\W_{UNSPACED}]|[{MARKS}])*")


class _Unit(NamedTuple):
    start: int
    end: int
    strong: bool  # whether it may be a word of a name


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


MORE_WORDS, MORE_CHARACTERS = 3, 6
"""Words, or characters in scripts without spaces, that a phrase may have beyond a part of it."""

MOST_PHRASES = 50
"""Maximum number of phrases with a part; a part of more phrases is not specific."""

_MOST_WORDS = 4  # of a name in lower case
_CASELESS = re.compile(f"[{CASELESS}]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_TOKEN = re.compile(r"\S+")


class KnownName(NamedTuple):
    """A place in a text that names known phrases: ``text[start:end]``.

    Attributes
    ----------
    rows : numbers of the phrases, ascending; never empty
    lower_case : whether the name is in lower case in a text that marks names by capitals
    """

    start: int
    end: int
    rows: tuple[int, ...]
    lower_case: bool = False


class Lookups(NamedTuple):
    """The look-ups that a text needs, so that phrases can be kept elsewhere.

    Attributes
    ----------
    language : of the text, which decides how words are stemmed
    phrases : normalised runs of words that may be a phrase, in this or another form
    parts : normalised names that may be a part of a longer phrase, and whether they may begin it
    """

    language: str
    phrases: Sequence[str]
    parts: Sequence[tuple[str, bool]]


def lookups(text: str, normal: Callable[[str], str] = normalise) -> Lookups:
    """Everything that :meth:`KnownNames.find` could look up in a question, whatever the phrases are.

    >>> lookups("Wo wurde Max Planck geboren?").parts
    [('max planck', True), ('planck', False)]
    """
    finder = _Recorder(language=written_language(text))
    KnownNames([], normal).find_by(text, finder)
    return Lookups(finder.language, list(finder.asked), list(finder.asked_parts.items()))


class KnownNames:
    """Phrases to be found in texts.

    The look-up tables are built on first use, one for each language of a text. Instances can be shared by threads.

    Parameters
    ----------
    phrases : normalised, distinct; the number of a phrase is its position
    normal : the normalisation
    numbers : the number of each phrase, where it is known; else they are counted

    Attributes
    ----------
    phrases : the phrase of each number
    normal : the normalisation

    >>> known = KnownNames(["physiker max planck", "москва", "서울"])
    >>> [name.rows for name in known.find("Wo wurde Max Planck geboren?")]
    [(0,)]
    >>> [name.rows for text in ("Что стоит в Москве?", "서울은 어디인가?") for name in known.find(text)]
    [(1,), (2,)]
    """

    def __init__(
        self, phrases: Sequence[str], normal: Callable[[str], str] = normalise, numbers: Mapping[str, int] | None = None
    ) -> None:
        self.phrases = phrases
        self.normal = normal
        if numbers is not None:
            self.numbers = numbers
        self._tables: dict[str, PhraseTable] = {}
        self._lock = ProcessLock()

    def find(
        self, text: str, seen: Callable[[int], bool] = lambda row: True, unspecific: Container[str] = frozenset()
    ) -> list[KnownName]:
        """The known phrases that a text names in its first 1,000 words, by position, without overlaps.

        Parameters
        ----------
        seen : whether the phrase of a number may be found
        unspecific : parts that count as having too many phrases, if the phrases here are only a selection
        """
        language = written_language(text)
        return self.find_by(text, _Finder(language, self.numbers, seen, self._table(language), unspecific))

    def find_by(self, text: str, finder: "_Finder") -> list[KnownName]:
        """As :meth:`find`, with another way to look up phrases."""
        text = names_part(text)
        language, seen = finder.language, finder.seen
        small = function_words(language)
        read = [*names(text), *uncased_phrases(text)]
        in_names = bytearray(len(text))
        for name in read:
            in_names[name.start : name.end] = b"x" * (name.end - name.start)
        taken = bytearray(len(text))
        found: list[KnownName] = []

        def add(start: int, end: int, rows: tuple[int, ...], lower_case: bool = False) -> None:
            if rows and not any(taken[start:end]) and text[start:end].casefold() not in small:
                found.append(KnownName(start, end, rows, lower_case))
                taken[start:end] = b"x" * (end - start)

        for phrase, start, end in mentions(text, finder, self.normal):
            # English names are not inflected: another form counts only for a word that is read as a name.
            is_same = self.number(phrase, seen) is not None
            if is_same or language != "en" or any(in_names[start:end]):
                add(start, end, finder.rows(phrase))
        for start, end, is_whole in _candidates(text, read, small):
            add(start, end, finder.with_part(self.normal(text[start:end]), is_whole))
        for phrase, start, end in mentions(text, finder, self.normal, lower_case=True):
            if language != "en" or self.number(phrase, seen) is not None:
                add(start, end, finder.rows(phrase), lower_case=True)
        return sorted(found)

    def number(self, phrase: str, seen: Callable[[int], bool] = lambda row: True) -> int | None:
        """The number of a phrase; None if it is unknown or may not be found."""
        row = self.numbers.get(phrase)
        return row if row is not None and seen(row) else None

    def changed(self, removed: Collection[str], added: Collection[str]) -> "KnownNames":
        """A copy without some phrases and with others; its look-up tables are not built again.

        All other phrases keep their numbers. New phrases first take the numbers of removed ones. A number without a
        phrase stands for the empty phrase.

        Parameters
        ----------
        removed, added : distinct; known phrases to remove, unknown ones to add
        """
        gone = [self.numbers[phrase] for phrase in removed]
        phrases, numbers = list(self.phrases), LayeredMapping.over(self.numbers, forget=bool(removed))
        for phrase in removed:
            del numbers[phrase]
        for row in gone:
            phrases[row] = ""
        free = sorted([*self._free, *gone], reverse=True)
        for phrase in added:
            row = free.pop() if free else len(phrases)
            phrases[row : row + 1] = [phrase]
            numbers[phrase] = row
        found = KnownNames(phrases, self.normal)
        found.numbers, found._free = numbers, free
        new = {numbers[phrase]: phrase for phrase in added}
        found._tables = {
            language: table.without(gone).extended(new, language) for language, table in self._recent_tables()
        }
        return found

    def renumbered(self, removed: Collection[int], phrases: Sequence[str], numbers: Mapping[str, int]) -> "KnownNames":
        """The names of a numbering that follows this one; the look-up tables are not built again.

        Parameters
        ----------
        removed : numbers of phrases that are no more; those after them have moved up
        phrases, numbers : all others in their order, and new ones after them
        """
        found = KnownNames(phrases, self.normal, numbers)
        first = len(self.phrases) - len(removed)
        new = dict(enumerate(phrases[first:], first))
        found._tables = {
            language: table.without(removed).moved_up(removed).extended(new, language)
            for language, table in self._recent_tables()
        }
        return found

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each phrase."""
        return {phrase: row for row, phrase in enumerate(self.phrases) if phrase}

    @cached_property
    def _split(self) -> SplitPhrases:
        return self.phrases.split if isinstance(self.phrases, PackedPhrases) else SplitPhrases.of(self.phrases)

    @cached_property
    def _free(self) -> list[int]:
        """Numbers without a phrase."""
        return [row for row, phrase in enumerate(self.phrases) if not phrase]

    def _table(self, language: str) -> "PhraseTable":
        found = self._tables.get(language)
        if found is None:
            with self._lock:
                found = self._tables.get(language) or PhraseTable.of(self._split, language)
                self._tables[language] = found
        return found

    def _recent_tables(self) -> list[tuple[str, "PhraseTable"]]:
        """The tables that were built and may be changed, by language."""
        with self._lock:
            tables = dict(self._tables)
        return [(language, table) for language, table in tables.items() if table.is_recent]


def _candidates(text: str, read: Sequence[Mention], small: frozenset[str]) -> list[tuple[int, int, bool]]:
    """Places where names may stand, the longest first, and whether they include the first word of a name.

    In scripts with spaces but without capitals, any words of a phrase may be a name.
    """
    spans: dict[tuple[int, int], bool] = {}
    for _, start, end in read:
        words = [match.span() for match in _TOKEN.finditer(text, start, end)]
        anywhere = _CASELESS.match(text, start) is not None
        for first in range(len(words)):
            for last in range(first if anywhere else len(words) - 1, len(words)):
                span = words[first][0], words[last][1]
                if is_name(text[slice(*span)]):
                    spans[span] = spans.get(span, False) or anywhere or first == 0
    if text.islower():
        spans.update(dict.fromkeys(_runs(text, small), True))
    return sorted(((*span, whole) for span, whole in spans.items()), key=lambda span: (span[0] - span[1], span))


def _runs(text: str, small: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Consecutive words of a text in lower case, without function words between them."""
    run: list[tuple[int, int]] = []
    for match in WORD.finditer(text):
        if match.group() in small or (run and not text[run[-1][1] : match.start()].isspace()):
            run = []
        if match.group() not in small:
            run = [*run[1 - _MOST_WORDS :], match.span()]
            yield from ((start, match.end()) for start, _ in run[:-1])


@dataclass(frozen=True)
class _Finder:
    """Phrases, looked up by the words of a text in one language; a container of those that may be found."""

    language: str
    numbers: Mapping[str, int] = field(default_factory=dict)
    seen: Callable[[int], bool] = lambda row: True
    table: PhraseTable = field(default_factory=lambda: PhraseTable.of(SplitPhrases.of(()), ""))
    unspecific: Container[str] = frozenset()
    _stem_of: dict[str, str] = field(default_factory=dict)
    _rows_of: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def __contains__(self, phrase: object) -> bool:
        return bool(self.rows(str(phrase)))

    def rows(self, phrase: str) -> tuple[int, ...]:
        """The phrase and its other forms; in English only one of the two."""
        if phrase not in self._rows_of:  # a text is read twice: words in lower case last
            self._rows_of[phrase] = self._found(phrase)
        return self._rows_of[phrase]

    def _found(self, phrase: str) -> tuple[int, ...]:
        rows = tuple(row for row in self.table.rows(self._key(phrase)) if self.seen(row))
        if self.language == "en" and rows and self.numbers.get(phrase) in rows:
            return (self.numbers[phrase],)
        return rows

    def with_part(self, phrase: str, at_start: bool) -> tuple[int, ...]:
        """Phrases that end with a name, or begin with it if `at_start`; none if there are too many."""
        key = self._key(phrase)
        if not key or phrase in self.unspecific:
            return ()
        found = (
            row
            for row, whole in self.table.near(key, len(key.split()) + MORE_WORDS)
            if self.seen(row) and _has_part(whole, key, at_start)
        )
        few = sorted(islice(found, MOST_PHRASES + 1))
        return tuple(few) if len(few) <= MOST_PHRASES else ()

    def _key(self, phrase: str) -> str:
        words = phrase.split()
        new = [word for word in words if word not in self._stem_of]
        self._stem_of.update(zip(new, stems(new, self.language), strict=True))
        return " ".join(self._stem_of[word] for word in words)


@dataclass(frozen=True)
class _Recorder(_Finder):
    """Knows no phrase, but records what is asked: phrases, and parts with whether they may begin a phrase."""

    asked: dict[str, None] = field(default_factory=dict)
    asked_parts: dict[str, bool] = field(default_factory=dict)

    def rows(self, phrase: str) -> tuple[int, ...]:
        self.asked[phrase] = None
        return ()

    def with_part(self, phrase: str, at_start: bool) -> tuple[int, ...]:
        self.asked_parts[phrase] = self.asked_parts.get(phrase, False) or at_start
        return ()


def _has_part(whole: str, part: str, at_start: bool) -> bool:
    if _UNSPACED.search(part):
        is_short = len(whole) - len(part) <= MORE_CHARACTERS
    else:
        is_short = whole.count(" ") - part.count(" ") <= MORE_WORDS
        whole, part = f" {whole} ", f" {part} "
    if not is_short:
        return False
    if _CASELESS.search(part) and part in whole:
        return True
    return whole.endswith(part) or (at_start and whole.startswith(part))
