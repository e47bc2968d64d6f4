"""A graph as rows: exact differences, canonical rows, hubs in segments, writers at once, writers that die."""

import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, text

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.sql import make_engine, reading
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.sql.graph_statements import statements_for
from llama_index.ragkit.storage.graph import edges as records_module
from llama_index.ragkit.storage.graph.edges import (
    SEGMENT,
    EdgeChange,
    content_number,
    merged,
    regrouped,
    segment_of,
    segments_of,
    totals_of,
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


def test_what_is_added_is_read_and_what_is_taken_back_leaves_nothing(graph, engine):
    change = EdgeChange.of([(1, 2, 9, 0, 1), (2, 1, 9, 0, 1), (1, 2, 8, 0, 2), (1, 2, 9, 0, 1), (2, 1, 9, 3, 5)])
    labels = {1: "ein Name", 2: "東京"}
    graph.change(change, labels)
    assert edges_of(graph, [1, 2, 3]) == {(1, 2, 8, 0): 2, (1, 2, 9, 0): 2, (2, 1, 9, 0): 1, (2, 1, 9, 3): 5}
    with graph.reader() as reader:
        rows = reader.fetch(np.array([1, 2, 3]))
        assert list(rows.labels) == ["ein Name", "東京", ""]
        assert np.diff(rows.indptr).tolist() == [2, 2, 0]
        assert reader.calls == 1
    graph.change(change.negative(), labels)
    assert stored(engine) == []


def test_removing_what_is_not_there_changes_nothing(graph, engine):
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "a"})
    before = stored(engine)
    with pytest.raises(StorageError, match="below zero"):
        graph.change(EdgeChange.of([(1, 3, 0, 0, 1), (1, 2, 0, 0, -2)]), {1: "a"})
    assert stored(engine) == before


def test_two_labels_of_one_number_are_told(graph, engine):
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "a"})
    before = stored(engine)
    with pytest.raises(StorageError, match="'a' and 'b'"):
        graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "b"})
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


def test_a_hub_has_segments_and_totals(graph):
    n = 5 * SEGMENT
    hub = EdgeChange.of([(HUB, i, i, i % 3, 2) for i in range(n)])
    graph.change(hub, {HUB: "hub"})
    with graph.reader() as reader:
        head = reader.fetch(np.array([HUB, 8]))
        assert head.labels[0] == "hub"
        assert head.indptr.tolist() == [0, 0, 0]
        assert 5 < head.further[0] < 20
        assert head.totals[HUB].tolist() == totals_of(hub.records).tolist()
        whole = reader.fetch(np.array([8]), np.array([HUB]))
        assert whole.indptr.tolist() == [0, 0, n]
        assert sorted(whole.records["neighbor"].tolist()) == list(range(n))
    graph.change(EdgeChange.of([(HUB, i, i, i % 3, -2) for i in range(SEGMENT, n)]), {HUB: "hub"})
    with graph.reader() as reader:
        few = reader.fetch(np.array([HUB]))
        assert few.further[0] == 0
        assert len(few.records) == SEGMENT


def test_thousands_of_nodes_are_one_statement(graph):
    edges = [(i, -i, 0, 0, 1) for i in range(5000)]
    graph.change(EdgeChange.of(edges), {})
    with graph.reader() as reader:
        rows = reader.fetch(np.arange(6000))
        assert reader.calls == 1
        assert len(rows.records) == 5000
        assert (rows.records["neighbor"] == -np.arange(5000)).all()


@st.composite
def histories(draw):
    """Changes of two nodes, each given by what is to be there afterwards."""
    key = st.tuples(st.sampled_from([HUB, 8]), st.integers(0, 12), st.integers(0, 2), st.integers(0, 2))
    return draw(st.lists(st.dictionaries(key, st.integers(1, 3), max_size=40), min_size=1, max_size=6))


@given(histories())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@given(st.sets(st.integers(0, 10**6), max_size=60), st.integers(1, 8))
def test_segments_hold_what_their_hash_says(keys, most):
    _, records = merged(np.zeros(len(keys), np.int64), EdgeChange.of([(0, k, k, 1, 1) for k in keys]).records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records_module, "SEGMENT", most)
        parts = segments_of(records)
        assert sorted(np.concatenate([part["neighbor"] for part in parts.values()]).tolist()) == sorted(keys)
        if len(parts) > 1:
            for segment, part in parts.items():
                assert len(part) <= most
                assert (segment_of(part, parts) == segment).all()
        assert regrouped({segment: len(part) for segment, part in parts.items()}) == {}
        fewer = {segment: min(1, len(part)) for segment, part in parts.items()}
        if sum(fewer.values()) <= most and len(parts) > 1:
            assert {parent: sorted(below) for parent, below in regrouped(fewer).items()} == {1: sorted(parts)}


def test_numbers_come_from_content():
    numbers = [content_number(kind, name) for kind in range(4) for name in ("a", "b", "東京", "\ud800")]
    assert len(set(numbers)) == len(numbers)
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert [number & 3 for number in numbers] == [kind for kind in range(4) for _ in range(4)]
    assert content_number(0, "a") == -898175344456620908


def test_writers_at_once_lose_nothing(graph, engine, small_segments):
    """Every writer adds to the same hub, in an order of nodes of its own."""
    labels = {HUB: "hub", **{i: str(i) for i in range(100, 200)}}

    def write(worker: int) -> None:
        own = SQLGraphRows(engine, "one")
        for step in range(10):
            leaf = 100 + (37 * step + 11 * worker) % 100
            change = [(leaf, HUB, worker, 0, 1), (HUB, leaf, worker, 0, 1), (HUB, 5, 0, 1, 1)]
            own.change(EdgeChange.of(change[:: 1 if worker % 2 else -1]), labels)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    edges = edges_of(graph, labels)
    assert edges[HUB, 5, 0, 1] == 60
    assert sum(count for (node, *_, kind), count in edges.items() if node == HUB and kind == 0) == 60
    assert sum(count for (node, *_), count in edges.items() if node != HUB) == 60


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
from llama_index.ragkit.sql import make_engine, writing
from llama_index.ragkit.storage.graph.edges import EdgeChange
from llama_index.ragkit.sql.graph_rows import SQLGraphRows
from llama_index.ragkit.sql.graph_statements import statements_for
engine = make_engine(sys.argv[1])
graph = SQLGraphRows(engine, "one")
with writing(engine) as connection:
    graph.change_in(connection, EdgeChange.of([(i, 2, 0, 0, 1) for i in range(100)]), {})
    print("written", flush=True)
    time.sleep(600)
"""


def test_a_killed_writer_leaves_no_lock_and_no_half_row(graph, engine, url):
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {})
    before = stored(engine)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", _WRITER, url], stdout=subprocess.PIPE, text=True, env=environment
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"
        assert stored(engine) == before
        writer.send_signal(signal.SIGKILL)
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {})
    assert edges_of(graph, range(100)) == {(1, 2, 0, 0): 2}


def test_a_reader_sees_one_state(graph, url):
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1), (2, 1, 0, 0, 1)]), {})
    other = make_engine(url)
    with graph.reader() as reader:
        assert len(reader.fetch(np.array([1])).records) == 1
        SQLGraphRows(other, "one").change(EdgeChange.of([(1, 2, 0, 0, -1), (2, 1, 0, 0, -1)]), {})
        assert len(reader.fetch(np.array([2])).records) == 1
    with graph.reader() as reader:
        assert len(reader.fetch(np.array([1, 2])).records) == 0
    other.dispose()


def test_sqlite_finds_rows_by_their_nodes(tmp_path):
    """Whatever it knows of the table: other plans read all rows of the graph, a second for 100,000 passages."""
    engine = make_engine(f"sqlite:///{tmp_path / 'plans.db'}")
    SQLGraphRows(engine, "one").create()
    statements = statements_for(engine)
    given = {"graph": 1, "nodes": "[7]", "whole": "[7]", "pairs": "[[7, 2]]"}
    with reading(engine) as connection:
        for statement in (statements.frontier, statements.lock, statements.sizes, statements.segments):
            plan = [row[3] for row in connection.execute(text(f"EXPLAIN QUERY PLAN {statement.text}"), given)]
            searches = [line for line in plan if "graph=?" in line]
            assert searches, plan
            assert all("node=?" in line for line in searches), plan
            assert not any(line.startswith(("SCAN ragkit", "SCAN r ")) for line in plan), plan
