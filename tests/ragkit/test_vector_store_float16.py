"""A store of float16: half the memory and file, scores exact for the vectors that are kept."""

import numpy as np
import pytest
from llama_index.core import StorageContext
from llama_index.core.vector_stores.types import VectorStoreQuery

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.errors import EmbeddingError


def vectors(n: int, dim: int = 24) -> np.ndarray:
    return np.random.default_rng(n).normal(size=(n, dim)).astype(np.float32)


def store_of(rows: np.ndarray, dtype: str = "float16") -> MatrixVectorStore:
    store = MatrixVectorStore(stores_text=False, dtype=dtype)
    store.put([str(i) for i in range(len(rows))], rows)
    return store


def test_vectors_are_rounded_once_and_searched_as_they_are_kept() -> None:
    rows = vectors(300)
    half, rounded = store_of(rows), store_of(rows.astype(np.float16).astype(np.float32), "float32")
    assert half.snapshot().matrix.dtype == np.float16
    for query in vectors(5):
        for mode in ("default", "mmr"):
            asked = VectorStoreQuery(query_embedding=query.tolist(), similarity_top_k=7, mode=mode)
            a, b = half.query(asked), rounded.query(asked)
            assert (a.ids, a.similarities) == (b.ids, b.similarities)


def test_growing_replacing_and_deleting_keep_the_dtype() -> None:
    store = store_of(vectors(10))
    store.put(["3", "new"], vectors(2))
    store.delete_nodes(["1"])
    rows = store.snapshot()
    assert rows.dtype == "float16"
    assert np.array_equal(rows.vectors_of(["3"])[0], vectors(2)[0].astype(np.float16))
    assert rows.vectors_of(["3"]).dtype == np.float32
    store.clear()
    store.put(["a"], vectors(1))
    assert store.snapshot().matrix.dtype == np.float16


@pytest.mark.parametrize("n", [0, 1, 700])
def test_persisting_keeps_every_bit(n: int, tmp_path) -> None:
    context = StorageContext.from_defaults(
        vector_stores={"default": store_of(vectors(1)), "half": store_of(vectors(n))}
    )
    context.persist(str(tmp_path))
    found = StorageContext.from_defaults(persist_dir=str(tmp_path)).vector_stores["half"]
    back = MatrixVectorStore.from_simple(found)
    assert back.dtype == "float16"
    assert np.array_equal(back.snapshot().matrix, context.vector_stores["half"].snapshot().matrix)


def test_what_float16_cannot_hold_is_refused() -> None:
    with pytest.raises(EmbeddingError, match="float16"):
        store_of(np.full((1, 4), 1e6, np.float32))


def test_columns_are_parts_of_the_living_rows() -> None:
    rows = vectors(8)
    for dtype in ("float32", "float16"):
        store = store_of(rows, dtype)
        store.delete_nodes(["2"])
        part = store.snapshot().columns(4, 9)
        assert part.dtype == np.float32
        assert np.array_equal(part, store.snapshot().matrix[:, 4:9].astype(np.float32))
