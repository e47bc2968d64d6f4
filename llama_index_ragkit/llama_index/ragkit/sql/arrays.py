"""Many rows as the parameters of one statement, in SQLite and PostgreSQL.

For PostgreSQL an array is passed as text: psycopg would write its elements one by one in Python, which took half of the
time of a build.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, text

__all__ = ["bytes_array", "integer_array", "integer_id", "parameters", "rows_as_table", "store", "text_array"]

_ROWS_AT_ONCE = 20_000


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
