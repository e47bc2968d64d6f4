"""`storage_context`: everything that indexes store, in one database, and the vector stores of those served from it."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llama_index.core.graph_stores.simple import SimpleGraphStore
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS
from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.docstore.types import RefDocInfo
from llama_index.core.storage.index_store.keyval_index_store import KVIndexStore
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from sqlalchemy import URL, Engine

from llama_index.ragkit.core_internals import docstore_tables
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql.engine import in_turn, snapshot, transaction
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.sql.kv_store import SQLKVStore
from llama_index.ragkit.sql.lexical_index import SQLLexicalIndex
from llama_index.ragkit.sql.vector_store_on_demand import VectorStoreFactory, VectorStoreOnDemand, share_engine
from llama_index.ragkit.sql.vector_urls import vector_factory
from llama_index.ragkit.steps import Steps, arun_steps, call, offload, run_steps
from llama_index.ragkit.storage.commits import all_left
from llama_index.ragkit.storage.manifest import Manifest
from llama_index.ragkit.storage.opening import CHUNKS, DEFAULT, find_external_store, open_records
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.storage.struct import DerivedStruct

__all__ = ["SQLDocumentStore", "SQLStorageContext", "SQLStores", "find_stores", "storage_context"]

_read: ContextVar[Mapping[str, Any] | None] = ContextVar("ragkit_read_documents", default=None)

_HOW = (
    "The index keeps its records in an SQL database and its vectors in vector stores: open it with "
    "llama_index.ragkit.sql.storage_context(url, vectors=...)"
)

VectorStores = VectorStoreFactory | Mapping[str, BasePydanticVectorStore]


class SQLDocumentStore(KVDocumentStore):
    """A `KVDocumentStore` in an SQL database.

    Before core stores a node, it reads the entry of the node's document: one round trip a node, which takes most of a
    write if nodes are documents of their own. Here one statement reads all of these entries.
    """

    def __init__(self, records: SQLKVStore) -> None:
        super().__init__(records)
        self._records = records

    def add_documents(self, docs: Sequence[BaseNode], *args: Any, **kwargs: Any) -> None:
        """As in `KVDocumentStore`."""
        with _having(self._records.get_many(_documents_of(docs), docstore_tables(self).ref_docs)):
            super().add_documents(docs, *args, **kwargs)

    async def async_add_documents(self, docs: Sequence[BaseNode], *args: Any, **kwargs: Any) -> None:
        """As in `KVDocumentStore`."""
        with _having(await self._records.aget_many(_documents_of(docs), docstore_tables(self).ref_docs)):
            await super().async_add_documents(docs, *args, **kwargs)

    def get_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """As in `KVDocumentStore`."""
        entries = _read.get()
        return super().get_ref_doc_info(ref_doc_id) if entries is None else _info(entries.get(ref_doc_id))

    async def aget_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """As in `KVDocumentStore`."""
        entries = _read.get()
        return await super().aget_ref_doc_info(ref_doc_id) if entries is None else _info(entries.get(ref_doc_id))


@contextmanager
def _having(entries: Mapping[str, Any]) -> Iterator[None]:
    before = _read.set(entries)
    try:
        yield
    finally:
        _read.reset(before)


def _info(entry: Mapping[str, Any] | None) -> RefDocInfo | None:
    # Core adds to the list of nodes.
    return RefDocInfo(list(entry["node_ids"]), entry["metadata"]) if entry else None


def _documents_of(nodes: Sequence[BaseNode]) -> list[str]:
    return list(dict.fromkeys(node.source_node.node_id for node in nodes if node.source_node is not None))


@dataclass
class SQLStorageContext(StorageContext):
    """A storage context with its document and index store in an SQL database; see :func:`storage_context`.

    Attributes
    ----------
    records : the key-value store under both; you can also pass it to an index as `cache=`
    factory : makes the vector stores, if a function or a URL was given
    in_stores : whether an index built here keeps its vectors only in these vector stores
    """

    records: SQLKVStore = field(kw_only=True)
    factory: VectorStoreFactory | None = field(default=None, kw_only=True)
    in_stores: bool = field(default=False, kw_only=True)
    _made: dict[str, VectorStoreOnDemand] = field(default_factory=dict, init=False, repr=False)

    def space_store(self, space: str) -> BasePydanticVectorStore | None:
        """The vector store that the factory makes for a space; None without a factory."""
        if self.factory is None:
            return None
        return self._made.setdefault(space, VectorStoreOnDemand(self.factory, space, self.records))

    def __reduce__(self) -> tuple[Any, ...]:
        stores = {CHUNKS if name == DEFAULT else name: store for name, store in self.vector_stores.items()}
        return _opened, (self.records, stores if self.factory is None else self.factory, self.in_stores)

    def drop(self) -> int:
        """Delete everything of the tenant: nodes, indexes, records and cached replies; returns the number of records.

        Also deletes what the tenant's indexes have written to vector stores, but not what core's own indexes have
        written. Do not use indexes over the context afterwards.

        Raises
        ------
        StorageError
            If the database or a vector store fails. Call it again to continue.
        """
        run_steps(self._delete_stored())
        return self.records.drop()

    async def adrop(self) -> int:
        """As :meth:`drop`."""
        await arun_steps(self._delete_stored())
        return await asyncio.to_thread(self.records.drop)

    def _delete_stored(self) -> Steps[None]:
        structs = yield from call(self.index_store.index_structs, self.index_store.async_index_structs)
        for struct in structs:
            if not isinstance(struct, DerivedStruct):
                continue
            index_cls: Any = INDEX_STRUCT_TYPE_TO_INDEX_CLASS[struct.get_type()]  # type: ignore[index]
            if struct.in_stores:
                stores = find_stores(self, index_cls.method, struct.uid)
                records = open_records(self, index_cls.method, struct)
                left = yield from all_left(records)
                for space in stores.spaces(struct.spaces, records).values():
                    yield from space.clear(left)
                yield from offload(stores.drop)
                continue
            store, _ = find_external_store(self, index_cls.method, None, struct)
            if store is not None and struct.params.get("mirrored"):
                entries = yield from Manifest(open_records(self, index_cls.method, struct)).entries()
                documents = {entry.ref_doc_id or "None" for entry in entries.values()}
                yield from store.delete(list(entries), documents, (), lambda _: np.empty((0, 0), np.float32))


@dataclass(frozen=True)
class SQLStores:
    """The :class:`~llama_index.ragkit.storage.interface.Stores` of an index in a database."""

    engine: Engine = field(repr=False)  # shows the query of its URL
    scope: str
    vector_store: Callable[[str], BasePydanticVectorStore]

    def graph(self) -> SQLGraphRows:
        """The graph of the index; creates its table."""
        rows = SQLGraphRows(self.engine, self.scope)
        rows.create()
        return rows

    def words(self) -> SQLLexicalIndex:
        """The words of the index."""
        return SQLLexicalIndex(self.engine, self.scope)

    def spaces(self, names: Iterable[str], records: Records) -> dict[str, StoredSpace]:
        """The vector spaces of the index."""
        return {name: StoredSpace(name, self.scope, self.vector_store(name), records) for name in names}

    def connect(self, store: BasePydanticVectorStore) -> None:
        """Let a user's vector store use the connections of this database, where it can."""
        share_engine(store, self.engine)

    def transaction(self) -> Steps[AbstractContextManager[None]]:
        """A block that makes all of its writes, or none if it raises."""
        return (yield from in_turn(transaction, self.engine))

    def snapshot(self) -> Steps[AbstractContextManager[None]]:
        """A block whose reads all see the same state of the database."""
        return (yield from in_turn(snapshot, self.engine))

    def drop(self) -> None:
        """Delete the graph and the words of the index."""
        self.graph().drop()
        self.words().drop()


def find_stores(context: StorageContext, method: str, uid: str) -> SQLStores:
    """The stores of an index in a storage context."""
    records = docstore_tables(context.docstore).kvstore
    if not isinstance(records, SQLKVStore):
        raise ConfigurationError(f"{_HOW}. The records of this context are in a {type(records).__name__}.")

    def vector_store(space: str) -> BasePydanticVectorStore:
        found = context.space_store(space) if isinstance(context, SQLStorageContext) else None
        found = found or context.vector_stores.get(space) or _default(context, space)
        if found is None:
            raise ConfigurationError(
                f"{_HOW}. This context has no vector store for {space!r}; it has "
                f"{sorted(name for name in context.vector_stores if name != DEFAULT) or 'none'}."
            )
        share_engine(found, records.engine)
        return found

    return SQLStores(records.engine, f"{records.tenant}/{method}_{uid}", vector_store)


def _default(context: StorageContext, space: str) -> BasePydanticVectorStore | None:
    """The store that the context was made with, which serves the chunks; core's own is not used."""
    default = context.vector_stores.get(DEFAULT)
    return default if space == CHUNKS and not isinstance(default, SimpleVectorStore) else None


def storage_context(
    database: str | URL | Engine,
    vector_stores: VectorStores | None = None,
    tenant: str = "",
    *,
    vectors: str | VectorStores | None = None,
) -> SQLStorageContext:
    """A storage context that keeps everything in an SQL database: nodes, records, vectors and structs of all indexes.

    Every write goes to the database at once, so `persist` has nothing to do. Open the same database and tenant with
    `load_index_from_storage`. Contexts of several tenants share one set of tables, and never see each other's rows.

    With `vectors=` the vectors are in vector stores only. Indexes built over the context are served from there, for
    many processes or for more than memory holds. Without it, an index holds its vectors in memory while it is open.

    Parameters
    ----------
    database : as in :func:`~llama_index.ragkit.sql.make_engine`; contexts of many tenants should share one engine
    vector_stores : stores of yours to which chunks are written as well, so that a plain `VectorStoreIndex` over them
        works. A factory serves the first index of the context. It is called with "chunks" and the length of the vectors
        when the first chunk is written. A mapping has the store of that index under "chunks", and others under
        `<method>_chunks`. Give each tenant its own stores, since their nodes may have the same ids
    tenant : a name, such as that of a user or a workspace
    vectors : "pgvector" for the same PostgreSQL; `"lancedb:///folder"`; `"qdrant:///folder"` or `"qdrant://host:6333"`;
        `"chroma:///folder"` or `"chroma://host:8000"`; or a factory, called with the name of a space and the length
        of its vectors when the first is written; or a mapping of spaces to stores. Tenants may share them

    Raises
    ------
    ConfigurationError
        For a URL that is not supported, for `vector_stores` or `vectors` of another kind, or for both of them.
    ImportError
        If the adapter of a URL is not installed.
    """
    if vectors is not None and vector_stores is not None:
        raise ConfigurationError(
            "Pass vectors=, where the index keeps its vectors, or vector_stores=, to which its chunks are written as "
            "well; not both."
        )
    records = SQLKVStore(database, tenant)
    given = vector_factory(vectors, records.engine.url) if isinstance(vectors, str) else vectors
    return _opened(records, vector_stores if given is None else given, given is not None)


def _opened(records: SQLKVStore, given: VectorStores | None, in_stores: bool = False) -> SQLStorageContext:
    return SQLStorageContext(
        docstore=SQLDocumentStore(records),
        index_store=KVIndexStore(records),
        vector_stores=_vector_stores(given, records),
        graph_store=SimpleGraphStore(),
        records=records,
        factory=given if callable(given) else None,
        in_stores=in_stores,
    )


def _vector_stores(given: VectorStores | None, records: SQLKVStore) -> dict[str, BasePydanticVectorStore]:
    if given is None:
        return {DEFAULT: SimpleVectorStore()}
    if isinstance(given, Mapping):
        bad = {name: type(store).__name__ for name, store in given.items() if not _is_store(store)}
        if bad:
            raise ConfigurationError(f"vector_stores= holds values that are not LlamaIndex vector stores: {bad}.")
        named = {name: store for name, store in given.items() if name != CHUNKS}
        return {DEFAULT: given.get(CHUNKS, SimpleVectorStore()), **named}
    if _is_store(given) or not callable(given):
        raise ConfigurationError(
            f"vector_stores= is a function of a space and the length of its vectors that returns a vector store, or a "
            f'mapping such as {{"chunks": store}}, not a {type(given).__name__}.'
        )
    return {DEFAULT: VectorStoreOnDemand(given, CHUNKS, records)}


def _is_store(value: object) -> bool:
    return isinstance(value, BasePydanticVectorStore)
