"""Empty databases to measure in: an SQLite file, and a schema of its own on the server that `PG_DSN` names, if any."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from sqlalchemy import Engine, text

from llama_index.ragkit.sql import make_engine, writing

__all__ = ["databases"]


@contextmanager
def databases() -> Iterator[dict[str, Engine]]:
    """An engine for each kind of database; they are removed at the end."""
    schema, dsn = f"bench_{uuid4().hex[:12]}", os.environ.get("PG_DSN")
    with tempfile.TemporaryDirectory() as folder:
        engines = {"sqlite": make_engine(f"sqlite:///{folder}/index.db")}
        if dsn:
            server = make_engine(dsn)
            with writing(server) as connection:
                connection.execute(text(f"CREATE SCHEMA {schema}"))
            engines["postgresql"] = make_engine(f"{dsn}?options=-csearch_path%3D{schema}")
        try:
            yield engines
        finally:
            for engine in engines.values():
                engine.dispose()
            if dsn:
                with writing(server) as connection:
                    connection.execute(text(f"DROP SCHEMA {schema} CASCADE"))
                server.dispose()
