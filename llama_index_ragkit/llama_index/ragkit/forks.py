"""What a forked process takes over from its parent and cannot use: locks that others hold, connections of others."""

import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from types import TracebackType
from typing import Any, TypeVar

__all__ = ["ProcessLock", "renew_in_children"]

T = TypeVar("T")

_renewed: dict[int, tuple[weakref.ref[Any], Callable[[Any], object]]] = {}  # by id: not all of them can be hashed


def renew_in_children(thing: T, renew: Callable[[T], object]) -> None:
    """Call `renew(thing)` in every process that is forked while the thing exists.

    Parameters
    ----------
    renew : refers to no `thing`, which it would keep alive. It runs before any other code of the child, and must not
        wait for anything
    """
    key = id(thing)
    _renewed[key] = (weakref.ref(thing, lambda _: _renewed.pop(key, None)), renew)


def _forked() -> None:
    if sys.version_info < (3, 12):  # until then, all objects of a class compute a cached property under one lock
        for cached in _cached_properties():
            cached.lock = threading.RLock()
    for known, renew in list(_renewed.values()):
        thing = known()
        if thing is not None:
            renew(thing)


def _cached_properties() -> Iterator[Any]:
    """Those of all classes of these packages."""
    for name, module in list(sys.modules.items()):
        if name.startswith("llama_index."):
            for kind in list(vars(module).values()):
                if isinstance(kind, type):
                    yield from (each for each in vars(kind).values() if isinstance(each, cached_property))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class ProcessLock:
    """A lock for the threads of one process: free in a forked child, which has none of the threads that held it.

    Parameters
    ----------
    reentrant : whether a thread may take it several times
    """

    def __init__(self, *, reentrant: bool = False) -> None:
        self._make: Callable[[], Any] = threading.RLock if reentrant else threading.Lock
        self._lock = self._make()
        renew_in_children(self, ProcessLock._renew)

    def _renew(self) -> None:
        self._lock = self._make()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(ProcessLock, reentrant=self._make is threading.RLock), ()  # a copy is free

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock, and tell whether that worked, as those of `threading` do."""
        return bool(self._lock.acquire(blocking, timeout))

    def release(self) -> None:
        """Give the lock back."""
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()
