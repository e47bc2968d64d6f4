"""`VectorStoreOnDemand`: a vector store created when the length of its vectors is known."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)

from llama_index.ragkit.adapter_internals import is_pgvector, lacks_async_client, renew_connections
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.forks import renew_in_children
from llama_index.ragkit.sql.kv_store import SQLKVStore
from llama_index.ragkit.sql.shared_engine import share_engine

__all__ = ["MakesStores", "VectorStoreFactory", "VectorStoreOnDemand"]

VectorStoreFactory = Callable[[str, int], BasePydanticVectorStore]
"""(name of the space, length of its vectors) -> a vector store."""

_COLLECTION = "vector_spaces"

T = TypeVar("T")
P = ParamSpec("P")


@runtime_checkable
class MakesStores(Protocol):
    """A storage context that makes vector stores."""

    def space_store(self, space: str) -> BasePydanticVectorStore | None:
        """The vector store of a space; None if it makes none."""


class VectorStoreOnDemand(BasePydanticVectorStore):
    """A vector store that a factory makes when the first row is added.

    Most stores must be told the length of the vectors when they are created, but an index knows it only after it has
    embedded its first text. The database stores the length, so a store that is opened again is created at once. Until
    then reads find nothing and deletes do nothing.

    Parameters
    ----------
    factory : called once, with `space` and the length of the vectors
    space : the name of the space
    records : where the length is stored
    """

    stores_text: bool = True
    _factory: VectorStoreFactory = PrivateAttr()
    _space: str = PrivateAttr()
    _records: SQLKVStore = PrivateAttr()
    _made: BasePydanticVectorStore | None = PrivateAttr(default=None)

    def __init__(self, factory: VectorStoreFactory, space: str, records: SQLKVStore) -> None:
        super().__init__(stores_text=True)
        self._factory, self._space, self._records = factory, space, records

    @classmethod
    def class_name(cls) -> str:
        """The name that core shows."""
        return "VectorStoreOnDemand"

    @property
    def client(self) -> Any:
        """The client of the store, or None before it is made."""
        store = self.made
        return None if store is None else store.client

    @property
    def made(self) -> BasePydanticVectorStore | None:
        """The store, if this process or an earlier one has created it."""
        if self._made is None:
            known = self._records.get(self._space, _COLLECTION)
            if known is not None:
                self._made = self._make(known["dimension"])
        return self._made

    @property
    def flat_metadata(self) -> bool:
        """Whether the store takes no lists as metadata."""
        return bool(getattr(self.made, "flat_metadata", False))

    async def _amade(self) -> BasePydanticVectorStore | None:
        return self._made or await asyncio.to_thread(lambda: self.made)

    def _make(self, dimension: int) -> BasePydanticVectorStore:
        store = self._factory(self._space, dimension)
        if not isinstance(store, BasePydanticVectorStore):
            raise ConfigurationError(
                f"The factory of vector stores returned a {type(store).__name__} for {self._space!r}, which is not a "
                "LlamaIndex vector store."
            )
        share_engine(store, self._records.engine, getattr(self._factory, "index_ids", False))
        renew_in_children(store, renew_connections)
        return store

    def _needed(self, nodes: list[BaseNode]) -> BasePydanticVectorStore:
        store = self.made
        if store is None:
            dimension = len(nodes[0].get_embedding())
            store = self._made = self._make(dimension)
            self._records.put(self._space, {"dimension": dimension}, _COLLECTION)
        return store

    def add(self, nodes: list[BaseNode], **kwargs: Any) -> list[str]:  # type: ignore[override]
        """Add rows; the first creates the store."""
        return self._needed(nodes).add(nodes, **kwargs) if nodes else []

    async def async_add(self, nodes: list[BaseNode], **kwargs: Any) -> list[str]:  # type: ignore[override]
        """As :meth:`add`."""
        if not nodes:
            return []
        store = await asyncio.to_thread(self._needed, nodes)
        return await _awaited(store, store.add, store.async_add, nodes, **kwargs)

    def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
        """Delete the rows of a document."""
        if self.made is not None:
            self.made.delete(ref_doc_id, **kwargs)

    async def adelete(self, ref_doc_id: str, **kwargs: Any) -> None:
        """As :meth:`delete`."""
        store = await self._amade()
        if store is not None:
            await _awaited(store, store.delete, store.adelete, ref_doc_id, **kwargs)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **kwargs: Any
    ) -> None:
        """Delete rows by id or filter."""
        if self.made is not None:
            self.made.delete_nodes(node_ids, filters, **kwargs)

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **kwargs: Any
    ) -> None:
        """As :meth:`delete_nodes`."""
        store = await self._amade()
        if store is not None:
            await _awaited(store, store.delete_nodes, store.adelete_nodes, node_ids, filters, **kwargs)

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **kwargs: Any
    ) -> list[BaseNode]:
        """Rows by id or filter."""
        return [] if self.made is None else self.made.get_nodes(node_ids, filters, **kwargs)

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **kwargs: Any
    ) -> list[BaseNode]:
        """As :meth:`get_nodes`."""
        store = await self._amade()
        return (
            []
            if store is None
            else await _awaited(store, store.get_nodes, store.aget_nodes, node_ids, filters, **kwargs)
        )

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Search the rows."""
        return _nothing() if self.made is None else self.made.query(query, **kwargs)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As :meth:`query`."""
        store = await self._amade()
        return _nothing() if store is None else await _awaited(store, store.query, store.aquery, query, **kwargs)

    def clear(self) -> None:
        """Delete all rows."""
        if self.made is not None:
            self.made.clear()

    async def aclear(self) -> None:
        """As :meth:`clear`."""
        store = await self._amade()
        if store is not None:
            await _awaited(store, store.clear, store.aclear)


async def _awaited(
    store: BasePydanticVectorStore,
    fn: Callable[P, T],
    afn: Callable[P, Coroutine[Any, Any, T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """The result of an asynchronous method, or of the synchronous one in a thread where only that works.

    The asynchronous connections of a `PGVectorStore` belong to one event loop.
    """
    if is_pgvector(store) or lacks_async_client(store):
        return await asyncio.to_thread(fn, *args, **kwargs)
    return await afn(*args, **kwargs)


def _nothing() -> VectorStoreQueryResult:
    return VectorStoreQueryResult(nodes=[], similarities=[], ids=[])
