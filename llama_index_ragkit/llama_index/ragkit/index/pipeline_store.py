"""`PipelineStore`: an index as the vector store of an `IngestionPipeline`."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from llama_index.ragkit.errors import UnsupportedStoreError

__all__ = ["PipelineStore"]


class PipelineStore(BasePydanticVectorStore):
    """What a pipeline adds is inserted into an index, with its vectors; what it deletes is deleted there.

    With it, `DocstoreStrategy.UPSERTS` replaces changed documents in the index, and `UPSERTS_AND_DELETE` also deletes
    those that are no longer given. Core passes on only nodes with embeddings, so the last transformation is the
    embedding model of the index.

    Parameters
    ----------
    index : the index, of any method
    """

    stores_text: bool = True
    _index: Any = PrivateAttr()

    def __init__(self, index: Any) -> None:
        super().__init__(stores_text=True)
        self._index = index

    @classmethod
    def class_name(cls) -> str:
        """The name that core shows."""
        return "PipelineStore"

    @property
    def client(self) -> Any:
        """The index."""
        return self._index

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Insert nodes; returns their ids."""
        self._index.insert_nodes(list(nodes))
        return [node.node_id for node in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As :meth:`add`."""
        await self._index.ainsert_nodes(list(nodes))
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete a document, its text included."""
        self._index.delete_ref_doc(ref_doc_id, delete_from_docstore=True)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As :meth:`delete`."""
        await self._index.adelete_ref_doc(ref_doc_id, delete_from_docstore=True)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Not supported: the index has a retriever of its own.

        Raises
        ------
        UnsupportedStoreError
        """
        raise UnsupportedStoreError("A PipelineStore only takes what a pipeline writes: ask index.as_retriever().")
