"""`LayeredMapping` behaves as a copied dictionary does, and leaves what it copies as it was."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.text.layered_mapping import LayeredMapping, with_changes
from llama_index.ragkit.text.packed_words import PackedMapping

NAMES = st.sampled_from([f"n{i}" for i in range(40)])
WRITES = st.lists(st.dictionaries(NAMES, st.none() | st.integers(), max_size=4), max_size=8)


@given(st.dictionaries(NAMES, st.integers(), max_size=40), WRITES, st.booleans(), st.booleans())
def test_after_any_writes_it_equals_a_dictionary(start, writes, packed, forget):
    states = [PackedMapping.of_arrays(PackedMapping.to_arrays(start)) if packed else start]
    expected = [dict(start)]
    for changes in writes:
        states.append(with_changes(states[-1], changes, forget))
        expected.append({name: value for name, value in {**expected[-1], **changes}.items() if value is not None})
    for found, known in zip(states, expected, strict=True):  # earlier states too
        assert (len(found), set(found), found) == (len(known), set(known), known)
        assert all((name in found) == (name in known) and found.get(name) == known.get(name) for name in expected[0])
        assert dict(found.items()) == known
        assert sorted(found.values()) == sorted(known.values())
    assert [pickle.loads(pickle.dumps(found)) for found in states[1:]] == expected[1:]


def test_a_few_changes_of_many_values_copy_none_of_them():
    class Counted(dict):
        def items(self):
            raise AssertionError("all values were read")

        __iter__ = copy = items

    many = Counted((f"n{i}", i) for i in range(1000))
    found = with_changes(with_changes(many, {"n1": -1}, forget=False), {"n2": None, "new": 0}, forget=False)
    assert (found["n1"], found["n3"], found["new"], len(found), "n2" in found) == (-1, 3, 0, 1000, False)


def test_what_is_removed_or_replaced_is_forgotten():
    values = {f"n{i}": [f"text {i}"] for i in range(100)}
    found = with_changes(values, {"n1": None, "n2": ["new"]})
    del found["n3"]
    assert {"text 1", "text 2", "text 3"}.isdisjoint(str(vars(found)).split("'"))
    late = pickle.dumps(with_changes(values, {"n1": None}, forget=False))
    assert b"text 1'" not in late
    assert b"text 2" in late


def test_unknown_names_are_refused():
    found = LayeredMapping.over({"loom": 1}, forget=False)
    del found["loom"]
    for use in (found.__getitem__, found.__delitem__):
        with pytest.raises(KeyError):
            use("loom")
