"""A folder that is opened without being read gives what a folder that is read gives, and never an earlier state."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core import StorageContext
from llama_index.core.schema import TextNode
from llama_index.core.storage.kvstore.simple_kvstore import SimpleKVStore

from llama_index.ragkit import MatrixVectorStore, load_storage_context, persist
from llama_index.ragkit.errors import HalfWrittenError
from llama_index.ragkit.storage import file_kvstore
from llama_index.ragkit.storage.file_kvstore import FileKVStore, keep_in_file
from llama_index.ragkit.text.packed_words import PackedMapping

KEYS = st.sampled_from(["a", "b", 'q"uote', "é", "\ud800", "key: {}, "])
CHANGES = st.lists(st.tuples(KEYS, st.none() | st.dictionaries(KEYS, st.integers(), max_size=2)), max_size=12)
ROWS = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)


def filled(path: Path) -> MatrixVectorStore:
    store = MatrixVectorStore(stores_text=False)
    store.put([f"row é{i}" for i in range(50)], ROWS, metadatas=[{"page": i % 3} for i in range(50)])
    store.persist(str(path))
    return store


def found(store: MatrixVectorStore) -> list[Any]:
    return [(hits.ids, hits.scores) for hits in store.query_many(ROWS[:5], 8)]


@given(before=CHANGES, after=CHANGES, at_once=st.integers(1, 3))
def test_a_store_of_a_file_is_what_a_dictionary_is(
    tmp_path_factory: pytest.TempPathFactory, before: list[Any], after: list[Any], at_once: int
) -> None:
    path = str(tmp_path_factory.getbasetemp() / "docstore.json")
    expected: dict[str, Any] = {}
    kept = FileKVStore()
    for changes in (before, after):
        for key, value in changes:
            if value is None:
                assert kept.delete(key, "of") == (expected.pop(key, None) is not None)
            else:
                kept.put(key, value, "of")
                expected[key] = value
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(file_kvstore, "_AT_ONCE", at_once)
            assert list(kept.get_all("of").items()) == list(expected.items())
            kept.persist(path)
        assert SimpleKVStore.from_persist_path(path).get_all("of") == expected
        opened = FileKVStore.opened(path)
        assert opened is not None
        kept = opened
        assert {key: kept.get(key, "of") for key in [*expected, "none"]} == {**expected, "none": None}
        assert len(kept._get_collection_mapping("of")) == len(expected)


@given(values=st.dictionaries(KEYS, st.lists(KEYS) | st.integers() | KEYS), rounds=st.integers(1, 3))
def test_a_packed_mapping_is_what_a_dictionary_is(values: dict[str, Any], rounds: int) -> None:
    packed: PackedMapping[Any] = PackedMapping.of_arrays(PackedMapping.to_arrays(values))
    for _ in range(rounds):  # after some look-ups it is a dictionary
        assert {key: packed.get(key) for key in [*values, "none"]} == {**values, "none": None}
        assert [key in packed for key in [*values, "none"]] == [True] * len(values) + [False]
    assert list(packed) == list(values)
    assert len(packed) == len(values)
    again: PackedMapping[Any] = PackedMapping.of_arrays(PackedMapping.to_arrays(values))
    assert list(again.items()) == list(values.items())
    assert list(again.values()) == list(values.values())


def test_opening_reads_no_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = StorageContext.from_defaults()
    keep_in_file(context.docstore)
    context.docstore.add_documents([TextNode(text=f"text {i}", id_=f"n{i}") for i in range(20)])
    persist(context, tmp_path / "folder")
    read: list[tuple[int, int]] = []
    plain = file_kvstore._File.read
    monkeypatch.setattr(file_kvstore._File, "read", lambda file, *ends: read.append(ends) or plain(file, *ends))
    opened = load_storage_context(tmp_path / "folder")
    assert not read
    assert opened.docstore.get_document("n7").get_content() == "text 7"  # type: ignore[union-attr]
    assert len(read) == 1
    assert load_storage_context(tmp_path / "folder", mapped=False).docstore.docs == opened.docstore.docs


def test_a_file_that_is_written_over_in_place_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "docstore.json"
    store = FileKVStore()
    store.put("a", {"text": "one"}, "of")
    store.persist(str(path))
    opened = FileKVStore.opened(str(path))
    assert opened is not None
    path.write_bytes(path.read_bytes().replace(b'"one"}', b'"one"['))
    with pytest.raises(HalfWrittenError, match="load the folder again"):
        opened.get("a", "of")


@pytest.mark.parametrize("lookups", [0, 3])  # after some, rows are looked up in a dictionary
def test_mapped_rows_are_those_of_the_file_and_can_be_changed(tmp_path: Path, lookups: int) -> None:
    path = tmp_path / "x__vector_store.json"
    filled(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    mapped, read = MatrixVectorStore.mapped(str(path)), MatrixVectorStore.from_persist_path(str(path))
    assert mapped is not None
    assert list(mapped.snapshot().records) == list(read.snapshot().records)
    for _ in range(lookups):
        assert mapped.snapshot().rows_of([*read.snapshot().ids, "none"]).tolist() == [*range(50), -1]
    for store in (mapped, read):
        store.delete_nodes(["row é0", "row é7"])
        store.put(["row é9", "new"], ROWS[:2], metadatas=[{"page": 1}, {"page": 2}])
        store.delete_nodes(["row é9"])
        assert [name in store.snapshot() for name in ("row é0", "row é9", "new")] == [False, False, True]
    assert found(mapped) == found(read)
    assert list(mapped.snapshot().ids) == list(read.snapshot().ids)
    assert before == {file.name: file.read_bytes() for file in tmp_path.iterdir()}


@pytest.mark.parametrize("part", ["first", "middle", "last", "cut", "missing"])
def test_a_damaged_copy_does_not_count(tmp_path: Path, part: str) -> None:
    path, copy = tmp_path / "x__vector_store.json", tmp_path / "x__vector_store.arrays"
    store = filled(path)
    data = bytearray(copy.read_bytes())
    if part == "missing":
        copy.unlink()
    elif part == "cut":
        copy.write_bytes(data[:-5])
    else:
        data[{"first": 0, "middle": len(data) // 2, "last": -1}[part]] ^= 1
        copy.write_bytes(data)
    assert MatrixVectorStore.mapped(str(path)) is None
    assert found(MatrixVectorStore.from_persist_path(str(path))) == found(store)


def test_a_copy_of_another_state_does_not_count(tmp_path: Path) -> None:
    path, docstore = tmp_path / "x__vector_store.json", tmp_path / "docstore.json"
    filled(path)
    copy = (tmp_path / "x__vector_store.arrays").read_bytes()
    other = MatrixVectorStore(stores_text=False)
    other.put([f"row é{i}" for i in range(50)], ROWS[::-1], metadatas=[{"page": i % 3} for i in range(50)])
    other.persist(str(path))
    (tmp_path / "x__vector_store.arrays").write_bytes(copy)
    assert MatrixVectorStore.mapped(str(path)) is None
    kept = FileKVStore({"of": {"a": {"n": 1}}})
    kept.persist(str(docstore))
    docstore.write_text(json.dumps({"of": {"a": {"n": 2}}}))
    assert FileKVStore.opened(str(docstore)) is None


def test_what_was_deleted_stays_in_no_file(tmp_path: Path) -> None:
    path = tmp_path / "x__vector_store.json"
    filled(path)
    mapped = MatrixVectorStore.mapped(str(path))
    assert mapped is not None
    assert "row é7".encode() in (tmp_path / "x__vector_store.arrays").read_bytes()
    mapped.delete_nodes(["row é7"])
    mapped.persist(str(path))
    assert "row é7".encode() not in (tmp_path / "x__vector_store.arrays").read_bytes()
    mapped.clear()
    mapped.persist(str(path))
    assert os.listdir(tmp_path) == ["x__vector_store.json"]


def test_ids_and_records_of_a_mapped_store_equal_those_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "x__vector_store.json"
    mine, opened = filled(path).snapshot(), MatrixVectorStore.mapped(str(path))
    assert opened is not None
    mapped = opened.snapshot()
    assert mapped.ids == mine.ids == mapped.ids
    assert mapped.records == mine.records
    opened.delete_nodes(["row é3"])
    assert opened.snapshot().ids != mine.ids
