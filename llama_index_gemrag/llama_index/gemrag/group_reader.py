"""`GroupReader` reads the chunks of a group and their memory graph for one write."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.memory_graph import MemoryGraph, question_means, unit_rows
from llama_index.gemrag.layer import Layer
from llama_index.gemrag.memory_rows import QUESTIONS, SHORT, MemoryRows
from llama_index.gemrag.state import Theme
from llama_index.gemrag.themes.eigenthemes import find_clusters, find_themes, most_themes
from llama_index.gemrag.themes.grouping import NO_DOCUMENT, SHORT_DOCUMENTS, own_groups
from llama_index.gemrag.themes.spectrum import STREAMED_FROM
from llama_index.ragkit import Steps, offload
from llama_index.ragkit.storage.index_storage import IndexStorage

__all__ = ["GroupReader"]

_AT_ONCE = 1_000  # chunks in one request
_EXACT_BELOW = 5_000  # nodes of a graph; for fewer, double precision is cheap


class GroupReader:
    """Reads the current state of groups."""

    def __init__(self, storage: IndexStorage, rows: MemoryRows, config: MemoryConfig) -> None:
        self._storage = storage
        self._rows = rows
        self._config = config
        self._chunks, self._questions = storage.space(), storage.space(QUESTIONS)
        chunks, questions = self._chunks.whole(), self._questions.whole()
        self._whole = None if chunks is None or questions is None else Layer(chunks, questions)
        self.holds_all = self._whole is not None
        self._by_own: Mapping[str, Sequence[str]] | None = None

    def themes(self, group: str) -> Steps[list[Theme]]:
        """The current themes of a group, in the order of their eigenvalues."""
        chunks = yield from self.chunks(group)
        if not most_themes(self._config, len(chunks)):
            return []
        graph = yield from self.graph(chunks)
        return (yield from offload(_themes, graph, group, chunks, self._config))

    def chunks(self, group: str) -> Steps[list[str]]:
        """The chunks of a group in their canonical order, which does not depend on when they were inserted."""
        return (yield from self.in_order((yield from self._chunks_of(group))))

    def _chunks_of(self, group: str) -> Steps[Sequence[str]]:
        """The chunks of a group: of its documents if documents are groups, else found by metadata."""
        owns = (yield from self._rows.names(SHORT)) if group == SHORT_DOCUMENTS else [group]
        values = [json.loads(own) for own in owns]
        if self._config.group_by == "ref_doc_id" and NO_DOCUMENT not in values:
            return (yield from self._storage.manifest.nodes_of_documents(values))
        if self._by_own is None:
            rows, by_own = (yield from self._chunks.described()), defaultdict[str, list[str]](list)
            for row_id, own in zip(rows.ids, own_groups(rows, self._config.group_by), strict=True):
                by_own[own].append(row_id)
            self._by_own = by_own
        return [row_id for own in owns for row_id in self._by_own.get(own, ())]

    def in_order(self, chunks: Sequence[str]) -> Steps[list[str]]:
        """The existing chunks among these, in their canonical order."""
        keys: list[tuple[str, str]] = []
        for some in _parts(chunks):
            found = yield from self._chunks.described(some)
            keys += [(record.key, record.id) for record in found.records]
        return [chunk for _, chunk in sorted(keys)]

    def graph(self, chunks: Sequence[str]) -> Steps[MemoryGraph]:
        """The memory graph of chunks, at least one, in the order of the rows.

        The vectors of chunks and questions are read part by part, and only the two factors of the graph are kept. From
        `STREAMED_FROM` chunks on, a temporary file holds the factors: the spectrum is then computed from blocks of
        rows, so the system keeps in memory only as much of the file as it can spare.
        """
        a = b = np.empty((0, 0))
        times = np.ones(len(chunks))
        start = 0
        kind = np.float64 if len(chunks) < _EXACT_BELOW else np.float32
        for some in _parts(chunks):
            factors = partial(_factors, (yield from self._layer(some)), some, self._config, kind)
            part_a, part_b, asked = yield from offload(factors)
            if not start:
                a, b = _empty(len(chunks), part_b), _empty(len(chunks), part_b)
            a[start : start + len(some)], b[start : start + len(some)] = part_a, part_b
            times[start : start + len(some)] = np.maximum(asked, 1) if self._config.paper else 1
            start += len(some)
        return (yield from offload(MemoryGraph.of, a, b, self._config.paper, times))

    def _layer(self, chunks: Sequence[str]) -> Steps[Layer]:
        """A layer that contains these chunks with all of their questions."""
        if self._whole is not None:
            return self._whole
        texts = yield from self._chunks.fetch(chunks)
        ids = (yield from self._rows.questions_of(QUESTIONS, chunks)).values()
        return Layer(texts, (yield from self._questions.fetch(row_id for of_chunk in ids for row_id in of_chunk)))


def _themes(graph: MemoryGraph, group: str, chunks: Sequence[str], config: MemoryConfig) -> list[Theme]:
    found = find_themes(graph, config) if config.themes == "spectral" else find_clusters(graph, config)
    return [Theme(group, tuple(chunks[row] for row in rows), tuple(weights.tolist())) for rows, weights in found]


def _factors(
    layer: Layer, chunks: Sequence[str], config: MemoryConfig, kind: type[np.floating[Any]]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.intp]]:
    """The rows of A and B of the memory graph, each of shape (len(chunks), d), and the numbers of their questions.

    See :mod:`graph.memory_graph`.
    """
    texts = unit_rows(layer.texts.vectors_of(chunks).astype(kind))
    question_rows, owners = layer.questions_of(layer.texts.rows_of(chunks))
    ids = [layer.questions.ids[row] for row in question_rows]
    questions = layer.questions.vectors_of(ids) if ids else texts[:0]
    means = question_means(texts, unit_rows(questions), owners, config.blend, config.paper)
    return means, texts, np.bincount(owners, minlength=len(chunks))


def _parts(chunks: Sequence[str]) -> Iterator[Sequence[str]]:
    return (chunks[start : start + _AT_ONCE] for start in range(0, len(chunks), _AT_ONCE))


def _empty(rows: int, like: NDArray[Any]) -> NDArray[Any]:
    """An array of so many rows, in a temporary file if there are many."""
    shape = (rows, like.shape[1])
    if rows < STREAMED_FROM:
        return np.empty(shape, like.dtype)
    with TemporaryFile() as file:  # deleted with the array
        return np.memmap(file, like.dtype, "w+", shape=shape)
