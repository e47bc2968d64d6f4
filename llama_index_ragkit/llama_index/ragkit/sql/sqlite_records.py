"""The records of an `SQLKVStore` in an SQLite file, which is that of a `SQLiteKVStore`."""

import threading
from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

from sqlalchemy import Engine

from llama_index.ragkit.llm.bulk_kvstore import CacheEntry, EntryChange
from llama_index.ragkit.llm.sqlite_kvstore import SQLiteKVStore

__all__ = ["SEPARATOR", "SQLiteRecords"]

SEPARATOR = "\x1f"  # between tenant and collection; neither may contain it

_files: "WeakKeyDictionary[Engine, SQLiteKVStore]" = WeakKeyDictionary()
_files_lock = threading.Lock()


def _file_of(engine: Engine) -> SQLiteKVStore:
    """The open file of an engine, which its tenants share: thousands of them need one connection."""
    with _files_lock:
        if engine not in _files:
            _files[engine] = SQLiteKVStore(str(engine.url.database))
        return _files[engine]


class SQLiteRecords:
    """JSON records by tenant, collection and key, in files that keep no byte of what was deleted.

    The methods are those of :class:`~llama_index.ragkit.llm.bulk_kvstore.BulkKVStore` for one tenant. The tenant
    precedes the names of its collections; those of the tenant "" are stored as they are, as `SQLiteKVStore` does.
    """

    def __init__(self, engine: Engine, tenant: str) -> None:
        self.file = _file_of(engine)
        self._prefix = tenant + SEPARATOR if tenant else ""

    def get_many(self, keys: Sequence[str], collection: str) -> dict[str, CacheEntry]:
        """The values of those keys that exist, in the order of `keys`."""
        return self.file.get_many(keys, self._prefix + collection)

    def get_all(self, collection: str) -> dict[str, CacheEntry]:
        """All values of a collection by key, in the order of the keys."""
        return self.file.get_all(self._prefix + collection)

    def put_all(self, pairs: Sequence[tuple[str, CacheEntry]], collection: str, batch_size: int) -> None:
        """Write many values in one transaction."""
        self.file.put_all(list(pairs), self._prefix + collection, batch_size)

    def delete_all(self, keys: Sequence[str], collection: str) -> int:
        """Delete many keys in one transaction; returns how many of them existed."""
        return self.file.delete_all(keys, self._prefix + collection, clean=False)

    def update(self, changes: Mapping[str, EntryChange], collection: str) -> dict[str, CacheEntry | None]:
        """Read, change and write entries in one transaction."""
        return self.file.update(changes, self._prefix + collection)

    def drop(self) -> int:
        """Delete all collections of the tenant; returns the number of records."""
        return self.file.drop(self._owns)

    def tenants(self) -> list[str]:
        """All tenants that have records, sorted."""
        return sorted({name.partition(SEPARATOR)[0] if SEPARATOR in name else "" for name in self.file.collections()})

    def _owns(self, name: str) -> bool:
        return name.startswith(self._prefix) if self._prefix else SEPARATOR not in name
