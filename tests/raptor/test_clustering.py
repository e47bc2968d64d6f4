import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raptor import partitions
from tests.raptor.partitions import check_cover, contents, planted
from threadpoolctl import threadpool_info

from llama_index.ragkit.blas import one_blas_thread
from llama_index.ragkit.errors import EmbeddingError
from llama_index.raptor.clustering.base import Distinct, canonical, directions, halves, limit_weight
from llama_index.raptor.clustering.graph import GraphClustering


class Stubborn:
    """Never splits anything, or splits off as little as it can."""

    def __init__(self, how: str) -> None:
        self.fingerprint = {"class": "Stubborn", "how": how}
        self.calls = 0

    def cluster(self, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
        self.calls += 1
        n = len(vectors)
        return {
            "whole": [np.arange(n)],
            "sheds one": [np.arange(1), np.arange(1, n)],
            "overlaps": [np.arange(n - n // 3), np.arange(n // 3, n), np.arange(0, n, 2)],
            "loses some": [np.arange(n // 2)],
            "nothing": [],
        }[self.fingerprint["how"]]


def test_canonical_order() -> None:
    given = [np.array([5, 3]), np.array([], dtype=int), np.array([2, 0, 2]), np.array([3, 5]), np.array([0])]
    assert [cluster.tolist() for cluster in canonical(given)] == [[0], [0, 2], [3, 5]]


@settings(max_examples=100)
@given(partitions.vectors, st.floats(1, 200), st.integers(0, 2**16), st.sampled_from(["graph", *"ws"]))
def test_no_cluster_is_over_the_weight_save_single_items(vectors: np.ndarray, most: float, seed: int, how: str) -> None:
    clustering = {"graph": GraphClustering(), "w": Stubborn("whole"), "s": Stubborn("sheds one")}[how]
    weights = np.random.default_rng(seed).integers(0, 100, len(vectors))
    clusters = limit_weight(clustering.cluster(vectors), vectors, weights, most, clustering) if len(vectors) else []
    check_cover(clusters, len(vectors))
    assert all(len(cluster) == 1 or weights[cluster].sum() <= most for cluster in clusters)


@pytest.mark.parametrize("how", ["whole", "sheds one", "overlaps", "loses some", "nothing"])
def test_a_clustering_that_makes_no_progress_ends_after_few_rounds(how: str) -> None:
    clustering = Stubborn(how)
    vectors = np.random.default_rng(0).standard_normal((500, 6))
    clusters = limit_weight([np.arange(500)], vectors, np.ones(500), 10, clustering)
    check_cover(clusters, 500)
    assert max(map(len, clusters)) <= 10
    assert clustering.calls < 2 * 500 / 5  # a halving tree with leaves of at least five


def test_light_clusters_are_left_alone_and_heavy_ones_split_by_their_meaning() -> None:
    vectors, labels = planted(6, 10)
    two = [np.flatnonzero(labels < 5), np.flatnonzero(labels == 5)]
    clusters = limit_weight(two, vectors, np.ones(60), 10, GraphClustering(target_size=10))
    assert [set(labels[cluster]) for cluster in clusters] == [{labels[cluster[0]]} for cluster in clusters]
    assert len(clusters) == 6


def test_a_single_item_over_the_weight_stays_alone() -> None:
    vectors = np.eye(4)
    clusters = limit_weight([np.arange(4)], vectors, np.array([1, 1, 900, 1]), 100, GraphClustering())
    assert [2] in [cluster.tolist() for cluster in clusters]
    check_cover(clusters, 4)


@settings(max_examples=100)
@given(partitions.vectors.filter(lambda vectors: len(vectors) > 1), st.randoms(use_true_random=False))
def test_halves_are_two_and_do_not_depend_on_the_order(vectors: np.ndarray, random: object) -> None:
    order = list(range(len(vectors)))
    random.shuffle(order)  # type: ignore[attr-defined]
    both = halves(np.arange(len(vectors)), vectors)
    assert len(both) == 2
    check_cover(canonical(both), len(vectors))
    assert abs(len(both[0]) - len(both[1])) <= 1
    shuffled = vectors[order]
    assert contents(halves(np.arange(len(vectors)), shuffled), shuffled) == contents(both, vectors)


def test_halves_cut_across_the_widest_direction_and_balance_the_weights() -> None:
    angles = np.radians([0, 1, 2, 40, 41, 42])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert [set(half.tolist()) for half in canonical(halves(np.arange(6), vectors))] == [{0, 1, 2}, {3, 4, 5}]
    weighted = canonical(halves(np.arange(6), vectors, np.array([5.0, 1, 1, 1, 1, 1])))
    assert [half.tolist() for half in weighted] == [[0], [1, 2, 3, 4, 5]]


def test_halves_of_more_rows_than_dimensions() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((300, 4)) * [0.1, 0.1, 3, 0.1] + [0, 0, 0, 5]
    one, other = halves(np.arange(300), vectors)
    assert {len(one), len(other)} == {150}
    tilt = directions(vectors)[:, 2]
    assert tilt[one].max() <= tilt[other].min() or tilt[other].max() <= tilt[one].min()


# Distinct rows


@settings(max_examples=100)
@given(partitions.vectors)
def test_distinct_rows_account_for_every_position_once(vectors: np.ndarray) -> None:
    distinct = Distinct.of(vectors)
    everything = np.concatenate([*distinct.copies, distinct.empty])
    np.testing.assert_array_equal(np.sort(everything), np.arange(len(vectors)))
    assert len(np.unique(distinct.rows, axis=0)) == len(distinct.rows)
    rows = directions(vectors)
    for row, positions in zip(distinct.rows, distinct.copies, strict=True):
        assert (rows[positions] == row).all()


def test_directions_survive_extreme_lengths_and_negative_zeros() -> None:
    rows = directions(np.array([[3e38, 0], [0, 1e-40], [-0.0, 2]], dtype=np.float32))
    np.testing.assert_array_equal(rows, [[1, 0], [0, 1], [0, 1]])
    assert len(Distinct.of(rows).rows) == 2


# Threads


def threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_a_second_thread_waits_so_that_its_limit_is_never_lifted_by_the_first() -> None:
    before = threads()
    inside, seen = threading.Event(), []

    def other() -> None:
        with one_blas_thread, one_blas_thread:
            inside.set()
            seen.append(threads())

    with one_blas_thread:
        worker = threading.Thread(target=other)
        worker.start()
        assert set(threads()) == {1}
        assert not inside.wait(0.05)
    worker.join(10)
    assert set(seen[0]) == {1}
    assert threads() == before


def test_the_limit_is_lifted_after_an_error() -> None:
    before = threads()
    with pytest.raises(EmbeddingError):
        GraphClustering().cluster(np.full((5, 2), np.nan))
    assert threads() == before
