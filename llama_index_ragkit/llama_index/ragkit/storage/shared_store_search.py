"""`SharedStoreSearch`: searches of a vector store that may hold the rows of other spaces too."""

import re
from hashlib import sha256

import numpy as np
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from numpy.typing import NDArray

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.external_store import ExternalVectorStore

__all__ = ["SPACE", "SharedStoreSearch", "label_of"]

SPACE = "ragkit_space"
"""The key of a row's metadata that names its space."""
_ALONE = 0.75  # share of the rows found that are of this space, from which on a store counts as its own
_NO_QUOTING = re.compile(r"[A-Za-z0-9_/.-]*")


def label_of(uid: str, name: str) -> str:
    """What the rows of a space have for `SPACE`: letters and digits alone, since adapters put it into statements."""
    return f"s{sha256(f'{uid}/{name}'.encode(errors='surrogatepass')).hexdigest()[:32]}"


class SharedStoreSearch:
    """Searches for the rows of one space.

    The store is asked to filter by the label of the space once a search has found many rows of others: a store that
    holds one space alone would check each row for nothing, and planners of databases that know nothing of such a filter
    read the whole table instead of the index of its vectors.

    Parameters
    ----------
    external : the store
    uid : of the index
    name : of the space
    """

    def __init__(self, external: ExternalVectorStore, uid: str, name: str) -> None:
        self._external = external
        # Rows of the first release have the second label.
        labels = [label_of(uid, name), f"{uid}/{name}"]
        self._own = MetadataFilter(
            key=SPACE, value=[one for one in labels if _NO_QUOTING.fullmatch(one)], operator=FilterOperator.IN
        )
        self._is_shared = False

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

        Parameters
        ----------
        vectors : shape (queries, dimension)
        filters : as far as the store can check them; rows that do not pass may be among those found
        """
        return (yield from self._external.search(vectors, count, self._own if self._is_shared else None, filters))
