"""Words without inflection, for comparison ("Москве" and "Москва"), and phrases that are found by such words."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray
from Stemmer import Stemmer

from llama_index.ragkit.text.characters import CASELESS, UNSPACED, script_of
from llama_index.ragkit.text.packed_words import SplitPhrases

__all__ = [
    "PhraseTable",
    "StemmedPhrases",
    "all_stems",
    "ends_of",
    "language_bit",
    "part_ends",
    "stem_masks",
    "stemmed",
    "stems",
    "without_particles",
]

# ISO 639-1 code -> name of the Snowball algorithm. Ukrainian has none; the Russian one removes most of its endings.
_SNOWBALL = {
    "ar": "arabic", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish", "fi": "finnish",
    "fr": "french", "hi": "hindi", "hu": "hungarian", "hy": "armenian", "it": "italian", "nl": "dutch",
    "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sv": "swedish", "ta": "tamil",
    "tr": "turkish", "uk": "russian",
}  # fmt: skip
# First word of a letter's Unicode name -> the languages of its script, the most frequent first.
_OF_SCRIPT = {
    "LATIN": ("en", "cs", "da", "de", "es", "fi", "fr", "hu", "it", "nl", "no", "pl", "pt", "ro", "sv", "tr"),
    "CYRILLIC": ("ru", "uk"),
    "GREEK": ("el",),
    "ARABIC": ("ar", "fa"),
    "DEVANAGARI": ("hi",),
    "TAMIL": ("ta",),
    "ARMENIAN": ("hy",),
}
# The bits of languages in stored masks: more may follow, but none may move.
_BITS = tuple(dict.fromkeys(code for languages in _OF_SCRIPT.values() for code in languages))
_ANY = (1 << len(_BITS)) - 1


def all_stems(word: str) -> dict[str, int]:
    """The stems that a word has in the languages of its script, each with a bit mask of these languages.

    >>> "москв" in all_stems("москве")
    True
    """
    (found,) = stem_masks([word])
    return found


def stem_masks(words: Sequence[str]) -> list[dict[str, int]]:
    """:func:`all_stems` of many words.

    >>> stem_masks(["москве", "москва"])[1] == all_stems("москва")
    True
    """
    found: list[dict[str, int]] = [{} for _ in words]
    by_script: defaultdict[str, list[int]] = defaultdict(list)
    for i, word in enumerate(words):
        by_script[script_of(word[:1])].append(i)
    for script, places in by_script.items():
        here, languages = [words[i] for i in places], _OF_SCRIPT.get(script)
        for code in languages or _BITS[:1]:
            mask = 1 << _BITS.index(code) if languages else _ANY
            for i, stem in zip(places, _in_language(here, script, code), strict=True):
                found[i][stem] = found[i].get(stem, 0) | mask
    return found


def language_bit(word: str, language: str) -> int:
    """The bit of the language in which :func:`stems` reads a word."""
    languages = _OF_SCRIPT.get(script_of(word[:1]), _BITS)
    return 1 << _BITS.index(language if language in languages else languages[0])


def stems(words: Sequence[str], language: str) -> list[str]:
    """The stem of each word, by Snowball; a Korean word without its particles; other words as they are.

    Parameters
    ----------
    words : in lower case
    language : ISO 639-1 code; for words in another script, the most frequent language of that script is used

    >>> stems(["москве", "москва", "einsteins", "서울은", "北京"], "de")
    ['москв', 'москв', 'einstein', '서울', '北京']
    """
    found = list(words)
    by_script: defaultdict[str, list[int]] = defaultdict(list)
    for i, word in enumerate(words):
        by_script[script_of(word[:1])].append(i)
    for script, places in by_script.items():
        languages = _OF_SCRIPT.get(script, (language,))
        code = language if language in languages else languages[0]
        for i, stem in zip(places, _in_language([words[i] for i in places], script, code), strict=True):
            found[i] = stem
    return found


def _in_language(words: Sequence[str], script: str, code: str) -> list[str]:
    """The stems of words of one script."""
    if script == "HANGUL":
        return [without_particles(word) for word in words]
    if script not in _OF_SCRIPT or code not in _SNOWBALL:
        return list(words)
    # One stemmer per call, since threads must not share its cache.
    stemmed = Stemmer(_SNOWBALL[code], 0).stemWords(list(words))
    return [stem or word for stem, word in zip(stemmed, words, strict=True)]


# The longest first: in "에서는" both 에서 and 는 are removed.
_PARTICLE_TEXT = """
이라는 이었다 이라고 으로써 으로서 에서 으로 에게 까지 부터 이다 였다 처럼 보다 라는 라고 마다 조차 밖에 이나
이란 이며 은 는 이 가 을 를 의 에 로 와 과 도 만 란 나
"""
_PARTICLES = tuple(_PARTICLE_TEXT.split())


def without_particles(word: str) -> str:
    """A Korean word without the particles at its end, with at least two syllables left.

    A name that ends like a particle loses its end too. It does so in every text, so it is still found.

    >>> without_particles("서울에서는"), without_particles("이순신이"), without_particles("나는")
    ('서울', '이순신', '나는')
    """
    end = len(word)
    while True:
        ending = next((particle for particle in _PARTICLES if word.endswith(particle, 0, end)), "")
        if not ending or end - len(ending) < 2:
            return word[:end]
        end -= len(ending)


_CHANGED = 4  # one phrase in so many may change before all are read again
_UNSPACED_KEY = 2  # characters at either end by which phrases without spaces are looked up
_CASELESS = re.compile(f"[{CASELESS}]")
_UNSPACED = re.compile(f"[{UNSPACED}]")

# For the hash of the words of a phrase. Phrases with equal hashes are compared, so the choice affects only speed.
_FACTOR, _MODULUS = 0x9E3779B97F4A7C15, 1 << 64

Ints = NDArray[np.int64]


def stemmed(phrases: Sequence[str], language: str) -> list[str]:
    """The stemmed words of each phrase, with spaces between them: its key.

    >>> stemmed(["города москвы"], "ru")
    ['город москв']
    """
    split = [phrase.split() for phrase in phrases]
    words = list(dict.fromkeys(word for parts in split for word in parts))
    stem_of = dict(zip(words, stems(words, language), strict=True))
    return [" ".join([stem_of[word] for word in parts]) for parts in split]


def ends_of(key: str) -> Sequence[str]:
    """The ends by which a key is found if only a part of it is known.

    They are its first and last word; in scripts without capitals every word; in scripts without spaces the characters
    at either end.

    >>> ends_of("new york city"), ends_of("東京大学")
    (('new', 'city'), ('東京', '大学'))
    """
    words = key.split()
    if not words:
        return ()
    if _UNSPACED.search(key):
        return key[:_UNSPACED_KEY], key[-_UNSPACED_KEY:]
    return words if _CASELESS.search(key) else (words[0], words[-1])


def part_ends(key: str) -> Sequence[str]:
    """The ends by which phrases with a key as a part are found; in scripts without capitals the first is enough."""
    ends = ends_of(key)
    return ends[:1] if _CASELESS.search(key) else ends


class StemmedPhrases:
    """Phrases, numbered from 0, found by the words of a text in one language.

    >>> phrases = StemmedPhrases(SplitPhrases.of(["города москвы", "москва"]), "ru")
    >>> phrases.alike("москв"), phrases.near("москв", longest=2), phrases.key(0)
    ([1], [0, 1], 'город москв')
    """

    def __init__(self, split: SplitPhrases, language: str) -> None:
        self._split = split
        self._stems, self._stem_of_word = _numbered(stems(list(split.vocabulary), language))
        self._numbers = dict(zip(self._stems, count()))
        words = self._stem_of_word[split.words]
        sums = _sums(words, split.ends)
        self._alike = np.argsort(sums).astype(np.int32)
        self._sums = sums[self._alike]
        self._further_ends: dict[str, int] = {}  # those that are not stems, numbered after the stems
        ends, rows = (np.concatenate(parts) for parts in zip(*self._entries(words), strict=True))
        order = np.argsort(ends)
        self._end_rows = rows[order].astype(np.int32)
        count_of_ends = len(self._stems) + len(self._further_ends)
        self._end_starts = np.searchsorted(ends[order], np.arange(count_of_ends + 1)).astype(np.int32)

    def _entries(self, words: NDArray[np.int32]) -> Iterator[tuple[Ints, Ints]]:
        """The ends of phrases, as the numbers of :meth:`_end`, and the row of each."""
        starts, stops = self._split.ends[:-1], self._split.ends[1:]
        row_of = np.repeat(np.arange(len(starts)), stops - starts)
        other = [i for i, stem in enumerate(self._stems) if not stem.isascii()]
        marked = np.zeros((2, len(self._stems)), np.bool_)
        for i in other:
            marked[:, i] = bool(_UNSPACED.search(self._stems[i])), bool(_CASELESS.search(self._stems[i]))
        unspaced, caseless = (np.bincount(row_of[which[words]], minlength=len(starts)) > 0 for which in marked)
        caseless &= ~unspaced
        cased = np.flatnonzero((stops > starts) & ~unspaced & ~caseless)
        first, last = words[starts[cased]], words[stops[cased] - 1]
        yield first.astype(np.int64), cased
        longer = stops[cased] - starts[cased] > 1
        yield last[longer].astype(np.int64), cased[longer]
        every = caseless[row_of]
        yield words[every].astype(np.int64), row_of[every]
        for row in np.flatnonzero(unspaced).tolist():
            found = [self._new_end(end) for end in ends_of(self.key(row))]
            yield np.array(found, np.int64), np.full(len(found), row)

    def _end(self, end: str) -> int | None:
        """The number of an end; None if no phrase has it."""
        place = self._numbers.get(end)
        return self._further_ends.get(end) if place is None else place

    def _new_end(self, end: str) -> int:
        place = self._numbers.get(end)
        if place is None:
            place = self._further_ends.setdefault(end, len(self._stems) + len(self._further_ends))
        return place

    def __len__(self) -> int:
        return len(self._split)

    def key(self, row: int) -> str:
        """The stemmed words of a phrase, with spaces between them."""
        start, end = self._split.ends[row : row + 2].tolist()
        return " ".join([self._stems[i] for i in self._stem_of_word[self._split.words[start:end]].tolist()])

    def alike(self, key: str) -> list[int]:
        """The phrases with exactly this key, ascending."""
        numbers = [self._numbers.get(word, -1) for word in key.split()]
        if not numbers or min(numbers) < 0:
            return []
        wanted = np.uint64(_sum(numbers))
        first, last = np.searchsorted(self._sums, wanted), np.searchsorted(self._sums, wanted, "right")
        return sorted(row for row in self._alike[first:last].tolist() if self.key(row) == key)

    def near(self, part: str, longest: int) -> list[int]:
        """The phrases that may have a part, ascending: those with one of its :func:`ends_of`.

        If the part is of a script with spaces and capitals, they begin or end with it and have at most `longest` words.
        """
        is_cased = not _UNSPACED.search(part) and not _CASELESS.search(part)
        places = [place for end in part_ends(part) if (place := self._end(end)) is not None]
        bounds = [self._end_starts[place : place + 2].tolist() for place in places]
        rows = np.concatenate([self._end_rows[:0], *(self._end_rows[slice(*bound)] for bound in bounds)])
        found: list[int] = np.unique(self._with(part, rows, longest) if is_cased else rows).tolist()
        return found

    def _with(self, part: str, rows: NDArray[np.int32], longest: int) -> NDArray[np.int32]:
        """The phrases that begin or end with a part and have at most `longest` words."""
        numbers = [self._numbers.get(word, -1) for word in part.split()]
        starts, stops = self._split.ends[rows], self._split.ends[rows + 1]
        fits = (stops - starts >= len(numbers)) & (stops - starts <= longest)
        rows, starts, stops = rows[fits], starts[fits], stops[fits]
        words, either = self._split.words, np.zeros(len(rows), np.bool_)
        for first in (starts, stops - len(numbers)):
            here = np.ones(len(rows), np.bool_)
            for place, number in enumerate(numbers):
                here &= self._stem_of_word[words[first + place]] == number
            either |= here
        return rows[either]


@dataclass(frozen=True)
class PhraseTable:
    """Phrases without inflection, and what has changed since they were read.

    Attributes
    ----------
    stemmed : the phrases that were there
    numbers : the number of each of them now, and of each new phrase after them; -1 for one that is no more
    keys : the stemmed words of each new phrase
    alike : key -> places of new phrases in `numbers`
    ends : an end of a key -> places of new phrases
    """

    stemmed: StemmedPhrases
    numbers: NDArray[np.int32]
    keys: Sequence[str] = ()
    alike: Mapping[str, Sequence[int]] = field(default_factory=dict)
    ends: Mapping[str, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, split: SplitPhrases, language: str) -> "PhraseTable":
        """The table of phrases that are there."""
        return cls(StemmedPhrases(split, language), np.arange(len(split), dtype=np.int32))

    def extended(self, added: Mapping[int, str], language: str) -> "PhraseTable":
        """The table with further numbers and their phrases."""
        alike, ends, keys = dict(self.alike), dict(self.ends), stemmed(list(added.values()), language)
        for place, key in enumerate(keys, len(self.numbers)):
            for table, entries in ((alike, [key]), (ends, dict.fromkeys(ends_of(key)))):
                for entry in entries:
                    table[entry] = [*table.get(entry, ()), place]
        numbers = np.concatenate([self.numbers, np.fromiter(added, np.int32, len(added))])
        return PhraseTable(self.stemmed, numbers, [*self.keys, *keys], alike, ends)

    def without(self, removed: Collection[int]) -> "PhraseTable":
        """The table without some numbers; all others stay."""
        if not removed:
            return self
        return replace(self, numbers=np.where(np.isin(self.numbers, list(removed)), np.int32(-1), self.numbers))

    def moved_up(self, removed: Collection[int]) -> "PhraseTable":
        """The table in which each number is less by how many of the removed ones it follows."""
        before = np.searchsorted(np.sort(np.fromiter(removed, np.int32, len(removed))), self.numbers)
        return replace(self, numbers=self.numbers - before.astype(np.int32))

    @property
    def is_recent(self) -> bool:
        """Whether most phrases are as they were read; else reading them again is cheaper than further changes."""
        gone = int(np.count_nonzero(self.numbers[: len(self.stemmed)] < 0))
        return _CHANGED * (gone + len(self.keys)) <= len(self.stemmed)

    def rows(self, key: str) -> list[int]:
        """The phrases with a key, ascending."""
        return sorted(number for _, number in self._now([*self.stemmed.alike(key), *self.alike.get(key, ())]))

    def near(self, part: str, longest: int) -> Iterator[tuple[int, str]]:
        """The phrases that may have a part, see :meth:`StemmedPhrases.near`, and the key of each."""
        old = self.stemmed.near(part, longest)
        new = dict.fromkeys(place for end in part_ends(part) for place in self.ends.get(end, ()))
        for place, number in self._now([*old, *new]):
            at = place - len(self.stemmed)
            yield number, self.stemmed.key(place) if at < 0 else self.keys[at]

    def _now(self, places: Sequence[int]) -> Iterator[tuple[int, int]]:
        numbers = self.numbers[np.asarray(places, np.intp)].tolist()
        return ((place, number) for place, number in zip(places, numbers, strict=True) if number >= 0)


def _numbered(values: Sequence[str]) -> tuple[list[str], NDArray[np.int32]]:
    """Distinct values, and the place of each value among them."""
    numbers: dict[str, int] = {}
    places = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int32, len(values))
    return list(numbers), places


def _sum(numbers: Sequence[int]) -> int:
    total = 0
    for number in reversed(numbers):
        total = (total + number + 1) * _FACTOR % _MODULUS
    return total


def _sums(words: NDArray[np.int32], ends: Ints) -> NDArray[np.uint64]:
    """:func:`_sum` of the words of each phrase, shape (n,)."""
    lengths = np.diff(ends)
    powers = np.multiply.accumulate(np.full(lengths.max(initial=0), _FACTOR, np.uint64))
    places = np.arange(len(words)) - np.repeat(ends[:-1], lengths)
    filled = np.flatnonzero(lengths)
    total = np.zeros(len(lengths), np.uint64)
    if len(filled):
        total[filled] = np.add.reduceat((words + 1).astype(np.uint64) * powers[places], ends[filled])
    return total
