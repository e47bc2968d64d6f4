"""The tables of a `SQLiteKVStore`, laid out so that deletes leave no bytes.

SQLite's `secure_delete` overwrites deleted rows, but not the copies that it made of them before. It splits and merges
the pages of a table by copying rows to neighbouring pages, and the old place of a row stays readable in the gap of its
page. Two rules avoid such copies. Rows are only appended, under increasing ids, so a full page is followed by a new one
and never split. And a row is deleted by emptying its columns, so pages are never merged. Keys are found by a hash
in a table of its own, in which copies are harmless. Once half of the file is empty rows, it is rewritten.
"""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = [
    "BUSY_SECONDS",
    "UnchangingFile",
    "check_writable",
    "collections_of",
    "connect",
    "empty",
    "find_all",
    "find_many",
    "identity",
    "is_readonly",
    "key_hash",
    "open_file",
    "put",
    "rewrite",
    "update",
]

BUSY_SECONDS = 60.0  # how long one process waits for another's write

_KEYS_AT_ONCE = 500  # below the number of parameters that any build of SQLite takes
_SMALLEST_REWRITE = 1 << 20  # bytes of empty rows below which the file is never rewritten
_TABLES = (
    "CREATE TABLE IF NOT EXISTS data (id INTEGER PRIMARY KEY, key TEXT, value TEXT)",
    "CREATE TABLE IF NOT EXISTS names (collection TEXT NOT NULL, hash BLOB NOT NULL, id INTEGER NOT NULL, "
    "PRIMARY KEY (collection, hash)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS waste (bytes INTEGER NOT NULL)",
    "INSERT INTO waste SELECT 0 WHERE NOT EXISTS (SELECT * FROM waste)",
)
Entry = dict[str, Any]

_WRITE_NOTHING = "UPDATE data SET key = key WHERE 0"


def connect(path: str) -> sqlite3.Connection:
    """A connection to a file with the tables, which are created where they are missing."""
    connection = open_file(path)
    try:
        known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"data", "names", "waste"} <= known:
            connection.execute("BEGIN IMMEDIATE")
            for statement in _TABLES:
                connection.execute(statement)
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


class UnchangingFile(sqlite3.Connection):
    """A connection to a file that nobody writes to meanwhile."""


def identity(path: str) -> tuple[int, int] | None:
    """Which file is at a path; None if none can be seen there.

    A connection stays with its file when that is removed or replaced, and what it writes there is lost.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def open_file(path: str) -> sqlite3.Connection:
    """A connection to a file, set to the write-ahead log, durable commits, deletes that overwrite, and transactions
    that are begun explicitly: the driver would begin them at the first change, after reads that a writer of another
    process may have made invalid.

    SQLite reads a file through files beside it. Where these are not there and the folder may not be written to, nobody
    is writing, and the file is read as one that does not change as long as the connection is open.
    """
    try:
        return _prepared(_opened(path, sqlite3.Connection))
    except sqlite3.OperationalError as error:
        if not is_readonly(error):
            raise
    return _opened(f"{Path(path).as_uri()}?immutable=1", UnchangingFile)


def _opened(where: str, kind: type[sqlite3.Connection]) -> sqlite3.Connection:
    uri = kind is UnchangingFile
    return sqlite3.connect(
        where, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=kind, uri=uri
    )


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        _write_ahead(connection)
        for pragma in ("synchronous=FULL", "secure_delete=ON"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def check_writable(connection: sqlite3.Connection) -> None:
    """Raise an error of :func:`is_readonly` if a file may not be written to, without a wait: where somebody is writing,
    it may.
    """
    connection.execute("PRAGMA busy_timeout = 0").fetchall()
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_WRITE_NOTHING)
    except sqlite3.OperationalError as error:
        if "locked" not in str(error):
            raise
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute(f"PRAGMA busy_timeout = {round(1000 * BUSY_SECONDS)}").fetchall()


def is_readonly(error: BaseException | None) -> bool:
    """Whether an error of SQLite says that a file or its folder cannot be written to."""
    return isinstance(error, sqlite3.OperationalError) and "readonly" in str(error)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Turn on the write-ahead log; SQLite rejects simultaneous attempts on a new file without a wait."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchall()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
        time.sleep(0.01)


def key_hash(key: str) -> bytes:
    """16 bytes by which a key is found."""
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def find_many(connection: sqlite3.Connection, keys: Sequence[str], collection: str) -> dict[str, str]:
    """The values of those keys that exist, in the order of `keys`."""
    found: dict[str, str] = {}
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        hashes = [key_hash(key) for key in keys[start : start + _KEYS_AT_ONCE]]
        query = (
            "SELECT key, value FROM names JOIN data USING (id) "
            f"WHERE collection = ? AND hash IN ({', '.join('?' * len(hashes))})"
        )
        found.update(connection.execute(query, (collection, *hashes)).fetchall())
    return {key: found[key] for key in keys if key in found}


def find_all(connection: sqlite3.Connection, collection: str) -> list[tuple[str, str]]:
    """All keys and values of a collection, in the order of the keys."""
    query = "SELECT key, value FROM names JOIN data USING (id) WHERE collection = ? ORDER BY key"
    return connection.execute(query, (collection,)).fetchall()


def collections_of(connection: sqlite3.Connection) -> list[str]:
    """The names of all collections that have values."""
    # Each is found from the one before, so that the rows between are not read.
    query = (
        "WITH RECURSIVE known (name) AS (SELECT min(collection) FROM names UNION ALL "
        "SELECT (SELECT min(collection) FROM names WHERE collection > name) FROM known WHERE name IS NOT NULL) "
        "SELECT name FROM known WHERE name IS NOT NULL"
    )
    return [name for (name,) in connection.execute(query)]


def put(connection: sqlite3.Connection, key: str, value: str, collection: str) -> bool:
    """Write a value; returns whether it replaced another."""
    replaced = empty(connection, key, collection)
    row = connection.execute("INSERT INTO data (key, value) VALUES (?, ?)", (key, value)).lastrowid
    connection.execute("INSERT INTO names VALUES (?, ?, ?)", (collection, key_hash(key), row))
    return replaced


def empty(connection: sqlite3.Connection, key: str, collection: str) -> bool:
    """Delete a key and its value; returns whether it existed."""
    where = (collection, key_hash(key))
    row = connection.execute("SELECT id FROM names WHERE collection = ? AND hash = ?", where).fetchone()
    if row is None:
        return False
    connection.execute(
        "UPDATE waste SET bytes = bytes + (SELECT 16 + min(length(key) + length(value), 4096) FROM data WHERE id = ?)",
        row,
    )
    connection.execute("UPDATE data SET key = NULL, value = NULL WHERE id = ?", row)
    connection.execute("DELETE FROM names WHERE collection = ? AND hash = ?", where)
    return True


def update(
    connection: sqlite3.Connection, changes: Mapping[str, Callable[[Entry | None], Entry | None]], collection: str
) -> tuple[dict[str, Entry | None], bool]:
    """Read, change and write values; returns the values after it, and whether any was deleted or replaced."""
    after: dict[str, Entry | None] = {}
    gone = False
    stored = find_many(connection, list(changes), collection)
    for key, change in changes.items():
        old = json.loads(stored[key]) if key in stored else None
        new = after[key] = change(old)
        if new is None and old is not None:
            gone |= empty(connection, key, collection)
        elif new is not None and new is not old:
            gone |= put(connection, key, json.dumps(new), collection)
    return after, gone


def rewrite(connection: sqlite3.Connection) -> None:
    """Remove the empty rows, and write the file anew, once they take up half of it.

    The count of their bytes is reset last, so that a rewrite that was interrupted is repeated.
    """
    waste = connection.execute("SELECT bytes FROM waste").fetchone()[0]
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    size = pages * connection.execute("PRAGMA page_size").fetchone()[0]
    if waste > max(_SMALLEST_REWRITE, size // 2):
        connection.execute("DELETE FROM data WHERE key IS NULL")
        connection.execute("VACUUM")
        connection.execute("UPDATE waste SET bytes = 0")
