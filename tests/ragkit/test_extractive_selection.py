"""The choice of sentences: against a slow reference, against closed forms, and the laws it keeps."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction import sentence_selection as selection
from llama_index.ragkit.extraction.sentence_selection import select_sentences


def reference(vectors, costs, budget, weights=None, redundancy=1.0, max_sentences=None):
    """Every gain from the formula, every time; no heap, no matrix products. Ties go to the first row."""
    unit = [np.asarray(v, dtype=float) / max(np.linalg.norm(v), 1e-12) for v in vectors]
    n = len(unit)
    weights = [1.0] * n if weights is None else weights
    similarity = [[max(0.0, float(sum(a * b for a, b in zip(u, v, strict=True)))) for v in unit] for u in unit]
    chosen, left = [], budget

    def worth(i):
        covered = [max((similarity[s][j] for s in chosen), default=0.0) for j in range(n)]
        terms = [weights[j] * max(0.0, similarity[i][j] - redundancy * covered[j]) for j in range(n)]
        return sum(terms) / costs[i] ** 0.3

    if all(cost > budget for cost in costs):
        return [max(range(n), key=worth)]
    while len(chosen) < (max_sentences or n):
        fitting = [
            i
            for i in range(n)
            if i not in chosen and costs[i] <= left and all(similarity[i][s] < 1 - 1e-6 for s in chosen)
        ]
        best = max(fitting, key=worth, default=None)
        if best is None or (chosen and worth(best) < 1e-9):
            break
        chosen.append(best)
        left -= costs[best]
    return chosen


@st.composite
def problems(draw, max_n=14):
    n = draw(st.integers(1, max_n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = rng.standard_normal((n, 5)) + draw(st.sampled_from([0.0, 1.0]))
    if draw(st.booleans()):
        vectors[rng.integers(n)] = vectors[rng.integers(n)]  # a sentence that comes twice
    if draw(st.booleans()):
        vectors[rng.integers(n)] = 0
    costs = rng.integers(1, 20, size=n).tolist()
    return {
        "vectors": vectors,
        "costs": costs,
        "budget": draw(st.integers(1, 80)),
        "weights": rng.uniform(0.1, 2, size=n).tolist(),
        "redundancy": draw(st.sampled_from([0.0, 0.5, 1.0])),
        "max_sentences": draw(st.sampled_from([None, 1, 3])),
    }


@settings(max_examples=200)
@given(problems())
def test_choice_equals_the_slow_reference(problem):
    chosen, expected = select_sentences(**problem), reference(**problem)
    vectors = problem["vectors"]
    assert [vectors[i].tolist() for i in chosen] == [vectors[i].tolist() for i in expected]


@given(problems())
def test_budget_is_kept_and_something_is_chosen(problem):
    chosen = select_sentences(**problem)
    cost = sum(problem["costs"][i] for i in chosen)
    assert chosen
    assert len(chosen) <= (problem["max_sentences"] or len(problem["costs"]))
    assert cost <= problem["budget"] or (len(chosen) == 1 and min(problem["costs"]) > problem["budget"])


@given(problems())
def test_no_row_and_no_repetition_is_chosen_twice(problem):
    chosen = select_sentences(**problem)
    assert len({tuple(problem["vectors"][i]) for i in chosen}) == len(set(chosen)) == len(chosen)


@given(problems(), st.randoms(use_true_random=False))
def test_order_of_the_rows_does_not_matter(problem, random):
    n = len(problem["costs"])
    order = random.sample(range(n), n)
    shuffled = {**problem, **{key: [problem[key][i] for i in order] for key in ("vectors", "costs", "weights")}}

    def rows(p):
        return [(*p["vectors"][i], p["costs"][i]) for i in select_sentences(**p)]

    assert rows(shuffled) == rows(problem)


@given(problems(), st.floats(0.01, 100))
def test_length_of_vectors_and_scale_of_weights_do_not_matter(problem, factor):
    assume(np.linalg.norm(problem["vectors"], axis=1).min() > 0.1)
    scaled = {
        **problem,
        "vectors": np.asarray(problem["vectors"]) * factor,
        "weights": [w * 4 for w in problem["weights"]],
    }
    assert select_sentences(**scaled) == select_sentences(**problem)


def test_the_centre_comes_first_and_what_it_leaves_open_next():
    # Three about tea (the middle one nearest to both), one about rice.
    angles = np.deg2rad([0, 20, 40, 120])
    vectors = np.c_[np.cos(angles), np.sin(angles)]
    assert select_sentences(vectors, [1, 1, 1, 1], 2) == [1, 3]


def test_without_redundancy_penalty_the_central_ones_repeat_each_other():
    angles = np.deg2rad([0, 20, 40, 120])
    vectors = np.c_[np.cos(angles), np.sin(angles)]
    assert select_sentences(vectors, [1, 1, 1, 1], 2, redundancy=0) == [1, 2]


def test_a_heavy_sentence_asks_louder():
    vectors = np.eye(3)
    assert select_sentences(vectors, [1, 1, 1], 1, weights=[1, 3, 2]) == [1]
    assert select_sentences(vectors, [1, 1, 1], 2, weights=[1, 3, 2]) == [1, 2]


def test_a_long_sentence_must_say_more():
    vectors = np.eye(2)
    assert select_sentences(vectors, [4, 9], 9, weights=[1, 1]) == [0]
    assert select_sentences(vectors, [4, 9], 9, weights=[1, 2]) == [1]  # 2 / 9 ** .3 against 1 / 4 ** .3


def test_what_is_covered_is_not_said_again_even_if_it_fits():
    assert len(select_sentences([[1, 0], [2, 0], [1, 0]], [1, 1, 1], 10)) == 1
    assert len(select_sentences([[1, 0], [2, 0], [1, 0]], [1, 1, 1], 10, redundancy=0)) == 1


def test_if_nothing_fits_the_best_one_comes_alone():
    angles = np.deg2rad([0, 20, 40])
    vectors = np.c_[np.cos(angles), np.sin(angles)]
    assert select_sentences(vectors, [50, 50, 50], 10) == [1]


def test_no_rows_no_choice():
    assert select_sentences(np.zeros((0, 4)), [], 10) == []


def test_all_zero_vectors_still_give_one():
    assert len(select_sentences(np.zeros((3, 4)), [1, 2, 3], 10)) == 1


def test_far_sentences_are_left_out_of_a_large_choice(monkeypatch):
    rng = np.random.default_rng(0)
    centre = np.r_[5.0, np.zeros(7)]
    near, far = centre + rng.standard_normal((30, 8)), -centre + rng.standard_normal((10, 8))
    monkeypatch.setattr(selection, "MAX_CANDIDATES", 20)
    chosen = select_sentences(np.r_[far, near], [1] * 40, 15)
    assert len(chosen) == 15
    assert min(chosen) >= 10


def test_the_cap_does_not_depend_on_order_either(monkeypatch):
    vectors = np.random.default_rng(1).standard_normal((50, 6))
    monkeypatch.setattr(selection, "MAX_CANDIDATES", 12)
    chosen = select_sentences(vectors, [1] * 50, 6)
    assert [49 - i for i in select_sentences(vectors[::-1], [1] * 50, 6)] == chosen


def test_number_of_threads_does_not_matter():
    vectors = np.random.default_rng(2).standard_normal((400, 64))
    costs = np.random.default_rng(3).integers(5, 40, size=400).tolist()
    with threadpool_limits(1):
        one = select_sentences(vectors, costs, 300)
    assert select_sentences(vectors, costs, 300) == one


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"redundancy": 1.5}, "redundancy"),
        ({"redundancy": float("nan")}, "redundancy"),
        ({"max_sentences": 0}, "max_sentences"),
        ({"costs": [1, 0]}, "costs"),
        ({"weights": [1, -1]}, "weights"),
        ({"weights": [1]}, "match"),
        ({"vectors": [[1.0, 2.0]]}, "match"),
        ({"vectors": [[1.0, float("nan")], [1, 2]]}, "finite"),
    ],
)
def test_odd_input_is_refused(change, message):
    arguments = {"vectors": [[1.0, 0.0], [0.0, 1.0]], "costs": [1, 1], "budget": 5, **change}
    with pytest.raises(ConfigurationError, match=message):
        select_sentences(**arguments)
