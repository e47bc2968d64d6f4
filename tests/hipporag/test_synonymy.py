"""Lists of near phrases: exact, capped by rule, and the same however they came about."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from llama_index.hipporag.graph import synonym_search as synonymy
from llama_index.hipporag.graph.synonym_search import (
    PhrasePairs,
    as_pairs,
    extended_lists,
    mutual,
)
from llama_index.ragkit.vectors import pairs


def slow_lists(vectors: np.ndarray, names: list[str], threshold: float, cap: int) -> dict[str, dict[str, float]]:
    """What the module's docstring says, word by word."""
    wide = vectors.astype(np.float64)
    lists: dict[str, dict[str, float]] = {}
    for i, name in enumerate(names):
        scored = []
        for j, other in enumerate(names):
            scale = np.sqrt((wide[i] * wide[i]).sum() * (wide[j] * wide[j]).sum())
            cosine = float(np.clip((wide[i] * wide[j]).sum() / scale, -1, 1)) if scale else 0.0
            if j != i and cosine >= threshold:
                scored.append((-cosine, other))
        lists[name] = {other: -cosine for cosine, other in sorted(scored)[:cap]}
    return lists


def told(lists: csr_matrix, names: list[str]) -> dict[str, dict[str, float]]:
    rows = lists.tocsr()
    return {
        name: {names[j]: float(rows[i, j]) for j in rows.indices[rows.indptr[i] : rows.indptr[i + 1]]}
        for i, name in enumerate(names)
    }


def built(vectors: np.ndarray, names: list[str], threshold: float, cap: int) -> csr_matrix:
    vectors = vectors.astype(np.float32)
    dim = vectors.shape[1]
    found = as_pairs(pairs.pairs_within(vectors, threshold), lambda rows: vectors[rows], threshold, cap, dim)
    order = lambda rows: np.array(names)[rows]  # noqa: E731
    return extended_lists(csr_matrix((0, 0)), len(names), found, cap, order)[0]


small_vectors = st.lists(st.lists(st.integers(-2, 2), min_size=3, max_size=3), min_size=1, max_size=14)


@given(small_vectors, st.sampled_from([0.3, 0.5, 0.8, 1.0]), st.integers(1, 4))
def test_lists_are_those_of_the_definition(rows, threshold, cap):
    vectors = np.array(rows, np.float32)
    names = [f"n{(7 * i) % 101:03d}" for i in range(len(rows))]
    assert told(built(vectors, names, threshold, cap), names) == slow_lists(vectors, names, threshold, cap)


def test_many_tiles_and_much_pruning_change_nothing(monkeypatch):
    random = np.random.default_rng(0)
    centres = random.normal(size=(8, 16))
    vectors = (centres[random.integers(0, 8, 300)] + 0.3 * random.normal(size=(300, 16))).astype(np.float32)
    names = [f"n{i:03d}" for i in random.permutation(300)]
    whole = built(vectors, names, 0.8, 5)
    monkeypatch.setattr(pairs, "_TILE", 7)
    monkeypatch.setattr(synonymy, "_PRUNE", 50)
    monkeypatch.setattr(synonymy, "_GATHER", 11)
    piecewise = built(vectors, names, 0.8, 5)
    assert told(whole, names) == told(piecewise, names) == slow_lists(vectors, names, 0.8, 5)


def test_mutual_pairs_are_symmetric_and_on_both_lists():
    names = [f"n{i}" for i in range(40)]
    vectors = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    lists = built(vectors, names, 0.5, 4)
    both = mutual(lists).toarray()
    np.testing.assert_array_equal(both, both.T)
    dense = lists.toarray()
    np.testing.assert_array_equal(both > 0, (dense > 0) & (dense.T > 0))
    assert 0 < (both > 0).sum() < (dense > 0).sum()
    assert ((both > 0).sum(axis=1) <= 4).all()


def test_vectors_of_zeros_are_near_to_nothing():
    vectors = np.array([[0, 0], [0, 0], [1, 0], [2, 0]], np.float32)
    assert told(built(vectors, list("abcd"), 0.5, 3), list("abcd")) == {
        "a": {},
        "b": {},
        "c": {"d": 1.0},
        "d": {"c": 1.0},
    }


@pytest.mark.parametrize("cap", [1, 2, 10])
def test_a_list_that_is_added_to_keeps_the_best(cap: int):
    old = csr_matrix(np.array([[0, 0.9, 0.8], [0.9, 0, 0], [0.8, 0, 0]]))
    old = extended_lists(
        csr_matrix((0, 0)), 3, PhrasePairs(*np.array([[0, 0, 1, 2], [1, 2, 0, 0]]), old.data), cap, _order
    )[0]
    new, touched = extended_lists(
        old, 4, PhrasePairs(np.array([0, 3]), np.array([3, 0]), np.array([0.85, 0.85])), cap, _order
    )
    assert touched.tolist() == [0, 3]
    best = dict([(1, 0.9), (3, 0.85), (2, 0.8)][:cap])
    assert told(new, list("0123"))["0"] == {str(j): cosine for j, cosine in best.items()}
    assert told(new, list("0123"))["1"] == {"0": 0.9}


def _order(rows):
    return np.array([str(row) for row in rows])
