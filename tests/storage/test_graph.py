"""A graph as rows: exact differences, one state for a reader, hubs, and nothing left of what was removed."""

import copy
import gc
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.memory import arrays_with

from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.storage.graph import edges as edges_module
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
from llama_index.ragkit.storage.graph.interface import GraphRows, NodeRows
from llama_index.ragkit.storage.graph.local_graph import LocalGraph
from llama_index.ragkit.storage.interface import Stores

HUB = 7
Edges = Counter[tuple[int, int, int, int]]  # node, neighbor, source, kind


@pytest.fixture
def graph(new_stores: Callable[[], Stores]) -> GraphRows:
    return new_stores().graph()


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges_module, "SEGMENT", 4)
    monkeypatch.setattr("llama_index.ragkit.sql.graph_rows.SEGMENT", 4)


def edges_in(*parts: NodeRows) -> Edges:
    found: Edges = Counter()
    for rows in parts:
        owners = np.repeat(rows.nodes, np.diff(rows.indptr))
        for node, (neighbor, source, count, kind) in zip(owners.tolist(), rows.records.tolist(), strict=True):
            assert (node, neighbor, source, kind) not in found
            found[node, neighbor, source, kind] = count
    return found


def edges_of(graph: GraphRows, nodes: Iterable[int]) -> Edges:
    """What a reader finds, with the edges of hubs."""
    with graph.reader() as reader:
        heads = reader.fetch(np.array(sorted(nodes), np.int64))
        return edges_in(heads, reader.fetch(heads.nodes[:0], heads.nodes[heads.further > 0]))


def added(edges: Mapping[tuple[int, int, int, int], int]) -> EdgeChange:
    return EdgeChange.of([(*key, count) for key, count in edges.items()])


def test_what_is_added_is_read_and_what_is_taken_back_leaves_nothing(graph: GraphRows) -> None:
    change = EdgeChange.of([(1, 2, 9, 0, 1), (2, 1, 9, 0, 1), (1, 2, 8, 0, 2), (1, 2, 9, 0, 1), (2, 1, 9, 3, 5)])
    labels = {1: "ein Name", 2: "東京"}
    graph.change(change, labels)
    assert edges_of(graph, [1, 2, 3]) == {(1, 2, 8, 0): 2, (1, 2, 9, 0): 2, (2, 1, 9, 0): 1, (2, 1, 9, 3): 5}
    with graph.reader() as reader:
        rows = reader.fetch(np.array([3, 2, 1]))
        assert list(rows.labels) == ["", "東京", "ein Name"]
        assert np.diff(rows.indptr).tolist() == [0, 2, 2]
    graph.change(change.negative(), labels)
    assert edges_of(graph, [1, 2]) == {}
    graph.change(EdgeChange.of([(1, 2, 9, 0, 1)]), {1: "another name"})  # the number is free again
    assert edges_of(graph, [1]) == {(1, 2, 9, 0): 1}


def test_an_empty_graph_has_rows_without_edges(graph: GraphRows) -> None:
    graph.change(EdgeChange.of([]), {})
    with graph.reader() as reader:
        assert np.diff(reader.fetch(np.array([4, 2])).indptr).tolist() == [0, 0]
        assert len(reader.fetch(np.empty(0, np.int64)).nodes) == 0


def test_removing_what_is_not_there_changes_nothing(graph: GraphRows) -> None:
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "a"})
    with pytest.raises(StorageError, match="below zero"):
        graph.change(EdgeChange.of([(1, 3, 0, 0, 1), (1, 2, 0, 0, -2)]), {1: "a"})
    assert edges_of(graph, [1]) == {(1, 2, 0, 0): 1}


def test_two_labels_of_one_number_are_told(graph: GraphRows) -> None:
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "a"})
    with pytest.raises(StorageError, match="'a' and 'b'"):
        graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "b"})
    assert edges_of(graph, [1]) == {(1, 2, 0, 0): 1}


def test_a_hub_has_segments_and_totals(graph: GraphRows) -> None:
    n = 5 * SEGMENT
    hub = EdgeChange.of([(HUB, i, i, i % 3, 2) for i in range(n)])
    graph.change(hub, {HUB: "hub"})
    with graph.reader() as reader:
        head = reader.fetch(np.array([HUB, 8]))
        assert head.labels[0] == "hub"
        assert head.indptr.tolist() == [0, 0, 0]
        assert head.further.tolist() == [len(segments_of(merged(np.zeros(n, np.int64), hub.records)[1])), 0]
        assert head.totals[HUB].tolist() == totals_of(hub.records).tolist()
        whole = reader.fetch(np.array([8]), np.array([HUB]))
        assert whole.indptr.tolist() == [0, 0, n]
        assert whole.further.tolist() == [0, 0]
        assert sorted(whole.records["neighbor"].tolist()) == list(range(n))
    graph.change(EdgeChange.of([(HUB, i, i, i % 3, -2) for i in range(SEGMENT, n)]), {HUB: "hub"})
    with graph.reader() as reader:
        few = reader.fetch(np.array([HUB]))
        assert few.further[0] == 0
        assert len(few.records) == SEGMENT


def test_thousands_of_nodes_are_read_at_once(graph: GraphRows) -> None:
    graph.change(EdgeChange.of([(i, -i, 0, 0, 1) for i in range(5000)]), {})
    with graph.reader() as reader:
        rows = reader.fetch(np.arange(6000))
        assert (rows.records["neighbor"] == -np.arange(5000)).all()


KEYS = st.tuples(st.sampled_from([HUB, 8]), st.integers(0, 12), st.integers(0, 2), st.integers(0, 2))
HISTORIES = st.lists(st.dictionaries(KEYS, st.integers(1, 3), max_size=40), min_size=1, max_size=6)


@given(HISTORIES)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_are_what_a_dictionary_holds_after_any_changes(
    new_stores: Callable[[], Stores], small_segments: None, history: list[dict[tuple[int, int, int, int], int]]
) -> None:
    graph, labels = new_stores().graph(), {HUB: "hub", 8: "eight"}
    now: Edges = Counter()
    for wanted in history:
        keys = dict.fromkeys([*wanted, *now])
        graph.change(
            added({key: wanted.get(key, 0) - now[key] for key in keys if wanted.get(key, 0) != now[key]}), labels
        )
        now = Counter(wanted)
        assert edges_of(graph, [HUB, 8]) == now
        with graph.reader() as reader:
            rows = reader.fetch(np.array([8, HUB, 9]))
        for i, node in enumerate((8, HUB, 9)):
            own = added({key: count for key, count in now.items() if key[0] == node}).records
            _, records = merged(np.zeros(len(own), np.int64), own)
            assert rows.labels[i] == (labels[node] if len(own) else "")
            assert rows.further[i] == (len(segments_of(records)) if len(own) > 4 else 0)
            assert (node in rows.totals) == (len(own) > 4)
            if node in rows.totals:
                assert rows.totals[node].tolist() == totals_of(records).tolist()
        whole = graph.whole()
        if whole is not None:
            assert edges_in(whole) == now
            assert whole.nodes.tolist() == sorted({key[0] for key in now})
            assert list(whole.labels) == [labels[node] for node in whole.nodes.tolist()]
            assert not whole.further.any()


def test_writers_at_once_lose_nothing(graph: GraphRows, small_segments: None) -> None:
    """Every writer adds to the same hub, in an order of nodes of its own."""
    labels = {HUB: "hub", **{i: str(i) for i in range(100, 200)}}

    def write(worker: int) -> None:
        for step in range(10):
            leaf = 100 + (37 * step + 11 * worker) % 100
            change = [(leaf, HUB, worker, 0, 1), (HUB, leaf, worker, 0, 1), (HUB, 5, 0, 1, 1)]
            graph.change(EdgeChange.of(change[:: 1 if worker % 2 else -1]), labels)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    edges = edges_of(graph, labels)
    assert edges[HUB, 5, 0, 1] == 60
    assert sum(count for (node, *_, kind), count in edges.items() if node == HUB and kind == 0) == 60
    assert sum(count for (node, *_), count in edges.items() if node != HUB) == 60


def test_a_reader_sees_one_state(graph: GraphRows) -> None:
    change = EdgeChange.of([(1, 2, 0, 0, 1), (2, 1, 0, 0, 1)])
    graph.change(change, {})
    with graph.reader() as reader:
        assert len(reader.fetch(np.array([1])).records) == 1
        graph.change(change.negative(), {})
        assert len(reader.fetch(np.array([2])).records) == 1
    with graph.reader() as reader:
        assert len(reader.fetch(np.array([1, 2])).records) == 0


@pytest.fixture
def frozen() -> Iterator[None]:
    """Only what the test makes is looked at, see `tests.memory`."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen")
def test_a_graph_in_memory_keeps_nothing_of_what_was_removed() -> None:
    graph, secret = LocalGraph(), content_number(1, "quetzalcoatlus")
    graph.change(EdgeChange.of([(i, i + 1, 0, 0, 1) for i in range(200)]), {})
    gone = EdgeChange.of([(secret, 5, secret, 0, 1), (5, secret, secret, 0, 1)])
    graph.change(gone, {secret: "quetzalcoatlus"})
    graph.change(EdgeChange.of([(5, 900, 0, 0, 1)]), {})  # which hides the row of 5 that a part has
    number = np.int64(secret).tobytes()
    assert number in pickle.dumps(graph)
    assert graph.whole() is not None
    graph.change(gone.negative(), {secret: "quetzalcoatlus"})
    assert number not in pickle.dumps(graph)
    assert b"quetzalcoatlus" not in pickle.dumps(graph)
    del gone
    assert arrays_with(number) == []


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))])
def test_copies_of_a_graph_in_memory_go_their_own_ways(copied: Callable[[LocalGraph], LocalGraph]) -> None:
    graph = LocalGraph()
    graph.change(EdgeChange.of([(1, 2, 0, 0, 1)]), {1: "a"})
    other = copied(graph)
    other.change(EdgeChange.of([(1, 3, 0, 0, 1)]), {1: "a"})
    assert edges_of(graph, [1]) == {(1, 2, 0, 0): 1}
    assert edges_of(other, [1]) == {(1, 2, 0, 0): 1, (1, 3, 0, 0): 1}


@given(st.sets(st.integers(0, 10**6), max_size=60), st.integers(1, 8))
def test_segments_hold_what_their_hash_says(keys: set[int], most: int) -> None:
    _, records = merged(np.zeros(len(keys), np.int64), EdgeChange.of([(0, k, k, 1, 1) for k in keys]).records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edges_module, "SEGMENT", most)
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


def test_numbers_come_from_content() -> None:
    numbers = [content_number(kind, name) for kind in range(4) for name in ("a", "b", "東京", "\ud800")]
    assert len(set(numbers)) == len(numbers)
    assert all(-(2**63) <= number < 2**63 for number in numbers)
    assert [number & 3 for number in numbers] == [kind for kind in range(4) for _ in range(4)]
    assert content_number(0, "a") == -898175344456620908
