"""Numbering: immutable to who holds it, although extensions share its memory."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.hipporag.state import Numbering, PackedFacts
from llama_index.ragkit.text.packed_words import PackedPhrases, PackedWords

keys = st.lists(st.sampled_from("abcdefgh"), max_size=6)
steps = st.lists(st.tuples(st.sampled_from(["extend", "drop"]), keys, st.integers(0, 9)), max_size=8)


def slow(known: list[str], more: list[str]) -> list[str]:
    return list(dict.fromkeys([*known, *more]))


def same(numbering: Numbering[str], known: list[str]) -> None:
    assert list(numbering) == known
    assert dict(numbering) == {key: number for number, key in enumerate(known)}
    assert [numbering.at(number) for number in range(len(known))] == known
    assert all(key not in numbering and numbering.get(key, -1) == -1 for key in set("abcdefgh") - set(known))


packed = PackedPhrases.of_arrays(PackedPhrases.to_arrays(["c", "a"]))


@given(
    steps,
    st.sampled_from(
        [Numbering[str](), Numbering.of_packed(PackedWords(["c", "a"])), Numbering.of_packed(packed, packed.find)]
    ),
)
def test_every_version_stays_what_it_was_whatever_is_made_of_it(
    steps: list[tuple[str, list[str], int]], first: Numbering[str]
):
    made: list[tuple[Numbering[str], list[str]]] = [(first, list(first))]
    for kind, some, of in steps:
        numbering, known = made[of % len(made)]
        if kind == "extend":
            made.append((numbering.extended(some), slow(known, some)))
        else:
            gone = [number for number, key in enumerate(known) if key in some]
            made.append((numbering.without(np.array(gone, np.int64)), [key for key in known if key not in some]))
        for each, expected in made:
            same(each, expected)


def test_an_extension_copies_nothing_and_a_second_one_does():
    first = Numbering(["a", "b"])
    second = first.extended(["c"])
    other = first.extended(["d"])
    assert second._own is first._own
    assert other._own is not first._own
    assert (list(first), list(second), list(other)) == (["a", "b"], ["a", "b", "c"], ["a", "b", "d"])


@pytest.mark.parametrize("number", [-1, 2])
def test_a_number_that_nothing_has_is_an_error(number: int):
    numbering: Numbering[Any] = Numbering(["a", "b"])
    numbering.extended(["c"])
    with pytest.raises(IndexError, match="0 to 1"):
        numbering.at(number)


def test_packed_facts_are_those_that_were_packed():
    phrases = ["a", "b", "c"]
    facts = [("a", "knows", "b"), ("c", "", "a"), ("b", "knows", "b")]
    heads, tails = (np.array([phrases.index(fact[end]) for fact in facts], np.int64) for end in (0, 2))
    stored = PackedFacts.of_arrays(PackedFacts.to_arrays(facts), phrases, heads, tails)
    assert list(stored) == [stored[i] for i in range(3)] == stored[:] == facts
