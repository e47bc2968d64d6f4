"""Storage in an SQL database: SQLite files, PostgreSQL and what speaks its protocol (extra `sql`)."""

from llama_index.ragkit.sql.engine import make_engine, reading, writing
from llama_index.ragkit.sql.kv_store import SQLKVStore

__all__ = ["SQLKVStore", "make_engine", "reading", "writing"]
