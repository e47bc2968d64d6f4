"""Deleted and replaced rows leave memory: vectors, records and values of metadata."""

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters
from tests.memory import arrays_with, texts_with

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.vectors.row_buffer import Leases

DIM = 16
SECRET = np.random.default_rng(99).standard_normal(DIM).astype(np.float32).tolist()  # numbers, not an array
WORD = "quetzalcoatlus"


def others(n, seed=1):
    return np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def _thawed():
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _only_what_the_test_makes():
    gc.freeze()  # what earlier tests of the file have left, too: the collector has less to look at


def is_held():
    """Whether an array holds the secret vector: as given, in half precision, or normalised."""
    row = np.array(SECRET)
    unit = row / np.linalg.norm(row)
    forms = [vector.astype(dtype).tobytes() for vector in (row, unit) for dtype in ("f4", "f2", "f8")]
    del row, unit
    return any(arrays_with(form) for form in forms)


def filled(n=20, dtype="float32"):
    store = MatrixVectorStore(stores_text=False, dtype=dtype)
    vectors = others(n)
    vectors[7] = SECRET
    store.put(
        [f"r{i}" for i in range(n)],
        vectors,
        ref_doc_ids=["secret" if i == 7 else "other" for i in range(n)],
        metadatas=[{"name": f"{WORD} {i}" if i == 7 else "plain", "n": i} for i in range(n)],
        keys=[f"{WORD} key" if i == 7 else f"k{i}" for i in range(n)],
    )
    named = MetadataFilters(filters=[MetadataFilter(key="name", value="plain")])
    store.query_many(others(2, 5), 3, filters=named)
    store.snapshot().near(others(2, 5), 0.5)  # what searches keep beside the vectors
    return store


def forget(store, how):
    if how == "delete":
        store.delete("secret")
    elif how == "delete_nodes":
        store.delete_nodes(["r7"])
    elif how == "replace":
        store.put(["r7"], others(1, 3))
    elif how == "clear":
        store.clear()
    else:
        store.delete_nodes([f"r{i}" for i in range(3, 15)])  # more than a quarter: the others are copied


WAYS = ["delete", "delete_nodes", "replace", "clear", "compact"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("how", WAYS)
def test_a_row_leaves_with_the_write_that_hides_it(how, dtype):
    store = filled(dtype=dtype)
    assert is_held()
    assert texts_with(WORD)
    forget(store, how)
    assert not is_held()
    assert not texts_with(WORD)


@pytest.mark.parametrize("how", WAYS)
def test_a_snapshot_keeps_its_rows_until_it_is_released(how):
    store = filled()
    older = store.snapshot()
    store.put(["later"], others(1, 8))
    newer = store.snapshot()
    forget(store, how)
    for held in (older, newer):
        assert (held.vectors_of(["r7"])[0] == SECRET).all()
        assert held.record_of("r7").key == f"{WORD} key"
        assert held.metadata_of("r7")["name"] == f"{WORD} 7"
        assert held.search([SECRET], 1)[0].ids == ["r7"]
    del older, held
    assert is_held()
    assert newer.rows_of(["r7", "later"]).min() >= 0
    del newer
    assert not is_held()
    assert not texts_with(WORD)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize(
    "view",
    [
        lambda snapshot: snapshot.matrix,
        lambda snapshot: snapshot.matrix[5:][1:4].T.T,
        lambda snapshot: next(snapshot.blocks(10)),
        lambda snapshot: snapshot.columns(0, DIM),
    ],
    ids=["matrix", "part of matrix", "block", "columns"],
)
def test_an_array_that_a_snapshot_gave_out_keeps_its_numbers(how, view):
    store = filled()
    array = view(store.snapshot())
    assert not array.flags.writeable
    before = array.copy()
    forget(store, how)
    assert (array == before).all()
    del array, before
    assert not is_held()


def test_buffers_that_were_outgrown_are_overwritten_too():
    store = filled(8)
    for i in range(8, 40):
        store.put([f"r{i}"], [SECRET if i == 9 else others(1, i)[0]], ref_doc_ids=["secret"])
        if i == 8:
            early = store.snapshot().matrix  # a view of nine rows; the tenth is spare
        if i == 10:
            late = store.snapshot().matrix
    buffer = early.base._rows.base
    assert (buffer[9] == SECRET).all()
    store.delete("secret")
    assert (early[7] == SECRET).all()
    assert (late[9] == SECRET).all()
    del late
    assert (early[7] == SECRET).all()
    assert (buffer[9] == 0).all()
    del early, buffer
    assert not is_held()


def test_an_earlier_row_of_the_same_id_stays_found_while_a_snapshot_shows_it():
    store = MatrixVectorStore(stores_text=False)
    store.put(["x", *(f"r{i}" for i in range(30))], others(31))
    first = store.snapshot()
    expected = first.vectors_of(["x"]).copy()
    store.put(["x"], [SECRET])
    store.put(["x"], others(1, 4))
    store.delete_nodes(["x"])
    assert not is_held()
    assert (first.vectors_of(["x"]) == expected).all()
    store.put(["x"], [SECRET])
    assert (first.vectors_of(["x"]) == expected).all()
    assert (store.snapshot().vectors_of(["x"])[0] == SECRET).all()


def test_values_that_other_rows_have_stay_filterable():
    store = filled()
    wanted = MetadataFilters(filters=[MetadataFilter(key="name", value="plain")])
    before = store.query_many([SECRET], 30, filters=wanted)[0].ids
    store.delete_nodes(["r3", "r7"])
    assert store.query_many([SECRET], 30, filters=wanted)[0].ids == [name for name in before if name != "r3"]
    gone = MetadataFilters(filters=[MetadataFilter(key="name", value=f"{WORD} 7")])
    assert store.query_many([SECRET], 30, filters=gone)[0].ids == []
    store.put(["r7"], [SECRET], metadatas=[{"name": f"{WORD} 7"}])
    assert store.query_many([SECRET], 30, filters=gone)[0].ids == ["r7"]


def test_copies_are_independent(tmp_path):
    store = filled()
    snapshot = store.snapshot()
    path = str(tmp_path / "store.json")
    store.persist(path)
    copies = [copy.deepcopy(store), pickle.loads(pickle.dumps(store)), MatrixVectorStore.from_persist_path(path)]
    copied = copy.copy(snapshot)
    store.delete("secret")
    del snapshot
    for other in copies:
        assert (other.snapshot().vectors_of(["r7"])[0] == SECRET).all()
        other.delete("secret")
    assert (copied.vectors_of(["r7"])[0] == SECRET).all()
    del copied
    assert not is_held()


def test_a_change_of_an_older_snapshot_does_not_touch_newer_ones():
    store = filled()
    old = store.snapshot()
    store.put(["later"], others(1, 8))
    without = old.without(np.array([0]))
    assert (store.snapshot().vectors_of(["r0"]) == old.vectors_of(["r0"])).all()
    assert "r0" not in without
    del old
    assert "r0" in store.snapshot()
    assert (store.snapshot().vectors_of(["r0"]) == others(20)[:1]).all()


def test_rows_go_when_a_query_that_was_running_ends():
    store = filled()
    inside, go_on, answers = threading.Event(), threading.Event(), []

    def query():
        snapshot = store.snapshot()
        inside.set()
        go_on.wait(30)
        answers.extend(snapshot.search([SECRET], 1))

    running = threading.Thread(target=query)
    running.start()
    inside.wait(30)
    store.delete("secret")
    assert is_held()
    go_on.set()
    running.join()
    assert [(hits.ids, hits.scores) for hits in answers] == [(["r7"], [1.0])]
    del running
    assert not is_held()


def test_queries_beside_deletes_never_see_an_overwritten_row():
    store = MatrixVectorStore(stores_text=False)
    vectors = others(300)
    names = [f"r{i}" for i in range(300)]
    store.put(names, vectors)
    stop, failures, answers = threading.Event(), [], [0, 0]

    def read(number):
        try:
            while not stop.is_set():
                snapshot = store.snapshot()
                expected = vectors[[int(name[1:]) for name in snapshot.ids]]
                assert (snapshot.matrix == expected).all()
                assert (snapshot.vectors_of(snapshot.ids) == expected).all()
                assert all(record.id for record in snapshot.records)
                (hits,) = snapshot.search([vectors[number]], 5)
                assert hits.ids[0] == f"r{number}"
                assert all(score > 0 for score in hits.scores)
                answers[number] += 1
        except BaseException as error:
            failures.append(error)
            stop.set()

    readers = [threading.Thread(target=read, args=(number,)) for number in range(2)]
    for reader in readers:
        reader.start()
    rounds = 0
    while not stop.is_set() and (rounds < 300 or min(answers) < 20):
        some = [int(i) for i in np.random.default_rng(rounds).choice(np.arange(2, 300), 20, replace=False)]
        store.delete_nodes([names[i] for i in some])
        store.put([names[i] for i in some[::2]], vectors[some[::2]])
        store.put([names[i] for i in some], vectors[some])  # one half replaces rows, the other comes back
        rounds += 1
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures, failures[0]


def test_memory_of_a_line_is_freed_without_the_collector():
    store = filled()
    buffer = weakref.ref(store.snapshot()._line.vectors)
    store.clear()
    assert buffer() is None


def test_nodes_that_were_stored_with_their_text_leave_too():
    store = MatrixVectorStore()
    nodes = [TextNode(id_=f"n{i}", text="plain text", embedding=row.tolist()) for i, row in enumerate(others(9))]
    store.add([*nodes, TextNode(id_="s", text=f"{WORD} text", embedding=SECRET)])
    assert texts_with(WORD)
    store.delete_nodes(["s"])
    assert not texts_with(WORD)
    assert not is_held()


@given(st.lists(st.tuples(st.sampled_from(["grow", "hide", "end", "end"]), st.integers(0, 50)), max_size=60))
def test_rows_are_returned_exactly_when_the_last_lease_that_shows_them_ends(actions):
    leases = Leases()
    rows = 3
    shown = {leases.issue(rows): {0, 1, 2}}  # the leases that exist, and what each shows
    newest = set(shown[leases.newest])
    hidden, returned = set(), []
    for action, choice in actions:
        if action == "end":
            ended = sorted(shown)[choice % len(shown)]
            if ended == leases.newest:
                continue  # a store always keeps the newest
            del shown[ended]
            gone = leases.end(ended)
            returned += gone
            assert set(gone) == {row for row in hidden if not any(row in rows_ for rows_ in shown.values())}
            hidden -= set(gone)
            continue
        if action == "hide" and newest:
            row = sorted(newest)[choice % len(newest)]
            leases.hide(leases.newest, [row])
            newest.discard(row)
            hidden.add(row)
        elif action == "grow":
            newest |= set(range(rows, rows + choice % 3))
            rows += choice % 3
        shown[leases.issue(rows)] = set(newest)
    assert len(set(returned)) == len(returned)
