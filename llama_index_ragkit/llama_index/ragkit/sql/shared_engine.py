"""A `PGVectorStore` that uses the engine of the index, if its table is in the same database.

Left alone, the store of each space makes two pools, and nothing limits the connections of a process. A question, which
holds a connection to read one state of the database, would wait for another one while others wait for its own. With the
engine of the index, its pool sets the limit. A question reads vectors on a further connection if one is free, and
otherwise on its own.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from llama_index.core.vector_stores.types import BasePydanticVectorStore
from sqlalchemy import URL, Engine, TextClause, func, make_url, select, text
from sqlalchemy.orm import Session

from llama_index.ragkit.adapter_internals import pgvector_without_engine, use_engine
from llama_index.ragkit.sql.engine import joined_snapshot, reading

__all__ = ["share_engine"]

_PORT = 5432
_SETTING = re.compile(r"SET ([a-z_.]+) = :(\w+)")
# Null where there is no table yet. Only its owner may create an index on it.
_SET_UP = text(
    """SELECT current_setting('transaction_read_only') = 'on' OR NOT pg_has_role(relowner, 'USAGE') FROM pg_class
    JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = :schema AND relname = :name"""
)


def share_engine(store: BasePydanticVectorStore, engine: Engine, index_ids: bool = False) -> None:
    """Let a store use an engine, if it is a `PGVectorStore` over the same database, as the same user, that has not
    connected yet and was given no engine and no options for one. Other stores are left as they are.

    Sets up the table as the adapter does, unless it exists and this user may not change it.

    Parameters
    ----------
    index_ids : whether a new table also gets an index on the ids of its rows, by which they are deleted

    Raises
    ------
    StorageError
        If the database cannot be used.
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
