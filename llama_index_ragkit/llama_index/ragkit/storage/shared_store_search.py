"""`SharedStoreSearch`: searches of a vector store that may hold the rows of other spaces too."""

import numpy as np
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from numpy.typing import NDArray

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.vectors.relaxed_filters import relaxed

__all__ = ["SPACE", "SharedStoreSearch"]

SPACE = "ragkit_space"
"""The key of a row's metadata that names its space."""
_ALONE = 0.75  # share of the rows found that are of this space, from which on a store counts as its own


class SharedStoreSearch:
    """Searches for the rows of one space.

    The store is asked to filter by the name of the space once a search has found many rows of others: a store that
    holds one space alone would check each row for nothing, and planners of databases that know nothing of such a filter
    read the whole table instead of the index of its vectors.

    Parameters
    ----------
    external : the store
    label : what rows of the space have for `SPACE`
    """

    def __init__(self, external: ExternalVectorStore, label: str) -> None:
        self._external = external
        self._label = label
        self._is_shared = False
        self._filters_work = True

    def learns_from(self, found: int, known: int) -> bool:
        """Whether a search, of whose rows so many are of the space, is better made again with a filter by the space."""
        if self._is_shared or known >= _ALONE * found:
            return False
        self._is_shared = True
        return True

    def search(
        self, vectors: NDArray[np.float32], count: int, filters: MetadataFilters | None
    ) -> Steps[list[list[str]]]:
        """The ids in the store of the rows nearest to each vector, best first; rows of other spaces may be among them.

        Filters go down to the store as far as all stores understand them alike.

        Parameters
        ----------
        vectors : shape (queries, dimension)

        Raises
        ------
        StorageError
        """
        parts: list[MetadataFilter | MetadataFilters] = []
        if self._is_shared:
            parts.append(MetadataFilter(key=SPACE, value=self._label))
        pushed = None if self._external.is_flat else relaxed(filters)
        if pushed is not None:
            parts.append(pushed)
        if not self._filters_work or not parts:
            return (yield from self._external.search(vectors, count))
        try:
            return (yield from self._external.search(vectors, count, MetadataFilters(filters=parts)))
        except StorageError:
            # Without filters the search fails too, unless they were the reason.
            found = yield from self._external.search(vectors, count)
            self._filters_work = False
            return found
