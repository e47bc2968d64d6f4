"""Ranking metrics against values worked out by hand, and the laws that hold for any ranking."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation import (
    all_recall_at_k,
    as_labels,
    category_ratio,
    ndcg_at_k,
    recall_at_k,
    reciprocal_rank,
    success_ratio,
    weighted_ratio,
)

IDS = st.lists(st.sampled_from("abcdefgh"), max_size=12)
GOLD = st.sets(st.sampled_from("abcdefghxy"), min_size=1)
K = st.integers(1, 12)
AT_K = [recall_at_k, all_recall_at_k, ndcg_at_k, success_ratio]


def test_recall_is_the_share_of_gold_in_the_top_k():
    assert [recall_at_k("xaybz", {"a", "b", "c"}, k) for k in (1, 2, 4, 9)] == [0, 1 / 3, 2 / 3, 2 / 3]


def test_all_recall_needs_every_gold_id():
    assert [all_recall_at_k("xaybz", ["a", "b"], k) for k in (1, 3, 4)] == [0.0, 0.0, 1.0]


def test_reciprocal_rank_of_first_hit():
    assert reciprocal_rank("xyab", {"b", "a"}) == 1 / 3
    assert reciprocal_rank("xy", {"a"}) == 0.0
    assert reciprocal_rank([], {"a"}) == 0.0


def test_ndcg_by_hand():
    gain = 1 / log2(3) + 1 / log2(5)
    assert ndcg_at_k("xayb", {"a", "b", "c"}, 4) == pytest.approx(gain / (1 + 1 / log2(3) + 1 / log2(4)))
    assert ndcg_at_k("xayb", {"a", "b", "c"}, 2) == pytest.approx((1 / log2(3)) / (1 + 1 / log2(3)))
    assert ndcg_at_k("ba", {"a", "b"}, 10) == pytest.approx(1.0)


def test_an_id_that_comes_twice_takes_one_place():
    assert recall_at_k("aab", {"b"}, 2) == 1.0
    assert reciprocal_rank("xxa", {"a"}) == 1 / 2
    assert ndcg_at_k("aaab", {"a", "b"}, 2) == pytest.approx(1.0)
    assert success_ratio("aab", {"a", "b"}) == 1.0


def test_repeated_gold_counts_once():
    assert recall_at_k("ax", ["a", "a", "b"], 2) == 1 / 2
    assert success_ratio("axb", ["a", "b", "b"]) == 1 / 2


def test_success_ratio_takes_as_many_places_as_there_is_gold():
    assert success_ratio("axbyc", {"a", "b", "c"}) == 2 / 3
    assert success_ratio("axbyc", {"a", "b", "c"}, k=5) == 1.0


def test_category_ratio_is_coverage_and_never_above_one():
    category_of = {"a": "tea", "b": "rice", "c": "tea", "d": "tea", "e": "salt"}
    assert category_ratio("cde", {"a", "b"}, category_of) == 1 / 2  # top 2 = c, d: only tea
    assert category_ratio("cdb", {"a", "b"}, category_of, k=3) == 1.0
    assert category_ratio(["unknown", "e"], {"a", "b"}, category_of) == 0.0


def test_gold_without_a_category_is_named():
    with pytest.raises(ConfigurationError, match="gold ids q7"):
        category_ratio(["a"], ["q7"], {"a": "tea"})


def test_weighted_ratio_of_the_paper():
    assert weighted_ratio(0.3, 0.6) == pytest.approx((2 * 0.3 + 0.6) / 3)
    assert weighted_ratio(0.3, 0.6, weight=0) == 0.6
    with pytest.raises(ConfigurationError, match="-1"):
        weighted_ratio(0.3, 0.6, weight=-1)


def test_labels_stand_at_the_place_of_their_first_document():
    label_of = {"d1": "tea", "d2": "tea", "d3": "rice"}
    ranking = as_labels(["d0", "d2", "d1", "d2", "d3"], label_of)
    assert ranking == ["d0", "tea", "d1", "rice"]
    assert success_ratio(ranking, {"tea", "rice"}) == 1 / 2  # the second document of a topic still takes a place
    assert recall_at_k(ranking, {"tea", "rice"}, 4) == 1.0


@pytest.mark.parametrize("metric", AT_K)
@pytest.mark.parametrize("gold", [[], set(), ()])
def test_empty_gold_is_an_error_that_says_so(metric, gold):
    with pytest.raises(ConfigurationError, match="gold is empty"):
        metric("ab", gold, 1)


def test_empty_gold_is_an_error_without_k_too():
    with pytest.raises(ConfigurationError, match="gold is empty"):
        reciprocal_rank("ab", [])
    with pytest.raises(ConfigurationError, match="gold is empty"):
        category_ratio("ab", [], {})


def test_gold_given_as_one_string_is_refused():
    with pytest.raises(ConfigurationError, match=r"\['m01'\]"):
        recall_at_k(["m01"], "m01", 1)


@pytest.mark.parametrize("metric", AT_K)
@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(metric, k):
    with pytest.raises(ConfigurationError, match=str(k)):
        metric("ab", ["a"], k)


@pytest.mark.parametrize("metric", AT_K)
@given(ranking=IDS, gold=GOLD, k=K)
def test_metrics_stay_in_range_and_ignore_repetitions(metric, ranking, gold, k):
    value = metric(ranking, gold, k)
    assert 0 <= value <= 1 + 1e-12
    assert value == metric(list(dict.fromkeys(ranking)), sorted(gold) * 2, k)


@pytest.mark.parametrize("metric", [recall_at_k, all_recall_at_k, success_ratio])
@given(ranking=IDS, gold=GOLD, k=K)
def test_recall_never_falls_with_k(metric, ranking, gold, k):
    assert metric(ranking, gold, k) <= metric(ranking, gold, k + 1)


@pytest.mark.parametrize("metric", AT_K)
@given(ranking=IDS, gold=GOLD)
def test_gold_in_front_is_perfect(metric, ranking, gold):
    assert metric([*sorted(gold), *ranking], gold, len(gold)) == pytest.approx(1.0)
