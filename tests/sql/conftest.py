"""A database of every supported kind, empty for each test."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.sql import make_engine, writing


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database(request.param, tmp_path) as url:
        yield url


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty database: a file, or a schema of its own on the server of PG_DSN."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'folder' / 'index.db'}"
        return
    if not os.environ.get("PG_DSN"):
        pytest.skip("PG_DSN is not set")
    with schema(f"test_{uuid4().hex[:12]}") as url:
        yield url


@contextmanager
def schema(name: str) -> Iterator[str]:
    """The URL of a schema of its own on the server of PG_DSN."""
    server = make_engine(os.environ["PG_DSN"])
    with suppress(StorageError), writing(server) as connection:  # it is not installed, or another process was first
        # Otherwise an adapter creates it in the first schema of its search path, where other tests do not see it.
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"))
    with writing(server) as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    yield f"{os.environ['PG_DSN']}?options=-csearch_path%3D{name},public"
    with writing(server) as connection:
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    server.dispose()


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    made = make_engine(url)
    yield made
    made.dispose()
