"""`Numbering`: the rows of phrases and the columns of facts."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import compress, islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Numbering"]

T = TypeVar("T", bound=Hashable)


class Numbering(Mapping[T, int]):
    """Distinct keys, numbered from 0 in the order in which they came; immutable.

    A numbering and those that extend it share their memory, so that an extension costs what is new. Only the first
    extension of a numbering does; a second one, such as the write after one that failed, starts from a copy.
    """

    __slots__ = ("_keys", "_numbers", "_size")

    def __init__(self, keys: Iterable[T] = ()) -> None:
        self._numbers: dict[T, int] = {}
        self._keys: list[T] = []
        self._size = 0
        self._append(keys)

    def __getitem__(self, key: T) -> int:
        number = self._numbers[key]
        if number >= self._size:  # that of an extension
            raise KeyError(key)
        return number

    def __iter__(self) -> Iterator[T]:
        return islice(self._keys, self._size)

    def __len__(self) -> int:
        return self._size

    def at(self, number: int) -> T:
        """The key of a number, from 0.

        Raises
        ------
        IndexError
            If there is no such number.
        """
        if not 0 <= number < self._size:
            raise IndexError(f"The numbers are 0 to {self._size - 1}, not {number}.")
        return self._keys[number]

    def extended(self, keys: Iterable[T]) -> "Numbering[T]":
        """With further keys after these; known ones keep their numbers."""
        longer: Numbering[T] = Numbering()
        if len(self._keys) == self._size:
            longer._keys, longer._numbers, longer._size = self._keys, self._numbers, self._size
        else:
            longer._append(self)
        longer._append(keys)
        return longer

    def without(self, numbers: NDArray[Any]) -> "Numbering[T]":
        """Without the keys of these numbers; the others move up, in the same order."""
        if not len(numbers):
            return self
        stays = np.ones(self._size, np.bool_)
        stays[numbers] = False
        shorter: Numbering[T] = Numbering()
        shorter._keys = list(compress(self._keys, stays.tolist()))
        shorter._size = len(shorter._keys)
        shorter._numbers = dict(zip(shorter._keys, range(shorter._size), strict=True))
        return shorter

    def _append(self, keys: Iterable[T]) -> None:
        for key in keys:
            if key not in self._numbers:
                self._numbers[key] = len(self._keys)
                self._keys.append(key)
        self._size = len(self._keys)
