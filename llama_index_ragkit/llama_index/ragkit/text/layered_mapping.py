"""Mappings: `LayeredMapping`, with some values changed and no copy of the others, and `LaterMapping`, made late."""

from collections.abc import ItemsView, Iterator, Mapping, MutableMapping, ValuesView
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar, cast

__all__ = ["LaterMapping", "LayeredMapping", "with_changes"]


_MOST = 16  # values for each change; where there are more changes, they become part of a copy of all values

T = TypeVar("T")


class LayeredMapping(MutableMapping[str, T]):
    """A copy of a mapping that holds only what was changed in it. No value is None.

    It costs time and memory for the changes and not for the mapping, which must stay as it is. A copy of a copy has one
    layer of changes, too.

    >>> tools = {"loom": 1, "silk": 2}
    >>> changed = LayeredMapping.over(tools)
    >>> del changed["loom"]
    >>> changed["shed"] = 3
    >>> dict(changed), tools
    ({'silk': 2, 'shed': 3}, {'loom': 1, 'silk': 2})
    """

    def __init__(self, base: Mapping[str, T], changes: dict[str, T | None], size: int) -> None:
        self._layers, self._size = (base, changes), size

    @classmethod
    def over(cls, values: Mapping[str, T], forget: bool = True) -> "LayeredMapping[T]":
        """A copy of any mapping.

        Parameters
        ----------
        forget : whether to copy all values, so that none that is then removed or replaced stays in memory
        """
        if forget:
            return cls({}, cast(dict[str, T | None], _copied(values)), len(values))
        if not isinstance(values, LayeredMapping):
            return cls(values, {}, len(values))
        base, changes = values._layers
        if _MOST * len(changes) > len(base):
            base, changes = values._merged(), {}
        return cls(base, changes.copy(), len(values))

    def __getitem__(self, name: str) -> T:
        base, changes = self._layers
        if name not in changes:
            return base[name]
        if (value := changes[name]) is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: object) -> bool:
        base, changes = self._layers
        return changes[name] is not None if name in changes else name in base

    def __setitem__(self, name: str, value: T) -> None:
        self._size += name not in self
        self._layers[1][name] = value

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        self._size -= 1
        base, changes = self._layers
        if name in base:
            changes[name] = None
        else:
            del changes[name]

    def __iter__(self) -> Iterator[str]:
        base, changes = self._layers
        if not changes:
            return iter(base)
        kept = (name for name in base if name not in changes or changes[name] is not None)
        return chain(kept, (name for name, value in changes.items() if value is not None and name not in base))

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return repr(_copied(self))

    def items(self) -> ItemsView[str, T]:
        """All items; all of them become a dictionary."""
        return self._merged().items()

    def values(self) -> ValuesView[T]:
        """All values; all of them become a dictionary."""
        return self._merged().values()

    def _merged(self) -> dict[str, T]:
        base, changes = self._layers
        if not base:
            found = cast(dict[str, T], changes)
        elif not changes and isinstance(base, dict):
            return base
        else:
            found = _copied(self)
        self._layers = found, {}
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles contain nothing that was removed or replaced."""
        return LayeredMapping.over, (self._merged(),)


def _copied(values: Mapping[str, T]) -> dict[str, T]:
    if not isinstance(values, LayeredMapping):
        return values.copy() if isinstance(values, dict) else dict(values.items())
    base, changes = values._layers
    if not base:
        return cast(dict[str, T], changes.copy())
    found = _copied(base)
    for name, value in changes.items():
        if value is None:
            del found[name]
        else:
            found[name] = value
    return found


def with_changes(values: Mapping[str, T], changes: Mapping[str, T | None], forget: bool = True) -> Mapping[str, T]:
    """A copy of a mapping, see :meth:`LayeredMapping.over`, with some values changed; None removes one.

    >>> dict(with_changes({"loom": 1, "silk": 2}, {"loom": None, "shed": 3}))
    {'silk': 2, 'shed': 3}
    """
    found = LayeredMapping.over(values, forget)
    for name, value in changes.items():
        if value is not None:
            found[name] = value
        elif name in found:
            del found[name]
    return found


class LaterMapping(Mapping[str, T]):
    """A mapping of an object, which may be costly to compute; `path` names the attributes that lead to it."""

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
