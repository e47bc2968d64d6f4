"""Scores of passages: closed forms, degenerate cases, ties."""

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.search.graph_search import geometric_mean, min_max, share_of_best
from llama_index.hipporag.search.reranking import rescored

floats = st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=12).map(np.array)


def memory() -> KnowledgeGraph:
    """p0 names phrase 0 twice and states a fact 0-1 twice; p1 states two facts of phrase 2; p2 says nothing."""
    return KnowledgeGraph.empty().extended(
        [{0: 2}, {}, {}], [{}, {}, {}], [{0: 2}, {1: 1, 2: 1}, {}], [0, 2, 2], [1, 3, 1], csr_matrix((4, 4))
    )


def test_three_ways_to_count():
    scores = np.array([0.5, 0.25, 0.125, 0.0])
    counts = {"contains": [0.75, 0.375, 0.0], "mentions": [4 * 0.5 + 2 * 0.25, 0.25 + 2 * 0.125, 0.0]}
    counts["facts"] = [0.75, 0.25 + 2 * 0.125, 0.0]
    for counted, wanted in counts.items():
        np.testing.assert_allclose(memory().projection(counted) @ scores, wanted)
    halved = memory().projection("contains", length_normalization=1.0) @ scores
    np.testing.assert_allclose(halved, [0.75 / 2, 0.375 / 3, 0.0])


def test_passages_that_are_nodes_have_their_own_scores():
    scores = np.array([9.0, 9.0, 9.0, 9.0, 0.5, 0.25, 0.125])  # 4 phrases, 3 passages
    np.testing.assert_allclose(memory().projection(passage_nodes=True) @ scores, [0.5, 0.25, 0.125])
    halved = memory().projection(length_normalization=0.5, passage_nodes=True) @ scores
    np.testing.assert_allclose(halved, [0.5 / 2**0.5, 0.25 / 3**0.5, 0.125])


def test_a_geometric_mean_asks_for_all_and_is_not_decided_by_a_zero():
    shares = [np.array([1.0, 0.25, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0])]
    np.testing.assert_allclose(geometric_mean(shares), [1.0, 0.5, 1e-3, 0.0], atol=1e-5)


def test_scales():
    np.testing.assert_allclose(min_max(np.array([2.0, 4.0, 3.0])), [0, 1, 0.5])
    np.testing.assert_allclose(min_max(np.array([9.0, 2.0, 4.0]), np.array([False, True, True])), [0, 0, 1])
    assert min_max(np.array([3.0])).tolist() == [1.0]
    assert min_max(np.zeros(2)).tolist() == [0.0, 0.0]
    assert min_max(np.ones(2), np.zeros(2, np.bool_)).tolist() == [0.0, 0.0]
    np.testing.assert_allclose(share_of_best(np.array([8.0, 1.0, 2.0]), np.array([False, True, True])), [0, 0.5, 1])
    assert share_of_best(np.zeros(3)).tolist() == [0, 0, 0]


def test_a_rescored_ranking_keeps_every_place_once():
    m = memory()
    for rows in ([0, 1, 2], [-1, 0, -1, 1], [-1], [2, 2, 0], []):
        found = rescored(m, np.array(rows, np.int64), {2: 1.0}, 0.5, 10.0)
        assert sorted(place for place, _ in found) == list(range(len(rows)))
        assert all(0 <= score <= 1 for _, score in found)
        assert [place for place, _ in found if rows[place] < 0] == [p for p, row in enumerate(rows) if row < 0]
    first = rescored(m, np.array([0, 1]), {2: 1.0}, 0.01, 10.0)
    assert first[0] == (1, 1.0)
