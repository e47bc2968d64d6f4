"""`SQLStores`: the database and the vector stores of an index that is served from stores."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from sqlalchemy import Engine

from llama_index.ragkit.core_internals import docstore_tables
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.sql.engine import in_turn, snapshot, transaction
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.sql.kv_store import SQLKVStore
from llama_index.ragkit.sql.lexical_index import SQLLexicalIndex
from llama_index.ragkit.sql.vector_store_on_demand import MakesStores, share_engine
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.opening import CHUNKS, DEFAULT
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.stored_space import StoredSpace

__all__ = ["SQLStores", "find_stores"]

_HOW = (
    "The index keeps its records in an SQL database and its vectors in vector stores: open it with "
    "llama_index.ragkit.sql.storage_context(url, vectors=...)"
)


@dataclass(frozen=True)
class SQLStores:
    """The :class:`~llama_index.ragkit.storage.interface.Stores` of an index in a database.

    Attributes
    ----------
    engine : of the database
    scope : the name of the index in tables and vector stores that it shares with others
    vector_store : name of a space -> the store of its vectors
    """

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
    """The stores of an index in a storage context.

    Parameters
    ----------
    uid : of the index

    Raises
    ------
    ConfigurationError
        If the context has no SQL database.
    """
    records = docstore_tables(context.docstore).kvstore
    if not isinstance(records, SQLKVStore):
        raise ConfigurationError(f"{_HOW}. The records of this context are in a {type(records).__name__}.")

    def vector_store(space: str) -> BasePydanticVectorStore:
        found = context.space_store(space) if isinstance(context, MakesStores) else None
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
