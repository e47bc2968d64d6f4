"""Files that somebody changed: a clear error, within a bound on memory, or the rows that were written."""

import binascii
import json
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llama_index.core import StorageContext

from llama_index.ragkit import MatrixVectorStore, load_storage_context, persist
from llama_index.ragkit.errors import HalfWrittenError, StorageError
from llama_index.ragkit.vectors.file_format import MARKER

pytestmark = pytest.mark.usefixtures("no_collection")

ROWS = 700  # two pieces
DIM = 8


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A valid file."""
    path = tmp_path_factory.mktemp("written") / "default__vector_store.json"
    store = MatrixVectorStore(stores_text=False)
    vectors = np.random.default_rng(0).standard_normal((ROWS, DIM)).astype(np.float32)
    store.put([f"r{i}" for i in range(ROWS)], vectors, metadatas=[{"n": i} for i in range(ROWS)])
    store.persist(str(path))
    return path.read_bytes()


def load(data: bytes, folder: Path) -> MatrixVectorStore:
    path = folder / "tampered__vector_store.json"
    path.write_bytes(data)
    return MatrixVectorStore.from_persist_path(str(path))


def packed(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


@cache
def bomb(size: int) -> str:
    coder = zlib.compressobj(9)
    block = b"0" * (1 << 20)
    parts = [coder.compress(block) for _ in range(size >> 20)]
    return packed(b"".join(parts) + coder.flush())


def rows(lines: str) -> dict[str, Any]:
    """The rows of an entry, with their right checksum."""
    return {"rows": [packed(zlib.compress(lines.encode()))], "rows_crc32": zlib.crc32(lines.encode())}


def columns(ids: list[Any], metadatas: list[str]) -> dict[str, Any]:
    others = [json.dumps([ids, [None] * len(ids), ids, [None] * len(ids)]), *metadatas]
    return rows("\n".join(others))


TAMPERED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "2**60 rows": lambda e: {"count": 2**60},
    "2**60 rows of length 0": lambda e: {"count": 2**60, "dim": 0},
    "2**60 rows and no strings": lambda e: {"count": 2**60, "vectors": [], "rows": []},
    "10**30 columns": lambda e: {"dim": 10**30},
    "a million columns": lambda e: {"dim": 10**6},
    "one row less": lambda e: {"count": ROWS - 1},
    "a negative count": lambda e: {"count": -1},
    "a fractional count": lambda e: {"count": float(ROWS)},
    "a true count": lambda e: {"count": True},
    "another type": lambda e: {"dtype": "float16"},
    "an unknown type": lambda e: {"dtype": "object"},
    "a list as type": lambda e: {"dtype": [1]},
    "a bomb as high bytes": lambda e: {"vectors": [e["vectors"][0], bomb(1 << 28), *e["vectors"][2:]]},
    "a bomb as rows": lambda e: {"rows": [bomb(1 << 28)]},
    "many bombs as rows": lambda e: {"rows": [bomb(1 << 24)] * 64},
    "deeply nested ids": lambda e: rows("[" * 1_000_000),
    "deeply nested metadata": lambda e: columns(["a"], ['{"a":' * 100_000]),
    "rows that are no text": lambda e: {"rows": [packed(zlib.compress(b"\xff" * 100))]},
    "ids that are numbers": lambda e: columns([1] * ROWS, ["{}"] * ROWS),
    "ids twice": lambda e: columns(["a"] * ROWS, ["{}"] * ROWS),
    "metadata that are lists": lambda e: columns([str(i) for i in range(ROWS)], ["[]"] * ROWS),
    "metadata that are no JSON": lambda e: columns([str(i) for i in range(ROWS)], ["{"] * ROWS),
    "fewer metadata": lambda e: columns([str(i) for i in range(ROWS)], ["{}"] * 3),
    "numbers for strings": lambda e: {"vectors": [1, 2, 3, 4]},
    "an object for strings": lambda e: {"vectors": {"a": 1}},
    "no strings": lambda e: {"rows": []},
    "a tag that is a text": lambda e: {"tag": "t"},
    "stores_text that is a text": lambda e: {"stores_text": "no"},
}


def with_entry(data: bytes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    document = json.loads(data)
    document["metadata_dict"][MARKER].update(change(document["metadata_dict"][MARKER]))
    return json.dumps(document).encode()


@pytest.mark.parametrize("kind", TAMPERED)
def test_a_tampered_file_is_an_error_within_a_bound_on_memory(kind: str, written: bytes, tmp_path: Path) -> None:
    data = with_entry(written, TAMPERED[kind])
    tracemalloc.start()
    try:
        with pytest.raises(HalfWrittenError, match="damaged"):
            load(data, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Reading JSON takes a few times the file, decompressing 64 times.
    assert peak < 100 * len(data) + (96 << 20)


def test_vectors_that_are_not_finite_are_an_error(written: bytes, tmp_path: Path) -> None:
    def change(entry: dict[str, Any]) -> dict[str, Any]:
        infinite = np.full((ROWS, DIM), np.inf, "<f4")
        strings = []
        for piece in (infinite[:512], infinite[512:]):
            planes = piece.view(np.uint8).reshape(-1, 4).T
            strings += [packed(np.ascontiguousarray(planes[:3]).tobytes()), packed(zlib.compress(planes[3].tobytes()))]
        return {"vectors": strings, "vectors_crc32": zlib.crc32(infinite.tobytes())}

    with pytest.raises(HalfWrittenError, match="NaN or values beyond"):
        load(with_entry(written, change), tmp_path)


@pytest.mark.parametrize("entry", ["text", 1, None, [], {}])
def test_an_entry_of_another_kind_is_an_error(entry: Any, written: bytes, tmp_path: Path) -> None:
    document = json.loads(written)
    document["metadata_dict"][MARKER] = entry
    with pytest.raises(StorageError):
        load(json.dumps(document).encode(), tmp_path)


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"{}", b"null", b"\xff\xfe", b"[" * 1_000_000, b'{"a":' * 100_000])
def test_a_file_that_is_something_else_is_an_error(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        load(data, tmp_path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)
NAMES = ["stores_text", "tag", "dim", "count", "dtype", "vectors", "vectors_crc32", "rows", "rows_crc32"]


@settings(max_examples=150)
@given(changes=st.dictionaries(st.sampled_from(NAMES), json_values, min_size=1, max_size=3))
def test_any_values_in_place_of_others_are_an_error_or_change_nothing(
    changes: dict[str, Any], written: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    try:
        store = load(with_entry(written, lambda entry: changes), tmp_path_factory.getbasetemp())
    except StorageError:
        return
    assert len(store.snapshot()) == ROWS


@settings(max_examples=150)
@given(data=st.data())
def test_any_bytes_in_place_of_others_are_an_error_or_change_nothing(
    data: st.DataObject, written: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    start = data.draw(st.integers(0, len(written)))
    stop = data.draw(st.integers(start, min(len(written), start + 50)))
    tampered = written[:start] + data.draw(st.binary(max_size=20)) + written[stop:]
    try:
        store = load(tampered, tmp_path_factory.getbasetemp())
    except StorageError:
        return
    assert sorted(store.snapshot().ids) == sorted(f"r{i}" for i in range(ROWS))


def test_rows_that_compress_very_well_are_written_and_read(tmp_path: Path) -> None:
    store = MatrixVectorStore(stores_text=False)
    metadata = {"text": "0" * 20_000}
    store.put([f"r{i}" for i in range(600)], np.eye(600, 4, dtype=np.float32) + 1, metadatas=[metadata] * 600)
    store.persist(str(tmp_path / "a.json"))
    loaded = MatrixVectorStore.from_persist_path(str(tmp_path / "a.json"))
    assert loaded.snapshot().metadata_of("r599") == metadata


PARTS = ["docstore.json", "index_store.json", "graph_store.json"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe\x00", b"[" * 500_000, None])
def test_a_folder_with_a_file_that_is_no_json_is_an_error_that_names_the_folder(
    part: str, data: bytes | None, tmp_path: Path
) -> None:
    persist(StorageContext.from_defaults(), tmp_path / "store")
    if (part, data) == ("graph_store.json", None):
        pytest.skip("core replaces it by an empty one")
    if data is None:
        (tmp_path / "store" / part).unlink()
    else:
        (tmp_path / "store" / part).write_bytes(data)
    with pytest.raises(HalfWrittenError, match="store cannot be read"):
        load_storage_context(tmp_path / "store")
