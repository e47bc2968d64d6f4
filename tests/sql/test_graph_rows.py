"""A graph as rows of a database: canonical rows, several indexes and engines, writers at once, writers that die.

What it shares with a graph in memory is in `tests/storage/test_graph.py`.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, event, text
from tests.processes import Worker

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.sql import make_engine, reading, writing
from llama_index.ragkit.sql.graph_rows import GraphTable, SQLGraphRows
from llama_index.ragkit.storage.graph import edges as records_module
from llama_index.ragkit.storage.graph.edges import (
    EdgeChange,
)

HUB = 7


@pytest.fixture
def graph(engine: Engine) -> SQLGraphRows:
    rows = SQLGraphRows(engine, "one")
    rows.create()
    return rows


@pytest.fixture
def small_segments(monkeypatch):
    monkeypatch.setattr(records_module, "SEGMENT", 4)
    monkeypatch.setattr("llama_index.ragkit.sql.graph_rows.SEGMENT", 4)


def edges_of(graph, nodes):
    """(node, neighbor, source, kind) -> count, by the reader."""
    with graph.reader() as reader:
        heads = reader.fetch(np.array(sorted(nodes), np.int64))
        whole = reader.fetch([], heads.nodes[heads.further > 0])
    found = Counter()
    for rows in (heads, whole):
        owners = np.repeat(rows.nodes, np.diff(rows.indptr))
        for node, record in zip(owners.tolist(), rows.records.tolist(), strict=True):
            neighbor, source, count, kind = record
            assert (node, neighbor, source, kind) not in found
            found[node, neighbor, source, kind] = count
    return found


def stored(engine):
    """Every row of the table, as it lies there."""
    with reading(engine, single=True) as connection:
        rows = connection.execute(
            text("SELECT graph, node, segment, leaves, label, packed FROM ragkit_graph_rows ORDER BY 1, 2, 3")
        )
        return [(*row[:5], bytes(row[5])) for row in rows]


def added(edges):
    return EdgeChange.of([(*key, count) for key, count in edges.items()])


def test_what_is_taken_back_leaves_no_row(graph, engine):
    change = EdgeChange.of([(1, 2, 9, 0, 1), (2, 1, 9, 0, 1), (1, 2, 8, 0, 2), (1, 2, 9, 0, 1), (2, 1, 9, 3, 5)])
    labels = {1: "ein Name", 2: "東京"}
    graph.change(change, labels)
    assert len(stored(engine)) == 2
    graph.change(change.negative(), labels)
    assert stored(engine) == []


@pytest.mark.parametrize(("edge", "label"), [((1, 2, 0, 0, -2), "a"), ((1, 2, 0, 0, 1), "b")])
def test_a_change_that_is_refused_leaves_the_rows_as_they_were(graph, engine, edge, label):
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "a"})
    before = stored(engine)
    with pytest.raises(StorageError):
        graph.change(EdgeChange.of([(1, 3, 0, 0, 1), edge]), {1: label})
    assert stored(engine) == before


def test_indexes_do_not_see_each_other_and_are_dropped_alone(graph, engine):
    other = SQLGraphRows(engine, "other")
    other.create()
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "a"})
    other.change(EdgeChange.of([(1, 3, 0, 0, 4)]), {1: "b"})
    assert edges_of(graph, [1]) == {(1, 2, 0, 0): 1}
    graph.drop()
    assert edges_of(graph, [1]) == {}
    assert edges_of(other, [1]) == {(1, 3, 0, 0): 4}


@st.composite
def histories(draw):
    """Changes of two nodes, each given by what is to be there afterwards."""
    key = st.tuples(st.sampled_from([HUB, 8]), st.integers(0, 12), st.integers(0, 2), st.integers(0, 2))
    return draw(st.lists(st.dictionaries(key, st.integers(1, 3), max_size=40), min_size=1, max_size=6))


@given(histories())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_depend_on_what_is_there_not_on_how_it_came(graph, engine, small_segments, history):
    graph.drop()
    labels = {HUB: "hub", 8: "eight"}
    now = Counter()
    for wanted in history:
        keys = dict.fromkeys([*wanted, *now])
        differences = {key: wanted.get(key, 0) - now[key] for key in keys if wanted.get(key, 0) != now[key]}
        graph.change(added(differences), labels)
        now = Counter(wanted)
        assert edges_of(graph, [HUB, 8]) == now
    rows = stored(engine)
    graph.drop()
    graph.change(added(now), labels)
    assert stored(engine) == rows


def test_a_row_that_another_writer_removes_is_written_again(graph, engine):
    """One writer takes the only edge of a node away while others add theirs."""
    change = EdgeChange.of([(1, 2, 0, 0, 1)])

    def write(worker: int) -> None:
        own = SQLGraphRows(engine, "one")
        for _ in range(15):
            own.change(change, {1: "a"})
            own.change(change.negative(), {1: "a"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert stored(engine) == []


_WRITER = """
import sys, time
from llama_index.ragkit.sql import make_engine
from llama_index.ragkit.sql.engine import transaction
from llama_index.ragkit.storage.graph.edges import EdgeChange
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
engine = make_engine(sys.argv[1])
graph = SQLGraphRows(engine, "one")
with transaction(engine):
    graph.change(EdgeChange.of([(i, 2, 0, 0, 1) for i in range(100)]), {})
    print("written", flush=True)
    time.sleep(600)
"""


def test_a_killed_writer_leaves_no_lock_and_no_half_row(graph, engine, url):
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {})
    before = stored(engine)
    with Worker(_WRITER, url) as writer:
        assert writer.stdout.readline() == "written\n"
        assert stored(engine) == before
        writer.kill()
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {})
    assert edges_of(graph, range(100)) == {(1, 2, 0, 0): 2}


def test_sqlite_finds_rows_by_their_nodes(tmp_path):
    """Whatever it knows of the table: other plans read all rows of the graph, a second for 100,000 passages."""
    engine = make_engine(f"sqlite:///{tmp_path / 'plans.db'}")
    SQLGraphRows(engine, "one").create()
    sent: list[tuple[str, Any]] = []
    with writing(engine) as connection:
        table, nodes = GraphTable(connection, 1), np.array([7])
        event.listen(connection, "before_cursor_execute", lambda *call: sent.append(call[2:4]))
        table.fetch(nodes, np.array([8]))
        table.lock(nodes, [""])
        table.sizes(nodes)
        table.segments([(7, 2)])
        table.remove([(7, 2)])
    assert len(sent) == 5
    with reading(engine) as connection:
        for statement, given in sent:
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", given)]
            searches = [line for line in plan if "graph=?" in line]
            assert searches, plan
            assert all("node=?" in line for line in searches), plan
            assert not any(line.startswith(("SCAN ragkit", "SCAN r ")) for line in plan), plan
