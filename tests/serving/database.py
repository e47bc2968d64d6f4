"""A database of one's own on the server of PG_DSN, with the documented `PGVectorStore`, and forked processes."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, create_engine, make_url, text
from tests.cases import Case, ask, chunks

from llama_index.ragkit.sql import SQLStorageContext, storage_context

__all__ = ["built", "context", "in_child", "new_database", "role", "run"]


def run(statement: str, url: str) -> Any:
    """What a statement returns first, if anything."""
    server = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        result = connection.execute(text(statement))
        value = result.scalar() if result.returns_rows else None
    server.dispose()
    return value


@contextmanager
def new_database(*, empty: bool = False) -> Iterator[str]:
    """The URL of a database that is dropped at the end, with the extension of pgvector unless it is to be empty."""
    if not os.environ.get("PG_DSN"):
        pytest.skip("PG_DSN is not set")
    pytest.importorskip("llama_index.vector_stores.postgres")
    name = f"d{uuid4().hex[:10]}"
    run(f"CREATE DATABASE {name}", os.environ["PG_DSN"])
    url = make_url(os.environ["PG_DSN"]).set(database=name).render_as_string(hide_password=False)
    if not empty:
        run("CREATE EXTENSION vector", url)
    yield url
    run(f"DROP DATABASE {name} WITH (FORCE)", os.environ["PG_DSN"])
    run(f"DROP ROLE IF EXISTS {name}", os.environ["PG_DSN"])


def role(database: str, options: str, rights: str) -> str:
    """The URL of the database for a user who has rights on its tables."""
    name = make_url(database).database
    run(f"CREATE ROLE {name} LOGIN {options}", database)
    run(f"GRANT {rights} ON ALL TABLES IN SCHEMA public TO {name}", database)
    if rights == "ALL":
        run(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {name}", database)
    return make_url(database).set(username=name).render_as_string(hide_password=False)


def context(url: str, engine: Engine | None = None) -> SQLStorageContext:
    from llama_index.vector_stores.postgres import PGVectorStore

    place = url.split("://", 1)[1]

    def pgvector(space: str, dimension: int) -> Any:
        return PGVectorStore.from_params(
            connection_string=f"postgresql+psycopg2://{place}",
            async_connection_string=f"postgresql+asyncpg://{place}",
            table_name=space,
            embed_dim=dimension,
            hnsw_kwargs={"hnsw_m": 16, "hnsw_ef_construction": 64, "hnsw_ef_search": 800},
        )

    return storage_context(engine or url, vectors=pgvector)


def built(case: Case, url: str) -> list[tuple[str, float]]:
    """An index over the database, and its answer."""
    return ask(case.build(chunks("d", 3), storage_context=context(url)))


def in_child(work: Any) -> int:
    """The exit status of a forked process that does something: 0 if it returns true, 14 if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1]
