"""Changing each part of what is stored, one at a time."""

import copy
from collections.abc import Iterator
from typing import Any

__all__ = ["changed_parts"]

_GONE = object()
_VALUES = (_GONE, None, 3, "x", "", [], {"x": 1})


def changed_parts(stored: Any) -> Iterator[tuple[str, Any]]:
    """JSON values with one part deleted or replaced, the whole among them, and what was done."""
    for path in _paths(stored):
        for value in _VALUES:
            if value is not _GONE:
                yield f"{path} = {value!r}", _with(stored, path, value)
            elif path:
                yield f"no {path}", _with(stored, path, value)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))


def _with(stored: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    made = copy.deepcopy(stored)
    place = made
    for key in path[:-1]:
        place = place[key]
    if value is _GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return made
