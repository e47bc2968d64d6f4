"""`WriterLock` and `Slots`: steps that wait for each other, in threads and on event loops."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from llama_index.ragkit.errors import ConcurrentWriteError
from llama_index.ragkit.forks import ProcessLock, renew_in_children
from llama_index.ragkit.steps import Request, Steps, call

__all__ = ["Slots", "WriterLock", "polled"]


async def polled(acquire: Callable[[bool], bool], patience: float = math.inf) -> bool:
    """Take a lock or a semaphore of `threading` from a task, by trying again and again; tells whether that worked."""
    end, wait = time.monotonic() + patience, 0.001
    while not acquire(False):
        if time.monotonic() > end:
            return False
        await asyncio.sleep(wait)
        wait = min(2 * wait, 0.05)
    return True


class WriterLock:
    """A lock that steps may hold across their requests, under either driver.

    A thread lock blocks an event loop, and an asyncio lock belongs to one loop. This one is a thread
    lock that asynchronous writers poll, so it serves threads and any number of loops, and a cancelled waiter needs no
    clean-up.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock()
        self._loop: asyncio.AbstractEventLoop | None = None  # the loop of the writer, if it is asynchronous

    def acquire(self) -> Steps["_Held"]:
        """Wait for the lock; use the result in a `with` statement.

        Raises
        ------
        ConcurrentWriteError
            If a synchronous write is made from a coroutine while another coroutine of the same loop is
            writing: waiting would block the loop that must finish that write.
        """
        held: _Held = yield _Acquire(self)
        return held

    @contextmanager
    def _held(self, loop: asyncio.AbstractEventLoop | None) -> Iterator[None]:
        self._loop = loop
        try:
            yield
        finally:
            self._loop = None
            self._lock.release()


class _Held:
    """The acquired lock: releases when the `with` block ends or the steps are closed."""

    def __init__(self, lock: WriterLock, loop: asyncio.AbstractEventLoop | None) -> None:
        self._context = lock._held(loop)
        self._context.__enter__()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc_info: object) -> None:
        self._context.__exit__(None, None, None)


class _Acquire(Request):
    def __init__(self, lock: WriterLock) -> None:
        self._lock = lock

    def run(self) -> _Held:
        try:
            loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        while not self._lock._lock.acquire(timeout=0.1):
            if loop is not None and self._lock._loop is loop:
                raise ConcurrentWriteError(
                    "Another coroutine of this event loop is writing to the index, and a synchronous write "
                    "would block the loop that must finish it. Await the asynchronous method instead."
                )
        return _Held(self._lock, None)

    async def arun(self) -> _Held:
        await polled(self._lock._lock.acquire)
        return _Held(self._lock, asyncio.get_running_loop())


class Slots:
    """Places for steps that hold something scarce across their requests, such as a connection.

    Where all of it is taken, a wait for it within those steps would block the event loop on which others are to give
    theirs back. So they wait for a place first: threads block, tasks look again and again.

    Parameters
    ----------
    count : how many there are
    patience : seconds that anybody waits
    refusal : makes the error for who has waited in vain
    """

    def __init__(self, count: int, patience: float, refusal: Callable[[], Exception]) -> None:
        self._count, self._patience, self._refusal = count, patience, refusal
        self._renew()
        renew_in_children(self, Slots._renew)

    def _renew(self) -> None:
        self._free = threading.Semaphore(self._count)

    def acquire(self) -> Steps[AbstractContextManager[None]]:
        """Wait for a place; it is free again at the end of a `with` statement over the result."""
        yield from call(self._take, self._atake)
        return self._held(self._free)

    def spare(self) -> AbstractContextManager[None] | None:
        """A place that is free at once, if there is one."""
        return self._held(self._free) if self._free.acquire(blocking=False) else None

    def _take(self) -> None:
        if not self._free.acquire(timeout=self._patience):
            raise self._refusal()

    async def _atake(self) -> None:
        if not await polled(self._free.acquire, self._patience):
            raise self._refusal()

    @staticmethod
    @contextmanager
    def _held(free: threading.Semaphore) -> Iterator[None]:
        try:
            yield
        finally:
            free.release()
