"""Many rows as the parameters of one statement, in SQLite and PostgreSQL."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from sqlalchemy import Connection, text

__all__ = ["integer_id", "parameters", "rows_as_table", "store"]

_ROWS_AT_ONCE = 20_000


def integer_id(*parts: str) -> int:
    """63 bits of a hash of some texts, by which workers give rows their ids without a common sequence."""
    hashed = blake2b("\x00".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(hashed, "big") >> 1


def rows_as_table(connection: Connection, name: str, columns: Mapping[str, str]) -> str:
    """A query expression for rows that :func:`parameters` binds.

    SQLite takes them as one JSON text, PostgreSQL as one array a column.

    Parameters
    ----------
    name : of the table in the statement, and the beginning of the names of its parameters
    columns : column -> its type in PostgreSQL
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
    return {f"{name}_{column}": [row[i] for row in rows] for i, column in enumerate(columns)}


def store(
    connection: Connection,
    table: str,
    columns: Mapping[str, str],
    rows: Sequence[tuple[Any, ...]],
    key: str,
    update: str,
) -> None:
    """Insert rows, which may have binary columns; those whose primary key exists are updated.

    Parameters
    ----------
    key : the columns of the primary key, separated by commas
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
