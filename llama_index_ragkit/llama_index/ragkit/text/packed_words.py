"""Many words, phrases or JSON values in little memory: arrays of bytes instead of one object each."""

import json
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, Generic, TypeVar, overload
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.nested_arrays import Arrays

__all__ = ["PackedMapping", "PackedNames", "PackedPhrases", "PackedWords", "SplitPhrases"]


class PackedWords(Sequence[str]):
    """A sequence of words. A word takes its UTF-8 bytes and 8 more; a `str` would take at least 50.

    >>> words = PackedWords(["loom", "silk", "shed"])
    >>> len(words), words[1], list(words)
    (3, 'silk', ['loom', 'silk', 'shed'])
    """

    __slots__ = ("_bytes", "_ends")

    def __init__(self, words: Sequence[str]) -> None:
        encoded = list(map(_encoded, words))
        self._bytes: bytes | memoryview = b"".join(encoded)
        self._ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)

    @classmethod
    def of_arrays(cls, letters: NDArray[np.uint8], ends: NDArray[np.int64]) -> "PackedWords":
        """The words of :attr:`arrays`, which are not copied."""
        words = cls(())
        words._bytes, words._ends = letters.data, ends
        return words

    @property
    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """All bytes, and where each word begins and the last ends, shape (n + 1,)."""
        return np.frombuffer(self._bytes, np.uint8), self._ends

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedWords.of_arrays, self.arrays

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self.encoded(place % len(self)).decode(errors="surrogatepass")

    def __iter__(self) -> Iterator[str]:
        ends = self._ends.tolist()
        return (str(self._bytes[start:end], "utf-8", "surrogatepass") for start, end in pairwise(ends))

    def only(self, kept: NDArray[np.bool_]) -> "PackedWords":
        """The words selected by a mask, shape (n,); the result holds no bytes of the others.

        >>> list(PackedWords(["loom", "silk", "shed"]).only(np.array([True, False, True])))
        ['loom', 'shed']
        """
        if kept.all():
            return self
        sizes = np.diff(self._ends)
        found = PackedWords(())
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False))  # where each run of kept words begins, ends
        cuts = self._ends[edges].tolist()
        letters = memoryview(self._bytes)
        found._bytes = b"".join([letters[start:end] for start, end in zip(cuts[::2], cuts[1::2], strict=True)])
        found._ends = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        return found

    def find(self, word: str) -> int:
        """The place of a word among words in ascending order; -1 if it is not there.

        >>> PackedWords(["loom", "shed", "silk"]).find("silk")
        2
        """
        wanted = _encoded(word)  # bytes of UTF-8 have the order of the characters
        letters, end_of = self._bytes, self._ends.item
        low, high = 0, len(self)
        while low < high:  # `bisect_left` would call a function for each key, and take half as long again
            middle = (low + high) // 2
            if bytes(letters[end_of(middle) : end_of(middle + 1)]) < wanted:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self) and self.encoded(low) == wanted else -1

    def among(self, words: Iterable[str]) -> list[int]:
        """The places of some words, whatever the order of those here.

        >>> PackedWords(["loom", "silk", "shed"]).among(["silk", "loom", "flax"])
        [0, 1]
        """
        sizes, letters = np.diff(self._ends), np.frombuffer(self._bytes, np.uint8)
        wanted: dict[int, list[bytes]] = {}
        for word in map(_encoded, words):
            wanted.setdefault(len(word), []).append(word)
        found = [np.empty(0, np.int64)]
        for size, some in wanted.items():
            rows = np.flatnonzero(sizes == size)
            spelled = letters[self._ends[rows][:, None] + np.arange(size)].view(f"S{size}").ravel()
            found.append(rows[np.isin(spelled, some)])
        places: list[int] = np.sort(np.concatenate(found)).tolist()
        return places

    def encoded(self, place: int) -> bytes:
        """The bytes of a word."""
        start, end = self._ends[place : place + 2].tolist()
        return bytes(self._bytes[start:end])

    def erase(self, place: int) -> None:
        """Overwrite a word with zeros; its array must be writable."""
        start, end = self._ends[place : place + 2].tolist()
        memoryview(self._bytes)[start:end] = bytes(end - start)


class PackedNames:
    """The places of distinct names, without an object for each: looked up by checksum, then compared.

    >>> PackedNames.of(PackedWords(["loom", "silk"])).places_of(["silk", "flax", "loom"]).tolist()
    [1, -1, 0]

    Parameters
    ----------
    names : the names
    sums : uint32, shape (n,), their checksums, ascending
    places : int32, shape (n,), the place of the name with each checksum
    """

    __slots__ = ("_places", "_sums", "names")

    def __init__(self, names: PackedWords, sums: NDArray[np.uint32], places: NDArray[np.int32]) -> None:
        self.names, self._sums, self._places = names, sums, places

    @classmethod
    def of(cls, names: PackedWords) -> "PackedNames":
        """Look up these names."""
        return cls(names, *sorted_sums(_encoded(name) for name in names))

    @property
    def arrays(self) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
        """`sums` and `places`."""
        return self._sums, self._places

    def places_of(self, wanted: Sequence[str]) -> NDArray[np.intp]:
        """The places of names, shape (len(wanted),); -1 for those that are not there."""
        encoded = list(map(_encoded, wanted))
        sums = np.fromiter(map(crc32, encoded), np.uint32, len(encoded))
        first = np.searchsorted(self._sums, sums)
        found = np.full(len(encoded), -1, np.intp)
        for i, name, start in zip(range(len(encoded)), encoded, first.tolist(), strict=True):
            for place in candidates(self._sums, self._places, sums[i], start):
                if self.names.encoded(place) == name:
                    found[i] = place
                    break
        return found


def sorted_sums(encoded: Iterator[bytes]) -> tuple[NDArray[np.uint32], NDArray[np.int32]]:
    """The checksums of names, ascending, and the place of each; see :class:`PackedNames`."""
    sums = np.array(list(map(crc32, encoded)), np.uint32)
    places = np.argsort(sums, kind="stable").astype(np.int32)
    return sums[places], places


def candidates(
    sums: NDArray[np.uint32], places: NDArray[np.int32], wanted: np.uint32 | int, start: int
) -> Iterator[int]:
    """The places of the names with a checksum; `start` is the first that has it."""
    while start < len(sums) and sums[start] == wanted:
        yield int(places[start])
        start += 1


def _encoded(word: str) -> bytes:
    return word.encode(errors="surrogatepass")


_PIECE = 10_000  # phrases that are objects at a time


@dataclass(frozen=True)
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

    vocabulary: PackedWords
    words: NDArray[np.int32]
    ends: NDArray[np.int64]

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


T = TypeVar("T")

_OFTEN = 4  # looking up one name takes as long as making this many values of a dictionary


class PackedMapping(Mapping[str, T], Generic[T]):
    """Values by name, in the order in which they were packed; after many look-ups all of them become a dictionary.

    >>> packed = PackedMapping.of_arrays(PackedMapping.to_arrays({"loom": [1, 2], "silk": "thread"}))
    >>> packed["silk"], dict(packed)
    ('thread', {'loom': [1, 2], 'silk': 'thread'})

    Parameters
    ----------
    names : of all values
    values : the JSON of each
    made : name, JSON value -> the value
    """

    def __init__(self, names: PackedNames, values: PackedWords, made: Callable[[str, Any], T]) -> None:
        self._names, self._values, self._made = names, values, made
        self._asked = 0

    @staticmethod
    def to_arrays(values: Mapping[str, T], plain: Callable[[T], Any] = lambda value: value) -> Arrays:
        """The form in which values are kept; `plain` gives the JSON value of each."""
        names = PackedNames.of(PackedWords(list(values)))
        packed = PackedWords([json.dumps(plain(value)) for value in values.values()])
        (letters, ends), (sums, places), (content, content_ends) = names.names.arrays, names.arrays, packed.arrays
        return {
            "names": letters, "name_ends": ends, "sums": sums, "places": places, "values": content,
            "value_ends": content_ends,
        }  # fmt: skip

    @classmethod
    def of_arrays(cls, arrays: Arrays, made: Callable[[str, Any], T] = lambda name, value: value) -> "PackedMapping[T]":
        """The values of :meth:`to_arrays`, over the same memory."""
        names = PackedWords.of_arrays(arrays["names"], arrays["name_ends"])
        values = PackedWords.of_arrays(arrays["values"], arrays["value_ends"])
        return cls(PackedNames(names, arrays["sums"], arrays["places"]), values, made)

    def __getitem__(self, name: str) -> T:
        if self._is_asked_for_much():
            return self._whole[name]
        place = self._place(name)
        if place < 0:
            raise KeyError(name)
        return self._made(name, json.loads(self._values[place]))

    def __contains__(self, name: object) -> bool:
        return name in self._whole if self._is_asked_for_much() else isinstance(name, str) and self._place(name) >= 0

    def __iter__(self) -> Iterator[str]:
        return iter(self._names.names)

    def __len__(self) -> int:
        return len(self._values)

    def items(self) -> ItemsView[str, T]:
        """All items, in a fraction of the time of looking up each value."""
        return self._whole.items()

    def values(self) -> ValuesView[T]:
        """All values."""
        return self._whole.values()

    def _place(self, name: str) -> int:
        self._asked += 1
        return int(self._names.places_of([name])[0])

    def _is_asked_for_much(self) -> bool:
        return self._asked * _OFTEN > len(self)

    @cached_property
    def _whole(self) -> dict[str, T]:
        values = json.loads(f"[{','.join(self._values)}]")
        self._asked = len(self)
        return {name: self._made(name, value) for name, value in zip(self._names.names, values, strict=True)}
