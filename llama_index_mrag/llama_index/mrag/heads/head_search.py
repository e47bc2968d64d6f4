"""Exact, deterministic search for the nearest vectors in every head's space, for every aspect of a question.

Heads are searched one at a time: one float32 matrix product of that head of all vectors, n x head_dim numbers, with
that head of all aspects, and exact re-scoring of the nearest (:mod:`llama_index.ragkit.vectors.kernels`). With many
rows several heads are searched concurrently in threads; the result does not depend on it.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.mrag.heads.splitting import split_heads
from llama_index.ragkit.vectors.kernels import top_k
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["HeadHits", "search_heads"]

Rows = NDArray[np.intp]

# NumPy releases the interpreter lock while it converts, multiplies and partitions; with fewer numbers in one head of
# all vectors threads do not pay off.
_MIN_NUMBERS_FOR_THREADS = 1 << 21
_MAX_THREADS = 4  # each holds one head of all vectors in float32


@dataclass(frozen=True)
class HeadHits:
    """The nearest rows in every head's space for every aspect, best first, both of shape (aspects, heads, c)."""

    rows: Rows  # of the vectors that were searched
    cosines: NDArray[np.float64]  # in [-1, 1], descending along the last axis

    @classmethod
    def unfilled(cls, aspects: int, heads: int, count: int) -> "HeadHits":
        """Uninitialised arrays of the right shape."""
        shape = (aspects, heads, count)
        return cls(np.empty(shape, np.intp), np.empty(shape))


def search_heads(
    vectors: Snapshot,
    inverse: NDArray[np.float32],
    queries: NDArray[np.float32],
    count: int,
    rows: Rows | None,
    order: Callable[[int], Any],
    own: int = 0,
) -> HeadHits:
    """The `count` nearest rows in each head's space, or fewer if fewer are searched.

    Parameters
    ----------
    inverse : shape (heads, n), 1 / norm of each head of each vector, 0 for a zero head
    queries : shape (aspects, own + heads * head_dim)
    rows : the rows to search, or None for all
    order : breaks ties between rows with equal cosines
    own : numbers of a vector before its heads
    """
    heads = len(inverse)
    parts = split_heads(queries, heads, own)
    size = parts.shape[2]
    found = min(count, len(vectors) if rows is None else len(rows))
    hits = HeadHits.unfilled(len(queries), heads, found)

    def search(head: int) -> None:
        space = vectors.columns(own + head * size, own + (head + 1) * size)
        head_queries = np.ascontiguousarray(parts[:, head])
        for aspect, (nearest, cosines) in enumerate(top_k(space, inverse[head], head_queries, count, rows, order)):
            hits.rows[aspect, head], hits.cosines[aspect, head] = nearest, cosines

    if len(vectors) * size < _MIN_NUMBERS_FOR_THREADS:
        for head in range(heads):
            search(head)
    else:
        with ThreadPoolExecutor(min(heads, _MAX_THREADS, os.cpu_count() or 1)) as pool:
            list(pool.map(search, range(heads)))
    return hits
