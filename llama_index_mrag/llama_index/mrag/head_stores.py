"""Search in the user's vector stores, one per head; the index keeps its own vectors."""

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from llama_index.mrag.heads.head_search import HeadHits
from llama_index.mrag.heads.splitting import split_heads
from llama_index.mrag.state import MRAGState
from llama_index.ragkit import Steps, content_id
from llama_index.ragkit.errors import ConfigurationError, StorageError
from llama_index.ragkit.storage.external_store import ExternalVectorStore, search_at_once
from llama_index.ragkit.vectors.kernels import cosines
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["HeadStores", "head_row_id"]

logger = logging.getLogger(__name__)

Floats = NDArray[np.float32]


class HeadStores:
    """One vector store for each head.

    Rows have UUIDs derived from the node's id, which also serve as their `ref_doc_id`, so that the `delete` of any
    store removes them. Stores only return candidates: cosines and order come from the index's vectors.

    Parameters
    ----------
    row_id : id of a node -> id of its rows, a UUID

    Raises
    ------
    ConfigurationError
        If a store is passed twice.
    """

    def __init__(self, stores: Sequence[ExternalVectorStore], row_id: Callable[[str], str]) -> None:
        if len({id(each.store) for each in stores}) < len(stores):
            raise ConfigurationError("head_stores must be different stores, one for each head.")
        self._stores = list(stores)
        self._row_id = row_id
        self._nodes = lru_cache(maxsize=1)(self._nodes_by_row_id)

    def check(self, heads: int) -> None:
        """Check that there are as many stores as heads."""
        if heads and heads != len(self._stores):
            raise ConfigurationError(
                f"There are {len(self._stores)} head_stores for {heads} heads: pass one for each head."
            )

    def put(self, ids: Sequence[str], vectors: Floats) -> Steps[None]:
        """Add new nodes; `vectors` has the shape (n, heads, head_dim)."""
        rows = [self._row_id(node_id) for node_id in ids]
        for head, store in enumerate(self._stores if rows else ()):
            yield from store.add_vectors(rows, vectors[:, head])

    def remove(self, ids: Iterable[str]) -> Steps[None]:
        """Delete nodes."""
        rows = [self._row_id(node_id) for node_id in ids]
        for store in self._stores if rows else ():
            yield from store.delete_vectors(rows)

    def discard(self, ids: Iterable[str]) -> Steps[None]:
        """Delete rows that a killed write may have left of nodes that are about to be added.

        A store that has never had a row may refuse: LanceDB has no table until then. A store that cannot delete at all
        is detected by :meth:`put`.
        """
        try:
            yield from self.remove(ids)
        except StorageError as error:
            logger.debug("nothing discarded: %s", error)

    def search(self, state: MRAGState, queries: Floats, count: int) -> Steps[HeadHits | None]:
        """The results of each head's store for each query, or None if a store returns too few nodes.

        `queries` have the shape (aspects, own + heads * head_dim).
        """
        parts = split_heads(queries, state.heads, state.own)
        found = min(count, len(state.chunks))
        hits = HeadHits.unfilled(len(queries), state.heads, found)
        nodes = self._nodes(state.chunks)
        size = parts.shape[2]
        for head in range(state.heads):
            for aspect, part in enumerate(parts[:, head]):
                (ids,) = yield from self._stores[head].search(part[None], found)
                rows = state.chunks.rows_of([nodes[i] for i in dict.fromkeys(ids) if i in nodes])
                if len(rows) < found:
                    return None
                names = [state.chunks.ids[row] for row in rows]
                start = state.own + head * size
                exact = cosines(state.chunks.vectors_of(names)[:, start : start + size], part)
                best = sorted(range(len(rows)), key=lambda i: (-exact[i], state.key(int(rows[i]))))[:found]
                hits.rows[aspect, head], hits.cosines[aspect, head] = rows[best], exact[best]
        return hits

    def row_ids(self, queries: Floats, count: int, own: int) -> Steps[list[str]]:
        """The ids of the rows that any store finds for any query, each once; queries as for :meth:`search`."""
        parts = split_heads(queries, len(self._stores), own)
        searches = [partial(store.search, parts[:, head], count) for head, store in enumerate(self._stores)]
        return list(dict.fromkeys(chain.from_iterable((yield from search_at_once(searches)))))

    def _nodes_by_row_id(self, chunks: Snapshot) -> dict[str, str]:
        return {self._row_id(node_id): node_id for node_id in chunks.ids}


def head_row_id(node_id: str) -> str:
    """The id of the rows of a node of an index in memory."""
    return content_id("head", node_id)
