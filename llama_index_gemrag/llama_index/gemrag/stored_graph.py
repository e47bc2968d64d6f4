"""The memory graph of a group of chunks whose vectors are in stores."""

from collections.abc import Iterator, Sequence
from functools import partial
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.memory_graph import MemoryGraph
from llama_index.gemrag.layer import Layer
from llama_index.gemrag.question_writer import QUESTIONS
from llama_index.gemrag.stored_state import MemoryReader
from llama_index.gemrag.stored_writers import CHUNKS
from llama_index.gemrag.themes.groups import factors_of, precision
from llama_index.gemrag.themes.spectrum import STREAMED_FROM
from llama_index.ragkit import Steps, offload

__all__ = ["in_canonical_order", "read_graph"]

_AT_ONCE = 1_000  # chunks in one request


def in_canonical_order(reader: MemoryReader, chunks: Sequence[str]) -> Steps[list[str]]:
    """Chunks in the order of their rows in a graph, which does not depend on when they were inserted."""
    keys: list[tuple[str, str]] = []
    for some in _parts(chunks):
        found = yield from reader.storage.stored[CHUNKS].described(some)
        keys += [(record.key, record.id) for record in found.records]
    return [chunk for _, chunk in sorted(keys)]


def read_graph(reader: MemoryReader, chunks: Sequence[str], config: MemoryConfig) -> Steps[MemoryGraph]:
    """The memory graph of chunks, as :func:`~llama_index.gemrag.themes.groups.graph_of` makes it in memory.

    Their vectors and those of their questions are read part by part. What is kept of them are the two factors of the
    graph; from `STREAMED_FROM` chunks on in a temporary file, since the spectrum is computed from blocks of rows, so
    that memory holds what the system can spare of it.

    Parameters
    ----------
    chunks : at least one, in the order of the rows
    """
    a = b = np.empty((0, 0))
    start = 0
    for some in _parts(chunks):
        texts = yield from reader.storage.stored[CHUNKS].fetch(some)
        layer = Layer(texts, (yield from reader.questions(QUESTIONS, some)))
        factors = partial(factors_of, layer, texts.rows_of(some), config, precision(len(chunks)))
        part_a, part_b = yield from offload(factors)
        if not start:
            a, b = _empty(len(chunks), part_b), _empty(len(chunks), part_b)
        a[start : start + len(some)], b[start : start + len(some)] = part_a, part_b
        start += len(some)
    return (yield from offload(MemoryGraph.of, a, b, config.paper))


def _parts(chunks: Sequence[str]) -> Iterator[Sequence[str]]:
    return (chunks[start : start + _AT_ONCE] for start in range(0, len(chunks), _AT_ONCE))


def _empty(rows: int, like: NDArray[Any]) -> NDArray[Any]:
    """An array of so many rows, in a temporary file where they are many."""
    shape = (rows, like.shape[1])
    if rows < STREAMED_FROM:
        return np.empty(shape, like.dtype)
    with TemporaryFile() as file:  # deleted with the array
        return np.memmap(file, like.dtype, "w+", shape=shape)
