"""The relevant segments of the documents of the best chunks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.question_scores import squashed
from llama_index.sprag.config import SegmentConfig
from llama_index.sprag.documents import DocumentEntry
from llama_index.sprag.relevance.calibration import calibration_of
from llama_index.sprag.segments.relevant_segments import extract_segments
from llama_index.sprag.segments.values import select_documents

__all__ = ["FoundSegment", "RankedChunks", "documents_considered", "find_segments"]


@dataclass(frozen=True)
class RankedChunks:
    """The chunks that one query found."""

    ids: Sequence[str]  # best first
    scores: NDArray[np.float64]  # shape (k,), NaN for a chunk without a score
    reranked: bool = False  # whether the scores are those of a reranker


@dataclass(frozen=True)
class FoundSegment:
    """A segment; segments are sorted by their scores, in [0, 1], higher is better.

    The score is (1 + s / (1 + abs(s))) / 2 if they are sorted by value s, else the relevance of their most relevant
    chunk; if relevance goes by rank, the retriever shows the nearness of the nearest chunk instead.
    """

    document: str  # its key
    start: int  # number of its first chunk in the document
    chunks: Sequence[str]  # ids in reading order
    values: Sequence[float]  # of each chunk for the query
    value: float  # their sum
    score: float
    query: int  # number of the query for which it was chosen
    ranks: Sequence[int | None]  # of each chunk in the ranking of that query, from 0; None if it was not found


def documents_considered(
    rankings: Sequence[RankedChunks],
    place_of: Callable[[str], tuple[str, int] | None],
    config: SegmentConfig,
    documents: Mapping[str, DocumentEntry],
) -> list[str]:
    """The documents from which segments are taken: those of the first chunks of each query.

    If the budget is to be filled and the retrieved chunks of these documents are too short for that, for example
    because each passage is a document, the documents of twice as many chunks are taken, and so on. The result is final
    if it names only known `documents`. Otherwise it also names documents that are probably needed, so that few reads
    suffice.
    """
    ranked = [[place for i in ranking.ids if (place := place_of(i)) is not None] for ranking in rankings]
    by_document = [[key for key, _ in places] for places in ranked]
    found = {place for places in ranked for place in places}
    top_k, most = config.published.top_k_for_document_selection, max(map(len, ranked), default=0)
    needed = top_k
    while True:
        considered = select_documents(by_document, top_k)
        if not config.fill or top_k >= most:
            return considered
        if any(key not in documents for key in considered):
            return select_documents(by_document, max(top_k, needed))
        wanted = set(considered)
        in_tokens = config.length_unit == "tokens"
        length = sum(int(documents[key].tokens[n]) if in_tokens else 1 for key, n in found if key in wanted)
        if length >= config.overall_max_length:
            return considered
        needed = 2 * top_k * config.overall_max_length // max(1, length)  # twice as many as if the next are as long
        top_k *= 2


def find_segments(
    rankings: Sequence[RankedChunks],
    documents: Mapping[str, DocumentEntry],
    place_of: Callable[[str], tuple[str, int] | None],
    config: SegmentConfig,
    shown: Callable[[str], bool] | None = None,
) -> list[FoundSegment]:
    """Segments of the documents of the best chunks, best first by `config.order`; `"document"` counts as `"nearness"`.

    A segment contains no chunk that may not be shown, and does not cross a place where the order is unknown.

    Parameters
    ----------
    rankings : one per query
    place_of : chunk -> its document, and its number in it; None for a deleted chunk
    shown : whether a chunk may be part of a segment; None for all
    """
    relevance = [
        np.asarray(calibration_of(config.calibration, ranking.scores, reranked=ranking.reranked)(ranking.scores))
        for ranking in rankings
    ]
    considered = documents_considered(rankings, place_of, config, documents)
    at: list[tuple[str, int]] = []  # the document, and the number in it, of each chunk that may be shown
    owners: list[int] = []  # the number of its run of chunks that continue each other
    lengths: list[int] = []
    for key in considered:
        document, last = documents[key], -2
        sizes = document.tokens if config.length_unit == "tokens" else document.characters
        for number, (chunk, goes_on, size) in enumerate(
            zip(document.chunks, document.goes_on, sizes.tolist(), strict=True)
        ):
            if shown is None or shown(chunk):
                is_next = goes_on and last == number - 1
                owners.append(owners[-1] + (not is_next) if owners else 0)
                lengths.append(size)
                at.append((key, number))
                last = number
    position = {place: i for i, place in enumerate(at)}
    # Chunks of other documents keep their places in the rankings.
    places = [
        np.array([-1 if (p := place_of(i)) is None else position.get(p, -1) for i in ranking.ids], np.intp)
        for ranking in rankings
    ]
    rank_of = [{i: rank for rank, i in reversed(list(enumerate(ranking.ids)))} for ranking in rankings]
    found = []
    for segment in extract_segments(places, relevance, np.array(owners, np.int64), np.array(lengths, np.int64), config):
        key, start = at[segment.start]
        ids = documents[key].chunks[start : start + segment.end - segment.start]
        found.append(
            FoundSegment(
                document=key,
                start=start,
                chunks=ids,
                values=segment.values,
                value=segment.value,
                score=float(squashed(np.array(segment.value))) if config.order == "value" else segment.relevance,
                query=segment.query,
                ranks=[rank_of[segment.query].get(i) for i in ids],
            )
        )
    order = {document: number for number, document in enumerate(considered)}
    return sorted(
        found,
        key=lambda each: (-round(each.score, 9), -round(each.value, 9), order[each.document], each.start),
    )
