"""Many phrases in little memory, found by their text, by their words without inflection, or by words at their ends."""

import re
from collections.abc import Collection, ItemsView, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count, islice
from typing import overload

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.text.characters import CASELESS, UNSPACED
from llama_index.ragkit.text.packed_words import PackedNames, PackedWords
from llama_index.ragkit.text.stems import stems

__all__ = ["PackedPhrases", "PhraseTable", "SplitPhrases", "StemmedPhrases", "ends_of", "part_ends", "stemmed"]

_PIECE = 10_000  # phrases that are objects at a time

_CHANGED = 4  # one phrase in so many may change before all are read again
_UNSPACED_KEY = 2  # characters at either end by which phrases without spaces are looked up
_CASELESS = re.compile(f"[{CASELESS}]")
_UNSPACED = re.compile(f"[{UNSPACED}]")

# For the hash of the words of a phrase. Phrases with equal hashes are compared, so the choice affects only speed.
_FACTOR, _MODULUS = 0x9E3779B97F4A7C15, 1 << 64

Ints = NDArray[np.int64]


class SplitPhrases:
    """The words of phrases as numbers.

    Attributes
    ----------
    vocabulary : the distinct words
    words : int32, the words of all phrases in order, as places in the vocabulary
    ends : int64, shape (n + 1,), where the words of each phrase begin and the last phrase ends

    >>> split = SplitPhrases.of(["new york", "york"])
    >>> list(split.vocabulary), split.words.tolist(), split.ends.tolist()
    (['new', 'york'], [0, 1, 1], [0, 2, 3])
    """

    __slots__ = ("ends", "vocabulary", "words")

    def __init__(self, vocabulary: PackedWords, words: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        self.vocabulary, self.words, self.ends = vocabulary, words, ends

    @classmethod
    def of(cls, phrases: Iterable[str]) -> "SplitPhrases":
        """The words of these phrases."""
        numbers: dict[str, int] = {}
        words, counts = [np.empty(0, np.int32)], [np.zeros(1, np.int64)]
        left = iter(phrases)
        while piece := [phrase.split() for phrase in islice(left, _PIECE)]:
            found = [numbers.setdefault(word, len(numbers)) for word in chain.from_iterable(piece)]
            words.append(np.array(found, np.int32))
            counts.append(np.fromiter(map(len, piece), np.int64, len(piece)))
        return cls(PackedWords(list(numbers)), np.concatenate(words), np.cumsum(np.concatenate(counts)))

    def __len__(self) -> int:
        return len(self.ends) - 1


class PackedPhrases(Sequence[str]):
    """Distinct phrases that can be found by their text and by their words.

    Earlier versions stored only `letters` and `ends`; the other arrays are made from them on demand.

    >>> phrases = PackedPhrases.of_arrays(PackedPhrases.to_arrays(["new york", "york"]))
    >>> list(phrases), phrases.find("york"), phrases.find("new")
    (['new york', 'york'], 1, -1)
    """

    def __init__(self, words: PackedWords, arrays: Arrays) -> None:
        self._words, self._arrays = words, arrays

    @staticmethod
    def to_arrays(phrases: Sequence[str]) -> Arrays:
        """The stored form of phrases."""
        names, split = PackedNames.of(PackedWords(phrases)), SplitPhrases.of(phrases)
        (letters, ends), (sums, places) = names.names.arrays, names.arrays
        word_letters, word_ends = split.vocabulary.arrays
        return {
            "letters": letters, "ends": ends, "sums": sums, "places": places, "vocabulary": word_letters,
            "vocabulary_ends": word_ends, "words": split.words, "word_ends": split.ends,
        }  # fmt: skip

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "PackedPhrases":
        """The phrases of :meth:`to_arrays`, over the same memory."""
        return cls(PackedWords.of_arrays(arrays["letters"], arrays["ends"]), arrays)

    @cached_property
    def split(self) -> SplitPhrases:
        """The words of the phrases."""
        arrays = self._arrays
        if "words" not in arrays:
            return SplitPhrases.of(self)
        vocabulary = PackedWords.of_arrays(arrays["vocabulary"], arrays["vocabulary_ends"])
        return SplitPhrases(vocabulary, arrays["words"], arrays["word_ends"])

    @cached_property
    def _names(self) -> PackedNames:
        arrays = self._arrays
        return (
            PackedNames(self._words, arrays["sums"], arrays["places"])
            if "sums" in arrays
            else PackedNames.of(self._words)
        )

    def __len__(self) -> int:
        return len(self._words)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._words[place]

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def find(self, phrase: str) -> int:
        """The place of a phrase; -1 if it is not there."""
        return int(self._names.places_of([phrase])[0])

    @property
    def numbers(self) -> Mapping[str, int]:
        """The place of each phrase."""
        return _Places(self)


class _Places(Mapping[str, int]):
    """The places of packed phrases."""

    def __init__(self, phrases: PackedPhrases) -> None:
        self._phrases = phrases

    def __getitem__(self, phrase: str) -> int:
        place = self._phrases.find(phrase)
        if place < 0:
            raise KeyError(phrase)
        return place

    def __iter__(self) -> Iterator[str]:
        return iter(self._phrases)

    def __len__(self) -> int:
        return len(self._phrases)

    def items(self) -> ItemsView[str, int]:
        """All phrases with their places, in a fraction of the time of looking up each."""
        return {phrase: place for place, phrase in enumerate(self._phrases)}.items()


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

    __slots__ = (
        "_alike",
        "_end_rows",
        "_end_starts",
        "_further_ends",
        "_numbers",
        "_split",
        "_stem_of_word",
        "_stems",
        "_sums",
    )

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
