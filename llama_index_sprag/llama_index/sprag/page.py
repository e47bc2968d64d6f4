"""The HTML page: each document as a strip of its chunks, with their values and the segments that were chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Facts, Grid, Group, Node, Page, Result, Results
from llama_index.sprag.documents import DocumentEntry
from llama_index.sprag.retriever import SpRAGFound
from llama_index.sprag.segment_search import FoundSegment
from llama_index.sprag.state import SpRAGState

__all__ = ["chunks_to_show", "documents_to_show", "page_of"]

_DOCUMENTS = 12  # strips around a question
_LONGEST = 40  # strips without one
_COLUMNS = 40  # longer documents have several chunks in a column
_SNIPPET = 140
_NAME = 40


def chunks_to_show(state: SpRAGState, query: LastQuery | None) -> list[str]:
    """The chunks whose texts the page needs."""
    return [chunk for segment in _chosen(state, query) for chunk in segment.chunks]


def documents_to_show(state: SpRAGState, query: LastQuery | None) -> list[str]:
    """The documents of the page: those around the last question, or the longest ones."""
    if query is None:
        longest = sorted(state.documents.values(), key=lambda document: (-len(document.chunks), document.key))
        return [document.key for document in longest[:_LONGEST]]
    keys = dict.fromkeys(segment.document for segment in _chosen(state, query))
    for ranking in query.found.rankings:
        keys.update(dict.fromkeys(place[0] for chunk in ranking.ids if (place := state.place(chunk)) is not None))
    return list(keys)[:_DOCUMENTS]


def page_of(state: SpRAGState, texts: Mapping[str, str], query: LastQuery | None, counters: Mapping[str, int]) -> Page:
    """The documents around the last question, or the longest ones; `texts` are those of :func:`chunks_to_show`."""
    segments = _chosen(state, query)
    documents = [state.documents[key] for key in documents_to_show(state, query) if key in state.documents]
    longest = max((len(document.chunks) for document in documents), default=1)
    step = -(-longest // _COLUMNS)
    width = -(-longest // step)
    columns = [
        Node(
            id=f"column {i}",
            label=str(i * step) if step == 1 else f"{i * step}–{min((i + 1) * step, longest) - 1}",
            text=f"Chunk {i * step} of each document"
            if step == 1
            else f"Several chunks of each document: {'their mean' if query is None else 'the best counts'}",
            group="chunk",
        )
        for i in range(width)
    ]
    rows: list[Node] = []
    values: list[NDArray[np.float64]] = []
    for document in documents:
        rows.append(_row(document))
        values.append(_binned(_worth(state, document, query), step, width, np.nanmean if query is None else np.nanmax))
        mine = [segment for segment in segments if segment.document == document.key]
        if mine:
            rows.append(_chosen_row(document, mine, texts))
            values.append(_binned(_in_segments(document, mine), step, width, np.nanmax))
    panels: list[Facts | Results] = []
    if query is not None:
        panels.append(Results("Retrieved", [_result(state, segment, texts) for segment in segments]))
    names = {
        "documents": "documents",
        "chunks": "chunks",
        "contexts": "chunks with a header",
        "failed": "documents not described by the extractor",
    }
    facts = {shown: counters[name] for name, shown in names.items() if counters.get(name)}
    if facts:
        panels.append(Facts("The index", facts))
    return Page(
        title="spRAG segments",
        subtitle=f"Question: {query.question}" if query is not None else "The longest documents, chunk by chunk",
        view=Grid(
            rows=rows,
            columns=columns,
            values=np.array(values) if values else np.zeros((0, width)),
            label="relevance by rank" if query is not None else "tokens",
            groups=[
                Group("document", "Document: how near each chunk is" if query else "Document: how long each chunk is"),
                Group("segment", "Its chosen segments"),
                Group("chunk", "Chunk of a document"),
            ],
        ),
        panels=panels,
        highlight_label="Chosen segments",
    )


def _chosen(state: SpRAGState, query: LastQuery | None) -> list[FoundSegment]:
    """The segments of the answer; a chunk of `mode="chunks"` is a segment of its own."""
    if query is None:
        return []
    found: SpRAGFound = query.found
    answered = dict(query.answer)
    if found.segments:
        return [_placed(state, segment) for segment in found.segments[: len(answered)]]
    places = [(chunk, state.place(chunk), score) for chunk, score in query.answer]
    return [
        FoundSegment(*at, [chunk], [score], score, score, 0, [None]) for chunk, at, score in places if at is not None
    ]


def _placed(state: SpRAGState, segment: FoundSegment) -> FoundSegment:
    """A segment by its place among the chunks of its document that are shown."""
    place = state.place(segment.chunks[0]) if segment.document in state.documents else None
    return segment if place is None else replace(segment, start=place[1])


def _worth(state: SpRAGState, document: DocumentEntry, query: LastQuery | None) -> NDArray[np.float64]:
    """Of each chunk its best relevance by rank for any query, NaN where it was not found; its length without one."""
    if query is None:
        return document.tokens.astype(np.float64)
    worth = np.full(len(document.chunks), np.nan)
    number = {chunk: i for i, chunk in enumerate(document.chunks)}
    for ranking in query.found.rankings:
        for rank, chunk in enumerate(ranking.ids):
            if chunk in number:
                worth[number[chunk]] = np.fmax(worth[number[chunk]], 1 - rank / len(ranking.ids))
    return worth


def _in_segments(document: DocumentEntry, segments: Sequence[FoundSegment]) -> NDArray[np.float64]:
    values = np.full(len(document.chunks), np.nan)
    for segment in segments:
        values[segment.start : segment.start + len(segment.chunks)] = 1.0
    return values


def _binned(
    values: NDArray[np.float64], step: int, width: int, together: Callable[[NDArray[np.float64]], Any]
) -> NDArray[np.float64]:
    """The values of several chunks as one; NaN where no chunk has a value."""
    parts = [part[~np.isnan(part)] for part in (values[step * i : step * (i + 1)] for i in range(width))]
    return np.array([together(part) if len(part) else np.nan for part in parts])


def _name(document: DocumentEntry) -> str:
    """Its title, or how it begins."""
    return document.title or shorten(document.summary, _NAME, placeholder="…") or document.chunks[0]


def _row(document: DocumentEntry) -> Node:
    details: dict[str, Any] = {"chunks": len(document.chunks), "tokens": int(document.tokens.sum())}
    if document.by:
        details["described by"] = document.by
    return Node(
        id=document.key,
        label=_name(document),
        text=document.summary or document.error,
        group="document",
        details=details,
    )


def _chosen_row(document: DocumentEntry, segments: Sequence[FoundSegment], texts: Mapping[str, str]) -> Node:
    text = "\n\n".join(
        f"Chunks {segment.start} to {segment.start + len(segment.chunks) - 1}:\n{_text(segment, texts)}"
        for segment in segments
    )
    return Node(
        id=f"segments of {document.key}",
        label="chosen",
        text=text,
        group="segment",
        score=max(segment.score for segment in segments),
        highlighted=True,
        details={"segments": len(segments)},
    )


def _result(state: SpRAGState, segment: FoundSegment, texts: Mapping[str, str]) -> Result:
    last = segment.start + len(segment.chunks) - 1
    where = f"chunk {segment.start}" if last == segment.start else f"chunks {segment.start} to {last}"
    return Result(
        f"{_name(state.documents[segment.document])}, {where}" if segment.document in state.documents else where,
        snippet=shorten(_text(segment, texts), _SNIPPET, placeholder="…"),
        score=segment.score,
        node=f"segments of {segment.document}",
    )


def _text(segment: FoundSegment, texts: Mapping[str, str]) -> str:
    return "\n".join(texts[chunk] for chunk in segment.chunks if chunk in texts)
