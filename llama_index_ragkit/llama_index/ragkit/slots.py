"""`Slots`: how many of some steps run at once, in threads and on event loops."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from llama_index.ragkit.forks import renew_in_children
from llama_index.ragkit.lock import polled
from llama_index.ragkit.steps import Steps, call

__all__ = ["Slots"]


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
