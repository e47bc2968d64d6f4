"""Forward push over rows that are fetched: against the exact answer, its own bounds, and what it costs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hipporag.test_pagerank import by_solving, symmetric

from llama_index.hipporag.pagerank.frontier import FetchedRows, frontiers
from llama_index.hipporag.pagerank.power_iteration import Walk, pagerank
from llama_index.ragkit.errors import ConfigurationError


class Stored:
    """A graph whose rows are fetched by ids; rows of more than `segment` edges are given at the second request."""

    def __init__(self, adjacency, segment=4, seed=0):
        self.adjacency, self.segment = adjacency.tocsr(), segment
        drawn = np.random.default_rng(seed).integers(-(2**62), 2**62, adjacency.shape[0])
        self.ids = drawn + np.arange(len(drawn))
        self.number = {int(node): i for i, node in enumerate(self.ids)}
        self.heads, self.whole, self.rows_read, self.calls = [], [], 0, 0

    def fetch(self, unknown, hubs):
        self.calls += 1
        self.heads += unknown.tolist()
        self.whole += hubs.tolist()
        nodes, further, rows = [], [], []
        for node, is_hub in [*((i, False) for i in unknown.tolist()), *((i, True) for i in hubs.tolist())]:
            row = self.adjacency[self.number[node]]
            segments = -(-row.nnz // self.segment) if row.nnz > self.segment else 0
            self.rows_read += segments if is_hub else 1
            nodes.append(node)
            further.append(0 if is_hub else segments)
            rows.append(row if is_hub or not segments else row[:, :0])
        indptr = np.cumsum([0, *(row.nnz for row in rows)])
        neighbors = [self.ids[row.indices] for row in rows if row.shape[1]]
        weights = [row.data for row in rows if row.shape[1]]
        return FetchedRows(
            np.array(nodes, np.int64),
            np.array(further, np.int64),
            indptr,
            np.concatenate([np.empty(0, np.int64), *neighbors]),
            np.concatenate([np.empty(0), *weights]),
        )

    def over_all(self, estimate, values=None):
        found = np.zeros(len(self.ids))
        for node, value in zip(estimate.nodes.tolist(), estimate.scores if values is None else values, strict=True):
            found[self.number[node]] = value
        return found


def last(stored, seeds, weights, **options):
    *_, estimate = frontiers(stored.fetch, stored.ids[seeds], weights, **options)
    return estimate


def exact(adjacency, seeds, weights, damping=0.5):
    reset = np.zeros(adjacency.shape[0])
    np.add.at(reset, seeds, weights)
    return by_solving(adjacency, reset, damping)


@st.composite
def walks(draw):
    n = draw(st.integers(1, 14))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, st.sampled_from([0.5, 1.0, 10.0])), max_size=30))
    seeds = draw(st.lists(node, min_size=1, max_size=4))
    weights = draw(st.lists(st.floats(0.01, 5), min_size=len(seeds), max_size=len(seeds)))
    options = {
        "damping": draw(st.sampled_from([0.0, 0.1, 0.5, 0.85])),
        "epsilon": draw(st.sampled_from([1e-1, 1e-3, 1e-6])),
    }
    return Stored(symmetric(edges, n), draw(st.integers(1, 5))), np.array(seeds), np.array(weights), options


@given(walks())
@settings(max_examples=300, deadline=None)
def test_every_estimate_is_below_the_exact_one_by_at_most_its_bounds(walk):
    stored, seeds, weights, options = walk
    wanted = exact(stored.adjacency, seeds, weights, options["damping"])
    strength = np.asarray(stored.adjacency.sum(axis=1)).ravel()
    linked = strength[seeds] > 0
    before = None
    for estimate in frontiers(stored.fetch, stored.ids[seeds], weights, **options):
        scores = stored.over_all(estimate)
        assert scores.sum() + estimate.missing == pytest.approx(1.0)
        if linked.all():
            short = wanted - scores
            assert short.min() >= -1e-12
            assert short.max() <= estimate.missing + 1e-12
            has_edges = strength > 0
            assert (short[has_edges] <= estimate.by_strength * strength[has_edges] + 1e-12).all()
            reached = np.isin(stored.ids, estimate.nodes)
            assert (short <= stored.over_all(estimate, estimate.gains) + 1e-12)[reached].all()
        if before is not None:
            assert (scores >= before - 1e-12).all()
        before = scores


@given(walks())
@settings(max_examples=100, deadline=None)
def test_a_small_epsilon_gives_the_exact_walk(walk):
    stored, seeds, weights, options = walk
    estimate = last(stored, seeds, weights, damping=options["damping"], epsilon=1e-12)
    wanted = exact(stored.adjacency, seeds, weights, options["damping"])
    np.testing.assert_allclose(stored.over_all(estimate), wanted, atol=1e-9)
    assert estimate.missing == pytest.approx(0, abs=1e-9)


@given(walks())
@settings(max_examples=150, deadline=None)
def test_rows_are_fetched_once_and_no_more_than_epsilon_allows(walk):
    stored, seeds, weights, options = walk
    estimate = last(stored, seeds, weights, **options)
    assert len(set(stored.heads)) == len(stored.heads)
    assert len(set(stored.whole)) == len(stored.whole)
    assert estimate.calls == stored.calls
    assert estimate.read == len(stored.heads)
    # A hub's first row is read for epsilon, its others for epsilon each.
    assert stored.rows_read <= 2 / (options["epsilon"] * (1 - options["damping"]))


@given(walks(), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_a_settled_list_is_the_exact_one(walk, k):
    stored, seeds, weights, options = walk
    strength = np.asarray(stored.adjacency.sum(axis=1)).ravel()
    if not strength[seeds].all():
        return
    wanted = exact(stored.adjacency, seeds, weights, options["damping"])
    for estimate in frontiers(stored.fetch, stored.ids[seeds], weights, **options):
        if estimate.settled(k):
            best = estimate.nodes[np.argsort(-estimate.scores, kind="stable")[:k]]
            others = np.delete(wanted, [stored.number[int(node)] for node in best])
            chosen = [wanted[stored.number[int(node)]] for node in best]
            assert min(chosen) >= others.max(initial=0.0) - 1e-12


def test_a_clear_list_is_settled_before_the_walk_ends():
    """A path: its first nodes have most of the mass, whatever is fetched at its far end."""
    stored = Stored(symmetric([(i, i + 1, 1.0) for i in range(60)], 61))
    seen = [e.settled(2) for e in frontiers(stored.fetch, stored.ids[:1], np.ones(1), epsilon=1e-9)]
    assert seen[-1]
    assert seen.index(True) < len(seen) // 2
    among = np.zeros(61, np.bool_)
    first = next(frontiers(stored.fetch, stored.ids[:1], np.ones(1)))
    assert not first.settled(5, among[: len(first.nodes)])


def corpus(n=3000, seed=1):
    """A power-law graph with hubs of hundreds of edges."""
    rng = np.random.default_rng(seed)
    share = np.cumsum(np.arange(1, n + 1) ** -0.8)
    ends = np.searchsorted(share / share[-1], rng.random((2, 3 * n))).clip(max=n - 1)
    ends = ends[:, ends[0] != ends[1]]
    half = sp.coo_matrix((np.ones(ends.shape[1]), tuple(ends)), shape=(n, n)).tocsr()
    return (half + half.T).tocsr()


def test_hubs_are_read_only_for_mass_that_is_worth_it():
    adjacency = corpus()
    degrees = np.diff(adjacency.indptr)
    assert degrees.max() > 300
    stored, seeds = Stored(adjacency, segment=16), np.flatnonzero(degrees == 2)[:3]
    wanted = pagerank(Walk.of(adjacency), np.bincount(seeds, minlength=3000).astype(float))
    estimate = last(stored, seeds, np.ones(3), epsilon=1e-4)
    hubs = degrees > 16
    asked = {stored.number[node] for node in stored.whole}
    assert asked
    assert asked <= set(np.flatnonzero(hubs))
    assert len(asked) < hubs.sum()
    assert estimate.read < 600
    found = stored.over_all(estimate)
    assert (wanted - found).max() < estimate.missing
    assert set(np.argsort(-found)[:3]) == set(np.argsort(-wanted)[:3])
    fine = last(Stored(adjacency, segment=16), seeds, np.ones(3), epsilon=1e-6)
    np.testing.assert_allclose(stored.over_all(fine), wanted, atol=1e-3)
    assert fine.missing < estimate.missing / 10


def test_the_result_does_not_depend_on_the_ids():
    adjacency, seeds = corpus(), np.array([40, 700])
    one, other = Stored(adjacency, seed=1), Stored(adjacency, seed=2)
    scores = [s.over_all(last(s, seeds, np.array([1.0, 0.2]), epsilon=1e-4)) for s in (one, other)]
    np.testing.assert_allclose(*scores, rtol=1e-9)
    again = Stored(adjacency, seed=1)
    assert (
        last(again, seeds, np.array([1.0, 0.2]), epsilon=1e-4).scores
        == last(Stored(adjacency, seed=1), seeds, np.array([1.0, 0.2]), epsilon=1e-4).scores
    ).all()


def test_seeds_without_edges_restart_the_walk():
    """Node 2 has no edges: its mass returns to the reset, so that the others share all of it in proportion."""
    adjacency = symmetric([(0, 1, 1.0)], 3)
    stored, seeds, weights = Stored(adjacency), np.array([0, 2, 2]), np.array([1.0, 0.5, 0.5])
    estimate = last(stored, seeds, weights, epsilon=1e-9)
    np.testing.assert_allclose(stored.over_all(estimate), exact(adjacency, seeds, weights), atol=1e-8)


def test_unlinked_seeds_alone_keep_everything():
    stored = Stored(symmetric([], 2))
    assert stored.over_all(last(stored, np.array([1]), np.ones(1))).tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("seeds", "weights", "options"),
    [
        (np.empty(0, np.int64), np.empty(0), {}),
        (np.array([1]), np.array([0.0]), {}),
        (np.array([1]), np.array([-1.0]), {}),
        (np.array([1]), np.array([np.nan]), {}),
        (np.array([1, 2]), np.array([1.0]), {}),
        (np.array([1]), np.ones(1), {"epsilon": 0.0}),
        (np.array([1]), np.ones(1), {"damping": 1.0}),
    ],
)
def test_seeds_and_parameters_are_checked(seeds, weights, options):
    with pytest.raises(ConfigurationError):
        next(frontiers(Stored(symmetric([], 1)).fetch, seeds, weights, **options))
