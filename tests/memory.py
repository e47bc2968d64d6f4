"""What arrays and texts there are in this process, wherever they are kept.

A test that looks calls `gc.freeze` before it, which leaves out all that was there before.
"""

import gc
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

__all__ = ["arrays_with", "texts_in", "texts_with"]


def _objects() -> Iterator[Any]:
    """Every object that is not frozen. The collector knows arrays and strings only as what others refer to."""
    gc.collect()  # cycles that nothing refers to are held by nobody
    holders = gc.get_objects()
    seen: set[int] = set()
    yield from holders
    while holders:
        found = [thing for thing in gc.get_referents(*holders) if not gc.is_tracked(thing)]
        holders = []
        for thing in found:
            if id(thing) not in seen:
                seen.add(id(thing))
                yield thing
                holders.append(thing.base if isinstance(thing, np.ndarray) else thing)


def arrays_with(numbers: bytes) -> list[np.ndarray[Any, Any]]:
    """All arrays whose memory contains these bytes."""
    arrays = [thing for thing in _objects() if isinstance(thing, np.ndarray) and thing.dtype != object]
    return [array for array in arrays if numbers in array.tobytes()]


def texts_with(part: str) -> list[str]:
    """All strings that contain this one, and are not equal to it."""
    return [thing for thing in _objects() if type(thing) is str and part in thing and thing != part]


def texts_in(root: object) -> set[str]:
    """All strings that an object refers to, itself or through others."""
    texts, seen, todo = set[str](), {id(root)}, [root]
    while todo:
        for thing in gc.get_referents(todo.pop()):
            if isinstance(thing, str):
                texts.add(thing)
            elif not isinstance(thing, type | FunctionType | ModuleType) and id(thing) not in seen:
                seen.add(id(thing))
                todo.append(thing)
    return texts
