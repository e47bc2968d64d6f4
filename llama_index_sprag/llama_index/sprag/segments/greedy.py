"""The published choice of segments: repeatedly the best one that fits.

spRAG (SuperpoweredAI, 2024; later dsRAG), relevant segment extraction, as in version 0.2.0. For each query in turn,
among all windows that overlap no chosen segment of any query and fit the rest of the budget, the one with the largest
sum is chosen; of equal ones the earliest, then the shortest. A query without a window of at least the minimum value is
finished. The choice ends when all queries are finished or the budget is used up.

The published code tries every pair of ends for each segment, O(n L (segments + documents + L)) for n chunks and windows
of L. Here each possible first chunk keeps its best last chunk. Chosen segments and a shrinking budget only rule windows
out, so a best end stays the best until it is ruled out itself. The next best is then looked up in a table of range
maxima over the prefix sums. That takes O(n log L) once and O(n) for each segment, and selects the same segments.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.sprag.segments.windows import Candidates, Problem, Segment, floating_point

__all__ = ["RangeMaximum", "select_greedy"]

_NONE = np.iinfo(np.int64).min  # less than any sum


def select_greedy(
    values: ArrayLike,
    documents: ArrayLike,
    costs: ArrayLike | None = None,
    *,
    max_length: int,
    overall_max_length: int,
    minimum_value: float,
) -> list[Segment]:
    """Segments in the order in which they are found.

    Parameters
    ----------
    values : shape (n_queries, n_chunks), value of each chunk for each query, negative for irrelevant chunks
    documents : shape (n_chunks,), number of the document of each chunk, never decreasing
    costs : shape (n_chunks,), whole numbers of at least 0, the length of each chunk in the unit of the two limits
        [1 each: limits are numbers of chunks]
    max_length : maximum cost of a segment; a single chunk may cost more (it could never be returned otherwise)
    overall_max_length : maximum cost of all segments, without exception
    minimum_value : least sum of a segment, at least 0

    Raises
    ------
    ConfigurationError
        If shapes do not fit, a value is not finite, or a parameter is out of range.

    >>> select_greedy([-1, 2, -1, 2, -1], [0] * 5, max_length=4, overall_max_length=4, minimum_value=1)
    [Segment(start=1, end=4, value=3.0, query=0)]
    """
    problem = Problem(values, documents, costs, max_length, overall_max_length, minimum_value)
    left = problem.overall_max_length
    queries = [_Query(problem, number) for number in range(problem.n_queries)]
    active = list(range(problem.n_queries))
    chosen: list[Segment] = []
    for query in queries:
        query.fit(left)
    while active and left:
        for number in tuple(active):
            start, end, value = queries[number].best()
            if value < problem.minimum_value:
                active.remove(number)
                continue
            chosen.append(Segment(start, end, floating_point(value), number))
            left -= int(problem.cost_sums[end] - problem.cost_sums[start])
            if not left:
                break
            for query in queries:
                query.take(start, end)
                query.fit(left)
    return chosen


class _Query:
    """For each chunk that may begin a segment, the best end that is still possible."""

    def __init__(self, problem: Problem, number: int) -> None:
        self._candidates = Candidates(problem, number)
        self._last = self._candidates.last.copy()
        places = np.arange(len(self._last))
        longest = int((self._last - places).max(initial=0)) + 1
        self._maximum = RangeMaximum(self._candidates.after, longest)
        self._end = np.full(len(places), -1)
        self._sum = np.full(len(places), _NONE)
        self._find_ends(places, self._last)

    def best(self) -> tuple[int, int, int]:
        """Start, end and fixed-point sum of the best window; the sum is less than any other if there is none."""
        if not len(self._sum):
            return 0, 0, _NONE
        place = int(np.argmax(self._sum))
        positions = self._candidates.positions
        return int(positions[place]), int(positions[self._end[place]]) + 1, int(self._sum[place])

    def take(self, start: int, end: int) -> None:
        """Rule out windows that touch the positions [start, end)."""
        positions = self._candidates.positions
        low, high = np.searchsorted(positions, [start, end])
        self._last[low:high] = -1
        self._sum[low:high] = _NONE
        before = np.flatnonzero((self._last[:low] >= low) & (self._sum[:low] > _NONE))
        self._last[:low] = np.minimum(self._last[:low], low - 1)
        self._find_ends(before, self._last[before])

    def fit(self, left: int) -> None:
        """Rule out windows that cost more than `left`."""
        candidates = self._candidates
        cost = candidates.cost_after[self._end] - candidates.cost_before
        too_long = np.flatnonzero((cost > left) & (self._sum > _NONE))
        self._find_ends(too_long, np.minimum(self._last[too_long], candidates.within(left, too_long)))

    def _find_ends(self, places: NDArray[np.int64], last: NDArray[np.int64]) -> None:
        """Find the best ends of windows from `places`, up to `last`."""
        if not len(places):
            return
        possible = last >= places
        self._sum[places[~possible]] = _NONE
        places, last = places[possible], last[possible]
        self._end[places] = self._maximum(places, last)
        self._sum[places] = self._candidates.after[self._end[places]] - self._candidates.before[places]


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
