"""`SQLGraphRows`: a graph in an SQL database, stored by node, read a frontier at a time and written as differences.

A row holds the edges of a node as packed records (:mod:`llama_index.ragkit.storage.graph.edges`). A hub has one row for
each of its segments, and a first row with their totals. Both ends of an edge have a record of it. All indexes of a
database share one table, with a column for the index.

A write locks the first row of each node that it touches, in ascending order, so that writers do not wait for each other
in a circle. Then it adds its differences and commits. Writers of the same hub queue up, and no write is lost. The lock
belongs to the transaction, which the database ends when a writer dies.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Engine, TextClause, text

from llama_index.ragkit.sql.arrays import bytes_array, integer_array, text_array
from llama_index.ragkit.sql.engine import reading, writing
from llama_index.ragkit.sql.tables import Tables
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

__all__ = ["SQLGraphReader", "SQLGraphRows", "Statements", "statements_for"]


_TABLE = "ragkit_graph_rows"

Ints = NDArray[np.int64]

_AT_ONCE = 4096  # rows in one writing statement


@dataclass(frozen=True)
class Statements:
    """Statements, and how lists are passed to them.

    Attributes
    ----------
    tables : the table
    drop : the rows of one index
    frontier : the first rows of some nodes, the further rows of others
    lock : the first rows of nodes, which no other transaction can change from then on; missing ones may be inserted
    locks_itself : whether only one transaction can write at a time, so that `lock` only reads
    sizes : bytes of the further rows of nodes
    segments : some further rows
    store, remove : rows
    array, texts : integers and texts as a parameter
    pairs, rows, keys : the parameters of `segments`, `store` and `remove`
    """

    tables: Tables
    drop: TextClause
    frontier: TextClause
    lock: TextClause
    locks_itself: bool
    sizes: TextClause
    segments: TextClause
    store: TextClause
    remove: TextClause
    array: Callable[[Any], Any]
    texts: Callable[[Sequence[str]], Any]
    pairs: Callable[[int, Sequence[tuple[int, int]]], Any]
    rows: Callable[[int, Sequence[tuple[int, int, int, str, bytes]]], Any]
    keys: Callable[[int, Sequence[tuple[int, int]]], Any]


def statements_for(engine: Engine) -> Statements:
    """The statements for the database of an engine."""
    return _SQLITE if engine.dialect.name == "sqlite" else _POSTGRESQL


def _tables(blob: str, end: str = "") -> Tables:
    return Tables(
        f"CREATE TABLE IF NOT EXISTS {_TABLE} (graph BIGINT NOT NULL, node BIGINT NOT NULL, segment BIGINT NOT NULL, "
        f"leaves INTEGER NOT NULL, label TEXT NOT NULL, packed {blob} NOT NULL, "
        f"PRIMARY KEY (graph, node, segment)){end}"
    )


def _frontier(nodes: str, whole: str) -> TextClause:
    return text(
        f"SELECT {_READ} FROM {_TABLE} WHERE graph = :graph AND segment = 1 AND node {nodes} "
        f"UNION ALL SELECT {_READ} FROM {_TABLE} WHERE graph = :graph AND segment > 1 AND node {whole}"
    )


_READ = "node, segment, leaves, label, packed"
_STORED = "graph, node, segment, leaves, label, packed"
_REPLACED = "ON CONFLICT (graph, node, segment) DO UPDATE SET leaves = excluded.leaves, packed = excluded.packed"


_DROP = text(f"DELETE FROM {_TABLE} WHERE graph = :graph")


_ROWS = "node, segment, length(packed)"


def _in_json(name: str) -> str:
    return f"IN (SELECT value FROM json_each(:{name}))"


def _in_array(name: str) -> str:
    return f"= ANY(CAST(:{name} AS BIGINT[]))"


def _as_json(values: Any) -> str:
    return json.dumps([int(value) for value in values])


def _keys_in_arrays(graph: int, keys: Sequence[tuple[int, int]]) -> dict[str, Any]:
    nodes, segments = integer_array(node for node, _ in keys), integer_array(segment for _, segment in keys)
    return {"graph": graph, "nodes": nodes, "segments": segments}


_SQLITE = Statements(
    tables=_tables("BLOB", " WITHOUT ROWID"),
    drop=_DROP,
    frontier=_frontier(_in_json("nodes"), _in_json("whole")),
    lock=text(
        f"SELECT node, leaves, label, packed FROM {_TABLE} "
        f"WHERE graph = :graph AND segment = 1 AND node {_in_json('nodes')}"
    ),
    locks_itself=True,
    sizes=text(f"SELECT {_ROWS} FROM {_TABLE} WHERE graph = :graph AND segment > 1 AND node {_in_json('nodes')}"),
    # SQLite keeps the written order only of a cross join; otherwise it reads all rows of the graph.
    segments=text(
        f"SELECT r.node, r.segment, r.packed FROM json_each(:pairs) given CROSS JOIN {_TABLE} r ON r.graph = :graph "
        "AND r.node = json_extract(given.value, '$[0]') AND r.segment = json_extract(given.value, '$[1]')"
    ),
    store=text(
        f"INSERT INTO {_TABLE} ({_STORED}) VALUES (:graph, :node, :segment, :leaves, :label, :packed) {_REPLACED}"
    ),
    remove=text(f"DELETE FROM {_TABLE} WHERE graph = :graph AND node = :node AND segment = :segment"),
    array=_as_json,
    texts=json.dumps,
    pairs=lambda graph, keys: {"graph": graph, "pairs": json.dumps([(int(node), int(part)) for node, part in keys])},
    rows=lambda graph, rows: [
        dict(zip(("graph", "node", "segment", "leaves", "label", "packed"), (graph, *row), strict=True)) for row in rows
    ],
    keys=lambda graph, keys: [{"graph": graph, "node": node, "segment": segment} for node, segment in keys],
)


_POSTGRESQL = Statements(
    tables=_tables("BYTEA"),
    drop=_DROP,
    frontier=_frontier(_in_array("nodes"), _in_array("whole")),
    # An update that changes nothing locks a row that already exists. Rows are locked in this order.
    lock=text(
        f"INSERT INTO {_TABLE} ({_STORED}) SELECT :graph, given.node, 1, 0, given.label, CAST('' AS BYTEA) "
        "FROM unnest(CAST(:nodes AS BIGINT[]), CAST(:labels AS TEXT[])) AS given (node, label) ORDER BY given.node "
        f"ON CONFLICT (graph, node, segment) DO UPDATE SET leaves = {_TABLE}.leaves "
        "RETURNING node, leaves, label, packed"
    ),
    locks_itself=False,
    sizes=text(f"SELECT {_ROWS} FROM {_TABLE} WHERE graph = :graph AND segment > 1 AND node {_in_array('nodes')}"),
    segments=text(
        f"SELECT r.node, r.segment, r.packed FROM {_TABLE} r "
        "JOIN unnest(CAST(:nodes AS BIGINT[]), CAST(:segments AS BIGINT[])) AS given (node, segment) "
        "ON r.node = given.node AND r.segment = given.segment WHERE r.graph = :graph"
    ),
    store=text(
        f"INSERT INTO {_TABLE} ({_STORED}) SELECT :graph, given.* FROM unnest(CAST(:nodes AS BIGINT[]), "
        "CAST(:segments AS BIGINT[]), CAST(:leaves AS INTEGER[]), CAST(:labels AS TEXT[]), CAST(:packed AS BYTEA[])) "
        f"AS given (node, segment, leaves, label, packed) {_REPLACED}"
    ),
    remove=text(
        f"DELETE FROM {_TABLE} r USING unnest(CAST(:nodes AS BIGINT[]), CAST(:segments AS BIGINT[])) "
        "AS given (node, segment) WHERE r.graph = :graph AND r.node = given.node AND r.segment = given.segment"
    ),
    array=integer_array,
    texts=text_array,
    pairs=_keys_in_arrays,
    rows=lambda graph, rows: {
        "graph": graph,
        "nodes": integer_array(row[0] for row in rows),
        "segments": integer_array(row[1] for row in rows),
        "leaves": integer_array(row[2] for row in rows),
        "labels": text_array(row[3] for row in rows),
        "packed": bytes_array(row[4] for row in rows),
    },
    keys=_keys_in_arrays,
)


class SQLGraphReader:
    """Reads from one state of a graph.

    Attributes
    ----------
    calls : number of statements sent
    """

    def __init__(self, connection: Connection, statements: Statements, number: int) -> None:
        self._connection = connection
        self._statements = statements
        self._number = number
        self.calls = 0

    def fetch(self, nodes: Ints, whole: Ints | Sequence[int] = ()) -> NodeRows:
        """The rows of nodes, read by one statement.

        Parameters
        ----------
        nodes : distinct; of a node with several rows, only the first is read
        whole : distinct nodes with several rows, whose further rows are read; these come last
        """
        asked = np.concatenate([np.asarray(nodes, np.int64), np.asarray(whole, np.int64)])
        place = dict(zip(asked.tolist(), range(len(asked)), strict=True))
        self.calls += 1
        found = self._connection.execute(
            self._statements.frontier,
            {
                "graph": self._number,
                "nodes": self._statements.array(asked[: len(nodes)]),
                "whole": self._statements.array(asked[len(nodes) :]),
            },
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


class SQLGraphRows:
    """The graph of one index.

    Parameters
    ----------
    engine : see :func:`~llama_index.ragkit.sql.make_engine`; the table is created by :meth:`create`
    uid : the index; others in the same database are not seen
    """

    def __init__(self, engine: Engine, uid: str) -> None:
        self._engine = engine
        self._statements = statements_for(engine)
        self._number = content_number(0, uid)

    def create(self) -> None:
        """Create the table, unless it exists."""
        self._statements.tables.make(self._engine)

    @contextmanager
    def reader(self) -> Iterator[SQLGraphReader]:
        """A reader that sees one state of the graph, whatever is written meanwhile."""
        with reading(self._engine) as connection:
            yield SQLGraphReader(connection, self._statements, self._number)

    def change(self, change: EdgeChange, labels: Mapping[int, str]) -> None:
        """See :meth:`~llama_index.ragkit.storage.graph.interface.GraphRows.change`; a transaction of its own."""
        with writing(self._engine) as connection:
            self.change_in(connection, change, labels)

    def change_in(self, connection: Connection, change: EdgeChange, labels: Mapping[int, str]) -> None:
        """As :meth:`change`, within a transaction of the caller."""
        nodes = np.unique(change.nodes)
        if len(nodes):
            _Write(connection, self._statements, self._number).run(nodes, change, labels)

    def whole(self) -> NodeRows | None:
        """None: the rows stay in the database."""
        return None

    def drop(self) -> None:
        """Remove the graph; other indexes keep theirs."""
        self.create()
        with writing(self._engine) as connection:
            connection.execute(self._statements.drop, {"graph": self._number})


class _Write:
    """One change within a transaction."""

    def __init__(self, connection: Connection, statements: Statements, number: int) -> None:
        self._connection = connection
        self._statements = statements
        self._number = number
        self._stored: list[tuple[int, int, int, str, bytes]] = []  # node, segment, leaves, label, records or totals
        self._removed: list[tuple[int, int]] = []

    def run(self, nodes: Ints, change: EdgeChange, labels: Mapping[int, str]) -> None:
        """Lock, merge, write."""
        asked = [labels.get(node, "") for node in nodes.tolist()]
        rows = {node: (leaves, label, packed) for node, leaves, label, packed in self._locked(nodes, asked)}
        for node, label in zip(nodes.tolist(), asked, strict=True):
            check_label(node, rows[node][1] if node in rows else label, label)
        owner = np.searchsorted(nodes, change.nodes)
        cut = np.array([node in rows and rows[node][0] > 0 for node in nodes.tolist()], np.bool_)
        self._small(nodes, cut, owner, change.records, asked, rows)
        self._large(nodes[cut], EdgeChange(change.nodes[cut[owner]], change.records[cut[owner]]), rows)
        self._flush()

    def _locked(self, nodes: Ints, labels: Sequence[str]) -> Iterable[Any]:
        parameters = {
            "graph": self._number,
            "nodes": self._statements.array(nodes),
            "labels": self._statements.texts(labels),
        }
        if self._statements.locks_itself:
            del parameters["labels"]
        found = self._connection.execute(self._statements.lock, parameters).all()
        return [(node, leaves, label, bytes(packed)) for node, leaves, label, packed in found]

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
        whole = {"graph": self._number, "nodes": self._statements.array(nodes)}
        for node, segment, size in self._connection.execute(self._statements.sizes, whole):
            sizes[node][segment] = size // RECORD.itemsize
        changes, touched = {}, []
        for node, leaves in sizes.items():
            records = change.records[change.nodes == node]
            segments = segment_of(records, leaves)
            changes[node] = records, segments
            touched += [(node, segment) for segment in np.unique(segments).tolist()]
        parts = self._segments(touched)
        before = {key: len(part) for key, part in parts.items()}
        differences = {node: [joined([])] for node in sizes}
        for node, segment in touched:
            old, (records, segments) = parts[node, segment], changes[node]
            both = joined([old, records[segments == segment]])
            _, new = merged(np.zeros(len(both), np.int64), both)
            parts[node, segment] = new
            sizes[node][segment] += len(new) - before[node, segment]
            differences[node] += [new, old]
        groups = {node: regrouped(leaves) for node, leaves in sizes.items()}
        absorbed = [(node, part) for node, group in groups.items() for found in group.values() for part in found]
        parts |= self._segments([key for key in absorbed if key not in parts])
        for node, leaves in sizes.items():
            label, packed = rows[node][1], rows[node][2]
            here = {segment: parts[node, segment] for segment in leaves if (node, segment) in parts}
            self._node(node, label, packed, leaves, here, groups[node], differences[node][1:])

    def _node(
        self, node: int, label: str, packed: bytes, leaves: Mapping[int, int], parts: dict[int, Records],
        groups: Mapping[int, Sequence[int]], differences: Sequence[Records],
    ) -> None:  # fmt: skip
        """Write the changed segments of a node, split anew or merged."""
        count = len(leaves)
        for parent, absorbed in groups.items():
            together = joined([parts.pop(segment) for segment in absorbed])
            _, parts[parent] = merged(np.zeros(len(together), np.int64), together)
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

    def _segments(self, keys: Sequence[tuple[int, int]]) -> dict[tuple[int, int], Records]:
        if not keys:
            return {}
        found = self._connection.execute(self._statements.segments, self._statements.pairs(self._number, keys))
        return {(node, segment): np.frombuffer(bytes(packed), RECORD) for node, segment, packed in found}

    def _flush(self) -> None:
        for start in range(0, len(self._removed), _AT_ONCE):
            self._connection.execute(
                self._statements.remove, self._statements.keys(self._number, self._removed[start : start + _AT_ONCE])
            )
        self._stored.sort(key=lambda row: row[:2])
        for start in range(0, len(self._stored), _AT_ONCE):
            self._connection.execute(
                self._statements.store, self._statements.rows(self._number, self._stored[start : start + _AT_ONCE])
            )


def _totals_after(packed: bytes, differences: Sequence[Records]) -> Records:
    """Totals after adding some segments and subtracting others, in turn."""
    sums: dict[int, tuple[int, int]] = {}
    signed = [(1, np.frombuffer(packed, TOTAL))]
    signed += [(1 - 2 * (place % 2), totals_of(records)) for place, records in enumerate(differences)]
    for sign, totals in signed:
        for kind, records, total in totals.tolist():
            known = sums.get(kind, (0, 0))
            sums[kind] = known[0] + sign * records, known[1] + sign * total
    return np.array([(kind, *counts) for kind, counts in sorted(sums.items()) if counts[0]], TOTAL)
