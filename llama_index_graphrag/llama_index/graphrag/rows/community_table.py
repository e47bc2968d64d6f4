"""`CommunityTable`: a stored hierarchy of communities as arrays, without any text of their statements."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.rows.statement_edges import entity_number

__all__ = ["CommunityTable"]

Integers = NDArray[np.int64]

_KEY = 16  # bytes of the key of a report
_VERBATIM, _STATES = 1, 2


@dataclass(frozen=True, eq=False)
class CommunityTable:
    """c communities of n entities.

    Attributes
    ----------
    hierarchy : the hierarchy of the entities in the order of their keys
    numbers : int64, shape (n,): the numbers of the entities' nodes, in that order
    tokens : int64, shape (c,): tokens of the lines of each report's plan
    flags : uint8, shape (c,): whether the lines are the report, and whether there are any
    keys : the keys of the reports, each of 32 hexadecimal digits
    """

    hierarchy: Hierarchy
    numbers: Integers
    tokens: Integers
    flags: NDArray[np.uint8]
    keys: Sequence[str]

    @classmethod
    def of(
        cls,
        hierarchy: Hierarchy,
        names: Iterable[str],
        tokens: Iterable[int],
        verbatim: Iterable[bool],
        states: Iterable[bool],
        keys: Iterable[str],
    ) -> "CommunityTable":
        """The table of a hierarchy.

        Parameters
        ----------
        names : keys of the entities, sorted
        tokens, verbatim, states, keys : values of each community
        """
        flags = [_VERBATIM * bool(v) + _STATES * bool(s) for v, s in zip(verbatim, states, strict=True)]
        numbers = np.array([entity_number(name) for name in names], np.int64)
        return cls(hierarchy, numbers, np.array(list(tokens), np.int64), np.array(flags, np.uint8), tuple(keys))

    def __len__(self) -> int:
        """Number of communities."""
        return len(self.hierarchy)

    def is_verbatim(self, community: int) -> bool:
        """Whether the statements of a community are its report."""
        return bool(self.flags[community] & _VERBATIM)

    def states(self, community: int) -> bool:
        """Whether a community has statements."""
        return bool(self.flags[community] & _STATES)

    def places(self, entities: Iterable[int]) -> list[int]:
        """The places of the entities that are in a community, by the numbers of their nodes."""
        order, found = self._order, []
        for entity in entities:
            place = int(np.searchsorted(self._ascending, entity))
            if place < len(order) and self._ascending[place] == entity:
                found.append(int(order[place]))
        return found

    @cached_property
    def _order(self) -> Integers:
        order: Integers = np.argsort(self.numbers, kind="stable")
        return order

    @cached_property
    def _ascending(self) -> Integers:
        ascending: Integers = self.numbers[self._order]
        return ascending

    def packed(self) -> bytes:
        """The whole table as bytes; :meth:`unpacked` reads it."""
        hierarchy = self.hierarchy
        head = np.array([len(self.numbers), len(self)], "<i8")
        parts = [self.numbers.astype("<i8"), hierarchy.order.astype("<i4")]
        of_communities = (hierarchy.first, hierarchy.last, hierarchy.parent, self.tokens)
        parts += [values.astype("<i4") for values in of_communities]
        keys = b"".join(bytes.fromhex(key) for key in self.keys)
        return b"".join([head.tobytes(), *(part.tobytes() for part in parts), self.flags.tobytes(), keys])

    @classmethod
    def unpacked(cls, data: bytes) -> "CommunityTable":
        """Read the bytes of :meth:`packed`."""
        n, c = np.frombuffer(data, "<i8", 2).tolist()
        place = 16

        def taken(kind: str, count: int) -> NDArray[np.int64]:
            nonlocal place
            values = np.frombuffer(data, kind, count, place)
            place += values.nbytes
            return values.astype(np.int64)

        numbers, order = taken("<i8", n), taken("<i4", n)
        first, last, parent, tokens = (taken("<i4", c) for _ in range(4))
        flags = taken("u1", c).astype(np.uint8)
        keys = [data[at : at + _KEY].hex() for at in range(place, place + c * _KEY, _KEY)]
        return cls(Hierarchy(order, first, last, parent), numbers, tokens, flags, keys)
