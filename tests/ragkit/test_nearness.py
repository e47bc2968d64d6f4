"""Dense and lexical scores as one nearness."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.question_scores import (
    Nearness,
    best_rows,
    hybrid_nearness,
    result_scores,
    squashed,
    standardised,
)


def test_nearness_does_not_depend_on_the_habits_of_an_embedding_model():
    random = np.random.default_rng(0)
    cosines, lexical = random.random(300), random.random(300)
    plain = hybrid_nearness(cosines, lexical, 0.6)
    assert np.argsort(-hybrid_nearness(0.7 + 0.1 * cosines, lexical, 0.6)).tolist() == np.argsort(-plain).tolist()


def test_chunks_that_are_not_allowed_have_no_nearness_and_change_no_other():
    random = np.random.default_rng(1)
    cosines, lexical = random.random(50), random.random(50)
    allowed = np.arange(50) % 2 == 0
    near = hybrid_nearness(cosines, lexical, 0.5, allowed)
    assert np.isneginf(near[~allowed]).all()
    assert near[allowed] == pytest.approx(hybrid_nearness(cosines[allowed], lexical[allowed], 0.5))


def test_without_a_word_of_the_question_the_cosines_decide():
    cosines = np.array([0.1, 0.9, 0.5])
    for weight in (0.0, 0.5, 1.0):
        assert int(np.argmax(hybrid_nearness(cosines, np.zeros(3), weight))) == 1
    assert standardised(np.array([0.3, 0.3])).tolist() == [0.0, 0.0]
    with pytest.raises(ConfigurationError, match="lexical_weight"):
        hybrid_nearness(cosines, cosines, 1.5)


def test_candidates_are_better_than_the_hundredth_in_one_part():
    random = np.random.default_rng(1)
    cosines, lexical = random.permutation(500) / 500.0, random.permutation(500) / 1.0
    allowed = random.random(500) < 0.8
    found = Nearness.of(cosines, lexical, 0.5, allowed).candidates
    best = [set(sorted(np.flatnonzero(allowed), key=lambda row: -part[row])[:99]) for part in (cosines, lexical)]
    assert set(np.flatnonzero(found)) == best[0] | best[1]
    assert Nearness.of(cosines[:99], np.zeros(99), 0.5).candidates.all()
    assert Nearness.of(np.zeros(100), lexical[:100] * 0, 0.5).candidates.sum() == 0


def test_squashed_scores_keep_their_order():
    scores = np.array([-np.inf, -3.0, 0.0, 1.0, 9.0])
    found = squashed(scores)
    assert found.tolist() == sorted(found.tolist())
    assert (found[0], found[2]) == (0, 0.5)
    assert found[-1] < 1


@example(np.array([0.0] * 100 + [-1.0]), 1.0, 0.0)
@given(
    hnp.arrays(np.float64, st.integers(1, 150), elements=st.integers(-50, 50).map(float)),
    st.floats(0.01, 100),
    st.floats(-10, 10),
)
def test_scores_of_results_keep_order_and_distance_and_do_not_depend_on_unit_or_hidden_rows(scores, scale, shift):
    found = result_scores(scores, scores)
    assert ((found > 0) & (found < 1)).all()
    assert (np.sign(np.subtract.outer(found, found)) == np.sign(np.subtract.outer(scores, scores))).all()
    assert found.max() >= 0.5
    hidden = np.append(scale * scores + shift, -np.inf)
    assert result_scores(hidden, hidden) == pytest.approx([*found, 0.0])


def test_without_a_difference_every_score_of_a_result_is_the_cutoff():
    assert result_scores(np.array([2.0, 2.0, -np.inf]), np.array([2.0, 2.0])).tolist() == [0.5, 0.5, 0.0]
    assert result_scores(np.zeros(0), np.zeros(0)).tolist() == []


@given(hnp.arrays(np.float64, st.integers(1, 20), elements=st.integers(-3, 3).map(float)), st.integers(1, 15))
def test_the_best_are_those_of_a_full_sort(scores, k):
    store = MatrixVectorStore(stores_text=False)
    ids = [f"row{(row * 7) % 20:02d}" for row in range(len(scores))]
    store.put(ids, np.ones((len(scores), 2)))
    hidden = np.where(scores == -3, -np.inf, scores)
    rows = [row for row in range(len(scores)) if np.isfinite(hidden[row])]
    wanted = sorted(rows, key=lambda row: (-scores[row], ids[row]))[:k]
    assert best_rows(hidden, k, store.snapshot()) == wanted
