"""`LocalStores`: where an index is stored in the memory of this process."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.graph.local_graph import LocalGraph
from llama_index.ragkit.storage.local_words import LocalWords
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.vector_spaces import VectorSpace
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

__all__ = ["LocalStores"]


class LocalStores:
    """The :class:`~llama_index.ragkit.storage.interface.Stores` of an index in memory, empty at first."""

    def __init__(self) -> None:
        self._spaces: dict[str, VectorSpace] = {}
        self._words = LocalWords()
        self._graph = LocalGraph()

    def spaces(self, names: Iterable[str], records: Records) -> Mapping[str, VectorSpace]:
        """Vector spaces by name.

        Parameters
        ----------
        records : of the index
        """
        asked = list(names)
        for name in asked:
            if name not in self._spaces:
                self._spaces[name] = VectorSpace(name, MatrixVectorStore(stores_text=False), records)
        return {name: self._spaces[name] for name in asked}

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
