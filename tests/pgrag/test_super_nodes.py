"""Fusion and super nodes: exact, and the same however the rows came."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.pgrag.fusion.super_nodes import SuperNodes, components, leader_clusters, restore, update
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore


def slow_components(vectors, threshold):
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1)
    cosines = (wide @ wide.T) / np.maximum(np.outer(norms, norms), 1e-12)
    _, labels = sp.csgraph.connected_components(sp.csr_matrix(cosines >= threshold), directed=False)
    return [int(np.flatnonzero(labels == label)[0]) for label in labels]


@pytest.mark.parametrize("n", [0, 1, 2, 300, 2500])
def test_components_as_a_slow_reference_has_them(n):
    rng = np.random.default_rng(n)
    vectors = rng.normal(size=(max(n // 3, 1), 8))[rng.integers(0, max(n // 3, 1), n)]
    vectors = (vectors + 0.05 * rng.normal(size=(n, 8)) * rng.integers(0, 3, (n, 1))).astype(np.float32)
    vectors[: min(n, 3) - 1] = 0  # without a direction
    assert components(vectors, 0.98).tolist() == (slow_components(vectors, 0.98) if n else [])


def test_a_chain_is_one_component_and_several_leaders():
    angles = np.arange(6) * 0.15
    chain = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    assert components(chain, 0.98).tolist() == [0] * 6
    assert leader_clusters(chain, 0.98).tolist() == [0, 0, 2, 2, 4, 4]
    assert leader_clusters(np.ones((7, 2), np.float32), 0.98, max_cluster=3).tolist() == [0, 0, 0, 3, 3, 3, 6]


def test_equal_rows_are_one_even_at_a_threshold_of_one_and_zero_rows_are_alone():
    vectors = np.array([[1, 2], [0, 0], [1, 2], [2, 4], [0, 0]], np.float32)
    labels = components(vectors, 1.0).tolist()
    assert labels[0] == labels[2]
    assert labels[1] == 1
    assert labels[4] == 4


POOL = np.random.default_rng(7).normal(size=(40, 3)).astype(np.float32)
POOL[3:8] = POOL[2]
POOL[:2] = 0


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.lists(st.integers(0, 39), max_size=8, unique=True), st.integers(0, 3)), max_size=8),
    st.sampled_from(["components", "leaders"]),
    st.randoms(use_true_random=False),
)
def test_any_growth_ends_where_a_build_at_once_does(steps, fusion, random):
    store = MatrixVectorStore(stores_text=False)
    state, live = SuperNodes(0.95, fusion), {}
    for places, deletes in steps:
        gone = random.sample(sorted(live), min(deletes, len(live)))
        store.delete_nodes(gone)
        for name in gone:
            del live[name]
        new = [(f"{(place * 7) % 40:02d}", place) for place in places]
        new = [(name, place) for name, place in new if name not in live and name not in gone]
        if new:
            store.put([name for name, _ in new], POOL[[place for _, place in new]], keys=[name for name, _ in new])
            live.update(new)
        before, state = state, update(state, store.snapshot(), [name for name, _ in new], set(gone))
        assert linked(before).changed(before, state) == linked(state)
    at_once = update(SuperNodes(0.95, fusion), store.snapshot(), sorted(live), ())
    assert dict(state.component_of) == dict(at_once.component_of)
    assert state.members == at_once.members
    assert state.groups == at_once.groups
    loaded, damaged = restore(state.members, labels(state), store.snapshot(), SuperNodes(0.95, fusion))
    assert (loaded, damaged) == (linked(state), [])


def labels(nodes):
    """The names of components of two rows or more, by row."""
    return {row_id: name for name, ids in nodes.members.items() for row_id in ids}


def linked(nodes):
    """The same without rows that are alone."""
    return replace(nodes, component_of=labels(nodes))


@given(st.data())
@settings(max_examples=100)
def test_super_nodes_of_which_only_a_part_was_written_are_repaired(data):
    """A write stores and deletes members, then names of rows, and may end after any of them; its rows come last."""
    store = MatrixVectorStore(stores_text=False)
    names = [f"{(i * 7) % 40:02d}" for i in range(40)]
    store.put(names[:25], POOL[:25])
    before = update(SuperNodes(0.9), store.snapshot(), names[:25], ())
    store.delete_nodes(names[20:23])
    left = store.snapshot()
    store.put(names[25:], POOL[25:])
    after = update(before, store.snapshot(), names[25:], set(names[20:23]))
    was, now = labels(before), labels(after)
    steps = [("members", name, ids) for name, ids in after.members.items() if before.members.get(name) != ids]
    steps += [("members", name, None) for name in before.members if name not in after.members]
    steps += [("of_row", row_id, name) for row_id, name in now.items() if was.get(row_id) != name]
    steps += [("of_row", row_id, None) for row_id in was if row_id not in now]
    stored = {"members": dict(before.members), "of_row": dict(was)}
    for kind, key, value in steps[: data.draw(st.integers(0, len(steps)))]:
        stored[kind][key] = value
        if value is None:
            del stored[kind][key]
    loaded, _ = restore(stored["members"], stored["of_row"], left, SuperNodes(0.9))
    at_once = update(SuperNodes(0.9), left, left.ids, ())
    assert (loaded.members, loaded.groups) == (at_once.members, at_once.groups)


@pytest.mark.parametrize("fusion", ["components", "leaders"])
def test_every_row_is_found_in_its_own_super_node(fusion):
    rng = np.random.default_rng(1)
    store = MatrixVectorStore(stores_text=False)
    ids = [f"r{i}" for i in range(120)]
    store.put(ids, np.repeat(rng.normal(size=(12, 6)), 10, axis=0) + 0.2 * rng.normal(size=(120, 6)))
    nodes = update(SuperNodes(0.9, fusion), store.snapshot(), ids, [])
    for row_id in ids:
        holding = [group for group in nodes.nodes() if row_id in group]
        assert nodes.together(row_id) == (holding[0] if holding else (row_id,))
    assert any(len(group) > 1 for group in nodes.nodes())
