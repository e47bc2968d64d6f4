"""Limiting BLAS to one thread."""

import sys
from types import TracebackType
from typing import Any

from threadpoolctl import ThreadpoolController

from llama_index.ragkit.forks import ProcessLock, renew_in_children

__all__ = ["one_blas_thread"]


class _OneThread:
    """A context manager that limits BLAS and OpenMP to one thread; reentrant, one thread of the process at a time.

    Results then do not depend on the number of threads, and loops over small matrices run up to ten times faster.
    The limits of threadpoolctl are those of the whole process: overlapping uses from two threads can lift the limit
    too early or leave it in place permanently, so the second one waits. Never call code of others inside.
    """

    def __init__(self) -> None:
        self._lock = ProcessLock(reentrant=True)
        self._depth = 0
        renew_in_children(self, _OneThread._renew)
        self._limit: Any = None
        self._controller: ThreadpoolController | None = None
        self._modules = 0

    def _renew(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self._depth += 1
        if self._depth == 1:
            # Finding the libraries takes 3 ms; new ones are loaded with new modules.
            if self._controller is None or self._modules != len(sys.modules):
                self._modules = len(sys.modules)
                self._controller = ThreadpoolController()
            self._limit = self._controller.limit(limits=1)
            self._limit.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._depth -= 1
        if not self._depth:
            self._limit.__exit__(kind, error, traceback)
        self._lock.release()


one_blas_thread = _OneThread()
