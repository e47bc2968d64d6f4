"""All pairs of vectors above a threshold: none is missed, and few below are added."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.ragkit.vectors import pairs
from llama_index.ragkit.vectors.kernels import cosines, error_bound
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.pairs import pairs_within


def grouped(random, n, dim, noise):
    """Vectors around a few directions, of many lengths, the last ones equal, parallel and zero."""
    centres = random.normal(size=(6, dim))
    vectors = centres[random.integers(0, 6, n)] + noise * random.normal(size=(n, dim))
    vectors *= 10.0 ** random.integers(-15, 15, size=(n, 1))
    vectors[-1], vectors[-2], vectors[-3] = 0, 0, vectors[0]
    vectors[-4] = 3 * vectors[1]
    return vectors.astype(np.float32)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32),
    st.integers(4, 40),
    st.sampled_from([1, 2, 3, 30]),
    st.sampled_from([-0.5, 0.0, 0.6, 0.98, 1.0]),
    st.sampled_from([1, 7, 2048]),
)
def test_pairs_of_rows_are_all_those_of_the_threshold_once_and_few_below(seed, n, dim, threshold, tile):
    random = np.random.default_rng(seed)
    vectors = grouped(random, n, dim, random.choice([0.02, 0.5]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "_TILE", tile)
        found = [
            (int(i), int(j), score)
            for part in pairs_within(vectors, threshold)
            for i, j, score in zip(*part, strict=True)
        ]
    places = [(i, j) for i, j, _ in found]
    assert len(set(places)) == len(places)
    exact = np.array([cosines(vectors, row) for row in vectors])
    error = error_bound(dim)
    for i, j, score in found:
        assert j < i
        assert exact[i, j] >= threshold - 4 * error
        assert abs(score - exact[i, j]) <= error
    assert {(i, j) for i in range(n) for j in range(i) if exact[i, j] >= threshold} <= set(places)


def test_no_rows_have_no_pairs():
    assert list(pairs_within(np.empty((0, 3), np.float32), 0.5)) == []


@given(st.integers(0, 2**32), st.sampled_from([0.2, 0.6, 0.8, 1.0]), st.booleans())
@settings(max_examples=40)
def test_pairs_of_a_snapshot_and_vectors_are_all_those_of_the_threshold_and_few_below(seed, threshold, spread):
    random = np.random.default_rng(seed)
    centres = random.normal(size=(12, 30))
    vectors = centres[random.integers(0, 12, 80)] + (0.5 if spread else 0.05) * random.normal(size=(80, 30))
    vectors[5] = 0
    store = MatrixVectorStore(stores_text=False)
    store.put([f"r{i:02d}" for i in range(50)], vectors[:50])
    store.snapshot().near(vectors[:1], threshold)  # lengths that are known are extended by the next
    store.put([f"r{i:02d}" for i in range(50, 80)], vectors[50:])
    store.delete_nodes(["r07", "r60"])
    rows = store.snapshot()
    queries = np.concatenate([vectors[:4], random.normal(size=(4, 30)), np.zeros((1, 30))]).astype(np.float32)
    exact = np.array([cosines(rows.matrix, query) for query in queries]).T
    found = {(int(i), int(j)): score for i, j, score in zip(*rows.near(queries, threshold), strict=True)}
    error = error_bound(30)
    for i in range(len(rows)):
        for j in range(len(queries)):
            if exact[i, j] >= threshold:
                assert (i, j) in found
            if (i, j) in found:
                assert exact[i, j] >= threshold - 4 * error
                assert abs(found[i, j] - exact[i, j]) <= error
