"""`LocalStores`: where an index is stored in the memory of this process."""

from contextlib import AbstractContextManager, nullcontext

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.graph.local_graph import LocalGraph
from llama_index.ragkit.storage.local_words import LocalWords

__all__ = ["LocalStores"]


class LocalStores:
    """The :class:`~llama_index.ragkit.storage.interface.Stores` of an index in memory, empty at first."""

    def __init__(self) -> None:
        self._words = LocalWords()
        self._graph = LocalGraph()

    def words(self) -> LocalWords:
        """The words of the chunks."""
        return self._words

    def graph(self) -> LocalGraph:
        """The graph."""
        return self._graph

    def connect(self, store: BasePydanticVectorStore) -> None:
        """Nothing: there are no connections to share."""

    @immediate
    def transaction(self) -> AbstractContextManager[None]:
        """A block of writes; those before an error stay."""
        return nullcontext()

    @immediate
    def snapshot(self) -> AbstractContextManager[None]:
        """A block of reads, each of the latest state."""
        return nullcontext()
