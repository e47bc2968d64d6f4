"""What chunks are worth: the formula by hand, gaps, lengths, and which documents are considered in which order."""

import math

import numpy as np
import pytest
from tests.sprag.laid_out import laid_out

from llama_index.ragkit.errors import ConfigurationError
from llama_index.sprag.segments.values import lay_out, length_factors, reference_length_of, select_documents

PLAIN = {
    "decay_rate": 30,
    "irrelevant_chunk_penalty": 0.18,
    "neighbor_relevance": 0,
    "length_adjustment": "none",
    "reference_length": 1.0,
}


def values_of(hits, documents, lengths, relevance=None, **options):
    places, owners, sizes = laid_out([hits], documents, lengths)
    relevance = np.ones(len(hits)) if relevance is None else relevance
    return lay_out(places, [relevance], owners, sizes, **{**PLAIN, **options})[0]


def test_a_retrieved_chunk_by_its_rank_and_relevance_and_every_other_at_the_price_of_a_gap():
    found = values_of([("a", 2), ("b", 0)], ["a", "b"], [[9, 9, 9, 9], [9]], relevance=[0.9, 0.5])
    expected = [-0.18, -0.18, 0.9 - 0.18, -0.18, math.exp(-1 / 30) * 0.5 - 0.18]
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


def test_chunks_of_documents_that_are_not_considered_keep_their_places_in_the_ranking():
    found = values_of([("x", 0), ("y", 4), ("a", 0)], ["a"], [[9]])
    assert found[0, 0] == pytest.approx(math.exp(-2 / 30) - 0.18)


def test_chunks_beside_a_hit_have_a_share_of_its_worth_but_not_across_documents_and_never_less_than_their_own():
    hits, relevance = [("a", 1), ("a", 2), ("b", 0)], [0.5, 1.0, 0.8]
    found = values_of(hits, ["a", "b"], [[9, 9, 9], [9, 9, 9]], relevance, neighbor_relevance=0.25)
    first, second, third = 0.5, math.exp(-1 / 30), 0.8 * math.exp(-2 / 30)
    expected = np.array([first / 4, first, second, third, third / 4, 0]) - 0.18
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


def test_a_gap_costs_by_its_length_and_a_short_one_no_less():
    bounded, published = (
        values_of([("a", 0)], ["a"], [[700, 70, 1400]], length_adjustment=how, reference_length=700)
        for how in ("bounded", "unbounded")
    )
    np.testing.assert_allclose(bounded, [[0.82, -0.18, -0.36]])
    np.testing.assert_allclose(published, [[0.82, -0.018, -0.36]])


def test_the_reference_length_is_the_median_of_what_was_retrieved_each_chunk_once():
    def reference(rankings, lengths):
        places, _, sizes = laid_out(rankings, ["a"], [lengths])
        return reference_length_of(places, sizes)

    hits = [[("a", 0), ("a", 1), ("x", 0)], [("a", 1), ("a", 2)]]
    assert reference(hits, [100, 200, 300, 9000]) == 200
    assert reference([[]], [100]) == 1
    assert reference([[("a", 0)]], [0]) == 1


def test_a_chunk_that_comes_twice_counts_at_its_better_place():
    assert values_of([("a", 0), ("a", 0)], ["a"], [[9]])[0, 0] == pytest.approx(0.82)


def test_documents_by_best_rank_of_any_query_then_by_id():
    first, second = ["c", "b", "d"], ["b", "e", "c"]
    assert select_documents([first, second], 2) == ["b", "c", "e"]
    assert select_documents([first, second], 1) == select_documents([second, first], 1) == ["b", "c"]
    assert select_documents([[]], 5) == []


def test_no_documents_and_no_queries():
    assert values_of([("a", 0)], [], []).shape == (1, 0)
    _, owners, lengths = laid_out([], ["a"], [[1, 1]])
    assert lay_out([], [], owners, lengths, **PLAIN)[0].shape == (0, 2)


def test_a_chunk_that_there_is_not_is_an_error():
    with pytest.raises(ConfigurationError, match="There are 2 chunks, and chunk 2"):
        values_of([("a", 2)], ["a"], [[1, 1]])


@pytest.mark.parametrize("relevance", [[1.0], [[1.0, 1.0]], 1.0])
def test_relevance_of_another_length_than_its_ranking_is_refused(relevance):
    with pytest.raises(ConfigurationError, match="A ranking of 2 chunks has relevance of the shape"):
        values_of([("a", 0), ("a", 1)], ["a"], [[1, 1]], relevance)


def test_a_longer_chunk_never_counts_less():
    for how in ("bounded", "unbounded", "none"):
        assert (np.diff(length_factors(np.arange(1, 3000), 700, how)) >= 0).all()
