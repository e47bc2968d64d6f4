"""Exact cosines and unit rows: of two vectors alone, whatever their length."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.vectors.kernels import (
    cosines,
    error_bound,
    opaque_rows,
    pair_cosines,
    squared_norms,
    unit_rows,
)


def test_a_score_does_not_depend_on_the_other_rows_or_the_place_of_the_row():
    rng = np.random.default_rng(2)
    for dim in (1, 2, 7, 8, 129, 384):
        rows = rng.normal(size=(700, dim)).astype(np.float32)
        query = rng.normal(size=dim).astype(np.float32)
        together = cosines(rows, query)
        alone = np.concatenate([cosines(row[np.newaxis], query) for row in rows])
        shifted = cosines(np.concatenate([rng.normal(size=(3, dim)).astype(np.float32), rows]), query)[3:]
        strided = cosines(np.asfortranarray(rows), query)
        assert together.tobytes() == alone.tobytes() == shifted.tobytes() == strided.tobytes()


def test_scores_stay_within_one():
    rows = np.random.default_rng(4).normal(size=(2000, 3)).astype(np.float32)
    scores = cosines(rows, rows[0])
    assert scores.max() == 1.0
    assert np.abs(cosines(rows * np.float32(3), rows[0] / np.float32(7))).max() <= 1.0


def test_the_cosines_of_pairs_are_those_of_their_vectors_to_the_last_bit():
    rng = np.random.default_rng(3)
    for dim in (1, 3, 8, 129):
        one, other = rng.normal(size=(2, 600, dim)).astype(np.float32)
        one[5], other[5:7] = 0, 0
        found = pair_cosines(one, other)
        assert (
            found.tobytes() == np.concatenate([cosines(a[None], b) for a, b in zip(one, other, strict=True)]).tobytes()
        )
        assert found.tobytes() == pair_cosines(np.asfortranarray(other), one).tobytes()
        assert found[5] == found[6] == 0
        assert (pair_cosines(other[7:], other[7:]) == 1).all()
    assert pair_cosines(one[:0], other[:0]).shape == (0,)


def test_cosines_of_half_precision_are_those_of_the_same_numbers_in_full():
    rows = np.random.default_rng(4).normal(size=(300, 24)).astype(np.float16)
    wide = rows.astype(np.float32)
    assert cosines(rows, wide[3]).tobytes() == cosines(wide, wide[3]).tobytes()
    assert unit_rows(rows).tobytes() == unit_rows(wide).tobytes()


def test_unit_rows_have_the_length_one_and_the_direction_of_extreme_rows():
    rows = unit_rows(np.array([[3e38, 0], [0, 1e-40], [0, 0], [3, -4]], np.float32))
    np.testing.assert_array_equal(rows, np.float32([[1, 0], [0, 1], [0, 0], [0.6, -0.8]]))
    many = np.random.default_rng(5).normal(size=(700, 7)) * 10.0 ** np.arange(-35, 35, 0.1)[:, None]
    many = many.astype(np.float32)
    np.testing.assert_allclose(squared_norms(unit_rows(many)), 1, atol=7 * 2.0**-23)
    np.testing.assert_allclose(pair_cosines(many, unit_rows(many)), 1, atol=1e-12)
    assert unit_rows(many).tobytes() == unit_rows(np.asfortranarray(many)).tobytes()


@given(st.integers(0, 2**32), st.integers(1, 300), st.booleans())
def test_products_of_unit_rows_are_within_the_error_bound(seed, dim, positive):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(2, 8, dim)) * 10.0 ** rng.integers(-20, 20, size=(2, 8, 1))
    one, other = (np.abs(vectors) if positive else vectors).astype(np.float32)  # positive: no errors cancel
    products = unit_rows(one) @ unit_rows(other).T
    exact = np.array([cosines(one, row) for row in other]).T
    assert np.abs(products - exact).max() <= error_bound(dim)


def test_opaque_rows_are_equal_and_sorted_as_their_bytes():
    rows = np.random.default_rng(6).integers(-1, 2, (50, 3)).astype(np.float32)
    opaque = opaque_rows(rows)
    texts = [row.tobytes() for row in rows]
    assert len(np.unique(opaque)) == len(set(texts))
    assert [texts[i] for i in np.argsort(opaque, kind="stable")] == sorted(texts)
    assert (opaque_rows(np.asfortranarray(rows)) == opaque).all()
