"""The statements of :class:`~llama_index.ragkit.sql.graph_rows.SQLGraphRows`, for SQLite and for PostgreSQL."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, TextClause, text

from llama_index.ragkit.sql.arrays import bytes_array, integer_array, text_array
from llama_index.ragkit.sql.tables import Tables

__all__ = ["Statements", "statements_for"]

_TABLE = "ragkit_graph_rows"


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
