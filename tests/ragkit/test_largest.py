"""The places of the largest values are those of a full sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.vectors.kernels import largest

FEW_VALUES = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=30)


@given(FEW_VALUES | st.lists(st.floats(allow_nan=False), min_size=1, max_size=30), st.data())
def test_the_largest_values_are_those_of_a_sort(values, data):
    count = data.draw(st.integers(0, len(values)))
    places = largest(np.array(values), count).tolist()
    assert len(set(places)) == count
    assert sorted(values[place] for place in places) == sorted(values)[len(values) - count :]


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([1, 2, 30, 10_000]))
def test_the_largest_of_many_are_those_of_a_sort(seed, count, different):
    """Of values that are mostly equal, and of values that all differ."""
    values = np.random.default_rng(seed).integers(different, size=2_000) / 7
    places = largest(values, count)
    assert len(set(places.tolist())) == count
    np.testing.assert_array_equal(np.sort(values[places]), np.sort(values)[-count:])
