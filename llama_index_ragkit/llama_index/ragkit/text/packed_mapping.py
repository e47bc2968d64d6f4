"""`PackedMapping`: JSON values by name, kept as bytes and made into objects on request."""

import json
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from functools import cached_property
from typing import Any, Generic, TypeVar

from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.text.packed_words import PackedNames, PackedWords

__all__ = ["PackedMapping"]

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
