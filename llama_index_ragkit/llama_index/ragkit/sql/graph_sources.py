"""`GraphSources`: what each source has added to a stored graph, so that it can be taken away exactly.

It is written in the transaction that changes the graph. So a write that was killed has changed both or neither, and may
be repeated: what a source adds is replaced, whatever it had added before.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Engine, text

from llama_index.ragkit.sql.arrays import insert, parameters, rows_as_table
from llama_index.ragkit.sql.engine import reading, writing
from llama_index.ragkit.sql.graph_records import content_number
from llama_index.ragkit.sql.tables import Tables

__all__ = ["GraphSources"]

_TABLES = Tables(
    "CREATE TABLE IF NOT EXISTS ragkit_graph_sources (graph BIGINT NOT NULL, source BIGINT NOT NULL, "
    "name TEXT NOT NULL, content TEXT NOT NULL, PRIMARY KEY (graph, source))"
)
_COLUMNS = {"graph": "bigint", "source": "bigint", "name": "text", "content": "text"}
_KEYS = {"id": "bigint"}


class GraphSources:
    """The sources of the graph of one index, such as its passages.

    Parameters
    ----------
    engine : of :func:`~llama_index.ragkit.sql.make_engine`
    name : of the index; others in the same database are not seen
    """

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._graph = content_number(0, name)

    def create(self) -> None:
        """Create the table, unless it exists."""
        _TABLES.make(self._engine)

    def names(self, sources: Collection[int]) -> dict[int, str]:
        """The names of those sources that exist, by number."""
        with reading(self._engine, single=True) as connection:
            return {source: str(name) for source, name in self._find(connection, "name", sources)}

    def read(self, sources: Collection[int]) -> dict[int, Any]:
        """What those sources that exist have added, as JSON values by number."""
        with reading(self._engine, single=True) as connection:
            return self.read_in(connection, sources)

    def read_in(self, connection: Connection, sources: Collection[int]) -> dict[int, Any]:
        """As :meth:`read`, within a transaction of the caller."""
        return {source: json.loads(content) for source, content in self._find(connection, "content", sources)}

    def _find(self, connection: Connection, column: str, sources: Collection[int]) -> Iterator[tuple[int, Any]]:
        if not sources:
            return
        asked = rows_as_table(connection, "asked", _KEYS)
        rows = connection.execute(
            text(
                f"SELECT source, {column} FROM ragkit_graph_sources "
                f"WHERE graph = :graph AND source IN (SELECT id FROM {asked})"
            ),
            {"graph": self._graph, **parameters(connection, "asked", _KEYS, [(source,) for source in sources])},
        )
        for source, value in rows:
            yield int(source), value

    def replace_in(self, connection: Connection, contents: Mapping[int, tuple[str, Any]]) -> None:
        """Store what sources add now, within a transaction of the caller.

        Parameters
        ----------
        contents : number -> name and content, a JSON value; None for the content of a source that is removed
        """
        gone = rows_as_table(connection, "gone", _KEYS)
        connection.execute(
            text(f"DELETE FROM ragkit_graph_sources WHERE graph = :graph AND source IN (SELECT id FROM {gone})"),
            {"graph": self._graph, **parameters(connection, "gone", _KEYS, [(source,) for source in contents])},
        )
        rows = [
            (self._graph, source, name, json.dumps(content, ensure_ascii=False))
            for source, (name, content) in contents.items()
            if content is not None
        ]
        insert(connection, "ragkit_graph_sources", _COLUMNS, rows)

    def drop(self) -> None:
        """Delete all sources."""
        self.create()
        with writing(self._engine) as connection:
            connection.execute(text("DELETE FROM ragkit_graph_sources WHERE graph = :graph"), {"graph": self._graph})
