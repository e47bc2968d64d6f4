"""Tables in SQLite and PostgreSQL, created when a database is first used, and many rows as parameters of a statement.

For PostgreSQL an array is passed as text: psycopg would write its elements one by one in Python, which took half of the
time of a build.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import Context
from hashlib import blake2b
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.sql.engine import is_joined, reading, writing

__all__ = ["Tables", "bytes_array", "integer_array", "integer_id", "parameters", "rows_as_table", "store", "text_array"]

_ROWS_AT_ONCE = 20_000
_NAME = re.compile(r"(?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class Tables:
    """Statements that create missing tables and indexes."""

    def __init__(self, *statements: str, sqlite: Sequence[str] = ()) -> None:
        self._statements, self._sqlite = statements, sqlite or statements
        self._made: WeakSet[Engine] = WeakSet()
        self._lock = ProcessLock()

    def make(self, engine: Engine) -> None:
        """Create them, once per engine."""
        with self._lock:
            if engine in self._made:
                return
            # Checked outside any surrounding transaction, which may be rolled back with its tables.
            if Context().run(self._are_there, engine):
                self._made.add(engine)
                return
            for attempt in range(3):
                try:
                    with writing(engine) as connection:
                        for statement in self._for(engine):
                            connection.execute(text(statement))
                    break
                except StorageError as error:
                    # On PostgreSQL, IF NOT EXISTS fails if another process creates the same table at that moment.
                    if attempt == 2 or not isinstance(
                        error.__cause__, IntegrityError | OperationalError | ProgrammingError
                    ):
                        raise
            if not is_joined(engine):
                self._made.add(engine)

    def reading(self, engine: Engine, *, single: bool = False) -> AbstractContextManager[Connection]:
        """As :func:`~llama_index.ragkit.sql.reading`; the tables are there."""
        self.make(engine)
        return reading(engine, single=single)

    def writing(self, engine: Engine) -> AbstractContextManager[Connection]:
        """As :func:`~llama_index.ragkit.sql.writing`; the tables are there."""
        self.make(engine)
        return writing(engine)

    def _for(self, engine: Engine) -> Sequence[str]:
        return self._sqlite if engine.dialect.name == "sqlite" else self._statements

    def _are_there(self, engine: Engine) -> bool:
        """Whether all of them exist. Then there is nothing to write, and no other writer to wait for."""
        names = {name for statement in self._for(engine) for name in _NAME.findall(statement)}
        query = (
            "SELECT name FROM sqlite_master"
            if engine.dialect.name == "sqlite"
            else "SELECT relname FROM pg_class WHERE pg_table_is_visible(oid)"
        )
        with reading(engine, single=True) as connection:
            return names <= set(connection.execute(text(query)).scalars())


def integer_id(*parts: str) -> int:
    """A 63-bit hash of some texts. Workers give rows ids with it, and need no common sequence."""
    hashed = blake2b("\x00".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(hashed, "big") >> 1


def integer_array(values: Iterable[int]) -> str:
    """Integers as the text of a PostgreSQL array."""
    return "{" + ",".join(map(str, map(int, values))) + "}"


def text_array(values: Iterable[str]) -> str:
    r"""Texts as the text of a PostgreSQL array.

    >>> print(text_array(["a", 'say "b"', "c\\d", ""]))
    {"a","say \"b\"","c\\d",""}
    """
    escaped = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(escaped) + '"}' if escaped else "{}"


def bytes_array(values: Iterable[bytes]) -> str:
    r"""Byte strings as the text of a PostgreSQL array.

    >>> print(bytes_array([b"a", b""]))
    {"\\x61","\\x"}
    """
    return "{" + ",".join(f'"\\\\x{value.hex()}"' for value in values) + "}"


_ARRAYS: dict[str, Any] = {"bigint": integer_array, "integer": integer_array, "text": text_array, "bytea": bytes_array}


def rows_as_table(connection: Connection, name: str, columns: Mapping[str, str]) -> str:
    """A query expression for rows that :func:`parameters` binds.

    SQLite takes them as one JSON text, PostgreSQL as one array per column.

    Parameters
    ----------
    columns : column -> its type in PostgreSQL: bigint, integer, text or bytea
    """
    if connection.dialect.name == "sqlite":
        parts = [f"json_extract(value, '$[{i}]') AS {column}" for i, column in enumerate(columns)]
        return f"(SELECT {', '.join(parts)} FROM json_each(:{name})) AS {name}"
    arrays = [f"CAST(:{name}_{column} AS {kind}[])" for column, kind in columns.items()]
    return f"unnest({', '.join(arrays)}) AS {name} ({', '.join(columns)})"


def parameters(
    connection: Connection, name: str, columns: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
) -> dict[str, Any]:
    """The parameters of :func:`rows_as_table` for some rows."""
    if connection.dialect.name == "sqlite":
        return {name: json.dumps(rows)}
    return {
        f"{name}_{column}": _ARRAYS[kind.lower()](row[i] for row in rows)
        for i, (column, kind) in enumerate(columns.items())
    }


def store(
    connection: Connection,
    table: str,
    columns: Mapping[str, str],
    rows: Sequence[tuple[Any, ...]],
    key: str,
    update: str,
) -> None:
    """Insert rows, which may have binary columns; if a primary key exists, update its row.

    Parameters
    ----------
    update : the assignments, where `excluded` is the new row
    """
    names = ", ".join(columns)
    end = f"ON CONFLICT ({key}) DO UPDATE SET {update}"
    if connection.dialect.name == "sqlite":  # JSON has no binary values
        if rows:
            marks = ", ".join("?" * len(columns))
            connection.exec_driver_sql(f"INSERT INTO {table} ({names}) VALUES ({marks}) {end}", list(rows))
        return
    given = rows_as_table(connection, "new", columns)
    statement = text(f"INSERT INTO {table} ({names}) SELECT {names} FROM {given} {end}")
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        connection.execute(statement, parameters(connection, "new", columns, rows[start : start + _ROWS_AT_ONCE]))
