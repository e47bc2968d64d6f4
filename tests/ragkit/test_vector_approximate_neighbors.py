"""Approximate neighbours: exact where every cell is looked at, and nearly so where vectors have some structure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.ragkit.vectors.kernels import unit_rows
from llama_index.ragkit.vectors.neighbors import PROBES, approximate_neighbors, best_of, nearest_neighbors


def clustered(groups: int, size: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = np.repeat(random.standard_normal((groups, 24)), size, axis=0)
    return unit_rows((centres + 0.5 * random.standard_normal(centres.shape)).astype(np.float32))


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.integers(2, 90), st.integers(1, 4), st.integers(1, 12), st.data())
def test_with_all_cells_they_are_the_exact_ones(seed: int, n: int, dim: int, cells: int, data: st.DataObject) -> None:
    rows = np.random.default_rng(seed).integers(-2, 3, (n, dim)).astype(np.float32)  # ties, equal rows, zeros
    k = data.draw(st.integers(1, n - 1))
    found = approximate_neighbors(rows, k, cells=cells, probes=cells)
    for ours, exact in zip(found, nearest_neighbors(rows, rows, k, skip_self=True), strict=True):
        np.testing.assert_array_equal(ours, exact)


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.integers(2, 90), st.integers(1, 12), st.data())
def test_every_row_has_k_others_and_their_products(seed: int, n: int, cells: int, data: st.DataObject) -> None:
    rows = np.random.default_rng(seed).standard_normal((n, 3)).astype(np.float32)
    k = data.draw(st.integers(1, n - 1))
    indices, products = approximate_neighbors(rows, k, cells=cells, probes=1)
    for i, near in enumerate(indices.tolist()):
        assert len({*near, i}) == k + 1
    np.testing.assert_allclose(products, np.take_along_axis(rows @ rows.T, indices, axis=1), rtol=1e-5, atol=1e-6)
    assert (np.diff(products, axis=1) <= 0).all()


def test_nearly_all_neighbours_of_vectors_in_groups_are_found() -> None:
    rows = clustered(200, 30)
    exact, _ = nearest_neighbors(rows, rows, 20, skip_self=True)
    recall = {}
    for probes in (1, 4, PROBES):
        found, _ = approximate_neighbors(rows, 20, probes=probes)
        recall[probes] = np.mean([len(np.intersect1d(*each)) / 20 for each in zip(exact, found, strict=True)])
    assert recall[1] < recall[4] < recall[PROBES]
    assert recall[PROBES] > 0.98


def test_the_same_rows_have_the_same_neighbours() -> None:
    rows = clustered(50, 20)
    for one, other in zip(approximate_neighbors(rows, 5), approximate_neighbors(rows.copy(), 5), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("value", [0.0, -1.5, -np.inf, 1e-30])
def test_the_best_are_given_with_their_values(value: float) -> None:
    values = np.array([[value, 2.0, value, -3.0]], np.float32)
    ids, found = best_of(values, np.array([7, 1, 5, 0]), 3)
    wanted = sorted(zip(values[0].tolist(), [7, 1, 5, 0], strict=True), key=lambda pair: (-pair[0], pair[1]))[:3]
    assert list(zip(found[0].tolist(), ids[0].tolist(), strict=True)) == wanted
