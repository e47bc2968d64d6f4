"""What core's engines, retrievers and pipelines need from an index that is not a `VectorStoreIndex`."""

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.indices.vector_store.retrievers import VectorIndexAutoRetriever
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import LLMType
from llama_index.core.schema import BaseNode, QueryBundle
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreInfo,
    VectorStoreQuery,
    VectorStoreQueryResult,
    VectorStoreQuerySpec,
)

from llama_index.ragkit.errors import ConfigurationError, UnsupportedStoreError
from llama_index.ragkit.short_repr import ShortRepr

__all__ = ["AutoRetriever", "NotAVectorStoreIndexError", "PipelineStore", "engine_llm", "llm_of_engine"]

_llm: ContextVar[LLMType | None] = ContextVar("ragkit_engine_llm", default=None)


@contextmanager
def engine_llm(llm: LLMType | None) -> Iterator[None]:
    """Retrievers that core makes in the block, for an engine, use the language model of the engine."""
    before = _llm.set(llm)
    try:
        yield
    finally:
        _llm.reset(before)


def llm_of_engine(keywords: Container[str]) -> Mapping[str, LLMType]:
    """The keyword `llm` for a retriever that takes these keywords, if it is made for an engine that has a model."""
    llm = _llm.get()
    return {} if llm is None or "llm" not in keywords else {"llm": llm}


class NotAVectorStoreIndexError(ConfigurationError, AttributeError):
    """An index has no vector store that core's own retrievers could search; an `AttributeError`, for `hasattr`."""


class AutoRetriever(ShortRepr, VectorIndexAutoRetriever):
    """Core's `VectorIndexAutoRetriever` for an index of these packages: a language model infers the question, the
    metadata filters and the number of results from the user's request.

    Parameters
    ----------
    index : the index to search
    vector_store_info : what the index is about, and the metadata that can be filtered by
    llm : infers them [the LLM of the index]
    similarity_top_k : maximum number of results [10]
    max_top_k, empty_query_top_k, prompt_template_str, extra_filters, callback_manager, object_map, objects, verbose :
        as in `VectorIndexAutoRetriever`
    kwargs : of the retriever of the index, such as `mode=`

    Raises
    ------
    TypeError
        If the retriever of the index does not have a keyword.
    """

    def __init__(
        self,
        index: Any,
        vector_store_info: VectorStoreInfo,
        llm: LLM | None = None,
        similarity_top_k: int = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(index, vector_store_info, llm or index.llm, similarity_top_k=similarity_top_k, **kwargs)
        self._of_spec({}, None)  # so that a misspelt keyword is told now

    def _build_retriever_from_spec(self, spec: VectorStoreQuerySpec) -> tuple[BaseRetriever, QueryBundle]:  # type: ignore[override]
        filters = [*spec.filters, *self._extra_filters.filters]
        top_k = self._similarity_top_k
        if not spec.query and self._empty_query_top_k is not None:
            top_k = self._empty_query_top_k
        if spec.top_k is not None:
            top_k = max(1, min(spec.top_k, self._max_top_k, top_k))
        retriever = self._of_spec({"similarity_top_k": top_k}, MetadataFilters(filters=filters) if filters else None)
        return retriever, self._get_query_bundle(spec.query)

    def _of_spec(self, inferred: Mapping[str, Any], filters: MetadataFilters | None) -> BaseRetriever:
        index: Any = self._index
        retriever: BaseRetriever = index.as_retriever(
            **{"verbose": self._verbose, **self._kwargs, **inferred}, filters=filters
        )
        return retriever


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
