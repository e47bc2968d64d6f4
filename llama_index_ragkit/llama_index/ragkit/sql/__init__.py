"""Storage in an SQL database: SQLite files, PostgreSQL and what speaks its protocol (extra `sql`)."""

from llama_index.ragkit.sql.engine import make_engine, reading, writing

__all__ = ["make_engine", "reading", "writing"]
