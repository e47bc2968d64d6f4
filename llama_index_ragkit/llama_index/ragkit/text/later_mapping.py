"""`LaterMapping`: a mapping that is computed when it is first read."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from operator import attrgetter
from typing import TypeVar

__all__ = ["LaterMapping"]

T = TypeVar("T")


class LaterMapping(Mapping[str, T]):
    """A mapping of an object, which may be costly to compute.

    Parameters
    ----------
    owner : the object
    path : the names of the attributes that lead to the mapping, such as `graph.links`
    """

    def __init__(self, owner: object, path: str) -> None:
        self._owner, self._path = owner, path

    @cached_property
    def _made(self) -> Mapping[str, T]:
        found: Mapping[str, T] = attrgetter(self._path)(self._owner)
        return found

    def __getitem__(self, key: str) -> T:
        return self._made[key]

    def __contains__(self, key: object) -> bool:
        return key in self._made

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
