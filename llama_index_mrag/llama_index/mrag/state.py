"""The immutable state that a query reads: vectors, and their norms and sums per head."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llama_index.mrag.heads.head_search import HeadHits, search_heads
from llama_index.mrag.heads.importance import HeadSums, importance
from llama_index.mrag.heads.splitting import split_heads
from llama_index.ragkit.masks import RecentMasks
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.vectors.kernels import inverse_norms, pair_cosines, squared_norms
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["ExternalHeadSearch", "MRAGState"]

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]


class ExternalHeadSearch(Protocol):
    """An external search over all heads, such as the user's vector stores."""

    def search(self, state: "MRAGState", queries: Floats, count: int) -> Steps[HeadHits | None]:
        """The `count` nearest nodes in every head's space, or None if the exact search must be used."""


@dataclass(frozen=True)
class MRAGState:
    """The vectors of all nodes of an index, or of those near to a question.

    `inverse`, shape (heads, n), has 1 / length of each head of each vector, 0 for a head of zeros.
    """

    chunks: Snapshot = field(default_factory=Snapshot.empty)  # flat vectors of the nodes
    heads: int = 0  # in a flat vector; 0 while there are no vectors
    sums: HeadSums = field(default_factory=lambda: HeadSums.empty(0, 0))  # over all nodes of the index
    inverse: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    external: ExternalHeadSearch | None = None  # over all nodes
    own: int = 0  # numbers of a flat vector before its heads, the model's own embedding

    @classmethod
    def of(
        cls,
        chunks: Snapshot,
        heads: int,
        external: ExternalHeadSearch | None = None,
        sums: HeadSums | None = None,
        own: int = 0,
    ) -> "MRAGState":
        """Compute the state from the vectors, head by head: time O(n d), memory of one head.

        `sums` are given if the index has more nodes than these.
        """
        if not len(chunks) or not heads:
            return cls(chunks, external=external)
        inverse = np.empty((heads, len(chunks)), np.float32)
        of_heads: list[HeadSums] = []
        for head, columns in enumerate(_columns(chunks, heads, own)):
            part = chunks.columns(*columns)
            inverse[head] = inverse_norms(squared_norms(part))
            of_heads += [_sums_of(part)] if sums is None else []
        return cls(chunks, heads, sums or HeadSums.joined(of_heads), inverse, external, own)

    def changed(self, chunks: Snapshot, touched: Iterable[str], heads: int, own: int = 0) -> "MRAGState":
        """The state for new vectors, which may differ from the current ones only in rows with the `touched` ids."""
        if not self.heads or not len(chunks):
            return MRAGState.of(chunks, heads, self.external, own=own)
        ids = list(dict.fromkeys(touched))
        old = split_heads(self.chunks.vectors_of([i for i in ids if i in self.chunks]), heads, own)
        present = [i for i in ids if i in chunks]
        new = split_heads(chunks.vectors_of(present), heads, own)
        inverse = self.inverse[:, chunks.rows_before(self.chunks)]
        if present:
            lengths = inverse_norms(squared_norms(new.reshape(-1, new.shape[-1]))).reshape(new.shape[:2])
            inverse[:, chunks.rows_of(present)] = lengths.T
        return MRAGState(chunks, heads, self.sums.remove(old).add(new), inverse, self.external, own)

    @cached_property
    def importance(self) -> NDArray[np.float64]:
        """The paper's importance scores, shape (heads,)."""
        return importance(self.sums)

    def counting(self, allowed: Mask | None) -> "MRAGState":
        """The state for a question for which only some nodes count: importance is computed over these nodes."""
        return self if allowed is None else self._of_masks.of(allowed, self._counted)

    def _counted(self, allowed: Mask) -> "MRAGState":
        rows = np.flatnonzero(allowed)
        parts = (self.chunks.columns(*columns)[rows] for columns in _columns(self.chunks, self.heads, self.own))
        return replace(self, sums=HeadSums.joined([_sums_of(part) for part in parts]))

    @cached_property
    def _of_masks(self) -> RecentMasks["MRAGState"]:
        return RecentMasks()

    def only(self, allowed: Mask | None) -> "MRAGState":
        """The state of an index with only the nodes that pass a filter."""
        return self if allowed is None else MRAGState.of(self.chunks.only(allowed), self.heads, own=self.own)

    def key(self, row: int) -> tuple[str, str]:
        """The canonical order among equal scores."""
        record = self.chunks.records[row]
        return record.key, record.id

    def search_heads(self, queries: Floats, count: int, rows: Rows | None = None) -> HeadHits:
        """The `count` nearest nodes in every head's space for every query, shape (aspects, own + heads * head_dim)."""
        return search_heads(self.chunks, self.inverse, queries, count, rows, self.key, self.own)

    def cosines(self, row: int, query: Floats) -> NDArray[np.float64]:
        """Cosine of each head of a node with that of a query, shape (heads,)."""
        vector = self.chunks.vectors_of([self.chunks.ids[row]])[0]
        return pair_cosines(split_heads(vector, self.heads, self.own), split_heads(query, self.heads, self.own))


def _columns(chunks: Snapshot, heads: int, own: int) -> Iterator[tuple[int, int]]:
    """Where each head begins and ends in a flat vector."""
    size = ((chunks.dim or 0) - own) // heads
    return ((own + head * size, own + (head + 1) * size) for head in range(heads))


def _sums_of(part: Floats) -> HeadSums:
    """The sums of one head, from its part of all vectors."""
    return HeadSums.empty(1, part.shape[1]).add(part[:, None])
