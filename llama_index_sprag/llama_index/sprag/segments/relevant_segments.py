"""Relevant segment extraction: from rankings to segments, with the parameters of the method."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.sprag.config import SegmentConfig
from llama_index.sprag.segments.greedy import select_greedy
from llama_index.sprag.segments.optimal import select_optimal
from llama_index.sprag.segments.values import ChunkRanking, MetaDocument, lay_out, reference_length_of
from llama_index.sprag.segments.windows import Segment

__all__ = ["RelevantSegment", "extract_segments"]


class RelevantSegment(NamedTuple):
    """A chosen run of chunks of a document.

    Attributes
    ----------
    document : its id
    start, end : places of its chunks in the document, the end exclusive
    value : sum of the values of its chunks
    query : number of the query for which it was chosen
    relevance : that of its most relevant chunk for any query, in [0, 1]
    values : those of its chunks for the query
    """

    document: str
    start: int
    end: int
    value: float
    query: int
    relevance: float
    values: list[float]


def extract_segments(
    rankings: Sequence[ChunkRanking],
    documents: Sequence[str],
    lengths: Sequence[ArrayLike],
    config: SegmentConfig,
) -> list[RelevantSegment]:
    """The relevant segments of some documents for one or more queries.

    They are in the order in which they were found, or by position if the choice is optimal; those that only fill the
    budget, of any value, come last.

    Parameters
    ----------
    rankings : one per query
    documents : ids, as :func:`~llama_index.sprag.segments.values.select_documents` returns them
    lengths : for each document the lengths of all its chunks in order: in tokens if the config counts tokens, else in
        characters
    """
    published, reference = config.published, config.published.reference_length
    if reference is None:
        reference = reference_length_of(rankings, documents, lengths)
    laid_out = lay_out(
        rankings,
        documents,
        lengths,
        decay_rate=config.decay_rate_for(reference),
        irrelevant_chunk_penalty=config.irrelevant_chunk_penalty,
        neighbor_relevance=config.neighbor_relevance_for(reference),
        length_adjustment=published.length_adjustment,
        reference_length=reference,
    )
    costs = laid_out.lengths if config.length_unit == "tokens" else np.ones_like(laid_out.lengths)
    budget = config.overall_max_length + published.overall_max_length_extension * max(0, len(rankings) - 1)
    chosen: list[Segment] = []
    if rankings:
        nearest = _nearest(rankings, laid_out) if published.nearest_first else {}
        chosen = _select(laid_out, costs, budget, config, nearest)
    if config.fill:
        chosen += _fill(chosen, rankings, laid_out, costs, budget)
    found = []
    for segment in chosen:
        document, start = laid_out.locate(segment.start)
        end = start + segment.end - segment.start
        relevance = float(laid_out.relevance[:, segment.start : segment.end].max())
        values = laid_out.values[segment.query, segment.start : segment.end].tolist()
        found.append(RelevantSegment(document, start, end, segment.value, segment.query, relevance, values))
    return found


def _nearest(rankings: Sequence[ChunkRanking], laid_out: MetaDocument) -> dict[int, int]:
    """For each query, the position of its nearest chunk, if that is in one of the documents."""
    first = laid_out.first
    return {
        query: first[ranking.documents[0]] + ranking.chunks[0]
        for query, ranking in enumerate(rankings)
        if len(ranking.documents) and ranking.documents[0] in first
    }


def _select(
    laid_out: MetaDocument,
    costs: NDArray[np.int64],
    budget: int,
    config: SegmentConfig,
    nearest: Mapping[int, int],
) -> list[Segment]:
    """The chosen segments; those with the nearest chunks take precedence if they have the minimum value."""
    bonus = float(np.ceil(1 + np.abs(laid_out.values).sum()))  # more than any other segment can be worth
    values = laid_out.values.copy()
    for query, position in nearest.items():
        values[query, position] += bonus
    select = select_optimal if config.selection == "optimal" else select_greedy
    found = select(
        values,
        laid_out.numbers,
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
    return chosen if len(worthy) == len(nearest) else _select(laid_out, costs, budget, config, worthy)


def _fill(
    chosen: Sequence[Segment],
    rankings: Sequence[ChunkRanking],
    laid_out: MetaDocument,
    costs: NDArray[np.int64],
    budget: int,
) -> list[Segment]:
    """Retrieved chunks that are in no segment and fit the rest: the first of each query, then the second, ..."""
    free = np.ones(len(costs), dtype=bool)
    for segment in chosen:
        free[segment.start : segment.end] = False
    left = budget - int(costs[~free].sum())
    first = laid_out.first
    places = [
        (rank, query, first[document] + chunk)
        for query, ranking in enumerate(rankings)
        for rank, (document, chunk) in enumerate(zip(ranking.documents, ranking.chunks, strict=True))
        if document in first
    ]
    filling = []
    for _, query, position in sorted(places):
        if free[position] and costs[position] <= left:
            free[position] = False
            left -= int(costs[position])
            filling.append(Segment(position, position + 1, float(laid_out.values[query, position]), query))
    return filling
