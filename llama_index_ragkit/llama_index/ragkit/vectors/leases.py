"""Tracks which snapshots may read the rows of a line, and which hidden rows no snapshot shows any more."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from llama_index.ragkit.vectors.kernels import Floats

__all__ = ["Lease", "LeasedRows", "Leases"]


class Lease:
    """Held by a snapshot and by the arrays that it gave out; rows that it shows are not overwritten while it exists."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class LeasedRows:
    """The base of a read-only array over rows of a buffer: while the array exists, so does the lease."""

    __slots__ = ("_lease", "_rows")

    def __init__(self, rows: Floats, lease: Lease) -> None:
        self._rows, self._lease = rows, lease

    @property
    def __array_interface__(self) -> dict[str, Any]:
        address, _ = self._rows.__array_interface__["data"]
        return {**self._rows.__array_interface__, "data": (address, True)}


class Leases:
    """The leases on one line, in the order of their issue. It keeps numbers only, not the leases.

    A lease shows the rows below its count, without those that were hidden before it was issued. So a hidden row is
    shown by leases of an unbroken interval: from the first whose count exceeds the row to the one that was the newest
    when the row was hidden. Each hidden row waits at the newest lease that shows it. When that lease ends, the row
    moves on to the next older lease, if that shows it. The cost is constant for each row and lease.
    """

    def __init__(self) -> None:
        self._issued = 0
        self._numbers: list[int] = []  # of the leases that exist, ascending
        self._counts: dict[int, int] = {}
        self._waiting: dict[int, list[int]] = {}

    @property
    def newest(self) -> int:
        """The number that was issued last."""
        return self._issued

    def issue(self, count: int) -> int:
        """The number of a new lease on the first `count` rows."""
        number = self._issued + 1
        self._counts[number], self._waiting[number] = count, []
        self._numbers.append(number)
        self._issued = number
        return number

    def hide(self, number: int, rows: Iterable[int]) -> None:
        """Leases that are issued from now on do not show these rows; `number`, the newest lease, does."""
        self._waiting[number].extend(rows)

    def end(self, number: int) -> list[int]:
        """End a lease. Returns the hidden rows that no lease shows any more."""
        place = bisect_left(self._numbers, number)
        waiting = self._waiting[number]
        older = self._numbers[place - 1] if place else None
        count = 0 if older is None else self._counts[older]
        if older is not None:
            self._waiting[older].extend(row for row in waiting if row < count)
        del self._numbers[place], self._counts[number], self._waiting[number]
        return [row for row in waiting if row >= count]
