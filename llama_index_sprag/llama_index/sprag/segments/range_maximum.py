"""The place of the largest value in any range of an array, for many ranges at once."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["RangeMaximum"]


class RangeMaximum:
    """Leftmost places of the largest values of ranges, by a sparse table (Bender & Farach-Colton 2000, section 3).

    Row k of the table holds the place of the largest of each 2**k neighbours. Two such groups cover a range. So a range
    costs two look-ups, and the table has O(n log longest) numbers.

    Parameters
    ----------
    values : shape (n,)
    longest : length of the longest range that will be asked for, at least 1

    >>> RangeMaximum(np.array([3, 5, 5, 1]), 4)(np.array([0, 2]), np.array([3, 3])).tolist()
    [1, 2]
    """

    def __init__(self, values: NDArray[np.int64], longest: int) -> None:
        self._values = values
        self._table = [np.arange(len(values))]
        width = 1
        while 2 * width <= min(longest, len(values)):
            row = self._table[-1]
            self._table.append(self._better(row[:-width], row[width:]))
            width *= 2

    def __call__(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of the largest value of each range `[first, last]`, both inclusive; no range may be empty.

        Returns
        -------
        places : int64, shape of `first`; of equal values the leftmost
        """
        level = np.frexp(last - first + 1)[1] - 1  # floor of the binary logarithm, exact for whole numbers
        found = np.empty(len(first), dtype=np.int64)
        for k in range(len(self._table)):
            of_level = np.flatnonzero(level == k)
            row = self._table[k]
            found[of_level] = self._better(row[first[of_level]], row[last[of_level] - 2**k + 1])
        return found

    def _better(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(self._values[left] >= self._values[right], left, right)
