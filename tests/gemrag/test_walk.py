"""The best-first walk against a slow one, and what it may not do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.gemrag.graph.memory_graph import strongest_edges
from llama_index.gemrag.search.traversal import best_first


def order(node):
    return (str(node).zfill(3), "")


def slow(scores, edges, count, b, start=()):
    taken = list(start)
    while len(taken) - len(start) < count and len(taken) < len(edges):
        best = None
        for n in range(len(edges)):
            if n in taken:
                continue
            strongest = max((edges[c, n] for c in taken), default=None)
            near = 0 if scores is None else scores[n]
            both = 0 if strongest is None else (1 - b) * near + b * strongest
            value = near if strongest is None else strongest if scores is None else both
            if best is None or round(value, 5) > round(best[0], 5):
                best = (value, n)
        taken.append(best[1])
    return taken[len(start) :]


@settings(max_examples=80)
@given(st.integers(0, 10**6), st.integers(0, 12), st.floats(0, 1), st.integers(0, 3))
def test_it_takes_the_best_priority_each_time(seed, count, b, given_nodes):
    rng = np.random.default_rng(seed)
    scores, edges = rng.normal(size=8).round(2), rng.normal(size=(8, 8)).round(2)
    start = list(range(given_nodes))
    steps = best_first(scores, lambda c: edges[c], count, b, order, start)
    assert [node for node, _, _ in steps] == slow(scores, edges, count, b, start)
    if start:
        by_edges = best_first(None, lambda c: edges[c], count, b, order, start)
        assert [node for node, _, _ in by_edges] == slow(None, edges, count, b, start)


def test_without_edges_it_is_the_papers_algorithm():
    scores = np.array([0.3, 0.9, 0.1, 0.5])
    steps = best_first(scores, lambda c: np.zeros(4), 3, 0.0, order)
    assert [(node, via) for node, _, via in steps] == [(1, -1), (3, 1), (0, 1)]


def test_edges_lead_on_and_say_from_where():
    scores = np.array([1.0, 0.0, 0.4])
    edges = np.array([[0, 0.9, 0], [0, 0, 0], [0, 0, 0.0]])
    steps = best_first(scores, lambda c: edges[c], 2, 0.9, order)
    assert [(node, via) for node, _, via in steps] == [(0, -1), (1, 0)]


def test_filters_and_admission_are_kept():
    scores = np.array([4.0, 3, 2, 1])
    allowed = np.array([True, False, True, True])
    asked = []

    def admit(node, taken):
        asked.append(node)
        return node != 2

    steps = best_first(scores, lambda c: np.zeros(4), 4, 0.1, order, admit=admit, allowed=allowed)
    assert [node for node, _, _ in steps] == [0, 3]
    assert asked == [0, 2, 3]
    assert best_first(None, lambda c: np.zeros(4), 4, 0.1, order) == []


def test_the_strongest_edges_are_those_of_the_whole_matrix():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 4)), rng.normal(size=(30, 4))
    weights = (a @ b.T + b @ a.T) / 2
    np.fill_diagonal(weights, -np.inf)
    wanted = {tuple(sorted((i, int(j)))) for i in range(30) for j in np.argsort(-weights[i])[:2]}
    found = strongest_edges(a, b, 2)
    assert {(i, j) for i, j, _ in found} == wanted
    assert all(w == pytest.approx(weights[i, j]) for i, j, w in found)
    assert strongest_edges(a[:1], b[:1], 3) == strongest_edges(a, b, 0) == []
