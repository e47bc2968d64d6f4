"""The records of an `SQLKVStore` in an SQLite file, in the layout of a `SQLiteKVStore`."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine

from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.llm import sqlite_layout
from llama_index.ragkit.llm.bulk_kvstore import CacheEntry, EntryChange
from llama_index.ragkit.llm.sqlite_kvstore import SQLiteKVStore
from llama_index.ragkit.sql.engine import reading, writing

__all__ = ["SEPARATOR", "SQLiteRecords"]

SEPARATOR = "\x1f"  # between tenant and collection; neither may contain it

_files: "WeakKeyDictionary[Engine, SQLiteKVStore]" = WeakKeyDictionary()
_files_lock = ProcessLock()


def _file_of(engine: Engine) -> SQLiteKVStore:
    """The open file of an engine. Its tenants share it, so that thousands of them need one connection."""
    with _files_lock:
        if engine not in _files:
            _files[engine] = SQLiteKVStore(str(engine.url.database))
        return _files[engine]


class SQLiteRecords:
    """JSON records by tenant, collection and key, in files that keep no byte of what was deleted.

    The methods are those of :class:`~llama_index.ragkit.llm.bulk_kvstore.BulkKVStore` for one tenant. The tenant
    precedes the names of its collections; those of the tenant "" have plain names, as in `SQLiteKVStore`.
    """

    def __init__(self, engine: Engine, tenant: str) -> None:
        self.file = _file_of(engine)
        self._engine = engine
        self._prefix = tenant + SEPARATOR if tenant else ""

    def get_many(self, keys: Sequence[str], collection: str) -> dict[str, CacheEntry]:
        """The values of the keys that exist, in the order of `keys`."""
        with reading(self._engine) as connection:
            rows = sqlite_layout.find_many(_raw(connection), keys, self._prefix + collection)
        return {key: json.loads(value) for key, value in rows.items()}

    def get_all(self, collection: str) -> dict[str, CacheEntry]:
        """All values of a collection by key, in the order of the keys."""
        with reading(self._engine) as connection:
            rows = sqlite_layout.find_all(_raw(connection), self._prefix + collection)
        return {key: json.loads(value) for key, value in rows}

    def put_all(self, pairs: Sequence[tuple[str, CacheEntry]], collection: str, batch_size: int) -> None:
        """Write many values in one transaction."""
        rows = [(key, json.dumps(value)) for key, value in pairs]
        with writing(self._engine) as connection:
            raw = _raw(connection)
            for key, value in rows:
                if sqlite_layout.put(raw, key, value, self._prefix + collection):
                    self.file.has_deleted()

    def delete_all(self, keys: Sequence[str], collection: str) -> int:
        """Delete many keys in one transaction; returns how many of them existed."""
        with writing(self._engine) as connection:
            raw = _raw(connection)
            found = sum(sqlite_layout.empty(raw, key, self._prefix + collection) for key in keys)
        if found:
            self.file.has_deleted()
        return found

    def update(self, changes: Mapping[str, EntryChange], collection: str) -> dict[str, CacheEntry | None]:
        """Read, change and write entries in one transaction."""
        name = self._prefix + collection
        with writing(self._engine) as connection:
            after, deleted = sqlite_layout.update(_raw(connection), changes, name)
        if deleted:
            self.file.has_deleted()
        return after

    def check_writable(self) -> None:
        """Check that records may be written."""
        self.file.check_writable()

    def drop(self) -> int:
        """Delete all collections of the tenant; returns the number of records."""
        return self.file.drop(self._owns)

    def tenants(self) -> list[str]:
        """All tenants that have records, sorted."""
        return sorted({name.partition(SEPARATOR)[0] if SEPARATOR in name else "" for name in self.file.collections()})

    def _owns(self, name: str) -> bool:
        return name.startswith(self._prefix) if self._prefix else SEPARATOR not in name


def _raw(connection: Connection) -> sqlite3.Connection:
    """The connection of the driver, in a transaction: SQLAlchemy would begin one only with its own first statement."""
    if not connection.in_transaction():
        connection.begin()
    raw: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    return raw
