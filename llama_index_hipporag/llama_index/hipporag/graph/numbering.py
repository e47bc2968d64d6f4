"""`Numbering`: the rows of phrases and the columns of facts; `PackedFacts`: facts as numbers of their parts."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, islice
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.graph.passage import Fact
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.text.packed_words import PackedWords
from llama_index.ragkit.vectors.row_records import RowsView

__all__ = ["Numbering", "PackedFacts"]

T = TypeVar("T", bound=Hashable)


class Numbering(Mapping[T, int]):
    """Distinct keys, numbered from 0 in the order in which they came; immutable.

    A numbering and its extension share memory, so an extension costs only its new keys. This holds for the first
    extension of a numbering; a second one, such as the write after a failed one, starts from a copy.

    Packed keys, such as those of :meth:`of_packed`, become objects when the numbering is extended, and when a number is
    looked up, unless the keys can be found as they are.
    """

    __slots__ = ("_find", "_own", "_size", "_stored")

    def __init__(self, keys: Iterable[T] = ()) -> None:
        self._stored: Sequence[T] = ()
        self._own: tuple[list[T], dict[T, int]] | None = ([], {})
        self._find: Callable[[T], int] | None = None
        self._size = 0
        self._append(keys)

    @classmethod
    def of_packed(cls, keys: Sequence[T], find: Callable[[T], int] | None = None) -> "Numbering[T]":
        """The numbering of distinct, constant keys; `find` gives the number of a key, -1 for an unknown one."""
        found: Numbering[T] = cls()
        found._stored, found._own, found._find, found._size = keys, None, find, len(keys)
        return found

    def _made(self) -> tuple[list[T], dict[T, int]]:
        """The keys as objects, and their numbers; two threads may both make them."""
        if (own := self._own) is None:
            keys = list(self._stored)
            own = self._own = keys, dict(zip(keys, range(len(keys)), strict=True))
        return own

    @property
    def _keys(self) -> Sequence[T]:
        return self._stored if self._own is None else self._own[0]

    def __getitem__(self, key: T) -> int:
        number = self._made()[1][key] if self._own is not None or self._find is None else self._find(key)
        if not 0 <= number < self._size:  # unknown, or the number of an extension
            raise KeyError(key)
        return number

    def __iter__(self) -> Iterator[T]:
        return islice(self._keys, self._size)

    def __len__(self) -> int:
        return self._size

    @property
    def sequence(self) -> Sequence[T]:
        """The keys by number, without a copy."""
        return self._stored if self._own is None else RowsView(self._own[0].__getitem__, range(self._size), None)

    def at(self, number: int) -> T:
        """The key of a number from 0; an `IndexError` if there is none."""
        if not 0 <= number < self._size:
            raise IndexError(f"The numbers are 0 to {self._size - 1}, not {number}.")
        return self._keys[number]

    def extended(self, keys: Iterable[T]) -> "Numbering[T]":
        """The numbering with further keys after these; known ones keep their numbers."""
        longer: Numbering[T] = Numbering()
        own = self._made()
        if len(own[0]) == self._size:
            longer._own, longer._size = own, self._size
        else:
            longer._append(self)
        longer._append(keys)
        return longer

    def without(self, numbers: NDArray[Any]) -> "Numbering[T]":
        """The numbering without the keys of these numbers; the others move up, in the same order."""
        if not len(numbers):
            return self
        stays = np.ones(self._size, np.bool_)
        stays[numbers] = False
        return self.of_packed(list(compress(self._keys, stays.tolist())))

    def _append(self, keys: Iterable[T]) -> None:
        known, numbers = self._made()
        for key in keys:
            if key not in numbers:
                numbers[key] = len(known)
                known.append(key)
        self._size = len(known)


class PackedFacts(Sequence[Fact]):
    """Facts as numbers of phrases and of relations, shape (f,); `relations` are distinct."""

    def __init__(
        self,
        phrases: Sequence[str],
        heads: NDArray[np.int64],
        tails: NDArray[np.int64],
        relations: Sequence[str],
        relation_of: NDArray[np.int64],
    ) -> None:
        self._phrases, self._heads, self._tails = phrases, heads, tails
        self._relations, self._relation_of = relations, relation_of

    @classmethod
    def of_arrays(
        cls, arrays: Arrays, phrases: Sequence[str], heads: NDArray[np.int64], tails: NDArray[np.int64]
    ) -> "PackedFacts":
        """The facts with the relations of :meth:`to_arrays`."""
        relations = PackedWords.of_arrays(arrays["relations"], arrays["relation_ends"])
        return cls(phrases, heads, tails, relations, arrays["relation_of"])

    @staticmethod
    def to_arrays(facts: Sequence[Fact]) -> Arrays:
        """The relations of facts."""
        numbers: dict[str, int] = {}
        relation_of = np.fromiter(
            (numbers.setdefault(relation, len(numbers)) for _, relation, _ in facts), np.int64, len(facts)
        )
        letters, ends = PackedWords(list(numbers)).arrays
        return {"relations": letters, "relation_ends": ends, "relation_of": relation_of}

    def __len__(self) -> int:
        return len(self._heads)

    @overload
    def __getitem__(self, number: int) -> Fact: ...

    @overload
    def __getitem__(self, number: slice) -> list[Fact]: ...

    def __getitem__(self, number: int | slice) -> Fact | list[Fact]:
        if isinstance(number, slice):
            return [self[i] for i in range(*number.indices(len(self)))]
        head, tail = int(self._heads[number]), int(self._tails[number])
        return self._phrases[head], self._relations[int(self._relation_of[number])], self._phrases[tail]

    def __iter__(self) -> Iterator[Fact]:
        phrases, relations = list(self._phrases), list(self._relations)
        numbers = (self._heads.tolist(), self._relation_of.tolist(), self._tails.tolist())
        return (
            (phrases[head], relations[relation], phrases[tail]) for head, relation, tail in zip(*numbers, strict=True)
        )
