"""Writes, refusals, snapshots and copies of `MatrixVectorStore`, on rows small enough to check by hand."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)

from llama_index.ragkit.errors import ConfigurationError, EmbeddingError, StorageError
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.row_buffer import Line


def node(id_, vector, ref=None, text=None, **metadata):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=ref)} if ref else {}
    text = f"text of {id_}" if text is None else text
    return TextNode(id_=id_, text=text, embedding=vector, relationships=source, metadata=metadata)


COMPASS = [
    node("east", [2.0, 0.0], "d1", direction="e"),
    node("north", [0.0, 1.0], "d1", direction="n"),
    node("west", [-3.0, 0.0], "d2", direction="w"),
    node("northeast", [1.0, 1.0], "d2", direction="ne"),
    node("nowhere", [0.0, 0.0], direction=None),
]


@pytest.fixture(params=[True, False], ids=["text", "no text"])
def store(request):
    store = MatrixVectorStore(stores_text=request.param)
    assert store.add(COMPASS) == ["east", "north", "west", "northeast", "nowhere"]
    return store


def ask(store, vector, k=2, **kwargs):
    return store.query(VectorStoreQuery(query_embedding=vector, similarity_top_k=k, **kwargs))


def ids(store, vector=(1.0, 0.0), k=10, **kwargs):
    return ask(store, list(vector), k, **kwargs).ids


def test_rows_without_text_are_refused_where_text_is_kept():
    with pytest.raises(ConfigurationError, match="stores_text=False"):
        MatrixVectorStore().put(["a"], [[1.0]])


def test_a_misspelt_option_is_an_error():
    with pytest.raises(ValueError, match="store_text"):
        MatrixVectorStore(store_text=False)


def test_the_last_of_doubles_wins_and_an_id_replaces_its_row(store):
    store.add([node("east", [0.0, 1.0], "d3"), node("new", [1.0, 0.0]), node("east", [0.0, -1.0], "d4", late=True)])
    assert len(store) == 6
    assert store.snapshot().vectors_of(["east"]).tolist() == [[0.0, -1.0]]
    assert store.snapshot().metadata_of("east") == {"late": True}
    assert ids(store, doc_ids=["d4"]) == ["east"]
    assert ids(store, doc_ids=["d3"]) == []
    assert ids(store, k=1) == ["new"]


def test_delete_goes_by_document(store):
    store.delete("d1")
    assert set(store.snapshot().ids) == {"west", "northeast", "nowhere"}
    store.delete("nobody")
    store.delete("None")  # rows of no document, as in SimpleVectorStore
    assert set(store.snapshot().ids) == {"west", "northeast"}


def test_delete_nodes_goes_by_ids_and_filters(store):
    north = MetadataFilters(filters=[MetadataFilter(key="direction", value="n", operator="contains")])
    store.delete_nodes(["north", "east", "nobody"], north)
    store.delete_nodes([])
    assert set(store.snapshot().ids) == {"east", "west", "northeast", "nowhere"}
    store.delete_nodes(filters=north)
    assert set(store.snapshot().ids) == {"east", "west", "nowhere"}
    store.delete_nodes()
    assert len(store) == 0


def test_an_emptied_store_takes_vectors_of_another_length(store):
    store.delete_nodes([n.node_id for n in COMPASS])
    assert store.dim is None
    store.add([node("a", [1.0, 2.0, 3.0])])
    store.tag = {"generation": 3}
    store.clear()
    store.add([node("a", [1.0])])
    assert (store.dim, store.tag) == (1, {"generation": 3})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e39, None, "x"])
def test_vectors_that_are_no_numbers_are_refused_by_name_and_nothing_is_stored(store, bad):
    before = store.snapshot()
    with pytest.raises(EmbeddingError, match="'bad'"):
        store.add([node("good", [1.0, 1.0]), TextNode.model_construct(id_="bad", text="", embedding=[1.0, bad])])
    if not store.stores_text:
        with pytest.raises(EmbeddingError, match="'bad'"):
            store.put(["good", "bad", "bad"], [[1.0, 1.0], [1.0, bad], [1.0, 1.0]])
    assert store.snapshot() is before


@pytest.mark.parametrize("vector", [[1.0], [1.0, 2.0, 3.0], [], [[1.0, 2.0]]])
def test_vectors_of_another_length_are_refused_by_name_and_nothing_is_stored(store, vector):
    before = store.snapshot()
    with pytest.raises(EmbeddingError, match=r"'bad' .*one model"):
        store.add([node("good", [1.0, 1.0]), TextNode.model_construct(id_="bad", text="", embedding=vector)])
    with pytest.raises(EmbeddingError, match="query 0"):
        ask(store, vector)
    assert store.snapshot() is before


def test_a_first_batch_of_mixed_lengths_is_refused():
    with pytest.raises(EmbeddingError, match=r"length 2: 'b' \(3\)"):
        MatrixVectorStore().add([node("a", [1.0, 2.0]), node("b", [1.0, 2.0, 3.0])])
    with pytest.raises(EmbeddingError, match=r"'a' \(0\)"):
        MatrixVectorStore(stores_text=False).put(["a"], np.empty((1, 0)))


def test_nodes_without_an_embedding_are_named(store):
    with pytest.raises(EmbeddingError, match="'bare'"):
        store.add([node("bare", None)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": ["a"], "vectors": [[1.0], [2.0]]}, "1 ids for 2 vectors"),
        ({"ids": ["a"], "vectors": [[1.0]], "keys": []}, "'keys': 0"),
        ({"ids": ["a"], "vectors": [[1.0]], "ref_doc_ids": ["x", "y"]}, "'ref_doc_ids': 2"),
        ({"ids": [1], "vectors": [[1.0]]}, "not 1"),
        ({"ids": ["a"], "vectors": [[1.0]], "metadatas": [{"x": {1}}]}, "JSON"),
    ],
)
def test_put_checks_what_it_is_given(arguments, message):
    store = MatrixVectorStore(stores_text=False)
    with pytest.raises(ConfigurationError, match=message):
        store.put(**arguments)
    assert len(store) == 0


def test_the_arrays_of_a_snapshot_belong_together(store):
    store.delete("d1")
    store.put(["x"], [[7.0, 7.0]]) if not store.stores_text else store.add([node("x", [7.0, 7.0])])
    rows = store.snapshot()
    assert rows.matrix.dtype == np.float32
    assert rows.matrix.shape == (len(rows), 2) == (4, store.dim)
    for i, row_id in enumerate(rows.ids):
        assert rows.row_of(row_id) == i
        assert row_id in rows
        assert rows.vectors_of([row_id]).tolist() == [rows.matrix[i].tolist()]
    assert rows.rows_of(["x", "east", "west"]).tolist() == [rows.ids.index("x"), -1, rows.ids.index("west")]
    assert rows.vectors_of(["x", "west", "x"]).tolist() == [[7.0, 7.0], [-3.0, 0.0], [7.0, 7.0]]
    assert "east" not in rows
    for lookup in (rows.row_of, rows.metadata_of, lambda row_id: rows.vectors_of([row_id])):
        with pytest.raises(StorageError, match="'east'"):
            lookup("east")
    with pytest.raises(ValueError, match="read-only"):
        rows.matrix[0, 0] = 1.0
    with pytest.raises(ConfigurationError, match="mask"):
        rows.search([[1.0, 0.0]], 1, np.ones(99, bool))


def test_before_a_delete_the_matrix_is_read_without_a_copy():
    store = MatrixVectorStore(stores_text=False)
    store.put(["a", "b"], [[1.0], [2.0]])
    store.put(["c"], [[3.0]])
    before = store.snapshot()
    store.put(["d"], [[4.0]])
    assert np.shares_memory(before.matrix, store.snapshot().matrix)
    assert before.matrix.tolist() == [[1.0], [2.0], [3.0]]


def test_a_snapshot_keeps_its_rows_whatever_is_written_later():
    names = [str(i) for i in range(20)]
    changes = [
        lambda store: store.put(names, [[1.0, i] for i in range(20)]),
        lambda store: store.delete_nodes(["0"]),
        lambda store: store.delete_nodes(["1"]),
        lambda store: store.put(["2", "new"], [[9.0, 9.0], [8.0, 8.0]]),
        lambda store: store.put(["2"], [[7.0, 7.0]]),
        lambda store: store.delete_nodes(["2", "3"]),
        lambda store: store.put([f"more {i}" for i in range(50)], [[1.0, 1.0]] * 50),
        lambda store: store.delete_nodes(names),
        lambda store: store.clear(),
    ]

    def snapshots(number):
        store = MatrixVectorStore(stores_text=False)
        for change in changes[:number]:
            change(store)
            yield store.snapshot()

    for number, kept in enumerate(list(snapshots(len(changes))), 1):  # read only after the last write
        *_, expected = snapshots(number)
        assert [i in kept for i in names] == [i in expected for i in names]
        assert kept.ids == expected.ids
        assert kept.matrix.tolist() == expected.matrix.tolist()
        known = [i for i in names if i in kept]
        assert kept.vectors_of(known).tolist() == expected.vectors_of(known).tolist()


def test_an_interrupted_write_leaves_no_trace(monkeypatch):
    store = MatrixVectorStore(stores_text=False)
    store.put(["a", "b"], [[1.0, 0.0], [0.0, 1.0]])
    before = store.snapshot()
    extend = Line.extend

    def interrupted(*arguments):
        extend(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Line, "extend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.put(["x", "a"], [[5.0, 5.0], [6.0, 6.0]])
    monkeypatch.undo()
    assert store.snapshot() is before
    store.put(["z"], [[3.0, 4.0]])
    assert sorted(store.snapshot().ids) == ["a", "b", "z"]
    assert "x" not in store.snapshot()
    assert store.snapshot().vectors_of(["a", "z"]).tolist() == [[1.0, 0.0], [3.0, 4.0]]


def test_inserts_and_small_deletes_move_no_vectors_and_large_ones_give_the_room_back():
    store = MatrixVectorStore(stores_text=False)
    store.put([str(i) for i in range(100)], np.ones((100, 4)))
    store.put(["100"], np.ones((1, 4)))  # makes spare room
    before = store.snapshot().matrix
    store.put([str(i) for i in range(101, 110)], np.ones((9, 4)))
    store.put(["7"], np.ones((1, 4)))
    store.delete_nodes([str(i) for i in range(20)])
    assert np.shares_memory(before, store.snapshot()._line.vectors)
    store.delete_nodes([str(i) for i in range(20, 40)])
    assert store.snapshot()._line.vectors.shape == (70, 4)


def test_vectors_are_kept_bit_by_bit():
    rows = np.array([[1e-45, -0.0, 3.4e38], [np.pi, -1e-30, 5e-324]], np.float64).astype(np.float32)
    store = MatrixVectorStore(stores_text=False)
    store.put(["a", "b"], rows)
    rows_before = rows.tobytes()
    rows[:] = 0
    assert store.snapshot().matrix.tobytes() == rows_before


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda store: pickle.loads(pickle.dumps(store))])
def test_a_copy_has_the_same_rows_and_a_life_of_its_own(store, duplicate):
    store.tag = {"generation": 1}
    store.delete("d1")
    other = duplicate(store)
    assert (other.stores_text, other.tag) == (store.stores_text, store.tag)
    other.add([node("only here", [1.0, 0.0])])
    store.add([node("only there", [0.0, 1.0])])
    assert set(store.snapshot().ids) == {"west", "northeast", "nowhere", "only there"}
    assert set(other.snapshot().ids) == {"west", "northeast", "nowhere", "only here"}
    assert ids(other, k=1) == ["only here"]
    assert ids(store, (0.0, 1.0), k=1) == ["only there"]


@given(st.lists(st.tuples(st.sampled_from(["add", "delete"]), st.sets(st.integers(0, 11), min_size=1)), max_size=8))
def test_rows_of_an_earlier_snapshot_are_those_of_the_same_ids_unless_replaced(writes):
    store = MatrixVectorStore()
    store.add([node(str(i), [1.0, i]) for i in range(6)])
    earlier, replaced = store.snapshot(), set()
    for what, numbers in writes:
        ids = [str(i) for i in sorted(numbers)]
        replaced.update(ids)
        if what == "add":
            store.add([node(i, [2.0, 1.0]) for i in ids])
        else:
            store.delete_nodes(ids)
        now = store.snapshot()
        expected = [-1 if i in replaced else row for i, row in zip(now.ids, earlier.rows_of(now.ids), strict=True)]
        got = now.rows_before(earlier).tolist()
        assert [row for i, row in zip(now.ids, got, strict=True) if i not in replaced] == [
            r for r in expected if r >= 0
        ]
        assert all(row in (-1, earlier.row_of(i)) for i, row in zip(now.ids, got, strict=True) if i in earlier)
        assert all(row == -1 for i, row in zip(now.ids, got, strict=True) if i not in earlier)
