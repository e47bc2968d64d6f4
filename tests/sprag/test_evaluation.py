"""Coverage of evidence, page recall, and contexts of equal length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.errors import ConfigurationError
from llama_index.sprag.evaluation import evidence_coverage, page_recall, within_tokens, word_coverage


def test_words_count_as_often_as_the_text_has_them_whatever_their_case_and_order():
    assert word_coverage("a b b c", ["B, a."]) == 0.5
    assert word_coverage("a b b c", ["b", "c b a a"]) == 1.0
    assert word_coverage("Net 1,577", ["net 1,577"]) == 1.0
    assert word_coverage("a", []) == 0.0


def test_scripts_without_spaces_are_counted_by_character():
    assert word_coverage("东京大学", ["在东京"]) == 0.5


def test_words_from_elsewhere_do_not_cover_the_evidence():
    evidence = [("d#1", "cash flow"), ("d#2", "balance sheet total")]
    assert evidence_coverage(evidence, [("d#1", "cash flow"), ("d#3", "balance sheet total")]) == pytest.approx(2 / 5)
    assert evidence_coverage(evidence, [("d#2", "sheet"), ("d#2", "total")]) == pytest.approx(2 / 5)


def test_evidence_that_is_given_twice_counts_once():
    once = [("d#1", "cash flow statement")]
    twice = [*once, ("d#1", "flow statement")]
    context = [("d#1", "flow")]
    assert evidence_coverage(once, context) == evidence_coverage(twice, context)


@given(st.lists(st.sampled_from("abcde"), min_size=1), st.lists(st.sampled_from("abcde")), st.sampled_from("abcde"))
def test_more_context_never_covers_less(text, context, further):
    before = word_coverage(" ".join(text), context)
    assert 0 <= before <= word_coverage(" ".join(text), [*context, further]) <= 1
    assert word_coverage(" ".join(text), text) == 1


def test_page_recall():
    assert page_recall(["a", "b", "a"], ["a", "c"]) == 0.5
    assert page_recall([], ["a"]) == 0.0


def test_a_context_passes_over_what_does_not_fit():
    assert within_tokens([10, 100, 20, 0], 30) == [0, 2, 3]
    assert within_tokens([1], 0) == []


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ConfigurationError, match="without words"):
        word_coverage(" -- ", ["a"])
    with pytest.raises(ConfigurationError, match="no words"):
        evidence_coverage([("p", "...")], [])
    with pytest.raises(ConfigurationError, match="gold"):
        page_recall(["a"], [])
    with pytest.raises(ConfigurationError, match="budget"):
        within_tokens([1], -1)
