"""Vector stores by URL, each set up so that its adapter does what an index needs."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache, partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryResult,
)
from sqlalchemy import URL, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from llama_index.ragkit.errors import ConfigurationError, UnsupportedStoreError
from llama_index.ragkit.extras import need
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.sql.vector_store_on_demand import VectorStoreFactory
from llama_index.ragkit.storage.external_store import QUOTING
from llama_index.ragkit.storage.stored_space import SPACE

__all__ = ["vector_factory"]

_ALLOWED = (
    '"pgvector" for the same PostgreSQL, "lancedb:///folder", "qdrant:///folder", "qdrant://host:6333", '
    '"chroma:///folder" or "chroma://host:8000"'
)
T = TypeVar("T")

_PORTS = {"qdrant": 6333, "chroma": 8000}
_TLS = 443
_TRIES, _PAUSE = 100, 0.05  # s
# Enough candidates for the hundred nearest rows of a question, at a few milliseconds a search.
_HNSW = {"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 800, "hnsw_dist_method": "vector_cosine_ops"}


def vector_factory(vectors: str, database: URL) -> VectorStoreFactory:
    """A function that makes the vector stores of a storage context, one for each space; it can be pickled.

    Parameters
    ----------
    vectors : "pgvector", or the URL of LanceDB, Qdrant or Chroma: `lancedb:///folder` and `lancedb:////absolute/folder`
        as in a URL of SQLite; `qdrant://host` and `chroma://host` for a server. There a password is Qdrant's API key or
        Chroma's bearer token, and port 443 means TLS
    database : of the records; "pgvector" keeps its tables there

    Raises
    ------
    ConfigurationError
        For another URL, or "pgvector" with a database other than PostgreSQL.
    ImportError
        If the adapter is not installed.
    """
    made = _made(vectors, database)
    _adapter(made.adapter)
    return made


def _made(vectors: str, database: URL) -> "_PGVector | _LanceDB | _Qdrant | _Chroma":
    if vectors == "pgvector":
        if not database.drivername.startswith("postgresql"):
            raise ConfigurationError(
                f'vectors="pgvector" needs a PostgreSQL database, not {database.get_backend_name()}: choose '
                '"lancedb:///folder", or a server of Qdrant or Chroma.'
            )
        return _PGVector(database.set(drivername="postgresql").render_as_string(hide_password=False))
    try:
        url = make_url(vectors)
    except ArgumentError:
        raise _unknown(vectors) from None
    if (url.host is None) == (url.database is None) or url.query:
        raise _unknown(url.render_as_string())
    if url.drivername == "lancedb" and url.database:
        return _LanceDB(url.database)
    if url.drivername not in _PORTS:
        raise _unknown(url.render_as_string())
    port = url.port or _PORTS[url.drivername]
    made = _Qdrant if url.drivername == "qdrant" else _Chroma
    return made(url.database or "", url.host or "", port, url.password or "")


def _unknown(vectors: str) -> ConfigurationError:
    return ConfigurationError(f"vectors= is {_ALLOWED}, not {vectors!r}.")


@dataclass(frozen=True)
class _PGVector:
    """Tables of pgvector, `data_<space>`, in the first schema of the search path."""

    adapter: ClassVar[str] = "postgres"
    index_ids: ClassVar[bool] = True  # see share_engine
    url: str = field(repr=False)

    def __call__(self, space: str, dimension: int) -> BasePydanticVectorStore:
        url = make_url(self.url).set(drivername="postgresql+psycopg2")
        with create_engine(url, poolclass=NullPool).connect() as connection:
            schema = connection.execute(text("SELECT current_schema()")).scalar()
        store: BasePydanticVectorStore = _adapter(self.adapter).PGVectorStore(
            connection_string=url.render_as_string(hide_password=False),
            # Without the options, which asyncpg does not know.
            async_connection_string=url.set(drivername="postgresql+asyncpg", query={}).render_as_string(False),
            schema_name=schema or "public",
            table_name=space,
            embed_dim=dimension,
            hnsw_kwargs=_HNSW,
            indexed_metadata_keys={(SPACE, "text")},
        )
        return store


@dataclass(frozen=True)
class _LanceDB:
    """Tables of LanceDB in a folder."""

    adapter: ClassVar[str] = "lancedb"
    folder: str

    def __call__(self, space: str, dimension: int) -> BasePydanticVectorStore:
        lancedb = need("lancedb", "vectors=", _package("lancedb"))
        # Read the changes that other processes have made to the table.
        connection = lancedb.connect(self.folder, read_consistency_interval=timedelta(0))
        make = partial(_lancedb_class(), connection=connection, table_name=space, mode="create")
        store: BasePydanticVectorStore = _when_created(make)
        return store


@dataclass(frozen=True)
class _Place:
    """A folder, or a server with a port and a key."""

    folder: str
    host: str
    port: int
    key: str = field(repr=False)


class _Qdrant(_Place):
    """Collections of Qdrant, in a folder that one process has open, or on a server."""

    adapter: ClassVar[str] = "qdrant"

    def __call__(self, space: str, dimension: int) -> BasePydanticVectorStore:
        adapter, client = _adapter(self.adapter), need("qdrant_client", "vectors=", _package("qdrant"))
        if self.folder:
            local: BasePydanticVectorStore = adapter.QdrantVectorStore(space, client=_qdrant_folder(self.folder))
            return local
        tls = self.port == _TLS
        server = {"url": f"http{'s' * tls}://{self.host}:{self.port}", "port": self.port, "api_key": self.key or None}
        made: BasePydanticVectorStore = adapter.QdrantVectorStore(
            space,
            client=client.QdrantClient(**server),
            aclient=client.AsyncQdrantClient(**server),
            payload_indexes=[{"field_name": SPACE, "field_schema": client.models.PayloadSchemaType.KEYWORD}],
        )
        return made


class _Chroma(_Place):
    """Collections of Chroma, in a folder or on a server."""

    adapter: ClassVar[str] = "chroma"

    def __call__(self, space: str, dimension: int) -> BasePydanticVectorStore:
        adapter, chromadb = _adapter(self.adapter), need("chromadb", "vectors=", _package("chroma"))
        if self.folder:
            client = chromadb.PersistentClient(self.folder)
        else:
            headers = {"Authorization": f"Bearer {self.key}"} if self.key else None
            client = chromadb.HttpClient(self.host, self.port, ssl=self.port == _TLS, headers=headers)
        # Chroma's default is squared distance, which is another order if lengths differ.
        collection = client.get_or_create_collection(space, metadata={"hnsw:space": "cosine"}, embedding_function=None)
        store: BasePydanticVectorStore = adapter.ChromaVectorStore(chroma_collection=collection)
        return store


def _package(name: str) -> str:
    return f"llama-index-vector-stores-{name}"


def _adapter(name: str) -> Any:
    if name == "lancedb":
        need("pandas", "LanceDB's adapter", "pandas")  # LanceDB's adapter does not declare it
    return need(f"llama_index.vector_stores.{name}", "vectors=", _package(name))


@cache
def _qdrant_folder(folder: str) -> Any:
    """The client of a folder, one per process: Qdrant refuses a second one."""
    made = need("qdrant_client", "vectors=", _package("qdrant")).QdrantClient
    return _InTurn(made(path=folder, force_disable_check_same_thread=True))


class _InTurn:
    """A client whose methods run one at a time: that of a Qdrant folder does not lock what it changes."""

    def __init__(self, client: Any) -> None:
        self._of = client
        self._lock = ProcessLock(reentrant=True)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._of, name)
        if not callable(value):
            return value

        def in_turn(*args: Any, **kwargs: Any) -> Any:
            with self._lock:
                return value(*args, **kwargs)

        return in_turn


@cache
def _lancedb_class() -> Any:
    """The adapter with its faults corrected, as of version 0.6.0."""
    adapter: Any = _adapter("lancedb").LanceDBVectorStore

    class LanceDB(adapter):  # type: ignore[misc]
        """A `LanceDBVectorStore` that deletes, ranks by cosine, may find nothing, and shares its tables.

        The adapter puts values into double quotes, which LanceDB reads as column names. LanceDB ranks by distance; for
        vectors of length 1 that is the order of cosines.
        """

        @property
        def table(self) -> Any:
            if self._table is None:  # type: ignore[has-type]  # another process may have created it meanwhile
                with suppress(ValueError):
                    self._table = self._connection.open_table(self._table_name)
            return super().table

        def add(self, nodes: list[BaseNode], **kwargs: Any) -> list[str]:
            units = [_of_length_one(node) for node in nodes]
            try:
                return list(super().add(units, **kwargs))
            except ValueError as error:
                if "already exists" not in str(error):
                    raise
            self._table = _when_created(partial(self._connection.open_table, self._table_name))
            return list(super().add(units, **kwargs))

        def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
            vector = _unit(query.query_embedding or [])
            try:
                found: VectorStoreQueryResult = super().query(replace(query, query_embedding=vector), **kwargs)
            except Warning:  # raised by the adapter if it finds nothing
                return VectorStoreQueryResult(nodes=[], similarities=[], ids=[])
            return found

        def delete(self, ref_doc_id: str, **kwargs: Any) -> None:
            self.table.delete(f"{self.doc_id_key} = {_quoted(ref_doc_id)}")

        def delete_nodes(
            self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **kwargs: Any
        ) -> None:
            if node_ids:
                self.table.delete(f"id in ({', '.join(map(_quoted, node_ids))})")

    return LanceDB


def _when_created(open_table: Callable[[], T]) -> T:
    """A table that exists: while another process creates it, it is listed but cannot be opened."""
    for _ in range(_TRIES):
        with suppress(ValueError):
            return open_table()
        time.sleep(_PAUSE)
    return open_table()


def _of_length_one(node: BaseNode) -> BaseNode:
    return node.model_copy(update={"embedding": _unit(node.get_embedding())})


def _unit(vector: Sequence[float]) -> list[float]:
    length = float(np.linalg.norm(vector))
    return [value / length for value in vector] if length else list(vector)


def _quoted(value: str) -> str:
    """An id quoted for LanceDB's conditions, which take no parameters. Those of an index are UUIDs."""
    if QUOTING.search(value):
        raise UnsupportedStoreError(
            f"The id {value[:80]!r} has a character that may end a text in a condition of LanceDB: give it another id."
        )
    return f"'{value}'"
