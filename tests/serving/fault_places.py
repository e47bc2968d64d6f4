"""Where the fault tests of the kit keep indexes that are served from stores, with every row that there is."""

import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from sqlalchemy import Connection, text
from tests.conformance.test_indexes import OfCase
from tests.serving.places import PLACES, Kind, Place

from llama_index.ragkit.sql import SQLStorageContext, reading
from llama_index.ragkit.testing import FaultPlace, FaultTests

__all__ = ["FAULT_PLACES", "ServedEnded", "ServedPlace"]

FAULT_PLACES = [kind for kind in PLACES if kind.name in ("sqlite-lancedb", "postgres-pgvector")]
_SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT IN ('data', 'names', 'waste')"
_SQLITE_RECORDS = "SELECT collection, key, value FROM names JOIN data USING (id)"
# The tables of pgvector's adapter are in the schema "public", and have the tag in their names.
_POSTGRES_TABLES = """SELECT schemaname || '.' || tablename FROM pg_tables
WHERE (schemaname = :tag OR tablename LIKE '%' || :tag) AND tablename <> 'ragkit_records'"""
_POSTGRES_RECORDS = "SELECT collection, key, value FROM ragkit_records"


class ServedPlace(FaultPlace):
    """A database with vector stores.

    Parameters
    ----------
    kind : which
    """

    def __init__(self, kind: Kind) -> None:
        self._stack = ExitStack()
        self._folder = Path(mkdtemp())
        self._stack.callback(shutil.rmtree, self._folder)
        self._place = Place(kind, self._folder, self._stack)
        self._engine = self._place.engine()

    def open(self) -> SQLStorageContext:
        return self._place.open()

    def rows(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        with reading(self._engine) as connection:
            sqlite = connection.dialect.name == "sqlite"
            for collection, key, value in _all(connection, _SQLITE_RECORDS if sqlite else _POSTGRES_RECORDS):
                found[f"records {collection}"].append(f"{key} {value}")
            for (name,) in _all(connection, _SQLITE_TABLES if sqlite else _POSTGRES_TABLES, tag=self._place.tag):
                found[name] += map(str, _all(connection, f"SELECT * FROM {name}"))
        for name, rows in _lance_rows(self._folder / self._place.tag):
            found[f"vectors {name}"] += rows
        return found

    def close(self) -> None:
        self._stack.close()


class ServedEnded(OfCase, FaultTests):
    """The fault tests of the kit for an index that is served from stores.

    Attributes
    ----------
    where : the stores
    """

    where: Kind

    def place(self, kind: Any) -> ServedPlace:
        return ServedPlace(self.where)

    def options(self, **given: Any) -> dict[str, Any]:
        return super().options(**given)


def _lance_rows(folder: Path) -> Iterator[tuple[str, list[str]]]:
    if folder.exists():
        import lancedb

        connection = lancedb.connect(str(folder))
        for name in connection.list_tables().tables:
            yield name, [str(row) for row in connection.open_table(name).to_arrow().to_pylist()]


def _all(connection: Connection, statement: str, **values: Any) -> Sequence[Any]:
    return connection.execute(text(statement), values).all()
