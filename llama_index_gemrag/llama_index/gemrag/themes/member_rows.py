"""The rows of the members of themes, as arrays."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

__all__ = ["MemberRows"]


@dataclass(frozen=True)
class MemberRows:
    """The rows of the members of each theme among the chunks.

    Attributes
    ----------
    rows : the rows of all members, theme by theme; -1 for a missing member
    starts : the place of the first member of each theme in `rows`; a theme has at least one
    """

    rows: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, themes: Iterable[Sequence[str]], rows_of: Callable[[Sequence[str]], NDArray[np.intp]]) -> "MemberRows":
        """The rows of the members of themes.

        Parameters
        ----------
        themes : the members of each theme
        rows_of : ids of chunks -> their rows, -1 for missing ones
        """
        members = list(themes)
        sizes = np.array([0, *map(len, members)], np.intp)
        return cls(rows_of(list(chain.from_iterable(members))), np.cumsum(sizes)[:-1])

    def __len__(self) -> int:
        return len(self.starts)

    def largest(self, values: NDArray[np.float64], absent: float) -> NDArray[np.float64]:
        """The largest value of a member of each theme, shape (number of themes,).

        Parameters
        ----------
        values : of the chunks, shape (n,)
        absent : the value of a missing member

        Examples
        --------
        >>> MemberRows(np.array([2, 0, 1, -1]), np.array([0, 2])).largest(np.array([0.1, 0.2, 0.3]), 0.0)
        array([0.3, 0.2])
        """
        found: NDArray[np.float64] = np.maximum.reduceat(np.append(values, absent)[self.rows], self.starts)
        return found

    def within(self, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which themes have only members in a mask, shape (number of themes,).

        Parameters
        ----------
        mask : of the chunks, shape (n,)

        Examples
        --------
        >>> MemberRows(np.array([2, 0, 1, -1]), np.array([0, 2])).within(np.array([True, True, True]))
        array([ True, False])
        """
        found: NDArray[np.bool_] = np.logical_and.reduceat(np.append(mask, False)[self.rows], self.starts)
        return found
