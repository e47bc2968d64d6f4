"""An index that is served from stores, beside the same index in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from llama_index.core import load_index_from_storage
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from tests.cases import HashHeads
from tests.returning_store import ReturningStore

from llama_index.mrag import MRAGIndex
from llama_index.ragkit.sql import SQLStorageContext, storage_context

__all__ = ["Twins"]


class Twins:
    """Indexes over one SQLite file and vector stores of this process, and one of the same nodes in memory.

    Parameters
    ----------
    build : builds an index from keywords
    options : of the index in stores
    """

    def __init__(
        self, folder: Path, build: Callable[..., MRAGIndex], embed_model: HashHeads | None = None, **options: Any
    ) -> None:
        self._url = f"sqlite:///{folder / 'index.db'}"
        self._spaces: dict[str, BasePydanticVectorStore] = {}
        self._model = embed_model or self.model()
        context = self.context()
        self.stored = build(storage_context=context, embed_model=self._model, **options)
        self.memory = build(embed_model=self._model)

    @staticmethod
    def model() -> HashHeads:
        """The embedding model of all."""
        return HashHeads()

    def context(self) -> SQLStorageContext:
        """As another process would open it."""
        return storage_context(
            self._url, vectors=lambda space, dimension: self._spaces.setdefault(space, ReturningStore())
        )

    def again(self, **options: Any) -> Any:
        """The index in stores, opened once more."""
        return load_index_from_storage(self.context(), embed_model=self._model, **options)
