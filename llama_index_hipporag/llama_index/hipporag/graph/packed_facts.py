"""`PackedFacts`: the facts of a graph, kept as numbers and made into objects on request."""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.graph.passage import Fact
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.text.packed_words import PackedWords

__all__ = ["PackedFacts"]


class PackedFacts(Sequence[Fact]):
    """Facts whose ends are numbered phrases.

    Parameters
    ----------
    phrases : by number
    heads, tails : shape (f,), numbers of phrases
    relations : the distinct relations
    relation_of : shape (f,), the number of the relation of each fact
    """

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
