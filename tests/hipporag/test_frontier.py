"""The walk over rows that are fetched: against the exact answer, and what it costs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hipporag.test_pagerank import by_solving, symmetric

from llama_index.hipporag.pagerank.frontier import FetchedRows, Frontier
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

    def over_all(self, frontier, values):
        found = np.zeros(len(self.ids))
        for node, value in zip(frontier.ids.tolist(), values, strict=True):
            found[self.number[node]] = value
        return found


def walked(stored, seeds, weights, **options):
    """What was read for a walk, and its scores over all nodes."""
    frontier = Frontier(stored.fetch, **options)
    frontier.read(stored.ids[seeds], weights)
    reset = np.zeros(len(frontier.ids))
    np.add.at(reset, frontier.places_of(stored.ids[seeds]), weights)
    walk = Walk.of(frontier.at_hand(), undirected=False)
    scores = pagerank(walk, reset, damping=options.get("damping", 0.5), tolerance=1e-12)
    return frontier, stored.over_all(frontier, scores)


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
@settings(max_examples=100)
def test_a_small_epsilon_gives_the_exact_walk(walk):
    stored, seeds, weights, options = walk
    _, scores = walked(stored, seeds, weights, damping=options["damping"], epsilon=1e-13)
    wanted = exact(stored.adjacency, seeds, weights, options["damping"])
    np.testing.assert_allclose(scores, wanted, atol=1e-9)


@given(walks())
@settings(max_examples=100)
def test_a_walk_over_what_was_read_lacks_what_other_nodes_would_have_moved(walk):
    stored, seeds, weights, options = walk
    if not np.asarray(stored.adjacency.sum(axis=1)).ravel()[seeds].all():
        return
    wanted = exact(stored.adjacency, seeds, weights, options["damping"])
    frontier, scores = walked(stored, seeds, weights, **options)
    assert scores.sum() == pytest.approx(1.0)
    part = frontier.kept.sum()
    assert (stored.over_all(frontier, frontier.kept) <= wanted + 1e-12).all()
    assert np.abs(scores - wanted).sum() <= 2 * (1 - part) / part + 1e-9


@given(walks())
@settings(max_examples=100)
def test_rows_are_fetched_once_and_no_more_than_epsilon_allows(walk):
    stored, seeds, weights, options = walk
    frontier, _ = walked(stored, seeds, weights, **options)
    assert len(set(stored.heads)) == len(stored.heads)
    assert len(set(stored.whole)) == len(stored.whole)
    assert frontier.calls == stored.calls
    # A hub's first row is read for epsilon, its others for epsilon each.
    assert stored.rows_read <= 2 / (options["epsilon"] * (1 - options["damping"]))


@given(walks(), st.integers(0, 13))
@settings(max_examples=100)
def test_a_second_walk_reads_what_the_first_has_not(walk, second):
    stored, seeds, weights, options = walk
    second = second % len(stored.ids)
    frontier = Frontier(stored.fetch, damping=options["damping"], epsilon=1e-13)
    frontier.read(stored.ids[seeds], weights)
    frontier.read(stored.ids[[second]], np.ones(1))
    assert len(set(stored.heads)) == len(stored.heads)
    scores = stored.over_all(frontier, frontier.kept)
    np.testing.assert_allclose(
        scores / scores.sum(), exact(stored.adjacency, [second], [1.0], options["damping"]), atol=1e-9
    )


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
    _, scores = walked(stored, seeds, np.ones(3), epsilon=1e-4)
    hubs = degrees > 16
    asked = {stored.number[node] for node in stored.whole}
    assert asked
    assert asked <= set(np.flatnonzero(hubs))
    assert len(asked) < hubs.sum()
    assert len(stored.heads) < 600
    assert set(np.argsort(-scores)[:3]) == set(np.argsort(-wanted)[:3])
    _, fine = walked(Stored(adjacency, segment=16), seeds, np.ones(3), epsilon=1e-6)
    assert np.abs(fine - wanted).sum() < np.abs(scores - wanted).sum() / 10


def test_the_result_does_not_depend_on_the_ids():
    adjacency, seeds = corpus(), np.array([40, 700])
    one, other = (walked(Stored(adjacency, seed=i), seeds, np.array([1.0, 0.2]), epsilon=1e-4)[1] for i in (1, 2))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_unlinked_seeds_alone_keep_everything():
    assert walked(Stored(symmetric([], 2)), np.array([1]), np.ones(1))[1].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("seeds", "weights"),
    [
        (np.empty(0, np.int64), np.empty(0)),
        (np.array([1]), np.array([0.0])),
        (np.array([1]), np.array([-1.0])),
        (np.array([1]), np.array([np.nan])),
    ],
)
def test_seeds_are_checked(seeds, weights):
    with pytest.raises(ConfigurationError):
        Frontier(Stored(symmetric([], 1)).fetch).read(seeds, weights)
