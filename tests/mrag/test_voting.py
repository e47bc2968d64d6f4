"""Votes, agreement and the sum over aspects, against Algorithm 2 by hand, and search against all cosines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.mrag.published import cosine, votes_by_hand

from llama_index.mrag.config import VOTES, SearchConfig
from llama_index.mrag.heads.head_search import HeadHits
from llama_index.mrag.heads.splitting import natural_heads, split_heads
from llama_index.mrag.state import MRAGState
from llama_index.mrag.voting.ranking import combine_with_nearness, found_alike, found_in_words, subjects, votes_weight
from llama_index.mrag.voting.vote_result import rank_by_nearness, run_vote
from llama_index.mrag.voting.votes import Tally, combine, head_votes, lexical_votes, mix, sum_votes
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.question_scores import Nearness


def state_of(flat: np.ndarray, heads: int, dtype: str = "float32") -> MRAGState:
    store = MatrixVectorStore(stores_text=False, dtype=dtype)
    store.put([f"{i:03d}" for i in range(len(flat))], flat)
    return MRAGState.of(store.snapshot(), heads)


def random_state(n: int, heads: int = 3, dim: int = 4, seed: int = 0) -> tuple[MRAGState, np.ndarray]:
    flat = np.random.default_rng(seed).normal(size=(n, heads * dim)).astype(np.float32)
    return state_of(flat, heads), flat


@pytest.mark.parametrize("vote", VOTES)
@pytest.mark.parametrize("count", [1, 3, 32])
def test_one_aspect_is_the_published_vote(vote, count):
    state, flat = random_state(40)
    query = np.random.default_rng(1).normal(size=(1, 12)).astype(np.float32)
    result = run_vote(state, ["q"], query, SearchConfig(vote=vote, num_candidates=count))
    wanted = votes_by_hand(split_heads(flat, 3), split_heads(query[0], 3), state.importance, count, vote)
    total = {"mrag": state.importance.sum(), "decay": 3, "distance": sum(wanted.values())}[vote]
    got = {int(name): score for name, score in result.ranking}
    assert got == pytest.approx({row: votes / total for row, votes in wanted.items()}, abs=1e-9)
    assert [int(name) for name, _ in result.ranking] == sorted(wanted, key=lambda row: (-round(wanted[row], 9), row))


@settings(max_examples=30)
@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 1000))
def test_hits_are_the_nearest_rows_of_every_head(n, count, seed):
    state, flat = random_state(n, seed=seed)
    rng = np.random.default_rng(seed + 1)
    queries = rng.normal(size=(2, 12)).astype(np.float32)
    rows = np.sort(rng.choice(n, size=rng.integers(1, n + 1), replace=False))
    hits = state.search_heads(queries, count, rows)
    assert hits.rows.shape == (2, 3, min(count, len(rows)))
    for aspect in range(2):
        for head in range(3):
            part = slice(4 * head, 4 * head + 4)
            wanted = sorted(
                ((cosine(flat[row, part], queries[aspect, part]), int(row)) for row in rows), key=lambda p: -p[0]
            )
            assert hits.rows[aspect, head].tolist() == [row for _, row in wanted[:count]]
            np.testing.assert_allclose(hits.cosines[aspect, head], [c for c, _ in wanted[:count]], atol=1e-6)


def test_float16_finds_what_float32_finds_in_the_rounded_vectors():
    flat = np.random.default_rng(3).normal(size=(50, 12)).astype(np.float32)
    half, full = state_of(flat, 3, "float16"), state_of(flat.astype(np.float16).astype(np.float32), 3)
    query = flat[:2] + 0.1
    one, other = (run_vote(state, ["a", "b"], query, SearchConfig(num_candidates=9)).ranking for state in (half, full))
    assert [name for name, _ in one] == [name for name, _ in other]
    assert dict(one) == pytest.approx(dict(other))


def test_many_rows_are_searched_in_threads_with_the_same_result(monkeypatch):
    from llama_index.mrag.heads import head_search as search

    state, flat = random_state(300)
    alone = state.search_heads(flat[:3], 20)
    monkeypatch.setattr(search, "_MIN_NUMBERS_FOR_THREADS", 1000)
    together = state.search_heads(flat[:3], 20)
    np.testing.assert_array_equal(together.rows, alone.rows)
    np.testing.assert_array_equal(together.cosines, alone.cosines)


def test_equal_nodes_stand_in_the_order_of_their_keys():
    flat = np.ones((6, 12), np.float32)
    result = run_vote(state_of(flat, 3), ["q"], flat[:1], SearchConfig())
    assert [name for name, _ in result.ranking] == [f"{i:03d}" for i in range(6)]


def test_every_head_putting_a_node_first_for_every_aspect_is_one():
    state, flat = random_state(20)
    for vote in ("mrag", "decay"):
        result = run_vote(state, ["a", "b"], np.stack([flat[4], flat[4]]), SearchConfig(vote=vote, num_candidates=5))
        assert result.ranking[0] == ("004", pytest.approx(1))
        assert all(0 <= score <= 1 for _, score in result.ranking)


def test_vectors_of_zeros_are_found_last_and_break_nothing():
    flat = np.zeros((4, 12), np.float32)
    flat[2] = 1
    for vote in VOTES:
        options = SearchConfig(vote=vote, num_candidates=4)
        ranking = run_vote(state_of(flat, 3), ["q"], np.ones((1, 12), np.float32), options).ranking
        assert ranking[0][0] == "002"
        assert np.isfinite([score for _, score in ranking]).all()
        assert len(run_vote(state_of(flat, 3), ["q"], np.zeros((1, 12), np.float32), options).ranking) == 4


def test_one_strong_aspect_beats_several_weak_ones():
    strong, weak = [0.8, 0.0, 0.0, 0.0], [0.2, 0.2, 0.2, 0.2]
    scores = combine(np.array([strong, weak]).T)
    assert scores[0] > scores[1] == pytest.approx(0.2)


def test_votes_are_summed_within_an_aspect_only():
    rows = np.array([[[5, 7], [7, 5]], [[5, 9], [5, 9]]])
    votes = np.array([[[0.5, 0.25], [0.5, 0.25]], [[0.1, 0.2], [0.3, 0.4]]])
    got = sum_votes(HeadHits(rows, votes), votes)
    assert got.rows.tolist() == [5, 7, 9]
    np.testing.assert_allclose(got.agreement, [[0.75, 0.75, 0], [0.4, 0, 0.6]])


def test_without_importance_heads_count_alike():
    cosines = np.full((1, 4, 2), 0.5)
    np.testing.assert_allclose(head_votes(cosines, np.zeros(4), "mrag"), head_votes(cosines, np.ones(4), "decay"))


def test_lexical_votes_weigh_place_and_score():
    got = lexical_votes([{3: 8.0, 1: 4.0}, {}, {1: 2.0}])
    assert got.rows.tolist() == [1, 3]
    np.testing.assert_allclose(got.agreement, [[0.25, 1.0], [0, 0], [0.25, 0]])
    assert lexical_votes([{}, {}]).agreement.shape == (2, 0)


def test_mix_counts_both_by_weight():
    heads = Tally(np.array([1, 2]), np.array([[0.5, 1.0]]))
    other = Tally(np.array([2, 4]), np.array([[0.5, 1.0]]))
    got = mix(heads, other, 0.25)
    assert got.rows.tolist() == [1, 2, 4]
    np.testing.assert_allclose(got.agreement, [[0.375, 0.875, 0.25]])


def test_who_voted_adds_up_to_the_agreement():
    state, flat = random_state(15)
    lexical = [{3: 5.0, 4: 1.0}, {4: 2.0}]
    options = SearchConfig(num_candidates=6, lexical_weight=0.5)
    result = run_vote(state, ["a", "b"], flat[[3, 4]], options, lexical=lexical)
    for name, score in result.ranking:
        agreement, votes = result.votes_for(name)
        for aspect, share in agreement.items():
            assert sum(vote.share for vote in votes if vote.aspect == aspect) == pytest.approx(share)
        assert np.sqrt(sum(share**2 for share in agreement.values()) / 2) == pytest.approx(score)


@settings(max_examples=30)
@given(st.data())
def test_a_state_that_changed_is_the_state_that_is_read(data):
    flat = np.random.default_rng(5).normal(size=(20, 12)).astype(np.float32)
    store = MatrixVectorStore(stores_text=False)
    store.put([str(i) for i in range(5)], flat[:5])
    state = MRAGState.of(store.snapshot(), 3)
    for step in data.draw(st.lists(st.sets(st.integers(0, 19), min_size=1, max_size=8), max_size=5)):
        gone = [str(i) for i in step if str(i) in store.snapshot()]
        come = [i for i in step if str(i) not in gone or i % 2]  # odd ones are replaced
        store.delete_nodes(gone)
        if come:
            store.put([str(i) for i in come], flat[come] * (1 + len(step)))
        state = state.changed(store.snapshot(), map(str, step), 3)
    fresh = MRAGState.of(store.snapshot(), 3)
    np.testing.assert_array_equal(state.inverse, fresh.inverse)
    np.testing.assert_allclose(state.importance, fresh.importance, atol=1e-9)


def test_parts_nearest_to_32_numbers():
    assert [natural_heads(dim) for dim in (1, 7, 32, 384, 768, 1536, 3072)] == [1, 1, 1, 12, 24, 48, 96]


def test_votes_count_by_the_number_of_subjects():
    assert [votes_weight(n) for n in (1, 1.5, 2, 6)] == pytest.approx([0.4, 0.1, 0.5, 1 / (1 + np.exp(-10))])
    assert [votes_weight(3, known) for known in (0, 0.5, 1)] == pytest.approx([0.35, 0.675, 1 / (1 + np.exp(-5))])
    assert votes_weight(1.5, 0) == votes_weight(1.5, 1)
    got = combine_with_nearness(np.array([1.0, -np.inf, 0.0]), np.array([0.0, 0.9, 1.0]), 0.25)
    np.testing.assert_allclose(got, [0.75 - 0.25, -np.inf, 0.25])


@given(st.floats(1, 40), st.floats(0, 1), st.floats(0, 1))
def test_votes_count_the_more_the_more_the_voters_know(n, less, more):
    assert 0 < votes_weight(n, min(less, more)) <= votes_weight(n, max(less, more)) < 1


def test_words_and_heads_find_the_same_subjects():
    by_heads = np.array([[3, 1, 1, 1, 1], [2, 6, 7, 7, 7]])
    assert found_alike(3, by_heads, [3, 5]) == pytest.approx((3 * 0.1 - 0.2) / 0.2)
    assert found_alike(3, by_heads, [3, None]) == 1
    assert found_alike(1, by_heads, [3, None]) == found_alike(3, by_heads, [4, 5]) == 0
    assert found_alike(1, by_heads, [None, None]) == found_alike(1, by_heads[:0], []) == 1


def test_words_of_the_parts_are_in_the_nodes():
    assert found_in_words([6.0, 10.0, 0.0], [8.0, 10.0, 0.0]) == 1
    assert found_in_words([6.0, 7.0], [8.0, 10.0]) == pytest.approx((0.725 - 0.65) / 0.2)
    assert found_in_words([0.0, 5.0], [8.0, 10.0]) == found_in_words([], []) == 0


def test_the_subjects_of_a_long_text_are_more_than_its_common_words_tell():
    assert [subjects([3.0] * parts, 1.5 * parts) for parts in (8, 12, 16, 20)] == pytest.approx(
        [2, 7 / 3, 8 / 3, 8 / 3]
    )


@given(st.lists(st.floats(0, 1e6), max_size=9), st.floats(0, 1e6))
def test_a_question_has_from_one_subject_to_one_a_part(parts, question):
    assert 1 <= subjects(parts, question) <= max(1, len(parts))


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=9), st.floats(0.01, 100))
def test_subjects_do_not_depend_on_the_unit_of_the_scores(parts, unit):
    best = max(parts)
    assert subjects([unit * part for part in parts], unit * best) == pytest.approx(subjects(parts, best))


def test_beside_nearness_as_alone_so_many_places_of_a_ranking_count_as_are_wanted():
    state, flat = random_state(20)
    options = SearchConfig(num_candidates=20, fusion="reciprocal_rank")  # the heads vote for all twenty
    result = run_vote(state, ["a", "b"], flat[:2], options, wanted=3)
    assert len(result.tally.rows) == 20
    near = Nearness.of(np.ones(20), np.zeros(20), 0.0)
    ranking = rank_by_nearness(result, near, 1.0, 20).ranking
    alone = {name: score for name, score in result.ranking if score > 0}
    assert len(alone) < 7
    assert [name for name, _ in ranking[: len(alone)]] == list(alone)
    assert len({score for _, score in ranking[len(alone) :]}) == 1
