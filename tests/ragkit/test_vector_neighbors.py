"""Nearest neighbours are those of a full sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.ragkit.vectors import neighbors
from llama_index.ragkit.vectors.neighbors import nearest_neighbors


def sorted_neighbours(queries: np.ndarray, rows: np.ndarray, k: int, skip_self: bool) -> np.ndarray:
    products = queries.astype(np.float64) @ rows.T.astype(np.float64)
    if skip_self:
        np.fill_diagonal(products, -np.inf)
    return np.argsort(-products, axis=1, kind="stable")[:, :k]


@settings(max_examples=150)
@given(st.integers(0, 2**16), st.integers(2, 150), st.integers(1, 4), st.data())
def test_neighbours_are_those_of_a_full_sort_and_the_lower_row_wins_a_tie(
    seed: int, n: int, dim: int, data: st.DataObject
) -> None:
    rows = np.random.default_rng(seed).integers(-2, 3, (n, dim)).astype(np.float32)  # many ties, exact products
    skip_self = data.draw(st.booleans())
    k = data.draw(st.integers(1, n - skip_self))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "_BLOCK", data.draw(st.sampled_from([1, 500, 1 << 24])))
        indices, products = nearest_neighbors(rows, rows, k, skip_self=skip_self)
    np.testing.assert_array_equal(indices, sorted_neighbours(rows, rows, k, skip_self))
    np.testing.assert_array_equal(products, np.take_along_axis(rows @ rows.T, indices, axis=1))


def test_similarities_come_best_first() -> None:
    rows = np.random.default_rng(0).standard_normal((500, 20)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    indices, cosines = nearest_neighbors(rows[:50], rows, 12)
    assert indices.shape == cosines.shape == (50, 12)
    assert (np.diff(cosines, axis=1) <= 0).all()
    np.testing.assert_array_equal(indices[:, 0], np.arange(50))
