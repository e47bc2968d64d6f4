"""The places of the largest values are those of a full sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.vectors.largest import largest

FEW_VALUES = st.lists(st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0]), min_size=1, max_size=30)


@given(FEW_VALUES | st.lists(st.floats(allow_nan=False), min_size=1, max_size=30), st.data())
def test_the_largest_values_are_those_of_a_sort(values, data):
    count = data.draw(st.integers(0, len(values)))
    places = largest(np.array(values), count).tolist()
    assert len(set(places)) == count
    assert sorted(values[place] for place in places) == sorted(values)[len(values) - count :]
