import os
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score
from tests.raptor import partitions
from tests.raptor.partitions import check_cover, contents, labels_of, planted
from tests.raptor.published_clustering import published_clusters

from llama_index.ragkit.blas import one_blas_thread
from llama_index.ragkit.errors import ConfigurationError, EmbeddingError
from llama_index.raptor.clustering import umap_gmm
from llama_index.raptor.clustering.graph import GraphClustering
from llama_index.raptor.clustering.umap_gmm import UMAPGMMClustering

# Importing it takes seconds, in every process that collects tests.
pytestmark = pytest.mark.skipif(find_spec("umap") is None, reason="umap-learn is missing")


@pytest.mark.parametrize("n", range(12))
def test_up_to_eleven_items_are_one_cluster(n: int) -> None:
    vectors = np.random.default_rng(n).standard_normal((n, 8)).astype(np.float32)
    clusters = UMAPGMMClustering().cluster(vectors)
    assert [cluster.tolist() for cluster in clusters] == ([list(range(n))] if n else [])


@pytest.mark.parametrize("n", [12, 13, 20, 33])
def test_small_numbers_of_items(n: int) -> None:
    vectors = np.random.default_rng(n).standard_normal((n, 8)).astype(np.float32)
    check_cover(UMAPGMMClustering().cluster(vectors), n)


@settings(max_examples=60)
@given(partitions.vectors, st.sampled_from([1, 2, 10]), st.randoms(use_true_random=False))
def test_every_item_is_in_a_cluster_in_any_order_of_the_input(
    vectors: np.ndarray, n_components: int, random: object
) -> None:
    clustering = UMAPGMMClustering(n_components=n_components, max_clusters=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mixtures of a handful of points do not converge
        clusters = clustering.cluster(vectors)
        check_cover(clusters, len(vectors))
        order = list(range(len(vectors)))
        random.shuffle(order)  # type: ignore[attr-defined]
        shuffled = vectors[order]
        assert contents(clustering.cluster(shuffled), shuffled) == contents(clusters, vectors)


def test_equal_and_zero_vectors_are_kept() -> None:
    vectors, _ = planted(4, 10)
    vectors[:5] = vectors[0]
    vectors[5:7] = 0
    clusters = UMAPGMMClustering().cluster(vectors)
    check_cover(clusters, 40)
    for same in (range(5), range(5, 7)):
        assert len({tuple(i in cluster for cluster in clusters) for i in same}) == 1


@pytest.mark.parametrize("vector", [np.ones(5), np.zeros(5)])
def test_only_equal_or_zero_vectors_are_one_cluster(vector: np.ndarray) -> None:
    assert len(UMAPGMMClustering().cluster(np.tile(vector, (30, 1)))) == 1


def test_two_runs_are_identical() -> None:
    vectors, _ = planted(20, 10, noise=0.8)
    first, second = (UMAPGMMClustering(seed=5).cluster(vectors) for _ in range(2))
    assert [c.tolist() for c in first] == [c.tolist() for c in second]


def test_a_lower_threshold_gives_more_memberships() -> None:
    vectors, _ = planted(12, 12, noise=1.5)
    loose, strict = (sum(map(len, UMAPGMMClustering(threshold=t).cluster(vectors))) for t in (1e-9, 0.99))
    assert loose > strict == 144


def test_the_ceiling_on_k_holds() -> None:
    vectors, _ = planted(20, 10)
    clustering = UMAPGMMClustering(max_clusters=4)
    assert len(clustering._components(vectors, 15)) <= 3


def test_golden_section_needs_few_fits_and_finds_planted_k(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.mixture

    fits: list[int] = []

    class Counting(sklearn.mixture.GaussianMixture):  # type: ignore[misc]
        def fit(self, points: np.ndarray, y: None = None) -> "Counting":
            fits.append(self.n_components)
            return super().fit(points)  # type: ignore[no-any-return]

    monkeypatch.setattr(sklearn.mixture, "GaussianMixture", Counting)
    rng = np.random.default_rng(0)
    points = 20 * rng.standard_normal((9, 3))[rng.integers(9, size=500)] + rng.standard_normal((500, 3))
    best = UMAPGMMClustering()._best_mixture(points)
    assert best.n_components == 9
    assert len(fits) == len(set(fits)) <= 13


def quality(clusters: list[np.ndarray], labels: np.ndarray) -> float:
    return float(adjusted_rand_score(labels, labels_of(clusters, len(labels))))


# What the published procedure finds of the vectors below.
PUBLISHED_CLUSTERS, PUBLISHED_QUALITY = 20, 1.0


def test_both_clusterings_are_no_worse_than_the_published_procedure() -> None:
    vectors, labels = planted(20, 10, dim=32, noise=0.6)
    as_many = GraphClustering(target_size=len(vectors) / PUBLISHED_CLUSTERS)
    assert quality(as_many.cluster(vectors), labels) >= PUBLISHED_QUALITY
    assert quality(UMAPGMMClustering().cluster(vectors), labels) >= PUBLISHED_QUALITY - 0.1  # UMAP's chance


@pytest.mark.skipif(os.environ.get("GRID") != "whole", reason="umap-learn compiles itself for half a minute")
def test_the_quality_of_the_published_procedure() -> None:
    vectors, labels = planted(20, 10, dim=32, noise=0.6)
    with one_blas_thread:
        clusters = published_clusters(vectors)
    assert (len(clusters), quality(clusters, labels)) == (PUBLISHED_CLUSTERS, PUBLISHED_QUALITY)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 0),
        ("n_neighbors", 1),
        ("local_neighbors", 1),
        ("threshold", 1.0),
        ("threshold", -0.1),
        ("max_clusters", 1),
        ("covariance", "round"),
        ("seed", -1),
    ],
)
def test_parameters_out_of_range_are_named(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} must .*{value}"):
        UMAPGMMClustering(**{name: value})  # type: ignore[arg-type]


def test_vectors_that_are_not_finite_are_refused() -> None:
    with pytest.raises(EmbeddingError, match="2 of 2"):
        UMAPGMMClustering().cluster(np.full((2, 3), np.nan))


def test_without_umap_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(umap_gmm, "find_spec", lambda module: None if module == "umap" else object())
    with pytest.raises(ConfigurationError, match=r"umap-learn: pip install llama-index-raptor\[umap\]"):
        UMAPGMMClustering()


def test_the_fingerprint_names_class_and_parameters() -> None:
    fingerprint = UMAPGMMClustering(covariance="diag").fingerprint
    assert fingerprint["class"] == "UMAPGMMClustering"
    assert fingerprint["covariance"] == "diag"
    assert all(isinstance(value, str) for value in fingerprint.values())
