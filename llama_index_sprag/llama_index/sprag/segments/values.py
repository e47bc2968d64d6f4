"""The value of each chunk of the considered documents for each query.

spRAG (SuperpoweredAI, 2024; later dsRAG), relevant segment extraction: a chunk at place r of a query's ranking, from 0,
with relevance s has the value

    v = exp(-r / decay_rate) * s - irrelevant_chunk_penalty,

and a chunk that was not retrieved ``-irrelevant_chunk_penalty``, the price of carrying one irrelevant chunk.
Then v is multiplied by a factor of the chunk's length l, with a reference length L:

    "bounded"      max(l, L) / L       (upstream's correction)
    "unbounded"    l / L               (version 0.2.0: a short chunk counts little, for good or ill)
    "none"         1

Ours, not in the published code: before the penalty, a chunk next to a hit is worth at least a share of the hit's worth.
Text next to an answer is often part of it, and a gap next to good hits costs less.

Deviations from version 0.2.0: chunks that were not retrieved have their true length, not a length of 0 that makes gaps
cost nothing; documents are ordered by their best rank and not by a set; a document does not end at its last retrieved
chunk (no segment could end after it anyhow).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.ragkit.errors import ConfigurationError

__all__ = [
    "ChunkRanking",
    "MetaDocument",
    "lay_out",
    "length_factors",
    "reference_length_of",
    "select_documents",
]


@dataclass(frozen=True)
class ChunkRanking:
    """The chunks that one query retrieved, best first.

    Attributes
    ----------
    documents : the document of each chunk
    chunks : shape (k,), the place of each chunk in its document, from 0
    relevance : shape (k,), calibrated, in [0, 1]
    """

    documents: Sequence[str]
    chunks: Sequence[int]
    relevance: ArrayLike

    def __post_init__(self) -> None:
        sizes = (len(self.documents), len(self.chunks), len(np.atleast_1d(np.asarray(self.relevance))))
        if len(set(sizes)) > 1:
            raise ConfigurationError(f"documents, chunks and relevance of a ranking have the lengths {sizes}.")


@dataclass(frozen=True)
class MetaDocument:
    """The considered documents, laid end to end.

    Attributes
    ----------
    documents : ids in the order in which they lie
    starts : int64, shape (n_documents + 1,), position of each document's first chunk, and the number of chunks
    values : float64, shape (n_queries, n_chunks)
    relevance : float64, shape (n_queries, n_chunks), in [0, 1]: ``exp(-r / decay_rate) * s``, 0 if not retrieved
    lengths : shape (n_chunks,), in the unit in which they were given
    """

    documents: tuple[str, ...]
    starts: NDArray[np.int64]
    values: NDArray[np.float64]
    relevance: NDArray[np.float64]
    lengths: NDArray[np.int64]

    @property
    def first(self) -> dict[str, int]:
        """The position of the first chunk of each document."""
        return dict(zip(self.documents, self.starts.tolist(), strict=False))

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number of the document of each chunk, shape (n_chunks,)."""
        return np.repeat(np.arange(len(self.documents)), np.diff(self.starts))

    def locate(self, position: int) -> tuple[str, int]:
        """The document of a position, and the place of the chunk in it."""
        number = int(np.searchsorted(self.starts, position, side="right")) - 1
        return self.documents[number], position - int(self.starts[number])


def select_documents(rankings: Sequence[Sequence[str]], top_k: int) -> list[str]:
    """The documents of the first `top_k` chunks of any query, by the best rank of each, then by id.

    Parameters
    ----------
    rankings : one per query: the document of each chunk, best first
    """
    best: dict[str, int] = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking[:top_k]):
            best[document] = min(rank, best.get(document, rank))
    return sorted(best, key=lambda document: (best[document], document))


def lay_out(
    rankings: Sequence[ChunkRanking],
    documents: Sequence[str],
    lengths: Sequence[ArrayLike],
    *,
    decay_rate: float,
    irrelevant_chunk_penalty: float,
    neighbor_relevance: float,
    length_adjustment: str,
    reference_length: float,
) -> MetaDocument:
    """The values of all chunks of the documents.

    Parameters
    ----------
    rankings : one per query; chunks of other documents keep their places in it
    documents : ids in the order in which to lay them, as :func:`select_documents` returns them
    lengths : for each document the lengths of all its chunks in order, in any one unit
    decay_rate : places after which a chunk is worth 1/e as much, above 0
    irrelevant_chunk_penalty : price of an irrelevant chunk, in [0, 1]
    neighbor_relevance : least worth of the chunks next to a hit, as a share of its worth, in [0, 1]
    length_adjustment : `"bounded"`, `"unbounded"` or `"none"`
    reference_length : in the unit of `lengths`, above 0

    Raises
    ------
    ConfigurationError
        If a ranking names a chunk that its document does not have.
    """
    per_document = [np.asarray(given, dtype=np.int64).reshape(-1) for given in lengths]
    starts = np.concatenate([[0], np.cumsum([len(given) for given in per_document], dtype=np.int64)])
    all_lengths = np.concatenate([np.empty(0, dtype=np.int64), *per_document])
    first = dict(zip(documents, starts[:-1].tolist(), strict=True))
    size = dict(zip(documents, map(len, per_document), strict=True))
    values = np.zeros((len(rankings), len(all_lengths)))
    for row, ranking in enumerate(rankings):
        worth = np.exp(-np.arange(len(ranking.chunks)) / decay_rate) * np.asarray(ranking.relevance, dtype=np.float64)
        for document, chunk, value in zip(ranking.documents, ranking.chunks, worth, strict=True):
            if document not in first:
                continue
            if not 0 <= chunk < size[document]:  # the chunk of another document would get its value
                raise ConfigurationError(
                    f"Document {document!r} has {size[document]} chunks, and chunk {chunk} of it was retrieved."
                )
            position = first[document] + chunk
            values[row, position] = max(values[row, position], value)  # a chunk that occurs twice counts once
    laid_out = MetaDocument(tuple(documents), starts, values, values.copy(), all_lengths)
    of_one_document = np.diff(laid_out.numbers) == 0
    lent = neighbor_relevance * values
    values[:, 1:] = np.maximum(values[:, 1:], lent[:, :-1] * of_one_document)
    values[:, :-1] = np.maximum(values[:, :-1], lent[:, 1:] * of_one_document)
    values -= irrelevant_chunk_penalty
    values *= length_factors(all_lengths, reference_length, length_adjustment)
    return laid_out


def reference_length_of(
    rankings: Sequence[ChunkRanking], documents: Sequence[str], lengths: Sequence[ArrayLike]
) -> float:
    """The median length of the retrieved chunks of the documents, each once; at least 1, and 1 if there is none."""
    given = {document: np.asarray(row).reshape(-1) for document, row in zip(documents, lengths, strict=True)}
    retrieved = {
        (document, chunk)
        for ranking in rankings
        for document, chunk in zip(ranking.documents, ranking.chunks, strict=True)
        if document in given and 0 <= chunk < len(given[document])
    }
    return max(1.0, float(np.median([given[document][chunk] for document, chunk in sorted(retrieved)] or [1])))


def length_factors(lengths: ArrayLike, reference_length: float, adjustment: str) -> NDArray[np.float64]:
    """The factor by which the value of each chunk is multiplied, shape of `lengths`.

    >>> [length_factors([70, 700, 1400], 700, how).tolist() for how in ("bounded", "unbounded", "none")]
    [[1.0, 1.0, 2.0], [0.1, 1.0, 2.0], [1.0, 1.0, 1.0]]
    """
    relative = np.asarray(lengths, dtype=np.float64) / reference_length
    if adjustment == "none":
        return np.ones_like(relative)
    return np.maximum(relative, 1.0) if adjustment == "bounded" else relative
