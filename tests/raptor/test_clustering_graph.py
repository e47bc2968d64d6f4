import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raptor import partitions
from tests.raptor.partitions import check_cover, contents, labels_of, planted

from llama_index.ragkit.errors import ConfigurationError, EmbeddingError
from llama_index.raptor.clustering.base import directions
from llama_index.raptor.clustering.graph import GraphClustering

clusterings = st.builds(
    GraphClustering,
    target_size=st.sampled_from([3, 5.5, 10]),
    max_size=st.sampled_from([10, 35]),
    n_neighbors=st.sampled_from([1, 4, 20]),
    overlap_threshold=st.sampled_from([None, 0.1, 0.25]),
    max_parents=st.integers(1, 3),
)


@settings(max_examples=150)
@given(partitions.vectors, clusterings)
def test_every_item_is_in_a_cluster_and_no_cluster_is_over_its_limit(
    vectors: np.ndarray, clustering: GraphClustering
) -> None:
    clusters = clustering.cluster(vectors)
    check_cover(clusters, len(vectors))
    assert all(len(cluster) <= clustering.max_size for cluster in clusters)
    parents = np.bincount(np.concatenate([np.empty(0, dtype=int), *clusters]), minlength=len(vectors))
    assert (parents <= (clustering.max_parents if clustering.overlap_threshold else 1)).all()


@settings(max_examples=100)
@given(partitions.vectors, clusterings, st.randoms(use_true_random=False))
def test_the_order_of_the_input_has_no_influence(
    vectors: np.ndarray, clustering: GraphClustering, random: object
) -> None:
    order = list(range(len(vectors)))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = vectors[order]
    assert contents(clustering.cluster(shuffled), shuffled) == contents(clustering.cluster(vectors), vectors)


@settings(max_examples=50)
@given(partitions.clouds, st.floats(0.01, 1000))
def test_only_directions_count(vectors: np.ndarray, length: float) -> None:
    scaled = vectors * 2.0 ** round(np.log2(length))  # powers of two: the same bits after normalising
    for a, b in zip(GraphClustering().cluster(vectors), GraphClustering().cluster(scaled), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", range(16))
def test_any_small_number_of_items(n: int) -> None:
    vectors = np.random.default_rng(n).standard_normal((n, 8)).astype(np.float32)
    clusters = GraphClustering().cluster(vectors)
    check_cover(clusters, n)
    if n:  # nearer to one cluster of twelve than to two
        assert len(clusters) == 1


@pytest.mark.parametrize(("groups", "size"), [(20, 10), (60, 12), (8, 25)])
def test_planted_clusters_are_found(groups: int, size: int) -> None:
    from sklearn.metrics import adjusted_rand_score

    vectors, labels = planted(groups, size)
    clusters = GraphClustering(target_size=size).cluster(vectors)
    assert adjusted_rand_score(labels, labels_of(clusters, len(labels))) > 0.97


@pytest.mark.parametrize("target", [5, 10, 20])
def test_the_mean_size_is_what_was_asked_for(target: int) -> None:
    vectors = np.random.default_rng(0).standard_normal((600, 16)).astype(np.float32)
    clusters = GraphClustering(target_size=target).cluster(vectors)
    assert 600 / len(clusters) == pytest.approx(target, rel=0.15)


def test_no_cluster_is_under_the_least_size_while_none_is_split() -> None:
    vectors, _ = planted(30, 7, noise=1.0)
    clusters = GraphClustering(target_size=6, min_size=4).cluster(vectors)
    assert min(map(len, clusters)) >= 4


def test_equal_vectors_stay_together_up_to_the_limit() -> None:
    vectors, _ = planted(10, 10)
    vectors[:8] = vectors[0]
    assert len(set(labels_of(GraphClustering().cluster(vectors), 100)[:8])) == 1


@pytest.mark.parametrize("vector", [np.ones(5), np.zeros(5)])
def test_only_equal_or_zero_vectors_are_cut_evenly(vector: np.ndarray) -> None:
    clusters = GraphClustering().cluster(np.tile(vector, (100, 1)))
    check_cover(clusters, 100)
    assert [len(cluster) for cluster in clusters] == [25] * 4


def test_zero_vectors_join_the_smallest_cluster() -> None:
    vectors, _ = planted(4, 9)
    clusters = GraphClustering(target_size=9).cluster(np.vstack([vectors, np.zeros((2, vectors.shape[1]))]))
    assert sorted(map(len, clusters)) == [9, 9, 9, 11]
    assert any({36, 37} <= set(cluster.tolist()) for cluster in clusters)


def test_an_outlier_beside_near_duplicates_keeps_its_neighbours() -> None:
    rng = np.random.default_rng(0)
    crowd = np.eye(8)[np.repeat([0, 1], 20)] + 1e-7 * rng.standard_normal((40, 8))
    outliers = np.eye(8)[[0, 1]] + 0.5 * np.eye(8)[[2, 3]]
    clusters = GraphClustering(target_size=20).cluster(np.vstack([crowd, outliers]))
    check_cover(clusters, 42)
    assert sorted(map(len, clusters)) == [21, 21]


def test_items_between_two_groups_join_both() -> None:
    vectors, labels = planted(12, 10, noise=0.25, seed=3)
    centres = directions(np.array([vectors[labels == group].mean(axis=0) for group in range(12)]))
    between = centres[:11:2] + centres[1::2]
    clustering = GraphClustering(target_size=10, overlap_threshold=0.25)
    clusters = clustering.cluster(np.vstack([vectors, between]))
    parents = np.bincount(np.concatenate(clusters))
    assert parents[120:].mean() > 1.5
    assert parents[:120].mean() < 1.1
    assert parents.max() == 2


def test_hard_by_default() -> None:
    vectors, _ = planted(12, 10, noise=1.0)
    assert sum(map(len, GraphClustering().cluster(vectors))) == 120


_DIGEST = """
import numpy as np
from llama_index.raptor.clustering.graph import GraphClustering
vectors = np.random.default_rng(0).standard_normal((1500, 48)).astype(np.float32)
clusters = GraphClustering(overlap_threshold=0.2).cluster(vectors)
print([cluster.tolist() for cluster in clusters])
"""


def test_neither_threads_nor_the_hash_seed_have_an_influence() -> None:
    digests = set()
    for seed, threads in (("0", "1"), ("2", "4")):
        env = os.environ | {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        done = subprocess.run([sys.executable, "-c", _DIGEST], env=env, capture_output=True, check=True)
        digests.add(hashlib.sha256(done.stdout).hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize(
    "parameters",
    [
        {"target_size": 2},
        {"target_size": 36},
        {"target_size": float("nan")},
        {"min_size": 0},
        {"min_size": 8, "max_size": 15},
        {"n_neighbors": 0},
        {"max_parents": 0},
        {"overlap_threshold": 0.0},
        {"overlap_threshold": 1.5},
        {"seed": -1},
    ],
)
def test_parameters_out_of_range_are_named(parameters: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError) as error:
        GraphClustering(**parameters)  # type: ignore[arg-type]
    assert all(name in str(error.value) and str(value) in str(error.value) for name, value in parameters.items())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_vectors_that_are_not_finite_are_refused(bad: float) -> None:
    vectors = np.ones((9, 4))
    vectors[6, 2] = bad
    with pytest.raises(EmbeddingError, match=r"1 of 9 .* row 6"):
        GraphClustering().cluster(vectors)


def test_one_dimension_too_few_is_refused() -> None:
    with pytest.raises(EmbeddingError, match=r"\(9,\)"):
        GraphClustering().cluster(np.ones(9))


def test_the_fingerprint_names_class_and_parameters() -> None:
    fingerprint = GraphClustering(target_size=7, seed=3).fingerprint
    assert json.loads(json.dumps(fingerprint)) == fingerprint
    assert fingerprint["class"] == "GraphClustering"
    assert fingerprint["target_size"] == "7"
    assert fingerprint != GraphClustering(target_size=7).fingerprint


def test_more_rows_than_all_pairs_allow_are_clustered_by_approximate_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    vectors, planted_labels = planted(120, 12)
    exact = GraphClustering().cluster(vectors)
    monkeypatch.setattr("llama_index.raptor.clustering.graph._EXACT_UP_TO", 100)
    clusters = GraphClustering().cluster(vectors)
    check_cover(clusters, len(vectors))
    pure = [np.unique(planted_labels[cluster]).size == 1 for cluster in clusters]
    assert np.mean(pure) > 0.95
    assert abs(len(clusters) - len(exact)) <= 0.05 * len(exact)
