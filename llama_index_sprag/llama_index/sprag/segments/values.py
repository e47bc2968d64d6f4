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

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["lay_out", "length_factors", "reference_length_of", "select_documents"]


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
    places: Sequence[NDArray[np.intp]],
    relevance: Sequence[ArrayLike],
    owners: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    decay_rate: float,
    irrelevant_chunk_penalty: float,
    neighbor_relevance: float,
    length_adjustment: str,
    reference_length: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The values of all chunks of the considered documents, which are laid end to end.

    Parameters
    ----------
    places : one per query, shape (k,): the positions of the chunks that it retrieved, best first, each from 0; -1 for a
        chunk of another document, which keeps its place in the ranking
    relevance : one per query, shape (k,), calibrated, in [0, 1]
    owners : shape (n_chunks,), the number of the document of each chunk, never decreasing
    lengths : shape (n_chunks,), in any one unit
    decay_rate : places after which a chunk is worth 1/e as much, above 0
    irrelevant_chunk_penalty : price of an irrelevant chunk, in [0, 1]
    neighbor_relevance : least worth of the chunks next to a hit, as a share of its worth, in [0, 1]
    length_adjustment : `"bounded"`, `"unbounded"` or `"none"`
    reference_length : in the unit of `lengths`, above 0

    Returns
    -------
    values : shape (n_queries, n_chunks)
    worth : shape (n_queries, n_chunks), in [0, 1]: ``exp(-r / decay_rate) * s``, 0 if not retrieved

    Raises
    ------
    ConfigurationError
        If a ranking names a chunk that there is not, or has not one relevance for each chunk.
    """
    values = np.zeros((len(places), len(lengths)))
    for row, (where, given) in enumerate(zip(places, relevance, strict=True)):
        relevant = np.atleast_1d(np.asarray(given, dtype=np.float64))
        if relevant.shape != where.shape:
            raise ConfigurationError(f"A ranking of {len(where)} chunks has relevance of the shape {relevant.shape}.")
        if where.max(initial=-1) >= len(lengths):
            raise ConfigurationError(f"There are {len(lengths)} chunks, and chunk {where.max()} was retrieved.")
        worth = np.exp(-np.arange(len(where)) / decay_rate) * relevant
        # A chunk that occurs twice counts once.
        np.maximum.at(values[row], where[where >= 0], worth[where >= 0])
    retrieved = values.copy()
    of_one_document = np.diff(owners) == 0
    lent = neighbor_relevance * retrieved
    values[:, 1:] = np.maximum(values[:, 1:], lent[:, :-1] * of_one_document)
    values[:, :-1] = np.maximum(values[:, :-1], lent[:, 1:] * of_one_document)
    values -= irrelevant_chunk_penalty
    values *= length_factors(lengths, reference_length, length_adjustment)
    return values, retrieved


def reference_length_of(places: Sequence[NDArray[np.intp]], lengths: NDArray[np.int64]) -> float:
    """The median length of the retrieved chunks, each once; at least 1, and 1 if there is none; see :func:`lay_out`."""
    retrieved = sorted({place for where in places for place in where.tolist() if place >= 0})
    return max(1.0, float(np.median(lengths[retrieved]))) if retrieved else 1.0


def length_factors(lengths: ArrayLike, reference_length: float, adjustment: str) -> NDArray[np.float64]:
    """The factor by which the value of each chunk is multiplied, shape of `lengths`.

    >>> [length_factors([70, 700, 1400], 700, how).tolist() for how in ("bounded", "unbounded", "none")]
    [[1.0, 1.0, 2.0], [0.1, 1.0, 2.0], [1.0, 1.0, 1.0]]
    """
    relative = np.asarray(lengths, dtype=np.float64) / reference_length
    if adjustment == "none":
        return np.ones_like(relative)
    return np.maximum(relative, 1.0) if adjustment == "bounded" else relative
