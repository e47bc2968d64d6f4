"""The default ranking: links, seeds and the joined score."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llama_index.hipporag.search.graph_search import walk_trust
from llama_index.hipporag.search.query_seeds import Link, QuerySeeds
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.trust import FLOOR, combine, gain, lead, passage_seeds, rarity, trust


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


shares = hnp.arrays(np.float64, 6, elements=st.floats(0, 1)).map(lambda walked: walked / max(walked.max(), 1e-300))
near = hnp.arrays(np.float64, 6, elements=st.floats(-5, 5))


@given(near, shares, st.floats(0, 3))
def test_the_walk_only_takes_away_and_more_of_it_never_does(nearness, walked, weight):
    scores = combine(nearness, walked, weight)
    assert (scores <= nearness + 1e-12).all()
    assert (combine(nearness, np.minimum(walked * 2, 1), weight) >= scores - 1e-12).all()


@given(near, shares)
def test_trust_is_a_share(nearness, walked):
    assert 0 <= trust(nearness, walked) <= 1


def test_a_walk_that_does_not_reach_the_nearest_passage_is_not_trusted():
    nearness = np.array([3.0, 1.0, 0.0])
    assert trust(nearness, np.array([0.0, 1.0, 0.5])) == 0
    assert trust(nearness, np.zeros(3)) == 0
    far = np.arange(8, 0, -1.0)
    some = [trust(far, np.array([share, 1.0, *[0.9] * 6])) for share in (1e-4, 1e-2, 0.5)]
    assert some == sorted(some)
    # Of several nearest passages, the one that the walk reaches best tells.
    assert trust(np.array([3.0, 3.0, 0.0]), np.array([0.0, 1.0, 0.0])) == 1


def test_a_diffuse_walk_is_trusted_less():
    nearness = np.arange(8, 0, -1.0)
    concentrated, diffuse = np.array([1, 0.01, 0, 0, 0, 0, 0, 0]), np.full(8, 1.0)
    assert trust(nearness, concentrated) == pytest.approx(np.exp(-3.5 * 0.01 / 5))
    assert trust(nearness, diffuse) == pytest.approx(np.exp(-3.5))
    assert trust(np.ones(1), np.ones(1)) == 1


def agreement_by_definition(nearness, walked):
    best = sorted(range(len(nearness)), key=lambda i: -nearness[i])[:100]
    r = np.corrcoef([nearness[i] for i in best], [np.log((walked[i] + FLOOR) / (1 + FLOOR)) for i in best])[0, 1]
    return min(1.0, max(0.0, (r - 0.4) / 0.2))


@given(st.integers(20, 150), st.floats(0, 2), st.integers(0, 10_000), st.floats(0.1, 5), st.floats(-3, 3))
def test_a_walk_that_disagrees_with_nearness_is_trusted_less(count, noise, seed, stretch, shift):
    random = np.random.default_rng(seed)
    nearness = random.normal(size=count)
    walked = np.exp(nearness + noise * random.normal(size=count))
    walked /= walked.max()
    others = np.sort(walked)[-6:-1].mean()
    without = np.exp(-3.5 * others) * walked[nearness.argmax()] ** 0.45
    wanted = without * agreement_by_definition(nearness, walked)
    assert trust(nearness, walked) == pytest.approx(wanted, abs=1e-9)
    order = random.permutation(count)
    assert trust(stretch * nearness[order] + shift, walked[order]) == pytest.approx(wanted, abs=1e-6)


def test_where_either_says_nothing_there_is_no_disagreement():
    walked = np.array([1.0, *[0.01] * 30])
    assert trust(np.zeros(31), walked) == pytest.approx(np.exp(-0.035))
    assert trust(np.arange(31.0), np.ones(31)) == pytest.approx(np.exp(-3.5))
    opposed = np.arange(40.0)
    assert trust(opposed, np.exp(-opposed)) == 0
    assert trust(opposed[:19], np.exp(-opposed[:19])) > 0


@given(near, shares, st.floats(0, 1))
def test_the_further_the_nearest_passage_is_ahead_the_more_a_walk_past_it_is_distrusted(nearness, walked, name):
    found = walk_trust(nearness, walked, name)
    assert 0 <= found <= name
    ahead = nearness.copy()
    ahead[nearness.argmax()] += 1
    if (nearness < nearness.max()).sum() == len(nearness) - 1:  # of several nearest ones, the best reached tells
        assert walk_trust(ahead, walked, name) <= found + 1e-12
    assert walk_trust(nearness, np.ones(6), 1.0) == pytest.approx(np.exp(-3.5))


def test_the_lead_is_over_the_sixth_passage_or_the_last():
    assert lead(np.array([1.0, 5, 2, 2, 2, 2, -9])) == 4
    assert lead(np.array([1.0, 5])) == 4
    assert lead(np.ones(1)) == lead(np.empty(0)) == 0


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.integers(1, 10**6))
def test_a_name_whose_words_are_in_many_passages_is_less_rare(one, other, count):
    few, many = sorted((one, other))
    assert 0 <= rarity(many, count) <= rarity(few, count) <= 1
    assert rarity(many, count) <= rarity(many, 2 * count)
    assert rarity(1, count) == rarity(many, 0) == 1


def test_the_rarest_name_of_a_question_counts_by_its_words_or_its_passages():
    links = [Link("Mistress", "mistress", 0, 1.0, 1.0), Link("Andrew", "andrew", 1, 1.0, 1 / 5)]
    seeds = QuerySeeds(links, {0: 1.0, 1: 0.2})
    assert seeds.with_words({"Mistress": 9.0, "Andrew": 4.0}, 400).rarity == rarity(5, 400)
    assert seeds.with_words({"Mistress": 2.0, "Andrew": 4.0}, 400).rarity == rarity(2, 400)
    assert seeds.with_words({"Mistress": 0.0, "Andrew": 0.0}, 400).rarity == rarity(1, 400)
    assert seeds.with_words({"Mistress": 0.0, "Andrew": 0.0}, 0).rarity == 1


def test_the_formula():
    found = combine(np.array([0.6, 0.2]), np.array([1.0, 0.1]), weight=0.5)
    np.testing.assert_allclose(found, [0.6, 0.2 + 0.5 * np.log((0.1 + FLOOR) / (1 + FLOOR))])
    assert combine(np.empty(0), np.empty(0), weight=0.2).shape == (0,)
    np.testing.assert_allclose(combine(np.array([2.0, -np.inf]), np.array([0.0, 1.0]), weight=0), [2.0, -np.inf])


@given(near, shares, st.floats(0.01, 3))
def test_the_gain_is_the_derivative_of_the_score(nearness, walked, weight):
    step = 1e-6
    change = combine(nearness, walked * (1 + step), weight) - combine(nearness, walked, weight)
    np.testing.assert_allclose(gain(walked, weight) * step, change, atol=1e-9)


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
