"""One BLAS thread while it matters."""

import threading
from types import TracebackType

from threadpoolctl import threadpool_limits

__all__ = ["one_blas_thread"]


class _OneThread:
    """Limits BLAS and OpenMP to one thread in the whole process, until the last of its users has left.

    Results then do not depend on the number of threads, and loops over small matrices run up to ten times faster.
    ``threadpool_limits`` alone restores what it found: two overlapping uses in two threads can lift the limit
    too early, or leave it in place for good.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limits: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._limits is None:
                self._limits = threadpool_limits(1)
            self._users += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


one_blas_thread = _OneThread()
