"""The records of an `SQLKVStore` in PostgreSQL: one table for all tenants and collections.

A row is found by a hash of its key, since keys may be longer than an index entry of PostgreSQL. Values are JSON text,
since the type JSONB changes numbers and the order of keys. Many rows travel as arrays in one statement, so that more
rows cost no more round trips. Rows are locked in the order of their hashes, so that writers never wait for each other
in a circle.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, Row, text

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.llm.bulk_kvstore import CacheEntry, EntryChange
from llama_index.ragkit.llm.sqlite_layout import key_hash
from llama_index.ragkit.sql.arrays import bytes_array, text_array
from llama_index.ragkit.sql.engine import reading, writing
from llama_index.ragkit.sql.tables import Tables

__all__ = ["PostgresRecords"]

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
_WRITE_NOTHING = text("UPDATE ragkit_records SET value = value WHERE false")  # fails where nothing may be written
# Each tenant is found from the one before, so that the rows between are not read.
_TENANTS = text(
    """WITH RECURSIVE known (name) AS (SELECT min(tenant) FROM ragkit_records UNION ALL
    SELECT (SELECT min(tenant) FROM ragkit_records WHERE tenant > name) FROM known WHERE name IS NOT NULL)
    SELECT name FROM known WHERE name IS NOT NULL"""
)


class PostgresRecords:
    """JSON records by tenant, collection and key.

    The methods are those of :class:`~llama_index.ragkit.llm.bulk_kvstore.BulkKVStore` for one tenant.
    """

    def __init__(self, engine: Engine, tenant: str) -> None:
        self._engine = engine
        self._tenant = tenant

    def _at(self, collection: str, **more: object) -> dict[str, object]:
        return {"tenant": self._tenant, "collection": collection, **more}

    def get_many(self, keys: Sequence[str], collection: str) -> dict[str, CacheEntry]:
        """The values of the keys that exist, in the order of `keys`."""
        _TABLES.make(self._engine)
        with reading(self._engine, single=True) as connection:
            rows = connection.execute(_GET, self._at(collection, hashes=_hashes(keys))).all()
        found = _texts(rows)
        return {key: json.loads(found[key]) for key in keys if key in found}

    def get_all(self, collection: str) -> dict[str, CacheEntry]:
        """All values of a collection by key, in the order of the keys."""
        _TABLES.make(self._engine)
        with reading(self._engine, single=True) as connection:
            rows = connection.execute(_GET_ALL, self._at(collection)).all()
        return {key: json.loads(value) for key, value in rows}

    def put_all(self, pairs: Sequence[tuple[str, CacheEntry]], collection: str, batch_size: int) -> None:
        """Write many values in one transaction."""
        _TABLES.make(self._engine)
        rows = {key: json.dumps(value) for key, value in pairs}
        with writing(self._engine) as connection:
            self._put(connection, rows, collection, max(batch_size, _ROWS_AT_ONCE))

    def _put(self, connection: Connection, rows: Mapping[str, str], collection: str, size: int = _ROWS_AT_ONCE) -> None:
        keys = _checked(rows)
        for start in range(0, len(keys), size):
            batch = keys[start : start + size]
            texts = {"keys": text_array(batch), "values": text_array(rows[key] for key in batch)}
            connection.execute(_PUT, self._at(collection, hashes=_hashes(batch), **texts))

    def _delete(self, connection: Connection, keys: Iterable[str], collection: str) -> int:
        return connection.execute(_DELETE, self._at(collection, hashes=_hashes(keys))).rowcount

    def delete_all(self, keys: Sequence[str], collection: str) -> int:
        """Delete many keys in one transaction; returns how many of them existed."""
        _TABLES.make(self._engine)
        with writing(self._engine) as connection:
            return self._delete(connection, keys, collection)

    def update(self, changes: Mapping[str, EntryChange], collection: str) -> dict[str, CacheEntry | None]:
        """Read, change and write entries in one transaction, which locks them."""
        _TABLES.make(self._engine)
        keys = _checked(changes)
        at = self._at(collection, hashes=_hashes(keys), keys=text_array(keys))
        after: dict[str, CacheEntry | None] = {}
        with writing(self._engine) as connection:
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
            self._put(connection, put, collection)
            if gone:
                self._delete(connection, gone, collection)
        return after

    def check_writable(self) -> None:
        """Check that records may be written."""
        _TABLES.make(self._engine)
        with writing(self._engine) as connection:
            connection.execute(_WRITE_NOTHING)

    def drop(self) -> int:
        """Delete all collections of the tenant; returns the number of records."""
        _TABLES.make(self._engine)
        with writing(self._engine) as connection:
            doomed = text("DELETE FROM ragkit_records WHERE tenant = :tenant")
            return connection.execute(doomed, {"tenant": self._tenant}).rowcount

    def tenants(self) -> list[str]:
        """All tenants that have records, sorted."""
        _TABLES.make(self._engine)
        with reading(self._engine, single=True) as connection:
            return sorted(connection.execute(_TENANTS).scalars())


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
