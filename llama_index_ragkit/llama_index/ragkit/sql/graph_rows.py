"""`SQLGraphRows`: a graph in an SQL database, stored by node, read a frontier at a time and written as differences.

A row holds the edges of a node as packed records (:mod:`llama_index.ragkit.storage.graph.edges`). A hub has one row for
each of its segments, and a first row with their totals. Both ends of an edge have a record of it. All indexes of a
database share one table, with a column for the index.

A write locks the first row of each node that it touches, in ascending order, so that writers do not wait for each other
in a circle. Then it adds its differences and commits. Writers of the same hub queue up, and no write is lost. The lock
belongs to the transaction, which the database ends when a writer dies.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, CursorResult, Engine, text

from llama_index.ragkit.sql.engine import reading, writing
from llama_index.ragkit.sql.tables import Tables, integer_array, parameters, rows_as_table, store
from llama_index.ragkit.storage.graph.edges import (
    RECORD,
    SEGMENT,
    TOTAL,
    EdgeChange,
    Records,
    check_label,
    content_number,
    joined,
    merged,
    regrouped,
    segment_of,
    segments_of,
    totals_of,
    unpacked,
)
from llama_index.ragkit.storage.graph.interface import NodeRows

__all__ = ["GraphTable", "SQLGraphRows"]

Ints = NDArray[np.int64]


_AT_ONCE = 4096  # rows in one writing statement

_TABLE = "ragkit_graph_rows"
_READ = "node, segment, leaves, label, packed"
_COLUMNS = {
    "graph": "bigint", "node": "bigint", "segment": "bigint", "leaves": "integer", "label": "text", "packed": "bytea"
}  # fmt: skip
_LABELLED = {"node": "bigint", "label": "text"}
_KEYS = {"node": "bigint", "segment": "bigint"}

Row = tuple[int, int, int, str, bytes]
"""Node, segment, leaves, label, records or totals."""


def _table(blob: str, end: str = "") -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {_TABLE} (graph BIGINT NOT NULL, node BIGINT NOT NULL, segment BIGINT NOT NULL, "
        f"leaves INTEGER NOT NULL, label TEXT NOT NULL, packed {blob} NOT NULL, "
        f"PRIMARY KEY (graph, node, segment)){end}"
    )


_TABLES = Tables(_table("BYTEA"), sqlite=[_table("BLOB", " WITHOUT ROWID")])


@dataclass(frozen=True)
class GraphTable:
    """The rows of one graph, within a transaction."""

    connection: Connection
    graph: int

    @property
    def _is_sqlite(self) -> bool:
        return self.connection.dialect.name == "sqlite"

    def _run(self, statement: str, **values: Any) -> CursorResult[Any]:
        return self.connection.execute(text(statement), {"graph": self.graph, **values})

    def _among(self, name: str) -> str:
        """The condition that a node is one of those of a parameter, which :meth:`_array` makes."""
        many = f"IN (SELECT value FROM json_each(:{name}))" if self._is_sqlite else f"= ANY(CAST(:{name} AS BIGINT[]))"
        return f"graph = :graph AND node {many}"

    def _array(self, nodes: Ints) -> str:
        return json.dumps(nodes.tolist()) if self._is_sqlite else integer_array(nodes.tolist())

    def fetch(self, nodes: Ints, whole: Ints | Sequence[int] = ()) -> NodeRows:
        """See :class:`~llama_index.ragkit.storage.graph.interface.GraphReader`; one statement."""
        asked = np.concatenate([np.asarray(nodes, np.int64), np.asarray(whole, np.int64)])
        place = dict(zip(asked.tolist(), range(len(asked)), strict=True))
        found = self._run(
            f"SELECT {_READ} FROM {_TABLE} WHERE segment = 1 AND {self._among('nodes')} "
            f"UNION ALL SELECT {_READ} FROM {_TABLE} WHERE segment > 1 AND {self._among('whole')}",
            nodes=self._array(asked[: len(nodes)]),
            whole=self._array(asked[len(nodes) :]),
        ).all()
        further, labels = np.zeros(len(asked), np.int64), [""] * len(asked)
        totals: dict[int, Records] = {}
        owners, blobs = [], []
        for node, _, leaves, label, packed in sorted(found, key=lambda row: (place[row[0]], row[1])):
            i = place[node]
            labels[i] = label
            if leaves:
                further[i], totals[node] = leaves, np.frombuffer(packed, TOTAL)
            else:
                owners.append(i)
                blobs.append(packed)
        sizes = np.array([len(blob) // RECORD.itemsize for blob in blobs], np.int64)
        rows = np.repeat(np.array(owners, np.int64), sizes)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(asked)))]).astype(np.int64)
        return NodeRows(asked, further, labels, indptr, unpacked(blobs), totals)

    def lock(self, nodes: Ints, labels: Sequence[str]) -> dict[int, tuple[int, str, bytes]]:
        """The first rows of nodes, which no other transaction can change from then on; missing ones may be inserted.

        In SQLite only one transaction can write at a time.
        """
        read = "node, leaves, label, packed"
        if self._is_sqlite:
            statement = f"SELECT {read} FROM {_TABLE} WHERE segment = 1 AND {self._among('nodes')}"
            found = self._run(statement, nodes=self._array(nodes))
        else:  # An update that changes nothing locks a row that already exists. Rows are locked in this order.
            found = self._run(
                f"INSERT INTO {_TABLE} ({', '.join(_COLUMNS)}) "
                "SELECT :graph, given.node, 1, 0, given.label, CAST('' AS BYTEA) "
                f"FROM {rows_as_table(self.connection, 'given', _LABELLED)} ORDER BY given.node "
                f"ON CONFLICT (graph, node, segment) DO UPDATE SET leaves = {_TABLE}.leaves RETURNING {read}",
                **parameters(self.connection, "given", _LABELLED, list(zip(nodes.tolist(), labels, strict=True))),
            )
        return {node: (leaves, label, bytes(packed)) for node, leaves, label, packed in found}

    def sizes(self, nodes: Ints) -> Sequence[Any]:
        """Node, segment and bytes of the further rows of nodes."""
        statement = f"SELECT node, segment, length(packed) FROM {_TABLE} WHERE segment > 1 AND {self._among('nodes')}"
        return self._run(statement, nodes=self._array(nodes)).all()

    def segments(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Records]:
        """Some further rows, by node and segment."""
        # SQLite keeps the written order only of a cross join; otherwise it reads all rows of the graph.
        found = self._run(
            f"SELECT r.node, r.segment, r.packed FROM {rows_as_table(self.connection, 'given', _KEYS)} CROSS JOIN "
            f"{_TABLE} r WHERE r.graph = :graph AND r.node = given.node AND r.segment = given.segment",
            **parameters(self.connection, "given", _KEYS, keys),
        )
        return {(node, segment): np.frombuffer(bytes(packed), RECORD) for node, segment, packed in found}

    def store(self, rows: Sequence[Row]) -> None:
        """Write rows, in their order."""
        for start in range(0, len(rows), _AT_ONCE):
            given = [(self.graph, *row) for row in rows[start : start + _AT_ONCE]]
            update = "leaves = excluded.leaves, packed = excluded.packed"
            store(self.connection, _TABLE, _COLUMNS, given, "graph, node, segment", update)

    def remove(self, keys: Sequence[tuple[int, int]]) -> None:
        """Delete rows, by node and segment."""
        for start in range(0, len(keys), _AT_ONCE):
            self._run(
                f"DELETE FROM {_TABLE} WHERE graph = :graph AND (node, segment) IN "
                f"(SELECT node, segment FROM {rows_as_table(self.connection, 'given', _KEYS)})",
                **parameters(self.connection, "given", _KEYS, keys[start : start + _AT_ONCE]),
            )

    def drop(self) -> None:
        """Delete all rows."""
        self._run(f"DELETE FROM {_TABLE} WHERE graph = :graph")


class SQLGraphRows:
    """The graph of one index."""

    def __init__(self, engine: Engine, uid: str) -> None:
        self._engine = engine
        self._number = content_number(0, uid)

    def create(self) -> None:
        """Create the table, unless it exists."""
        _TABLES.make(self._engine)

    @contextmanager
    def reader(self) -> Iterator[GraphTable]:
        """A reader that sees one state of the graph, whatever is written meanwhile."""
        with reading(self._engine) as connection:
            yield GraphTable(connection, self._number)

    def change(self, change: EdgeChange, labels: Mapping[int, str]) -> None:
        """See :meth:`~llama_index.ragkit.storage.graph.interface.GraphRows.change`; a transaction of its own."""
        nodes = np.unique(change.nodes)
        if len(nodes):
            with writing(self._engine) as connection:
                _Write(GraphTable(connection, self._number)).run(nodes, change, labels)

    def whole(self) -> NodeRows | None:
        """None: the rows stay in the database."""
        return None

    def drop(self) -> None:
        """Remove the graph; other indexes keep theirs."""
        with _TABLES.writing(self._engine) as connection:
            GraphTable(connection, self._number).drop()


class _Write:
    """One change within a transaction."""

    def __init__(self, table: GraphTable) -> None:
        self._table = table
        self._stored: list[Row] = []
        self._removed: list[tuple[int, int]] = []

    def run(self, nodes: Ints, change: EdgeChange, labels: Mapping[int, str]) -> None:
        """Lock, merge, write."""
        asked = [labels.get(node, "") for node in nodes.tolist()]
        rows = self._table.lock(nodes, asked)
        for node, label in zip(nodes.tolist(), asked, strict=True):
            check_label(node, rows[node][1] if node in rows else label, label)
        owner = np.searchsorted(nodes, change.nodes)
        cut = np.array([node in rows and rows[node][0] > 0 for node in nodes.tolist()], np.bool_)
        self._small(nodes, cut, owner, change.records, asked, rows)
        self._large(nodes[cut], EdgeChange(change.nodes[cut[owner]], change.records[cut[owner]]), rows)
        self._table.remove(self._removed)
        self._table.store(sorted(self._stored, key=lambda row: row[:2]))

    def _small(
        self, nodes: Ints, cut: NDArray[np.bool_], owner: Ints, records: Records, labels: Sequence[str], rows: Any
    ) -> None:
        """Change nodes whose edges are in one row, all together."""
        blobs = [rows[node][2] if node in rows and not rows[node][0] else b"" for node in nodes.tolist()]
        sizes = [len(blob) // RECORD.itemsize for blob in blobs]
        owners = np.concatenate([np.repeat(np.arange(len(nodes)), sizes), owner[~cut[owner]]])
        owners, records = merged(owners, joined([unpacked(blobs), records[~cut[owner]]]))
        packed = memoryview(records.tobytes())
        ends = np.searchsorted(owners, np.arange(len(nodes) + 1))
        for i in np.flatnonzero(~cut).tolist():
            first, last = int(ends[i]), int(ends[i + 1])
            if last - first <= SEGMENT:
                self._put(int(nodes[i]), labels[i], packed[first * RECORD.itemsize : last * RECORD.itemsize])
            else:
                self._cut(int(nodes[i]), labels[i], records[first:last])

    def _put(self, node: int, label: str, packed: memoryview | bytes) -> None:
        if len(packed):
            self._stored.append((node, 1, 0, label, bytes(packed)))
        else:
            self._removed.append((node, 1))

    def _cut(self, node: int, label: str, records: Records) -> None:
        parts = segments_of(records)
        self._stored.append((node, 1, len(parts), label, totals_of(records).tobytes()))
        self._stored += [(node, segment, 0, "", part.tobytes()) for segment, part in parts.items()]

    def _large(self, nodes: Ints, change: EdgeChange, rows: Any) -> None:
        """Change nodes with segments; reads and writes only the segments that the change touches."""
        sizes: dict[int, dict[int, int]] = {int(node): {} for node in nodes}
        if not len(nodes):
            return
        for node, segment, size in self._table.sizes(nodes):
            sizes[node][segment] = size // RECORD.itemsize
        changes, touched = {}, []
        for node, leaves in sizes.items():
            records = change.records[change.nodes == node]
            segments = segment_of(records, leaves)
            changes[node] = records, segments
            touched += [(node, segment) for segment in np.unique(segments).tolist()]
        parts = self._table.segments(touched)
        differences: dict[int, list[tuple[int, Records]]] = {node: [] for node in sizes}
        for node, segment in touched:
            old, (records, segments) = parts[node, segment], changes[node]
            parts[node, segment] = new = _merged([old, records[segments == segment]])
            sizes[node][segment] += len(new) - len(old)
            differences[node] += [(1, new), (-1, old)]
        groups = {node: regrouped(leaves) for node, leaves in sizes.items()}
        absorbed = [(node, part) for node, group in groups.items() for found in group.values() for part in found]
        if missing := [key for key in absorbed if key not in parts]:
            parts |= self._table.segments(missing)
        for node, leaves in sizes.items():
            label, packed = rows[node][1], rows[node][2]
            here = {segment: parts[node, segment] for segment in leaves if (node, segment) in parts}
            self._node(node, label, packed, leaves, here, groups[node], differences[node])

    def _node(
        self, node: int, label: str, packed: bytes, leaves: Mapping[int, int], parts: dict[int, Records],
        groups: Mapping[int, Sequence[int]], differences: Sequence[tuple[int, Records]],
    ) -> None:  # fmt: skip
        """Write the changed segments of a node, split anew or merged."""
        count = len(leaves)
        for parent, absorbed in groups.items():
            parts[parent] = _merged([parts.pop(segment) for segment in absorbed])
            self._removed += [(node, segment) for segment in absorbed]
            count -= len(absorbed) - 1
        if 1 in parts:  # all of it in one row again
            self._put(node, label, parts[1].tobytes())
            return
        for segment, records in parts.items():
            cut = segments_of(records, segment)
            count += len(cut) - 1
            if segment not in cut:
                self._removed.append((node, segment))
            self._stored += [(node, part, 0, "", rows.tobytes()) for part, rows in cut.items()]
        self._stored.append((node, 1, count, label, _totals_after(packed, differences).tobytes()))


def _merged(parts: Sequence[Records]) -> Records:
    """The records of one node as they are in several parts."""
    together = joined(parts)
    return merged(np.zeros(len(together), np.int64), together)[1]


def _totals_after(packed: bytes, differences: Sequence[tuple[int, Records]]) -> Records:
    """Totals after adding (1) or subtracting (-1) records."""
    sums: dict[int, tuple[int, int]] = {}
    signed = [(1, np.frombuffer(packed, TOTAL)), *((sign, totals_of(records)) for sign, records in differences)]
    for sign, totals in signed:
        for kind, records, total in totals.tolist():
            known = sums.get(kind, (0, 0))
            sums[kind] = known[0] + sign * records, known[1] + sign * total
    return np.array([(kind, *counts) for kind, counts in sorted(sums.items()) if counts[0]], TOTAL)
