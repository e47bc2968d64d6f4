"""PageRank: closed forms, igraph, invariants; and the local push against the exact answer and its own bounds."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.hipporag.pagerank import power_iteration
from llama_index.hipporag.pagerank.forward_push import PushState, refinements, settled
from llama_index.hipporag.pagerank.power_iteration import Walk, pagerank
from llama_index.ragkit.errors import ConfigurationError


def symmetric(edges: list[tuple[int, int, float]], n: int) -> sp.csr_matrix:
    weights = np.zeros((n, n))
    for i, j, weight in edges:
        weights[i, j] += weight
        weights[j, i] += weight if i != j else 0.0
    return sp.csr_matrix(weights)


def by_solving(adjacency: sp.csr_matrix, reset: np.ndarray, damping: float) -> np.ndarray:
    """The slow reference: the linear system of the definition, with dangling nodes that step to the reset."""
    weights = adjacency.toarray()
    strength = weights.sum(axis=1)
    reset = reset / reset.sum()
    steps = np.where(strength[:, None] > 0, weights / np.where(strength, strength, 1.0)[:, None], reset[None, :])
    return np.linalg.solve(np.eye(len(reset)) - damping * steps.T, (1 - damping) * reset)


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 12))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, st.sampled_from([0.5, 1.0, 3.0])), max_size=20))
    seeds = draw(st.lists(node, min_size=1, max_size=4))
    weights = draw(st.lists(st.floats(0.01, 5), min_size=len(seeds), max_size=len(seeds)))
    return symmetric(edges, n), np.array(seeds), np.array(weights), draw(st.sampled_from([0.0, 0.1, 0.5, 0.85]))


def dense(nodes, weights, n):
    reset = np.zeros(n)
    np.add.at(reset, nodes, weights)
    return reset


def push(graph, nodes, weights, damping=0.5, epsilon=4e-7):
    """The estimate before the first step."""
    state = PushState(graph, nodes, weights, damping, epsilon)
    state.push()
    return state.estimate(state.closed())


def scores_of(walk, estimate):
    """Scores of the nodes as they are numbered in the walk's own graph."""
    return estimate.scores[walk.ordered.place]


def test_two_nodes_closed_form():
    scores = pagerank(Walk.of(symmetric([(0, 1, 7.0)], 2)), np.array([1.0, 0.0]), damping=0.5, tolerance=1e-14)
    np.testing.assert_allclose(scores, [2 / 3, 1 / 3], atol=1e-13)  # x0 = 1/2 + x1 / 2, x1 = x0 / 2


def test_isolated_seed_keeps_everything():
    walk = Walk.of(symmetric([(0, 1, 1.0)], 3))
    np.testing.assert_allclose(pagerank(walk, np.array([0.0, 0.0, 2.0])), [0, 0, 1])
    np.testing.assert_allclose(scores_of(walk, push(walk.ordered, np.array([2]), np.array([2.0]))), [0, 0, 1])


@settings(max_examples=150)
@given(graphs())
def test_equals_the_linear_system(case):
    adjacency, seeds, weights, damping = case
    reset = dense(seeds, weights, adjacency.shape[0])
    scores = pagerank(Walk.of(adjacency), reset, damping=damping, tolerance=1e-13)
    np.testing.assert_allclose(scores, by_solving(adjacency, reset, damping), atol=1e-12)
    assert scores.sum() == pytest.approx(1.0)


def test_a_directed_graph_is_walked_along_its_edges():
    adjacency = sp.csr_matrix(np.array([[0, 2.0, 0], [0, 0, 1.0], [0, 0, 0]]))
    reset = np.array([1.0, 0, 0])
    scores = pagerank(Walk.of(adjacency, undirected=False), reset, damping=0.5, tolerance=1e-14)
    np.testing.assert_allclose(scores, by_solving(adjacency, reset, 0.5), atol=1e-12)


@pytest.mark.parametrize("damping", [0.1, 0.5, 0.85])
def test_equals_igraph(damping):
    igraph = pytest.importorskip("igraph")
    rng = np.random.default_rng(3)
    pairs = [(int(i), int(j)) for i, j in rng.integers(0, 60, (150, 2)) if i != j]  # with parallel edges, node 60 alone
    weights = rng.random(len(pairs)) + 0.1
    graph = igraph.Graph(n=61, edges=pairs, directed=False)
    reset = rng.random(61) * (rng.random(61) < 0.1)
    reset[60] = 1.0
    expected = graph.personalized_pagerank(
        damping=damping, reset=reset.tolist(), weights=weights.tolist(), directed=False, implementation="prpack"
    )
    adjacency = symmetric([(i, j, float(weight)) for (i, j), weight in zip(pairs, weights, strict=True)], 61)
    np.testing.assert_allclose(
        pagerank(Walk.of(adjacency), reset, damping=damping, tolerance=1e-14), expected, atol=1e-12
    )


def test_many_queries_are_each_as_alone():
    rng = np.random.default_rng(0)
    walk = Walk.of(symmetric([(int(i), int(j), 1.0) for i, j in rng.integers(0, 30, (60, 2))], 30))
    resets = rng.random((7, 30))
    alone = np.stack([pagerank(walk, reset, tolerance=1e-13) for reset in resets])
    np.testing.assert_allclose(pagerank(walk, resets, tolerance=1e-13), alone, atol=1e-12)


def test_a_tolerance_below_rounding_ends():
    walk = Walk.of(symmetric([(0, 1, 1.0), (1, 2, 0.3)], 3))
    assert pagerank(walk, np.array([0.3, 0.3, 0.7]), damping=0.9, tolerance=1e-300).sum() == pytest.approx(1.0)


ROUNDING = 1e-6  # steps of the whole graph are made in single precision


@settings(max_examples=150)
@given(graphs(), st.sampled_from([1e-1, 1e-3, 1e-6]), st.sampled_from([1, 3, 256]))
def test_every_estimate_is_within_its_bounds_and_the_last_is_exact(case, epsilon, most_hubs):
    adjacency, seeds, weights, damping = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power_iteration, "MOST_HUBS", most_hubs)
        walk = Walk.of(adjacency)
        estimates = [push(walk.ordered, seeds, weights, damping=damping, epsilon=epsilon)]
        estimates += refinements(walk.ordered, seeds, weights, damping=damping, epsilon=epsilon)
    exact = pagerank(walk, dense(seeds, weights, len(walk)), damping=damping, tolerance=1e-14)
    for estimate in estimates:
        found = scores_of(walk, estimate)
        assert found.sum() <= 1 + ROUNDING  # what is guessed is no more than what is missing
        assert (found >= 0).all()
        assert np.abs(found - exact).sum() <= 2 * estimate.missing + ROUNDING
    np.testing.assert_allclose(scores_of(walk, estimates[-1]), exact, atol=ROUNDING)


@settings(max_examples=50)
@given(graphs(), st.sampled_from([1, 3]))
def test_an_estimate_knows_what_it_was_a_step_ago(case, most_hubs):
    """Asked of the same walk, stopped a step sooner."""
    adjacency, seeds, weights, damping = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(power_iteration, "MOST_HUBS", most_hubs)
        walk = Walk.of(adjacency)
        sooner = push(walk.ordered, seeds, weights, damping=damping, epsilon=0.05)
        for estimate in refinements(walk.ordered, seeds, weights, damping=damping, epsilon=0.05):
            projection = sp.csr_matrix(np.eye(len(walk))[::2])
            scores_of_passages, rows = projection @ estimate.scores, np.arange(0, projection.shape[0], 2)
            if estimate.steps <= 2:  # then 4: there the estimate of a step ago is not at hand
                was = scores_of_passages[rows] - estimate.gain(projection, scores_of_passages, rows)
                np.testing.assert_allclose(was, (projection @ sooner.scores)[rows], atol=ROUNDING)
            sooner = estimate


def power_law(n: int, seed: int = 0) -> sp.csr_matrix:
    """Chung-Lu: mean degree 4, hubs."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(np.arange(1, n + 1) ** -0.8)
    ends = np.minimum(np.searchsorted(share / share[-1], rng.random((2, 2 * n))), n - 1)
    ends = ends[:, ends[0] != ends[1]]
    half = sp.coo_matrix((np.ones(ends.shape[1]), ends), shape=(n, n))
    return (half + half.T).tocsr()


def test_push_finds_the_best_nodes_of_a_graph_with_hubs():
    walk = Walk.of(power_law(20_000))
    rng = np.random.default_rng(1)
    for _ in range(5):
        seeds = rng.choice(np.flatnonzero(walk.strength > 0), 4, replace=False)
        exact = pagerank(walk, dense(seeds, np.ones(4), len(walk)))
        found = scores_of(walk, push(walk.ordered, seeds, np.ones(4)))
        assert set(np.argsort(-exact)[:20]) == set(np.argsort(-found)[:20])
        assert np.abs(found - exact).sum() < 0.05


def test_what_lies_on_hubs_is_accounted_for():
    """A hub that is not opened still has what comes back to it from its neighbours."""
    leaves = 2_000
    ring = [(leaf, leaf % leaves + 1, 1.0) for leaf in range(1, leaves + 1)]
    walk = Walk.of(symmetric([(0, leaf, 1.0) for leaf in range(1, leaves + 1)] + ring, leaves + 1))
    pushed = push(walk.ordered, np.array([0]), np.array([1.0]), epsilon=1e-3)  # the hub is not opened
    exact = pagerank(walk, dense([0], [1.0], leaves + 1))[0]
    assert exact > 0.55  # .5 if nothing came back
    assert scores_of(walk, pushed)[0] == pytest.approx(exact, rel=0.05)


def test_steps_come_nearer_at_least_by_the_damping():
    walk = Walk.of(power_law(3_000))
    seeds, weights = np.array([7, 3, 2_500]), np.array([1.0, 2.0, 0.5])
    exact = pagerank(walk, dense(seeds, weights, 3_000), tolerance=1e-13)
    estimates = list(refinements(walk.ordered, seeds, weights, epsilon=1e-3))
    assert [estimate.steps for estimate in estimates[:4]] == [1, 2, 4, 8]
    first, *rest = (np.abs(scores_of(walk, estimate) - exact).sum() for estimate in estimates)
    assert first > 1e-3
    for error, estimate in zip(rest, estimates[1:], strict=True):
        assert error <= first * 0.5 ** (estimate.steps - 1) + ROUNDING


def test_a_settled_list_is_the_exact_one():
    """Asked of a graph in which many passages nearly tie: every list that is called settled is right."""
    walk = Walk.of(power_law(20_000))
    rng = np.random.default_rng(4)
    projection = sp.csr_matrix((np.ones(9 * 4_000), rng.integers(0, 20_000, 9 * 4_000), np.arange(0, 9 * 4_001, 9)))
    projection = sp.csr_matrix(projection, shape=(4_000, 20_000))
    after = []
    for _ in range(20):
        seeds = rng.choice(np.flatnonzero(walk.strength > 0), 4, replace=False)
        exact = projection @ pagerank(walk, dense(seeds, np.ones(4), len(walk)))[walk.ordered.order]
        for estimate in refinements(walk.ordered, seeds, np.ones(4), epsilon=1e-4):
            scores_of_passages = projection @ estimate.scores
            if settled(
                scores_of_passages, 20, partial(estimate.gain, projection, scores_of_passages), estimate.uncertainty
            ):
                break
        after.append(estimate.steps)
        assert set(np.argsort(-scores_of_passages)[:20]) == set(np.argsort(-exact)[:20])
    assert min(after) < 4  # some are settled early
    assert len(set(after)) > 1  # and others are not


@pytest.mark.parametrize(
    ("scores", "k", "changes", "expected"),
    [
        ([0.5, 0.3, 0.2], 2, [0.1, 0.02, 0.02], True),  # alike: the second and the third keep their distance
        ([0.5, 0.3, 0.2], 2, [0.0, 0.0, 0.06], False),  # the third may come up by .12
        ([0.5, 0.3, 0.2], 2, [0.0, 0.06, 0.0], False),  # what came to the second may have been too much
        ([0.5, 0.3, 0.2], 1, [0.0, 0.06, 0.0], True),
        ([0.5, 0.3, 0.2, 0.1], 2, [0.0, 0.0, 0.0, 0.3], False),  # far below, and growing
        ([0.2, 0.5, 0.2], 2, [0.0, 0.0, 0.0], True),  # a tie that no step will change
        ([0.2, 0.5, 0.2], 2, [0.0, 0.0, 0.1], False),
        ([0.5, 0.3, 0.2], 3, [1.0, -1.0, 1.0], True),  # nothing is left out
        ([], 5, [], True),
    ],
)
def test_a_list_is_settled_when_no_further_change_could_change_it(scores, k, changes, expected):
    assert settled(np.array(scores), k, np.array(changes).__getitem__, 2.0) is expected


@pytest.mark.parametrize(
    "call",
    [
        lambda walk: pagerank(walk, np.zeros(3)),
        lambda walk: pagerank(walk, np.array([1.0, -1.0, 0.0])),
        lambda walk: pagerank(walk, np.array([1.0, np.nan, 0.0])),
        lambda walk: push(walk.ordered, np.array([], dtype=int), np.array([])),
        lambda walk: Walk.of(sp.csr_matrix(-np.ones((2, 2)))),
        lambda walk: Walk.of(sp.csr_matrix([[0, np.inf], [np.inf, 0]])),
    ],
)
def test_what_cannot_be_walked_is_refused(call):
    with pytest.raises(ConfigurationError):
        call(Walk.of(symmetric([(0, 1, 1.0)], 3)))


@given(graphs())
def test_a_walk_of_few_steps_is_the_beginning_of_the_series(case):
    """(1 - d) sum over j < k of (d P^T)^j v, and (d P^T)^k v, where every node has an edge."""
    adjacency, nodes, weights, _ = case
    adjacency = adjacency + sp.eye(adjacency.shape[0], format="csr")
    step = (adjacency.toarray() / adjacency.toarray().sum(axis=1, keepdims=True)).T
    reset = dense(nodes, weights, len(step))
    reset /= reset.sum()
    moved = [reset]
    for steps in range(4):
        expected = 0.6 * sum((0.4**j * part for j, part in enumerate(moved[:-1])), np.zeros_like(reset))
        found = pagerank(Walk.of(adjacency), reset, damping=0.4, max_steps=steps)
        np.testing.assert_allclose(found, expected + 0.4**steps * moved[-1], atol=1e-9)
        moved.append(step @ moved[-1])
