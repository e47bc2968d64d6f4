"""The choice of segments: by hand, beside the slow references on random cases, and what always holds of it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sprag.slow_segments import slow_greedy, slow_optimum

from llama_index.ragkit.errors import ConfigurationError
from llama_index.sprag.segments.greedy import RangeMaximum, select_greedy
from llama_index.sprag.segments.optimal import select_optimal
from llama_index.sprag.segments.windows import Segment

both = pytest.mark.parametrize("select", [select_greedy, select_optimal])


def limits(max_length=10, overall_max_length=30, minimum_value=0.5):
    return {"max_length": max_length, "overall_max_length": overall_max_length, "minimum_value": minimum_value}


def random_case(rng, largest=18):
    """Values with many ties in half of the cases, several documents, queries and unequal costs in many."""
    n = int(rng.integers(1, largest + 1))
    n_queries = int(rng.integers(1, 4))
    if rng.random() < 0.5:
        values = rng.integers(-4, 5, size=(n_queries, n)) / 4
    else:
        values = np.where(rng.random((n_queries, n)) < 0.5, -rng.random(), rng.random((n_queries, n)))
    documents = np.sort(rng.integers(0, int(rng.integers(1, 5)), size=n))
    costs = np.ones(n, dtype=int) if rng.random() < 0.5 else rng.integers(0, 5, size=n)
    settings = limits(int(rng.integers(1, 9)), int(rng.integers(1, 20)), float(rng.choice([0, 0.25, 0.5, 1.0])))
    return values, documents, costs, settings


def arguments(values, documents, costs, settings):
    return values.tolist(), documents.tolist(), costs.tolist(), *settings.values()


# -- by hand -------------------------------------------------------------------------------------------


def test_greedy_carries_a_gap_that_costs_less_than_the_hits_are_worth():
    found = select_greedy([-0.2, 0.8, -0.2, -0.2, 0.7, -0.2], [0] * 6, **limits())
    assert [(s.start, s.end) for s in found] == [(1, 5)]
    assert found[0].value == pytest.approx(1.1)


def test_the_optimum_carries_a_gap_only_where_the_hits_alone_are_worth_less_than_the_minimum():
    values = [-0.2, 0.4, -0.1, 0.4, -0.2]
    assert [s[:2] for s in select_optimal(values, [0] * 5, **limits(minimum_value=0.5))] == [(1, 4)]
    assert [s[:2] for s in select_optimal(values, [0] * 5, **limits(minimum_value=0.4))] == [(1, 2), (3, 4)]


@both
def test_hits_far_apart_are_segments_of_their_own(select):
    values = [0.8, *[-0.2] * 6, 0.7]
    assert sorted((s.start, s.end) for s in select(values, [0] * 8, **limits())) == [(0, 1), (7, 8)]


@both
def test_a_segment_never_crosses_into_another_document(select):
    found = select([0.8, 0.8, 0.8, 0.8], [0, 0, 1, 1], **limits())
    assert sorted((s.start, s.end) for s in found) == [(0, 2), (2, 4)]


@both
def test_a_chunk_of_no_value_neither_begins_nor_ends_a_segment_but_one_of_zero_may(select):
    assert select([-0.1, 1.0, -0.1], [0] * 3, **limits())[0][:2] == (1, 2)
    assert select_greedy([0.0, 1.0, 0.0], [0] * 3, **limits())[0][:2] == (0, 2)  # the earliest, then the shortest
    assert select_optimal([0.0, 1.0, 0.0], [0] * 3, **limits())[0][:2] == (1, 2)  # the cheapest


@both
def test_what_is_worth_less_than_the_minimum_is_not_returned_and_exactly_the_minimum_is(select):
    assert select([0.5, -1, 0.49], [0] * 3, **limits(minimum_value=0.5)) == [Segment(0, 1, 0.5, 0)]


@both
def test_the_budget_holds_without_exception_and_the_length_but_for_single_chunks(select):
    values, costs = [0.9, 0.9, 0.9], [5, 5, 5]
    assert [s[:2] for s in select(values, [0] * 3, costs, **limits(4, 11))] == [(0, 1), (1, 2)]
    assert select(values, [0] * 3, costs, **limits(4, 4)) == []


def test_equal_windows_are_taken_from_left_to_right():
    found = select_greedy([0.6, -1, 0.6, -1, 0.6], [0] * 5, **limits(overall_max_length=2))
    assert [s.start for s in found] == [0, 2]


def test_queries_take_turns_and_what_one_has_taken_the_others_cannot_have():
    values = [[0.9, 0.8, -0.2, -0.2], [1.0, -0.2, -0.2, 0.6]]
    found = select_greedy(values, [0] * 4, **limits())
    assert [(s.start, s.end, s.query) for s in found] == [(0, 2, 0), (3, 4, 1)]


def test_the_optimum_gives_each_segment_to_the_query_that_it_is_worth_most_to():
    values = [[0.9, 0.8, -0.2, -0.2], [2.0, -0.2, -0.2, 0.6]]
    found = select_optimal(values, [0] * 4, **limits())
    assert [(s.start, s.end, s.query) for s in found] == [(0, 1, 1), (1, 2, 0), (3, 4, 1)]


def test_greedy_fills_the_budget_with_one_long_segment_where_two_short_ones_are_worth_more():
    values = [0.5, 0.4, -0.1, 0.6, -1.0, 0.9, -1.0, 0.9, -1.0, 0.8]
    greedy = select_greedy(values, [0] * 10, **limits(4, 4))
    optimal = select_optimal(values, [0] * 10, **limits(4, 4))
    assert [s[:2] for s in greedy] == [(0, 4)]
    assert [s[:2] for s in optimal] == [(3, 4), (5, 6), (7, 8), (9, 10)]
    assert sum(s.value for s in optimal) == pytest.approx(3.2)


@both
@pytest.mark.parametrize("values", [[], [[]], [-0.2, -0.1], [[-0.2, -0.1], [-1, -1]]])
def test_nothing_to_choose_from(select, values):
    n = np.atleast_2d(values).shape[1]
    assert select(values, [0] * n, **limits()) == []


@both
@pytest.mark.parametrize(
    ("given", "word"),
    [
        (([0.1, float("nan")], [0, 0]), "finite"),
        (([0.1, 1e12], [0, 0]), "less than"),
        (([0.1, 0.2], [1, 0]), "documents must not decrease"),
        (([0.1, 0.2], [0]), "shape"),
        (([0.1, 0.2], [0, 0], [1, -1]), "costs"),
        (([0.1, 0.2], [0, 0], [0.5, 1]), "costs"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(select, given, word):
    with pytest.raises(ConfigurationError, match=word):
        select(*given, **limits())


@both
@pytest.mark.parametrize("wrong", [{"max_length": 0}, {"overall_max_length": 0}, {"minimum_value": -0.1}])
def test_limits_that_cannot_be_are_refused(select, wrong):
    with pytest.raises(ConfigurationError, match=next(iter(wrong))):
        select([0.1], [0], **{**limits(), **wrong})


def test_an_optimum_that_does_not_fit_into_memory_is_refused_with_the_remedy():
    n = 20_000
    with pytest.raises(ConfigurationError, match='selection="greedy"'):
        select_optimal(np.ones(n), np.zeros(n), np.full(n, 200), **limits(1000, 10**6))


# -- beside the slow references --------------------------------------------------------------------------


def test_one_thousand_random_cases_as_the_slow_greedy_reference_has_them():
    rng = np.random.default_rng(0)
    chosen = 0
    for _ in range(1000):
        values, documents, costs, settings = random_case(rng)
        expected = slow_greedy(*arguments(values, documents, costs, settings))
        found = select_greedy(values, documents, costs, **settings)
        assert [(s.start, s.end, s.query) for s in found] == [(s[0], s[1], s[3]) for s in expected]
        np.testing.assert_allclose([s.value for s in found], [s[2] for s in expected], atol=1e-8)
        chosen += len(found)
    assert chosen > 2000  # the cases are not empty ones


def test_one_thousand_random_cases_as_the_slow_optimum_has_them():
    rng = np.random.default_rng(1)
    better = 0
    for _ in range(1000):
        values, documents, costs, settings = random_case(rng, largest=12)
        found = sum(s.value for s in select_optimal(values, documents, costs, **settings))
        assert found == pytest.approx(slow_optimum(*arguments(values, documents, costs, settings)), abs=1e-7)
        better += found > 1e-7 + sum(s.value for s in select_greedy(values, documents, costs, **settings))
    assert better > 50  # greedy is not optimal


# -- what always holds -----------------------------------------------------------------------------------


@st.composite
def cases(draw):
    n = draw(st.integers(0, 40))
    n_queries = draw(st.integers(1, 3))
    numbers = st.floats(-1, 1, allow_subnormal=False)
    values = np.array([[draw(numbers) for _ in range(n)] for _ in range(n_queries)]).reshape(n_queries, n)
    documents = np.sort(np.array([draw(st.integers(0, 3)) for _ in range(n)], dtype=int))
    costs = np.array([draw(st.integers(0, 9)) for _ in range(n)], dtype=int)
    minimum = draw(st.floats(0, 1))
    return values, documents, costs, limits(draw(st.integers(1, 30)), draw(st.integers(1, 60)), minimum)


@both
@settings(max_examples=150)
@given(case=cases())
def test_every_rule_is_kept(select, case):
    values, documents, costs, given_limits = case
    found = select(values, documents, costs, **given_limits)
    taken = np.zeros(len(documents), dtype=int)
    for segment in found:
        inside = slice(segment.start, segment.end)
        taken[inside] += 1
        chunks = values[segment.query, inside]
        assert chunks[0] >= -1e-9
        assert chunks[-1] >= -1e-9
        assert len(set(documents[inside].tolist())) == 1
        assert segment.value == pytest.approx(chunks.sum(), abs=1e-7)
        assert segment.value >= given_limits["minimum_value"] - 1e-9
        assert len(chunks) == 1 or costs[inside].sum() <= given_limits["max_length"]
    assert (taken <= 1).all()
    assert costs[taken == 1].sum() <= given_limits["overall_max_length"]


@settings(max_examples=150)
@given(case=cases())
def test_the_optimum_is_never_below_greedy_and_never_falls_with_the_budget(case):
    values, documents, costs, given_limits = case
    total = [
        sum(s.value for s in select(values, documents, costs, **{**given_limits, "overall_max_length": budget}))
        for select, budget in (
            (select_greedy, given_limits["overall_max_length"]),
            (select_optimal, given_limits["overall_max_length"]),
            (select_optimal, given_limits["overall_max_length"] + 7),
        )
    ]
    assert total[0] <= total[1] + 1e-9
    assert total[1] <= total[2] + 1e-9


@both
@settings(max_examples=100)
@given(case=cases())
def test_chunks_of_a_document_without_hits_change_nothing(select, case):
    values, documents, costs, given_limits = case
    n_queries = len(values)
    wider = np.concatenate([np.full((n_queries, 3), -0.3), values, np.full((n_queries, 2), -0.3)], axis=1)
    owners = np.concatenate([[-1] * 3, documents, [9] * 2])
    lengths = np.concatenate([[2] * 3, costs, [2] * 2])
    found = select(wider, owners, lengths, **given_limits)
    moved = [Segment(s.start - 3, s.end - 3, s.value, s.query) for s in found]
    assert moved == select(values, documents, costs, **given_limits)


@settings(max_examples=200)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.data())
def test_the_leftmost_largest_of_any_range(values, data):
    first = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=5))
    last = [data.draw(st.integers(low, len(values) - 1)) for low in first]
    longest = max(b - a + 1 for a, b in zip(first, last, strict=True))
    found = RangeMaximum(np.array(values), longest)(np.array(first), np.array(last))
    assert found.tolist() == [a + int(np.argmax(values[a : b + 1])) for a, b in zip(first, last, strict=True)]
