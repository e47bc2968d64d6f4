"""Persistence through the standard `StorageContext`: exact, whole or an error, and nothing deleted left behind."""

import base64
import json
import os
import zlib

import fsspec
import numpy as np
import pytest
from llama_index.core import StorageContext
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.simple import SimpleVectorStore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters, VectorStoreQuery

from llama_index.ragkit.errors import (
    ConfigurationError,
    FormatVersionError,
    HalfWrittenError,
    MissingSpaceError,
    StorageError,
)
from llama_index.ragkit.vectors.file_format import MARKER
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

STRANGE = [
    np.float32([1e-45, -0.0, 3.4e38, np.pi]),
    np.float32([0.0, 0.0, 0.0, 0.0]),
    np.frombuffer(b"\x01\x02\x03\x04" * 4, np.float32),
]


def text_store():
    store = MatrixVectorStore(tag={"generation": 7, "uid": "ü"})
    for i, vector in enumerate(STRANGE):
        source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"doc {i}\n")} if i else {}
        metadata = {"title": 'Zitat "„“" \\ \n\u2028\x00', "tags": ["a", 1, None], "n": i, "none": None}
        text = f"line\nline\ttext {i} 漢字"
        store.add(
            [TextNode(id_=f'id "{i}"\n', text=text, metadata=metadata, relationships=source, embedding=vector.tolist())]
        )
    return store


def random_store(n=2000, dim=12, without=None):
    vectors = np.random.default_rng(0).normal(size=(n, dim))
    kept = [i for i in range(n) if i % 10 != without]
    store = MatrixVectorStore(stores_text=False)
    store.put(
        [f"row-{i}" for i in kept],
        vectors[kept],
        ref_doc_ids=[f"secret-document-{i % 10}" for i in kept],
        metadatas=[{"page": i % 50, "note": f"secret-note-{i % 10}"} for i in kept],
        keys=[f"key-{i * 7919 % n}" for i in kept],
    )
    return store


def same(one, other):
    assert (one.stores_text, one.tag, len(one), one.dim) == (other.stores_text, other.tag, len(other), other.dim)
    here, there = one.snapshot(), other.snapshot()
    assert sorted(here.records) == sorted(there.records)
    assert here.vectors_of(here.ids).tobytes() == there.vectors_of(here.ids).tobytes()
    query = np.random.default_rng(1).normal(size=(3, one.dim or 1))
    for mine, theirs in zip(here.search(query, 20), there.search(query, 20), strict=True):
        assert (mine.ids, mine.scores) == (theirs.ids, theirs.scores)
    if one.stores_text:
        assert one.get_nodes() == other.get_nodes()


@pytest.mark.parametrize("make", [text_store, random_store, MatrixVectorStore])
def test_it_comes_back_through_the_standard_storage_context(make, tmp_path):
    store = make()
    StorageContext.from_defaults(vector_stores={"default": SimpleVectorStore(), "m_space": store}).persist(tmp_path)
    loaded = StorageContext.from_defaults(persist_dir=str(tmp_path)).vector_stores
    assert MatrixVectorStore.is_persisted_matrix(loaded["m_space"])
    assert not MatrixVectorStore.is_persisted_matrix(loaded["default"])
    assert not MatrixVectorStore.is_persisted_matrix(store)
    same(MatrixVectorStore.from_simple(loaded["m_space"]), store)
    same(MatrixVectorStore.from_persist_dir(str(tmp_path), "m_space"), store)
    names = {"default__vector_store.json", "m_space__vector_store.json", "image__vector_store.json"}
    names |= set() if store.stores_text or not len(store) else {"m_space__vector_store.arrays"}
    assert set(os.listdir(tmp_path)) == names | {"docstore.json", "graph_store.json", "index_store.json"}


def test_until_adopted_it_finds_nothing_and_loses_nothing(tmp_path):
    store = random_store(50)
    StorageContext.from_defaults(vector_store=store).persist(tmp_path)
    for _ in range(2):
        context = StorageContext.from_defaults(persist_dir=str(tmp_path))
        simple = context.vector_stores["default"]
        page = MetadataFilters(filters=[MetadataFilter(key="page", value=1)])
        query = VectorStoreQuery(query_embedding=[1.0] * 12, similarity_top_k=3, filters=page)
        assert simple.query(query).ids == []
        context.persist(tmp_path)  # by core, as the SimpleVectorStore that it is then
    same(MatrixVectorStore.from_persist_dir(str(tmp_path)), store)


def test_rows_that_core_added_before_adoption_are_not_dropped_in_silence(tmp_path):
    random_store(5).persist(str(tmp_path / "default__vector_store.json"))
    simple = SimpleVectorStore.from_persist_dir(str(tmp_path))
    simple.add([TextNode(id_="late", text="x", embedding=[1.0] * 12)])
    with pytest.raises(StorageError, match="1 rows were added"):
        MatrixVectorStore.from_simple(simple)


def test_a_file_system_of_fsspec_serves_as_well(tmp_path):
    store = text_store()
    for fs, path in (
        (fsspec.filesystem("memory"), "/folder/sub/s__vector_store.json"),
        (fsspec.filesystem("file"), str(tmp_path / "sub" / "s__vector_store.json")),
        (fsspec.filesystem("dir", path=str(tmp_path), fs=fsspec.filesystem("file")), "below/s__vector_store.json"),
    ):
        for _ in range(2):  # the second time over the first
            store.persist(path, fs=fs)
            same(MatrixVectorStore.from_persist_path(path, fs=fs), store)
            same(MatrixVectorStore.from_persist_dir(os.path.dirname(path), "s", fs=fs), store)
        assert [os.path.basename(name) for name in fs.ls(os.path.dirname(path), detail=False)] == [
            "s__vector_store.json"
        ]


def test_nothing_of_a_deleted_row_is_in_the_bytes(tmp_path):
    store = random_store(40)
    store.delete("secret-document-3")
    store.persist(str(tmp_path / "deleted.json"))
    random_store(40, without=3).persist(str(tmp_path / "never.json"))
    assert (tmp_path / "deleted.json").read_bytes() == (tmp_path / "never.json").read_bytes()
    rows = b"".join(
        zlib.decompress(base64.b64decode(piece)) for piece in entry_of(tmp_path / "deleted.json")[MARKER]["rows"]
    )
    assert b"secret-document-4" in rows
    assert b"secret-document-3" not in rows
    assert b"secret-note-3" not in rows


def test_text_is_in_the_bytes_only_if_the_store_keeps_it(tmp_path):
    for stores_text in (True, False):
        store = MatrixVectorStore(stores_text=stores_text)
        store.add([TextNode(id_="a", text="the text", embedding=[1.0])])
        store.persist(str(tmp_path / "s.json"))
        loaded = MatrixVectorStore.from_persist_path(str(tmp_path / "s.json"))
        assert (loaded.snapshot().record_of("a").node is not None) == stores_text


def test_a_loaded_store_goes_on_like_any_other(tmp_path):
    path = str(tmp_path / "s.json")
    store = random_store(100)
    store.persist(path)
    loaded = MatrixVectorStore.from_persist_path(path)
    before = loaded.snapshot()
    for one in (store, loaded):
        one.put(["new", "row-1"], [[1.0] * 12, [2.0] * 12])
        one.delete("secret-document-2")
    same(loaded, store)
    assert len(before) == 100
    assert before.vectors_of(["row-1"]).tolist() != [[2.0] * 12]


def entry_of(path):
    with open(path) as file:
        return json.load(file)["metadata_dict"]


def damaged(tmp_path, change):
    path = str(tmp_path / "s.json")
    store = text_store()
    store.persist(path)
    entries = entry_of(path)
    change(entries[MARKER])
    with open(path, "w") as file:
        json.dump({"embedding_dict": {}, "text_id_to_ref_doc_id": {}, "metadata_dict": entries}, file)
    return path


def flip(string, place=9):
    return string[:place] + ("A" if string[place] != "A" else "B") + string[place + 1 :]


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry["vectors"].__setitem__(0, flip(entry["vectors"][0])),
        lambda entry: entry["vectors"].__setitem__(1, flip(entry["vectors"][1])),
        lambda entry: entry["vectors"].pop(),
        lambda entry: entry["vectors"].clear(),
        lambda entry: entry["rows"].__setitem__(0, flip(entry["rows"][0], 40)),
        lambda entry: entry["rows"].clear(),
        lambda entry: entry["rows"].append(entry["rows"][0]),
        lambda entry: entry.__setitem__("count", 2),
        lambda entry: entry.__setitem__("dim", 3),
        lambda entry: entry.__setitem__("vectors_crc32", 1),
        lambda entry: entry.__setitem__("rows_crc32", 1),
        lambda entry: entry.pop("tag"),
        lambda entry: entry.pop("rows"),
    ],
)
def test_a_damaged_file_is_an_error(tmp_path, change):
    with pytest.raises(HalfWrittenError, match="damaged"):
        MatrixVectorStore.from_persist_path(damaged(tmp_path, change))


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_another_format_version_is_an_error_that_names_both(tmp_path, version):
    path = damaged(tmp_path, lambda entry: entry.update(format_version=version))
    with pytest.raises(FormatVersionError, match=rf"version {version!r}; .* reads 1"):
        MatrixVectorStore.from_persist_path(path)


def test_files_that_are_missing_cut_off_or_of_another_store_are_errors(tmp_path):
    path = tmp_path / "s.json"
    with pytest.raises(MissingSpaceError, match=r"s\.json"):
        MatrixVectorStore.from_persist_path(str(path))
    random_store(10).persist(str(path))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(HalfWrittenError, match=r"s\.json"):
        MatrixVectorStore.from_persist_path(str(path))
    SimpleVectorStore().persist(str(path))
    with pytest.raises(StorageError, match="is_persisted_matrix"):
        MatrixVectorStore.from_persist_path(str(path))


@pytest.mark.parametrize("fs", [None, fsspec.filesystem("memory")], ids=["local", "memory"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, fs):
    folder = str(tmp_path) if fs is None else "/failed"
    path = f"{folder}/s__vector_store.json"
    store = random_store(1500)
    store.persist(path, fs=fs)
    bigger = random_store(1600)

    def failing(snapshot, stores_text):
        yield from real(snapshot, stores_text)
        raise OSError("disk full")

    from llama_index.ragkit.vectors import file_format as matrix_json

    real = matrix_json._row_pieces
    monkeypatch.setattr(matrix_json, "_row_pieces", failing)
    with pytest.raises(OSError, match="disk full"):
        bigger.persist(path, fs=fs)
    with pytest.raises(ConfigurationError, match="tag"):
        MatrixVectorStore(tag={"x": {1}}).persist(path, fs=fs)
    names = os.listdir(folder) if fs is None else [os.path.basename(name) for name in fs.ls(folder, detail=False)]
    assert names == ["s__vector_store.json"]
    same(MatrixVectorStore.from_persist_path(path, fs=fs), store)


def test_a_relative_path_without_a_folder_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random_store(3).persist("plain.json")
    same(MatrixVectorStore.from_persist_path("plain.json"), random_store(3))
