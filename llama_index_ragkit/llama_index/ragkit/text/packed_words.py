"""Many words in little memory: one array of bytes instead of one object per word."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, overload
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

__all__ = ["PackedNames", "PackedWords"]


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
