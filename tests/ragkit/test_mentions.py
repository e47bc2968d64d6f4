"""The known phrases that a text mentions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.text.known_names import mentions

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
    found = mentions(question, KNOWN)
    assert [phrase for phrase, _, _ in found] == expected
    for phrase, start, end in found:
        assert question[start:end].casefold() == phrase


@given(st.text(max_size=80))
def test_links_do_not_overlap(question):
    class Everything:
        def __contains__(self, phrase):
            return len(phrase) % 3 == 0

    ends = 0
    for _, start, end in mentions(question, Everything()):
        assert ends <= start < end
        ends = end


def test_phrases_may_be_known_in_another_form():
    assert mentions("Is Göttingen far?", {"GÖTTINGEN"}, str.upper) == [("GÖTTINGEN", 3, 12)]
