"""How far the cosines of a question can be trusted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llama_index.ragkit.text.lexical_index import NOT_KNOWN, FullScore
from llama_index.ragkit.vectors.question_scores import Nearness, hybrid_nearness
from llama_index.ragkit.vectors.trust import cosine_trust, lexical_share, word_evidence

ROWS = st.integers(1, 140)
SCORES = st.integers(0, 40).map(float)


def by_pairs(cosines, lexical):
    """Compares every pair."""
    worded = sorted((s for s in lexical if s > 0), reverse=True)
    if len(worded) < 23:
        return 1.0
    first = [c for c, s in zip(cosines, lexical, strict=True) if s >= worded[2]]
    last = worded[99] if len(worded) >= 100 else 0.0
    others = [c for c, s in zip(cosines, lexical, strict=True) if last < s < worded[2]]
    if len(others) < 20:
        return 1.0
    d = sum(int(a > b) - int(a < b) for a in first for b in others) / (len(first) * len(others))
    stands_out = min(1.0, max(0.0, (1 - worded[9] / worded[0] - 0.2) / 0.3))
    return 1 - stands_out * (1 - min(1.0, 0.4 + max(0.0, d)))


@given(st.data(), ROWS)
def test_all_pairs_are_compared(data, n):
    cosines = data.draw(hnp.arrays(np.float64, n, elements=st.integers(-9, 9).map(float)))
    lexical = data.draw(hnp.arrays(np.float64, n, elements=SCORES))
    trust = cosine_trust(cosines, lexical)
    assert trust == pytest.approx(by_pairs(cosines, lexical))
    order = np.random.default_rng(n).permutation(n)
    assert cosine_trust(cosines[order], lexical[order]) == trust
    assert cosine_trust(np.exp(cosines / 3), 7 * lexical) == pytest.approx(trust)


def test_what_is_beyond_the_hundred_best_by_words_has_no_influence():
    random = np.random.default_rng(0)
    cosines, lexical = random.random(400), random.random(400)
    kept = np.argsort(-lexical)[:100]
    near = np.union1d(kept, np.argsort(-cosines)[:100])  # what an index that is served from stores reads
    for rows in (near, kept):
        assert cosine_trust(cosines[rows], lexical[rows]) == cosine_trust(cosines, lexical)
    cosines[np.setdiff1d(np.arange(400), kept)] = 5.0
    assert cosine_trust(cosines, lexical) == pytest.approx(by_pairs(cosines, lexical))


def test_words_have_more_weight_where_the_model_does_not_know_the_language():
    random = np.random.default_rng(1)
    lexical = random.gamma(0.5, size=300)
    noise = random.random(300)
    known = noise + 3 * (lexical >= np.sort(lexical)[-20])
    assert cosine_trust(known, lexical) == 1
    assert lexical_share(known, lexical, 0.5) == 0.5
    noise[lexical >= np.sort(lexical)[-3]] = -1.0  # the three best by words are the farthest of all
    assert cosine_trust(noise, lexical) == 0.4
    assert lexical_share(noise, lexical, 0.5) == pytest.approx(0.5 / 0.7)
    # So that the words find what cosines would hide.
    odd = noise.copy()
    odd[int(lexical.argmin())] = 9.0
    assert int(np.argmax(hybrid_nearness(odd, lexical, 0.5))) == int(lexical.argmax())


@given(st.permutations(2.0 ** np.arange(60.0)).map(np.array), st.floats(0, 1))
def test_the_share_is_at_least_the_weight_and_its_ends_stay(lexical, weight):
    cosines = -lexical
    assert cosine_trust(cosines, lexical) == 0.4
    share = lexical_share(cosines, lexical, weight)
    assert weight - 1e-12 <= share <= 1
    assert (lexical_share(cosines, lexical, 0), lexical_share(cosines, lexical, 1)) == (0, 1)
    assert Nearness.of(cosines, lexical, weight).lexical_weight == share


@pytest.mark.parametrize(("held", "trust"), [(0.05, 1.0), (0.1, 1.0), (0.2, 0.7), (0.3, 0.4), (1.5, 0.4)])
def test_words_of_which_the_best_chunk_has_few_show_nothing(held, trust):
    lexical = np.append(np.arange(1.0, 40.0), 80.0)
    assert cosine_trust(-lexical, lexical, 80 / held) == pytest.approx(trust)
    share = lexical_share(-lexical, lexical, 0.5, FullScore(80 / held))
    evidence = word_evidence(-lexical, lexical, FullScore(80 / held))
    counted = evidence if evidence > 0 else evidence * (trust - 0.4) / 0.6  # cosines are not trusted with 0.4
    assert share / (1 - share) == pytest.approx(np.exp(counted) / trust)
    assert Nearness.of(-lexical, lexical, 0.5, full_score=FullScore(80 / held)).lexical_weight == share


@pytest.mark.parametrize(("tenth", "trust"), [(10.0, 0.4), (30.0, 0.4), (39.0, 0.7), (48.0, 1.0), (59.0, 1.0)])
def test_words_that_many_chunks_have_as_much_of_show_nothing(tenth, trust):
    lexical = np.concatenate([np.linspace(1, 9, 30), np.full(7, tenth), [60.0] * 3])
    assert cosine_trust(-lexical, lexical) == pytest.approx(trust)


@given(st.data(), ROWS, st.floats(0.5, 99), st.floats(0, 999))
def test_evidence_is_that_of_the_hundred_best_by_words(data, n, full_score, length):
    cosines = data.draw(hnp.arrays(np.float64, n, elements=st.integers(-9, 9).map(float)))
    lexical = data.draw(hnp.arrays(np.float64, n, elements=SCORES))
    worded = sorted((s for s in lexical if s > 0), reverse=True)
    last = worded[99] if len(worded) >= 100 else 0.0
    seen = [(c, s) for c, s in zip(cosines, lexical, strict=True) if s > last]
    wanted = 0.0
    if len(seen) >= 20:
        near, words = (np.array(column) for column in zip(*seen, strict=True))
        z = (near.max() - near.mean()) / near.std() if near.std() > 0 else 0.0
        cv = max(0.05, words.std() / words.mean())
        by_length = 0.8 * np.log(np.clip(length, 100, 200) / 100)
        wanted = np.clip(1.8 + 1.4 * words.max() / full_score + 1.4 * np.log(cv) - 0.6 * z + by_length, -3, 3)
    evidence = word_evidence(cosines, lexical, FullScore(full_score, length))
    assert evidence == pytest.approx(wanted)
    order = np.random.default_rng(n).permutation(n)
    assert word_evidence(
        0.7 + 0.1 * cosines[order], 7 * lexical[order], FullScore(7 * full_score, length)
    ) == pytest.approx(evidence)


def test_evidence_from_stores_is_that_of_all_chunks():
    random = np.random.default_rng(0)
    cosines, lexical, full = random.random(400), random.random(400), FullScore(2.0, 150.0)
    near = np.union1d(np.argsort(-lexical)[:100], np.argsort(-cosines)[:100])
    assert word_evidence(cosines[near], lexical[near], full) == pytest.approx(word_evidence(cosines, lexical, full))


def test_words_and_cosines_gain_weight_where_they_stand_out():
    random = np.random.default_rng(1)
    alike, sharp = 5 + 0.1 * random.random(200), random.gamma(0.5, size=200)
    noise = random.random(200)
    found = noise + (np.arange(200) == int(np.argmax(np.where(sharp > np.median(sharp), alike, 0))))
    plain, clear = (
        [lexical_share(cosines, words, 0.5, FullScore(6.0)) for words in (alike, sharp)] for cosines in (noise, found)
    )
    assert clear[0] < plain[0] < 0.5 < plain[1]
    assert clear[1] < plain[1]


def test_words_count_more_where_chunks_are_long():
    cosines, lexical = np.random.default_rng(2).random((2, 200))
    shares = [lexical_share(cosines, lexical, 0.5, FullScore(2.0, n)) for n in (0.0, 20.0, 100.0, 150.0, 200.0, 900.0)]
    assert shares[0] == shares[1] == shares[2] < shares[3] < shares[4] == shares[5]


def test_words_count_less_where_chunks_are_code():
    cosines, lexical = np.random.default_rng(2).random((2, 200))
    shares = [lexical_share(cosines, lexical, 0.5, FullScore(2.0, 50.0, n)) for n in (0.0, 0.5, 1.0, 1.5, 9.0)]
    assert shares[0] == shares[1] > shares[2] > shares[3] == shares[4]


def test_few_chunks_with_words_show_nothing():
    cosines, lexical = -np.arange(22.0), np.arange(1.0, 23.0) ** 2
    assert cosine_trust(cosines, lexical) == 1
    assert cosine_trust(np.append(cosines, 0.5), np.append(lexical, 0.5)) == 0.4
    assert cosine_trust(np.zeros(0), np.zeros(0)) == 1
    assert cosine_trust(np.arange(50.0), np.ones(50)) == 1  # all tie for the first place
    assert word_evidence(np.arange(19.0), np.arange(1.0, 20.0), FullScore(5.0)) == 0
    assert word_evidence(np.arange(50.0), np.arange(50.0), NOT_KNOWN) == 0  # not known what the words weigh


@given(st.floats(-2, 2), st.integers(1, 60))
def test_an_advantage_of_words_adds_three_times_itself_whatever_the_question_says(advantage, n):
    cosines, lexical = np.arange(float(n)), np.arange(1.0, n + 1) ** 2
    without = word_evidence(cosines, lexical, FullScore(float(n * n)))
    found = word_evidence(cosines, lexical, FullScore(float(n * n), advantage=advantage))
    assert -3 <= found <= 3
    assert found == pytest.approx(min(3.0, max(-3.0, without + 3 * advantage)))
    assert n >= 20 or without == 0


def test_code_says_less_for_cosines_the_more_words_are_ahead():
    cosines, lexical = np.arange(40.0), np.arange(1.0, 41) ** 2

    def evidence(advantage, program):
        return word_evidence(cosines, lexical, FullScore(9e3, advantage=advantage, program=program))

    of_code = [evidence(a, 0) - evidence(a, 2) for a in (-0.5, 0, 1 / 6, 1 / 3, 0.5)]
    assert of_code == pytest.approx([1.5, 1.5, 0.75, 0, 0])
