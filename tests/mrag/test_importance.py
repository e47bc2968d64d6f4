"""Importance scores: the closed form against all pairs, and sums that follow every change."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mrag.published import importance_by_pairs

from llama_index.mrag.heads.importance import HeadSums, importance


def vectors(n: int, heads: int = 3, dim: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    scale = rng.uniform(0.1, 30, size=(1, heads, 1))
    return (rng.normal(size=(n, heads, dim)) * scale + rng.normal(size=(1, heads, dim))).astype(np.float32)


def sums_of(rows: np.ndarray) -> HeadSums:
    return HeadSums.empty(*rows.shape[1:]).add(rows)


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_the_closed_form_is_the_mean_over_all_pairs(n):
    rows = vectors(n)
    np.testing.assert_allclose(importance(sums_of(rows)), importance_by_pairs(rows), rtol=1e-9, atol=1e-9)


def test_zero_vectors_have_no_direction():
    rows = vectors(7)
    rows[3] = 0
    rows[5, 1] = 0
    np.testing.assert_allclose(importance(sums_of(rows)), importance_by_pairs(rows), rtol=1e-9)


def test_by_hand():
    rows = np.array([[[2.0, 0.0]], [[0.0, 4.0]]], dtype=np.float32)  # mean length 3, mean distance (0+1+1+0)/4
    assert importance(sums_of(rows)).tolist() == [1.5]


def test_nothing_to_tell_heads_apart_is_zero():
    assert importance(HeadSums.empty(2, 3)).tolist() == [0, 0]
    assert importance(sums_of(vectors(1))).tolist() == [0, 0, 0]
    assert importance(sums_of(np.repeat(vectors(1), 5, axis=0))).tolist() == [0, 0, 0]


@settings(max_examples=40)
@given(st.data())
def test_any_way_of_adding_and_removing_gives_the_sums_of_what_is_left(data):
    rows = vectors(12, seed=data.draw(st.integers(0, 99)))
    here: set[int] = set()
    sums = HeadSums.empty(3, 4)
    for step in data.draw(st.lists(st.sets(st.integers(0, 11), min_size=1), max_size=6)):
        gone, come = sorted(step & here), sorted(step - here)
        sums = sums.remove(rows[gone]).add(rows[come])
        here ^= step
    fresh = sums_of(rows[sorted(here)]) if here else HeadSums.empty(3, 4)
    assert sums.count == len(here)
    np.testing.assert_allclose(sums.norms, fresh.norms, atol=1e-10)
    np.testing.assert_allclose(sums.units, fresh.units, atol=1e-12)
    np.testing.assert_allclose(importance(sums), importance(fresh), atol=1e-9)


@pytest.mark.parametrize("rows", [vectors(5), vectors(1, heads=1), vectors(3)[:0]])
def test_sums_come_back_from_their_record_to_the_last_bit(rows):
    sums = sums_of(rows)
    again = HeadSums.from_record(json.loads(json.dumps(sums.to_record())))
    assert again.count == sums.count
    np.testing.assert_array_equal(again.norms, sums.norms)
    np.testing.assert_array_equal(again.units, sums.units)
    assert again.add(vectors(2, heads=rows.shape[1])).count == sums.count + 2
