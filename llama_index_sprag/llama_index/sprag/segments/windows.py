"""Runs of neighbouring chunks: the definition of a segment, and exact sums of chunk values.

The documents that are considered lie end to end; *position* i is chunk i of that sequence. A *window* [start, end) may
become a segment if

- its first and its last chunk have values of at least 0,
- all its chunks are of one document, and
- it costs at most `max_length`, or is a single chunk.

Values are rounded to multiples of 2**-32 and added as whole numbers, so a sum does not depend on the order of addition.
Ties are ties on every machine, and prefix sums select exactly what adding chunk by chunk selects.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_count, check_number

__all__ = ["Candidates", "Problem", "Segment", "fixed_point", "floating_point"]

_SCALE = 2.0**32
_LARGEST = 2.0**62


class Segment(NamedTuple):
    """A chosen run of chunks."""

    start: int  # position of its first chunk
    end: int  # exclusive
    value: float  # sum of the values of its chunks
    query: int  # number of the query for which it was chosen


def fixed_point(values: ArrayLike) -> NDArray[np.int64]:
    """Values as whole multiples of 2**-32."""
    return np.rint(np.asarray(values, dtype=np.float64) * _SCALE).astype(np.int64)


def floating_point(value: int) -> float:
    """The inverse of :func:`fixed_point` for one number."""
    return float(value) / _SCALE


class Problem:
    """The checked input from which segments are chosen.

    Attributes
    ----------
    value_sums : int64, shape (n_queries, n_chunks + 1), fixed-point sums of the values before each position
    cost_sums : int64, shape (n_chunks + 1,), costs before each position
    document_ends : int64, shape (n_chunks,), for each position the end of its document
    max_length, overall_max_length : see :func:`~llama_index.sprag.segments.greedy.select_greedy`
    minimum_value : fixed point
    """

    def __init__(
        self,
        values: ArrayLike,
        documents: ArrayLike,
        costs: ArrayLike | None,
        max_length: int,
        overall_max_length: int,
        minimum_value: float,
    ) -> None:
        table = np.atleast_2d(np.asarray(values, dtype=np.float64))
        owners = np.asarray(documents)
        if table.ndim != 2 or not len(table) or owners.shape != (table.shape[1],):
            raise ConfigurationError(
                f"values has the shape {table.shape} and documents {owners.shape}; "
                "give values of shape (n_queries, n_chunks) and a document for each chunk."
            )
        price = np.ones(len(owners), dtype=np.int64) if costs is None else np.asarray(costs)
        if price.shape != owners.shape or price.dtype.kind not in "iu" or (price < 0).any():
            raise ConfigurationError("costs must be whole numbers of at least 0, one for each chunk.")
        if (owners[1:] < owners[:-1]).any():
            raise ConfigurationError("documents must not decrease: lay the chunks of each document side by side.")
        if not np.isfinite(table).all() or np.abs(table).sum() * _SCALE >= _LARGEST:
            raise ConfigurationError(f"values must be finite, and sum up to less than {_LARGEST / _SCALE:g}.")
        self.value_sums = np.zeros((table.shape[0], table.shape[1] + 1), dtype=np.int64)
        np.cumsum(fixed_point(table), axis=1, out=self.value_sums[:, 1:])
        self.cost_sums = np.concatenate([[0], np.cumsum(price, dtype=np.int64)])
        self.document_ends = np.searchsorted(owners, owners, side="right").astype(np.int64)
        self.max_length = check_count("max_length", max_length, 1)
        self.overall_max_length = check_count("overall_max_length", overall_max_length, 1)
        self.minimum_value = int(fixed_point(check_number("minimum_value", minimum_value, 0)))

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.value_sums)


class Candidates:
    """The chunks that may begin or end a segment of one query, those with a value of at least 0, by place.

    Attributes
    ----------
    positions : int64, shape (m,)
    before, after : int64, shape (m,), fixed-point sums of the values before each chunk, and up to its end
    cost_before, cost_after : int64, shape (m,), the same for costs
    last : int64, shape (m,), for each as first chunk of a segment, the place of its last possible end
    """

    def __init__(self, problem: Problem, query: int) -> None:
        sums = problem.value_sums[query]
        self.positions = np.flatnonzero(sums[1:] >= sums[:-1])
        self.before, self.after = sums[self.positions], sums[self.positions + 1]
        self.cost_before = problem.cost_sums[self.positions]
        self.cost_after = problem.cost_sums[self.positions + 1]
        places = np.arange(len(self.positions))
        of_document = np.searchsorted(self.positions, problem.document_ends[self.positions]) - 1
        self.last = np.minimum(of_document, np.maximum(self.within(problem.max_length, places), places))

    def within(self, length: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last places so that all from `places` on cost at most `length`; before them if one costs more."""
        return np.searchsorted(self.cost_after, self.cost_before[places] + length, side="right") - 1
