"""`SQLKVStore`: a LlamaIndex key-value store in an SQL database."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE, DEFAULT_COLLECTION
from sqlalchemy import URL, Engine

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.llm.bulk_kvstore import BulkKVStore, CacheEntry, EntryChange
from llama_index.ragkit.sql.engine import is_joined, make_engine, shown_url
from llama_index.ragkit.sql.postgres_records import PostgresRecords
from llama_index.ragkit.sql.sqlite_records import SEPARATOR, SQLiteRecords

__all__ = ["SQLKVStore"]

_STORABLE = re.compile(f"[^\0\ud800-\udfff{SEPARATOR}]*")


class SQLKVStore(BulkKVStore):
    """A key-value store in an SQLite file or in PostgreSQL, for many threads and processes at once.

    All tenants and collections share one set of tables, created on first use. Many keys are read, written or deleted in
    one statement on PostgreSQL, and in one transaction on both. A write is committed when the method returns. You can
    pickle a store (with the password of its URL) and use it after a fork.

    On SQLite the file is that of a :class:`~llama_index.ragkit.SQLiteKVStore`, and such a file can be opened here.
    After :meth:`clean`, no byte of a deleted or replaced value remains in it. PostgreSQL keeps replaced rows until its
    autovacuum.

    Parameters
    ----------
    database : a URL or an engine, as in :func:`~llama_index.ragkit.sql.make_engine`
    tenant : a name; stores with different tenants never see each other's values

    Raises
    ------
    ConfigurationError
        For a database or a URL that is not supported, or a tenant that no database can hold.
    StorageError
        From any method, if the database cannot be used; a `ReadOnlyError` from those that write, if it is read-only.
    """

    def __init__(self, database: str | URL | Engine, tenant: str = "") -> None:
        if not isinstance(database, str | URL | Engine):
            kind = type(database).__name__
            raise ConfigurationError(f"Give a database as a URL or an engine of make_engine(), not a {kind}.")
        self.engine = database if isinstance(database, Engine) else make_engine(database)
        self.tenant = _name(tenant, "tenant")
        sqlite = self.engine.dialect.name == "sqlite"
        self._records: SQLiteRecords | PostgresRecords = (
            SQLiteRecords(self.engine, tenant) if sqlite else PostgresRecords(self.engine, tenant)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        pool: Any = self.engine.pool
        bounds = () if self.engine.dialect.name == "sqlite" else (pool.size(), pool.timeout())
        return _reopened, (self.engine.url.render_as_string(hide_password=False), self.tenant, *bounds)

    def __repr__(self) -> str:
        return f"SQLKVStore({shown_url(self.engine.url)!r}, tenant={self.tenant!r})"

    def get_many(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """The values of the keys that exist, in the order of `keys`."""
        wanted = list(dict.fromkeys(keys))
        return self._records.get_many(wanted, _name(collection)) if wanted else {}

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """All values of a collection by key, in the order of the keys."""
        return self._records.get_all(_name(collection))

    def put_all(
        self,
        kv_pairs: list[tuple[str, CacheEntry]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        """Write many values in one transaction.

        Parameters
        ----------
        batch_size : rows in one statement; values below 500 count as 500, since core's default is 1
        """
        if kv_pairs:
            self._records.put_all(kv_pairs, _name(collection), batch_size)

    def delete_all(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION, *, clean: bool = True) -> int:
        """Delete many keys in one transaction; returns how many of them existed.

        Parameters
        ----------
        clean : whether :meth:`clean` follows; otherwise you must call it
        """
        doomed = list(dict.fromkeys(keys))
        found = self._records.delete_all(doomed, _name(collection)) if doomed else 0
        if clean and found:
            self.clean()
        return found

    def update(
        self, changes: Mapping[str, EntryChange], collection: str = DEFAULT_COLLECTION
    ) -> dict[str, CacheEntry | None]:
        """Read, change and write entries in one transaction."""
        return self._records.update(changes, _name(collection)) if changes else {}

    def check_writable(self) -> None:
        """Check that values may be written.

        Raises
        ------
        ReadOnlyError
        """
        self._records.check_writable()

    def clean(self) -> bool:
        """Remove the bytes of deleted and replaced values from an SQLite file; PostgreSQL does so by itself.

        Returns
        -------
        Whether that is done. If not, either a process has been reading the file for seconds, and a thread waits for it
        to end, or this is within a transaction, after which you must call it again.
        """
        if not isinstance(self._records, SQLiteRecords):
            return True
        return not is_joined(self.engine) and self._records.file.clean()

    def drop(self) -> int:
        """Delete everything of the tenant in one transaction; returns the number of values.

        A store without a tenant has the tenant "", and leaves the values of others alone.
        """
        dropped = self._records.drop()
        self.clean()
        return dropped

    def tenants(self) -> list[str]:
        """All tenants that have values in the database, sorted."""
        return self._records.tenants()


def _name(name: str, what: str = "collection") -> str:
    if not isinstance(name, str) or not _STORABLE.fullmatch(name):
        raise ConfigurationError(
            f"The name of a {what} is a text without the characters U+001F and U+0000 and without lone surrogates, "
            f"not {name!r}."
        )
    return name


def _reopened(url: str, tenant: str, pool_size: int = 10, pool_timeout: float = 60.0) -> SQLKVStore:
    return SQLKVStore(make_engine(url, pool_size=pool_size, pool_timeout=pool_timeout), tenant)
