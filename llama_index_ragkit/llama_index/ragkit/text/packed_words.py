"""Many words in little memory: one array of bytes instead of one object per word."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

__all__ = ["PackedWords"]


class PackedWords:
    """An immutable sequence of words. A word takes its UTF-8 bytes and 8 more; a `str` would take at least 50.

    >>> words = PackedWords(["loom", "silk", "shed"])
    >>> len(words), words[1], list(words)
    (3, 'silk', ['loom', 'silk', 'shed'])
    """

    __slots__ = ("_bytes", "_ends")

    def __init__(self, words: Sequence[str]) -> None:
        encoded = [word.encode() for word in words]
        self._bytes = b"".join(encoded)
        self._ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        return self._encoded(place).decode()

    def __iter__(self) -> Iterator[str]:
        ends = self._ends.tolist()
        return (self._bytes[start:end].decode() for start, end in pairwise(ends))

    def only(self, kept: NDArray[np.bool_]) -> "PackedWords":
        """The words of a mask, shape (n,); the result holds nothing of the others.

        >>> list(PackedWords(["loom", "silk", "shed"]).only(np.array([True, False, True])))
        ['loom', 'shed']
        """
        if kept.all():
            return self
        sizes = np.diff(self._ends)
        found = PackedWords(())
        found._bytes = np.frombuffer(self._bytes, np.uint8)[np.repeat(kept, sizes)].tobytes()
        found._ends = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        return found

    def find(self, word: str) -> int:
        """The place of a word among words in ascending order; -1 if it is not there.

        >>> PackedWords(["loom", "shed", "silk"]).find("silk")
        2
        """
        wanted = word.encode()  # bytes of UTF-8 have the order of the characters
        place = bisect_left(range(len(self)), wanted, key=self._encoded)
        return place if place < len(self) and self._encoded(place) == wanted else -1

    def _encoded(self, place: int) -> bytes:
        start, end = self._ends[place : place + 2].tolist()
        return self._bytes[start:end]
