"""Relevant segment extraction: from rankings to segments, with the parameters of the method."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.sprag.config import SegmentConfig
from llama_index.sprag.segments.greedy import select_greedy
from llama_index.sprag.segments.optimal import select_optimal
from llama_index.sprag.segments.values import lay_out, reference_length_of
from llama_index.sprag.segments.windows import Segment

__all__ = ["RelevantSegment", "extract_segments"]


class RelevantSegment(NamedTuple):
    """A chosen run of chunks of a document.

    Attributes
    ----------
    start, end : positions of its chunks, the end exclusive
    value : sum of the values of its chunks
    query : number of the query for which it was chosen
    relevance : that of its most relevant chunk for any query, in [0, 1]
    values : those of its chunks for the query
    """

    start: int
    end: int
    value: float
    query: int
    relevance: float
    values: list[float]


def extract_segments(
    places: Sequence[NDArray[np.intp]],
    relevance: Sequence[ArrayLike],
    owners: NDArray[np.int64],
    lengths: NDArray[np.int64],
    config: SegmentConfig,
) -> list[RelevantSegment]:
    """The relevant segments of some documents, laid end to end, for one or more queries.

    They are in the order in which they were found, or by position if the choice is optimal; those that only fill the
    budget, of any value, come last. Parameters as for :func:`~llama_index.sprag.segments.values.lay_out`; lengths are
    in tokens if the config counts tokens, else in characters.
    """
    if not places:
        return []
    published, reference = config.published, config.published.reference_length
    if reference is None:
        reference = reference_length_of(places, lengths)
    values, worth = lay_out(
        places,
        relevance,
        owners,
        lengths,
        decay_rate=config.decay_rate_for(reference),
        irrelevant_chunk_penalty=config.irrelevant_chunk_penalty,
        neighbor_relevance=config.neighbor_relevance_for(reference),
        length_adjustment=published.length_adjustment,
        reference_length=reference,
    )
    costs = lengths if config.length_unit == "tokens" else np.ones_like(lengths)
    budget = config.overall_max_length + published.overall_max_length_extension * (len(places) - 1)
    nearest = {query: int(where[0]) for query, where in enumerate(places) if where[:1].max(initial=-1) >= 0}
    chosen = _select(values, owners, costs, budget, config, nearest if published.nearest_first else {})
    if config.fill:
        chosen += _fill(chosen, places, values, costs, budget)
    return [
        RelevantSegment(
            *each, float(worth[:, each.start : each.end].max()), values[each.query, each.start : each.end].tolist()
        )
        for each in chosen
    ]


def _select(
    values: NDArray[np.float64],
    owners: NDArray[np.int64],
    costs: NDArray[np.int64],
    budget: int,
    config: SegmentConfig,
    nearest: Mapping[int, int],
) -> list[Segment]:
    """The chosen segments; those with the nearest chunks of queries take precedence if they have the minimum value."""
    bonus = float(np.ceil(1 + np.abs(values).sum()))  # more than any other segment can be worth
    raised = values.copy()
    for query, position in nearest.items():
        raised[query, position] += bonus
    select = select_optimal if config.selection == "optimal" else select_greedy
    found = select(
        raised,
        owners,
        costs,
        max_length=config.segment_length,
        overall_max_length=budget,
        minimum_value=config.minimum_value,
    )
    chosen = []
    worthy = dict(nearest)
    for segment in found:
        if segment.start <= nearest.get(segment.query, -1) < segment.end:
            segment = segment._replace(value=segment.value - bonus)
            if segment.value < config.minimum_value:
                del worthy[segment.query]
        chosen.append(segment)
    return chosen if len(worthy) == len(nearest) else _select(values, owners, costs, budget, config, worthy)


def _fill(
    chosen: Sequence[Segment],
    places: Sequence[NDArray[np.intp]],
    values: NDArray[np.float64],
    costs: NDArray[np.int64],
    budget: int,
) -> list[Segment]:
    """Retrieved chunks that are in no segment and fit the rest: the first of each query, then the second, ..."""
    free = np.ones(len(costs), dtype=bool)
    for segment in chosen:
        free[segment.start : segment.end] = False
    left = budget - int(costs[~free].sum())
    ranked = [
        (rank, query, position)
        for query, where in enumerate(places)
        for rank, position in enumerate(where.tolist())
        if position >= 0
    ]
    filling = []
    for _, query, position in sorted(ranked):
        if free[position] and costs[position] <= left:
            free[position] = False
            left -= int(costs[position])
            filling.append(Segment(position, position + 1, float(values[query, position]), query))
    return filling
