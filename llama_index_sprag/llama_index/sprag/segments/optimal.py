"""The best possible choice of segments, by dynamic programming (ours; the published choice is greedy).

The first large segment of a greedy choice can use up the budget of two better ones. With windows w of value v(w), the
largest of its sums for any query, and cost c(w), the best value of windows that end by position e within budget m is

    f(e, m) = max( f(e', m),  max over windows w = [s, e) of  f(s, m - c(w)) + v(w) )

with e' the end before e. It obeys the same rules as the greedy choice, so its total value is never less.

Only windows that would lose value without some chunks at either end are tried: each of their proper prefixes and
suffixes has a sum above 0. A choice with other windows is never worth more.

The total does not reward contiguity: a gap is carried only if the parts around it would be worth less than the minimum
value. The greedy choice, which takes the largest sum first, carries any gap that costs less than the chunks after it
are worth.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.sprag.segments.windows import Candidates, Problem, Segment, floating_point

__all__ = ["select_optimal"]

_MOST_CELLS = 2**27  # of the table of best values: 1.5 GB with the data for each


def select_optimal(
    values: ArrayLike,
    documents: ArrayLike,
    costs: ArrayLike | None = None,
    *,
    max_length: int,
    overall_max_length: int,
    minimum_value: float,
) -> list[Segment]:
    """Segments of the largest total value, by position; of equal totals the cheapest.

    Time is O(windows * budget), memory O(ends * budget). Parameters as in
    :func:`~llama_index.sprag.segments.greedy.select_greedy`.

    Raises
    ------
    ConfigurationError
        As there; or if the table of best values would not fit into memory.

    The greedy choice would begin with the first three chunks, worth 5, and reach 8:

    >>> values = [2, 1, 2, -9, 3, -9, 3]
    >>> found = select_optimal(values, [0] * 7, max_length=3, overall_max_length=4, minimum_value=1)
    >>> [(segment.start, segment.end) for segment in found], sum(segment.value for segment in found)
    ([(0, 1), (2, 3), (4, 5), (6, 7)], 10.0)
    """
    problem = Problem(values, documents, costs, max_length, overall_max_length, minimum_value)
    windows = _windows(problem)
    budget = min(problem.overall_max_length, int(problem.cost_sums[-1]))
    ends, first_of_end = np.unique(windows.ends, return_index=True)
    if not len(ends):
        return []
    if len(ends) * (budget + 1) > _MOST_CELLS:
        raise ConfigurationError(
            f'selection="optimal" with {len(ends)} possible ends and a budget of {budget} needs too much memory; '
            'take selection="greedy", retrieve fewer chunks, or count the budget in chunks.'
        )
    best = np.zeros((len(ends) + 1, budget + 1), dtype=np.int64)
    taken = np.full((len(ends), budget + 1), -1, dtype=np.int32)
    before = np.searchsorted(ends, windows.starts, side="right")  # row of the best value up to each window's start
    costs_of, values_of = windows.costs.tolist(), windows.values.tolist()
    for row, (low, high) in enumerate(pairwise(np.append(first_of_end, len(windows.ends)).tolist())):
        best[row + 1] = best[row]
        for window in range(low, high):
            cost = costs_of[window]
            if cost > budget:
                continue
            offered = best[before[window], : budget + 1 - cost] + values_of[window]
            better = offered > best[row + 1, cost:]
            best[row + 1, cost:][better] = offered[better]
            taken[row, cost:][better] = window
    return _trace(windows, best, taken, before)


class _Windows:
    """Windows sorted by end and start: positions, fixed-point values, costs, and the query of each."""

    def __init__(self, table: NDArray[np.int64]) -> None:
        self.starts, self.ends, self.values, self.costs, self.queries = table


def _windows(problem: Problem) -> _Windows:
    """Every window that is worth trying, once, with the query for which it is worth most."""
    table = np.concatenate([_of_query(problem, query) for query in range(problem.n_queries)], axis=1)
    starts, ends, values, _, queries = table
    table = table[:, np.lexsort((queries, -values, starts, ends))]
    again = (np.diff(table[0]) == 0) & (np.diff(table[1]) == 0)
    return _Windows(table[:, np.concatenate([[True], ~again])] if table.shape[1] else table)


def _of_query(problem: Problem, query: int) -> NDArray[np.int64]:
    """Rows starts, ends, values, costs, query of the windows of one query."""
    candidates = Candidates(problem, query)
    alive = np.arange(len(candidates.positions))
    highest = np.full(len(alive), np.iinfo(np.int64).min)  # sum up to the best end so far, for each first chunk
    tables = [np.empty((5, 0), dtype=np.int64)]
    step = 0
    while len(alive):
        ends = alive + step
        rising = candidates.after[ends] > highest[alive]
        highest[alive[rising]] = candidates.after[ends[rising]]
        first, last = alive[rising], ends[rising]
        values = candidates.after[last] - candidates.before[first]
        enough = (values >= problem.minimum_value) & (values > 0)
        first, last, values = first[enough], last[enough], values[enough]
        costs = candidates.cost_after[last] - candidates.cost_before[first]
        rows = [candidates.positions[first], candidates.positions[last] + 1, values, costs, np.full(len(first), query)]
        tables.append(np.stack(rows))
        step += 1
        alive = alive[alive + step <= candidates.last[alive]]
        alive = alive[candidates.before[alive + step] > candidates.before[alive]]
    return np.concatenate(tables, axis=1)


def _trace(
    windows: _Windows, best: NDArray[np.int64], taken: NDArray[np.int32], before: NDArray[np.int64]
) -> list[Segment]:
    """The windows behind the best value, by position."""
    row = len(taken)
    left = int(np.argmax(best[row]))  # values never fall with the budget: the first of the best
    chosen: list[Segment] = []
    while row:
        window = int(taken[row - 1, left])
        if window < 0:
            row -= 1
            continue
        chosen.append(
            Segment(
                int(windows.starts[window]),
                int(windows.ends[window]),
                floating_point(int(windows.values[window])),
                int(windows.queries[window]),
            )
        )
        left -= int(windows.costs[window])
        row = int(before[window])
    return chosen[::-1]
