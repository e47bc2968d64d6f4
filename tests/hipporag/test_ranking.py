"""The default ranking: links, seeds and the joined score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llama_index.hipporag.ranking import FLOOR, combine, passage_seeds, question_links
from llama_index.ragkit.errors import ConfigurationError

KNOWN = {
    "a day of fury",
    "fury",
    "day",
    "marjorie flack",
    "later",
    "the who",
    "who",
    "einstein",
    "san jose",
    "s",
    "東京",
}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which film came later, A Day Of Fury or another?", ["a day of fury"]),  # the longest; "later" has no capital
        ("Who is Marjorie Flack's sibling?", ["marjorie flack"]),  # found in the genitive
        ("Einstein was born in San Jose?", ["einstein", "san jose"]),  # a first word that is no function word
        ("when did einstein see the day?", ["einstein", "day"]),  # no capitals: any word but function words
        ("who was it?", []),
        ("Who sang for The Who in 1970?", ["the who"]),
        ("東京はどこ？", ["東京"]),
        ("", []),
    ],
)
def test_links(question, expected):
    found = question_links(question, KNOWN)
    assert [phrase for phrase, _, _ in found] == expected
    for phrase, start, end in found:
        assert question[start:end].casefold() == phrase


@given(st.text(max_size=80))
def test_links_do_not_overlap(question):
    class Everything:
        def __contains__(self, phrase):
            return len(phrase) % 3 == 0

    ends = 0
    for _, start, end in question_links(question, Everything()):
        assert ends <= start < end
        ends = end


def test_legacy_phrases_are_linked_by_their_own_rule():
    assert question_links("Is Göttingen far?", {"g ttingen"}, "legacy") == [("g ttingen", 3, 12)]


@given(hnp.arrays(np.float64, st.integers(1, 50), elements=st.floats(-1, 1)), st.integers(1, 20))
def test_seeds_are_the_nearest_passages(cosines, count):
    rows, weights = passage_seeds(cosines, count)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights > 0).all()
    assert (np.diff(rows) > 0).all()
    outside = np.setdiff1d(np.arange(len(cosines)), rows)
    assert not len(outside) or cosines[outside].max() <= cosines[rows].min() + 1e-9


def test_no_passages_no_seeds():
    rows, weights = passage_seeds(np.empty(0))
    assert len(rows) == len(weights) == 0


@given(
    hnp.arrays(np.float64, 6, elements=st.floats(-1, 1)),
    hnp.arrays(np.float64, 6, elements=st.floats(0, 1)),
    st.floats(0, 3),
)
def test_scores_are_shares(cosines, walked, power):
    scores = combine(cosines, walked, power)
    assert ((scores >= 0) & (scores <= 1)).all()
    np.testing.assert_allclose(combine(cosines, walked * 1e-5, power), scores, rtol=1e-6)  # whatever the scale


def test_without_a_walk_the_cosine_decides():
    cosines = np.array([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(combine(cosines, np.zeros(3)), [0, 0.5, 1])
    np.testing.assert_allclose(combine(cosines, np.array([1.0, 0.1, 0.0]), power=0), [0, 0.5, 1])


def test_the_formula():
    found = combine(np.array([0.6, 0.2]), np.array([2.0, 0.2]), power=0.5)
    np.testing.assert_allclose(found, [0.8, 0.6 * np.sqrt((0.1 + FLOOR) / (1 + FLOOR))])
    assert combine(np.empty(0), np.empty(0)).shape == (0,)


@pytest.mark.parametrize(
    "call",
    [
        lambda: combine(np.ones(1), np.ones(1), -0.1),
        lambda: combine(np.ones(1), np.ones(1), np.nan),
        lambda: passage_seeds(np.ones(1), 0),
        lambda: passage_seeds(np.ones(1), 5, 0),
    ],
)
def test_parameters_are_checked(call):
    with pytest.raises(ConfigurationError):
        call()
