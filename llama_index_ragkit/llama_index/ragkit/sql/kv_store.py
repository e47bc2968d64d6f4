"""`SQLKVStore`: a LlamaIndex key-value store in an SQL database, with its records in SQLite or PostgreSQL."""

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast
from weakref import WeakKeyDictionary, ref

from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE, DEFAULT_COLLECTION
from sqlalchemy import URL, Connection, Engine, Row, text

from llama_index.ragkit.errors import ConfigurationError, StorageError
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.llm.bulk_kvstore import BulkKVStore, CacheEntry, EntryChange
from llama_index.ragkit.llm.sqlite_kvstore import SQLiteKVStore
from llama_index.ragkit.llm.sqlite_layout import key_hash
from llama_index.ragkit.sql.engine import is_joined, make_engine, reading, shown_url, writing
from llama_index.ragkit.sql.tables import Tables, bytes_array, text_array

__all__ = ["SQLKVStore"]

_ROWS_AT_ONCE = 500
_TABLES = Tables(
    """CREATE TABLE IF NOT EXISTS ragkit_records (
    tenant text NOT NULL, collection text NOT NULL, hash bytea NOT NULL, key text NOT NULL, value text NOT NULL,
    PRIMARY KEY (tenant, collection, hash))"""
)
_HERE = "tenant = :tenant AND collection = :collection"
_PUT = text(
    """INSERT INTO ragkit_records (tenant, collection, hash, key, value)
    SELECT :tenant, :collection, * FROM unnest(CAST(:hashes AS bytea[]), CAST(:keys AS text[]), CAST(:values AS text[]))
    ON CONFLICT (tenant, collection, hash) DO UPDATE SET value = EXCLUDED.value"""
)
_GET = text(f"SELECT key, value FROM ragkit_records WHERE {_HERE} AND hash = ANY(CAST(:hashes AS bytea[]))")
_GET_ALL = text(f'SELECT key, value FROM ragkit_records WHERE {_HERE} ORDER BY key COLLATE "C"')
# The rows to be deleted are first locked in order. They are not joined: the planner does not know the size of a
# collection written in the same transaction, and would compare each of its rows with each doomed one.
_DELETE = text(
    f"""WITH doomed AS (SELECT FROM ragkit_records WHERE {_HERE} AND hash = ANY(CAST(:hashes AS bytea[]))
    ORDER BY hash FOR UPDATE)
    DELETE FROM ragkit_records WHERE {_HERE} AND hash = ANY(CAST(:hashes AS bytea[]))
    AND (SELECT count(*) FROM doomed) > 0"""
)
# A row without a value holds the place of a new one while it is changed, so that two writers cannot both find none.
_RESERVE = text(
    """INSERT INTO ragkit_records (tenant, collection, hash, key, value)
    SELECT :tenant, :collection, new.hash, new.key, ''
    FROM unnest(CAST(:hashes AS bytea[]), CAST(:keys AS text[])) AS new (hash, key)
    ON CONFLICT (tenant, collection, hash) DO NOTHING"""
)
_LOCK = text(
    f"""SELECT key, value FROM ragkit_records WHERE {_HERE} AND hash = ANY(CAST(:hashes AS bytea[]))
    ORDER BY hash FOR UPDATE"""
)
_DROP = text("DELETE FROM ragkit_records WHERE tenant = :tenant")
_WRITE_NOTHING = text("UPDATE ragkit_records SET value = value WHERE false")  # fails where nothing may be written
# Each tenant is found from the one before, so that the rows between are not read.
_TENANTS = text(
    """WITH RECURSIVE known (name) AS (SELECT min(tenant) FROM ragkit_records UNION ALL
    SELECT (SELECT min(tenant) FROM ragkit_records WHERE tenant > name) FROM known WHERE name IS NOT NULL)
    SELECT name FROM known WHERE name IS NOT NULL"""
)

_SEPARATOR = "\x1f"  # between tenant and collection; neither may contain it

_STORABLE = re.compile(f"[^\0\ud800-\udfff{_SEPARATOR}]*")


class _PostgresRecords:
    """JSON records by name and key, in one table for all tenants and collections.

    A row is found by a hash of its key, since keys may be longer than an index entry of PostgreSQL. Values are JSON
    text, since the type JSONB changes numbers and the order of keys. Many rows travel as arrays in one statement, so
    that more rows cost no more round trips. Rows are locked in the order of their hashes, so that writers never wait
    for each other in a circle.

    The methods are those of a :class:`_SharedFile`.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get_many(self, keys: Sequence[str], name: str) -> dict[str, CacheEntry]:
        with _TABLES.reading(self._engine, single=True) as connection:
            found = _texts(connection.execute(_GET, _at(name, hashes=_hashes(keys))).all())
        return {key: json.loads(found[key]) for key in keys if key in found}

    def get_all(self, name: str) -> dict[str, CacheEntry]:
        with _TABLES.reading(self._engine, single=True) as connection:
            rows = connection.execute(_GET_ALL, _at(name)).all()
        return {key: json.loads(value) for key, value in rows}

    def put_all(self, pairs: Sequence[tuple[str, CacheEntry]], name: str, batch_size: int) -> None:
        rows = {key: json.dumps(value) for key, value in pairs}
        with _TABLES.writing(self._engine) as connection:
            _put(connection, rows, name, max(batch_size, _ROWS_AT_ONCE))

    def delete_all(self, keys: Sequence[str], name: str, *, clean: bool) -> int:
        with _TABLES.writing(self._engine) as connection:
            return connection.execute(_DELETE, _at(name, hashes=_hashes(keys))).rowcount

    def update(self, changes: Mapping[str, EntryChange], name: str) -> dict[str, CacheEntry | None]:
        keys = _checked(changes)
        at = _at(name, hashes=_hashes(keys), keys=text_array(keys))
        after: dict[str, CacheEntry | None] = {}
        with _TABLES.writing(self._engine) as connection:
            stored: dict[str, str] = {}
            while len(stored) < len(keys):  # again if a row was deleted between the two statements
                connection.execute(_RESERVE, at)
                stored = _texts(connection.execute(_LOCK, at).all())
            put, gone = {}, []
            for key, change in changes.items():
                old = json.loads(stored[key]) if stored[key] else None
                new = after[key] = change(old)
                if new is None:
                    gone.append(key)
                elif new is not old:
                    put[key] = json.dumps(new)
            _put(connection, put, name, _ROWS_AT_ONCE)
            if gone:
                connection.execute(_DELETE, _at(name, hashes=_hashes(gone)))
        return after

    def check_writable(self) -> None:
        with _TABLES.writing(self._engine) as connection:
            connection.execute(_WRITE_NOTHING)

    def clean(self) -> bool:
        return True

    def drop_tenant(self, tenant: str) -> int:
        with _TABLES.writing(self._engine) as connection:
            return connection.execute(_DROP, {"tenant": tenant}).rowcount

    def tenants(self) -> list[str]:
        with _TABLES.reading(self._engine, single=True) as connection:
            return sorted(connection.execute(_TENANTS).scalars())


def _put(connection: Connection, rows: Mapping[str, str], name: str, size: int) -> None:
    keys = _checked(rows)
    for start in range(0, len(keys), size):
        batch = keys[start : start + size]
        texts = {"keys": text_array(batch), "values": text_array(rows[key] for key in batch)}
        connection.execute(_PUT, _at(name, hashes=_hashes(batch), **texts))


def _at(name: str, **more: object) -> dict[str, object]:
    tenant, _, collection = name.rpartition(_SEPARATOR)
    return {"tenant": tenant, "collection": collection, **more}


def _hashes(keys: Iterable[str]) -> str:
    return bytes_array(map(key_hash, keys))


def _texts(rows: Iterable[Row[Any]]) -> dict[str, str]:
    return {str(row[0]): str(row[1]) for row in rows}


def _checked(keys: Iterable[str]) -> list[str]:
    """The keys in the order in which their rows are locked."""
    known = list(keys)
    bad = next((key for key in known if "\x00" in key), None)
    if bad is not None:
        raise StorageError(f"PostgreSQL cannot hold NUL characters, and a key has one: {bad[:80]!r}.")
    return sorted(known, key=key_hash)


class _SharedFile(SQLiteKVStore):
    """A file whose values are read and written by an engine. Its tenants share it, so that thousands of them need one
    connection of its own, by which it is cleaned.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = ref(engine)  # which keeps the file
        super().__init__(str(engine.url.database))

    @classmethod
    def of(cls, engine: Engine) -> "_SharedFile":
        """The open file of an engine."""
        with _files_lock:
            return _files.get(engine) or _files.setdefault(engine, cls(engine))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with reading(cast(Engine, self._engine())) as connection:
            yield _raw(connection)

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with writing(cast(Engine, self._engine())) as connection:
            yield _raw(connection)

    def update(
        self, changes: Mapping[str, EntryChange], collection: str = DEFAULT_COLLECTION
    ) -> dict[str, CacheEntry | None]:
        return self._update(changes, collection)  # not cleaned: a cache looks for many keys that no entry has

    def clean(self) -> bool:
        return not is_joined(cast(Engine, self._engine())) and super().clean()

    def drop_tenant(self, tenant: str) -> int:
        return self.drop(lambda name: name.rpartition(_SEPARATOR)[0] == tenant)

    def tenants(self) -> list[str]:
        return sorted({name.rpartition(_SEPARATOR)[0] for name in self.collections()})


def _raw(connection: Connection) -> sqlite3.Connection:
    """The connection of the driver, in a transaction: SQLAlchemy would begin one only with its own first statement."""
    if not connection.in_transaction():
        connection.begin()
    raw: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    return raw


_files: WeakKeyDictionary[Engine, _SharedFile] = WeakKeyDictionary()
_files_lock = ProcessLock()


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
        self._records = _SharedFile.of(self.engine) if sqlite else _PostgresRecords(self.engine)

    def _named(self, collection: str) -> str:
        """The name of a collection of the tenant; that of the tenant "" is plain, as in a `SQLiteKVStore`."""
        return f"{self.tenant}{_SEPARATOR if self.tenant else ''}{_name(collection)}"

    def __reduce__(self) -> tuple[Any, ...]:
        pool: Any = self.engine.pool
        bounds = () if self.engine.dialect.name == "sqlite" else (pool.size(), pool.timeout())
        return _reopened, (self.engine.url.render_as_string(hide_password=False), self.tenant, *bounds)

    def __repr__(self) -> str:
        return f"SQLKVStore({shown_url(self.engine.url)!r}, tenant={self.tenant!r})"

    def get_many(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """The values of the keys that exist, in the order of `keys`."""
        wanted = list(dict.fromkeys(keys))
        return self._records.get_many(wanted, self._named(collection)) if wanted else {}

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """All values of a collection by key, in the order of the keys."""
        return self._records.get_all(self._named(collection))

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
            self._records.put_all(kv_pairs, self._named(collection), batch_size)

    def delete_all(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION, *, clean: bool = True) -> int:
        """Delete many keys in one transaction; returns how many of them existed.

        Parameters
        ----------
        clean : whether :meth:`clean` follows; otherwise you must call it
        """
        doomed = list(dict.fromkeys(keys))
        return self._records.delete_all(doomed, self._named(collection), clean=clean) if doomed else 0

    def update(
        self, changes: Mapping[str, EntryChange], collection: str = DEFAULT_COLLECTION
    ) -> dict[str, CacheEntry | None]:
        """Read, change and write entries in one transaction."""
        return self._records.update(changes, self._named(collection)) if changes else {}

    def check_writable(self) -> None:
        """Raise a `ReadOnlyError` if values may not be written."""
        self._records.check_writable()

    def clean(self) -> bool:
        """Remove the bytes of deleted and replaced values from an SQLite file; PostgreSQL does so by itself.

        Returns
        -------
        Whether that is done. If not, either a process has been reading the file for seconds, and a thread waits for it
        to end, or this is within a transaction, after which you must call it again.
        """
        return self._records.clean()

    def drop(self) -> int:
        """Delete everything of the tenant in one transaction; returns the number of values.

        A store without a tenant has the tenant "", and leaves the values of others alone.
        """
        dropped = self._records.drop_tenant(self.tenant)
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
