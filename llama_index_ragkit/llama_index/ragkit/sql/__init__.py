"""Storage in an SQL database: SQLite files, PostgreSQL and what speaks its protocol."""

from llama_index.ragkit.sql.context import SQLStorageContext, storage_context
from llama_index.ragkit.sql.engine import make_engine, reading, writing
from llama_index.ragkit.sql.kv_store import SQLKVStore
from llama_index.ragkit.sql.lexical_index import SQLLexicalIndex
from llama_index.ragkit.sql.vector_store_on_demand import VectorStoreFactory, VectorStoreOnDemand

__all__ = [
    "SQLKVStore",
    "SQLLexicalIndex",
    "SQLStorageContext",
    "VectorStoreFactory",
    "VectorStoreOnDemand",
    "make_engine",
    "reading",
    "storage_context",
    "writing",
]
