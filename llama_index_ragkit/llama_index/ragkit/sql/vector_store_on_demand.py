"""`VectorStoreOnDemand`: a vector store created when the length of its vectors is known.

A `PGVectorStore` uses the engine of the index, if its table is in the same database. Left alone, the store of each
space makes two pools, and nothing limits the connections of a process. A question, which holds a connection to read one
state of the database, would wait for another one while others wait for its own. With the engine of the index, its pool
sets the limit. A question reads vectors on a further connection if one is free, and otherwise on its own.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore, VectorStoreQuery, VectorStoreQueryResult
from sqlalchemy import URL, Engine, TextClause, func, make_url, select, text
from sqlalchemy.orm import Session

from llama_index.ragkit.adapter_internals import (
    is_pgvector,
    lacks_async_client,
    pgvector_without_engine,
    renew_connections,
    use_engine,
)
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.forks import renew_in_children
from llama_index.ragkit.sql.engine import joined_snapshot, reading
from llama_index.ragkit.sql.kv_store import SQLKVStore

__all__ = ["VectorStoreFactory", "VectorStoreOnDemand", "share_engine"]

_PORT = 5432
_SETTING = re.compile(r"SET ([a-z_.]+) = :(\w+)")
# Null where there is no table yet. Only its owner may create an index on it.
_SET_UP = text(
    """SELECT current_setting('transaction_read_only') = 'on' OR NOT pg_has_role(relowner, 'USAGE') FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = :schema AND relname = :name"""
)

VectorStoreFactory = Callable[[str, int], BasePydanticVectorStore]
"""(name of the space, length of its vectors) -> a vector store."""

_COLLECTION = "vector_spaces"

T = TypeVar("T")
P = ParamSpec("P")


def share_engine(store: BasePydanticVectorStore, engine: Engine, index_ids: bool = False) -> None:
    """Let a store use an engine, if it is a `PGVectorStore` over the same database, as the same user, that has not
    connected yet and was given no engine and no options for one. Other stores are left as they are.

    Sets up the table as the adapter does, unless it exists and this user may not change it.

    Parameters
    ----------
    index_ids : whether a new table also gets an index on the ids of its rows, by which they are deleted
    """
    known: Any = store
    if not pgvector_without_engine(store) or _place(make_url(known.connection_string)) != _place(engine.url):
        return
    with reading(engine, single=True) as connection:
        table = {"schema": known.schema_name, "name": f"data_{known.table_name}"}
        found = connection.execute(_SET_UP, table).scalar()
    known.perform_setup = known.perform_setup and not found
    use_engine(store, engine, partial(_session, engine))
    if index_ids and found is None:
        quoted = engine.dialect.identifier_preparer.quote
        new = f"{quoted(known.schema_name)}.{quoted(table['name'])}"
        with _session(engine) as session, session.begin():
            session.execute(text(f"CREATE INDEX IF NOT EXISTS {quoted(table['name'] + '_node_id')} ON {new} (node_id)"))


def _place(url: URL) -> URL:
    """A URL reduced to the parts that say where it leads."""
    return url.set(drivername="postgresql", port=url.port or _PORT)


class _AdapterSession(Session):
    """A session in which a setting may be a parameter. The adapter makes it one, but `psycopg` binds parameters on the
    server, where `SET` takes none.
    """

    def execute(self, statement: Any, params: Any = None, **kwargs: Any) -> Any:
        setting = _SETTING.fullmatch(statement.text) if isinstance(statement, TextClause) and params else None
        if setting is not None:
            statement = select(func.set_config(setting[1], str(params[setting[2]]), False))
            params = None
        return super().execute(statement, params, **kwargs)


@contextmanager
def _session(engine: Engine) -> Iterator[Session]:
    """A session of the adapter. Within a `snapshot` block it uses the connection of the block, and undoes the settings
    that the adapter makes for a query.
    """
    with joined_snapshot(engine) as connection:
        if connection is None:
            with _AdapterSession(engine) as session:
                yield session
            return
        before = connection.begin_nested()
        try:
            with _AdapterSession(connection, join_transaction_mode="rollback_only") as session:
                yield session
        finally:
            if before.is_active:
                before.rollback()


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
        if (store := await self._amade()) is not None:
            await _awaited(store, store.delete, store.adelete, ref_doc_id, **kwargs)

    def delete_nodes(self, *args: Any, **kwargs: Any) -> None:
        """Delete rows by id or filter."""
        if self.made is not None:
            self.made.delete_nodes(*args, **kwargs)

    async def adelete_nodes(self, *args: Any, **kwargs: Any) -> None:
        """As :meth:`delete_nodes`."""
        if (store := await self._amade()) is not None:
            await _awaited(store, store.delete_nodes, store.adelete_nodes, *args, **kwargs)

    def get_nodes(self, *args: Any, **kwargs: Any) -> list[BaseNode]:
        """Rows by id or filter."""
        return [] if self.made is None else self.made.get_nodes(*args, **kwargs)

    async def aget_nodes(self, *args: Any, **kwargs: Any) -> list[BaseNode]:
        """As :meth:`get_nodes`."""
        store = await self._amade()
        return [] if store is None else await _awaited(store, store.get_nodes, store.aget_nodes, *args, **kwargs)

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
        if (store := await self._amade()) is not None:
            await _awaited(store, store.clear, store.aclear)


async def _awaited(
    store: BasePydanticVectorStore,
    fn: Callable[P, T],
    afn: Callable[P, Awaitable[T]],
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
