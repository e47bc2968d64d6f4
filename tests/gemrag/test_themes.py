"""How many themes, which sign, which members."""

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.speed_gemrag import planted
from hypothesis import given, settings
from hypothesis import strategies as st

from llama_index.gemrag.config import MemoryConfig, PublishedThemes
from llama_index.gemrag.graph.memory_graph import MemoryGraph
from llama_index.gemrag.themes.eigenthemes import (
    find_clusters,
    find_themes,
    oriented,
    spectrum_of,
    theme_count,
    top_components,
    varimax,
)


def test_the_count_is_at_the_largest_relative_drop():
    assert theme_count(np.array([0.20, 0.18, 0.16, 0.12, 0.10, 0.054, 0.008]), 6) == 6
    assert theme_count(np.array([0.20, 0.18, 0.16, 0.02, 0.019]), 4) == 3
    assert theme_count(np.array([0.20, 0.01, 0.009]), 3) == 2  # at least two where there are two
    assert theme_count(np.array([0.2, -0.1, -0.1]), 3) == 1
    assert theme_count(np.array([-0.1]), 3) == theme_count(np.zeros(0), 3) == 0


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_varimax_keeps_the_span_and_raises_the_criterion(seed, k):
    vectors = np.linalg.qr(np.random.default_rng(seed).normal(size=(20, k)))[0]
    turned = varimax(vectors)
    assert turned @ turned.T == pytest.approx(vectors @ vectors.T, abs=1e-9)

    def criterion(x):
        return ((x**4).sum(axis=0) - (x**2).sum(axis=0) ** 2 / len(x)).sum()

    assert criterion(turned) >= criterion(vectors) - 1e-12


def test_varimax_finds_the_blocks_that_were_mixed():
    blocks = np.kron(np.eye(3), np.ones((4, 1))) / 2
    mix = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    turned = np.abs(varimax(blocks @ mix))
    assert np.sort(turned, axis=1)[:, -1] == pytest.approx(np.full(12, 0.5), abs=1e-6)


def test_the_sign_is_that_of_the_heavier_tail_whatever_the_solver_said():
    vector = np.array([[0.1], [0.1], [0.1], [-0.9]])
    assert oriented(vector)[3, 0] == oriented(-vector)[3, 0] == 0.9
    even = np.array([[0.5], [-0.5]])
    assert abs(oriented(even)).tolist() == [[0.5], [0.5]]


def test_members_are_the_largest_positive_components_down_to_a_share():
    vector = np.array([0.8, 0.1, -0.9, 0.3, 0.19, 0.8])
    assert top_components(vector, 10, 0.25).rows.tolist() == [0, 5, 3]
    assert top_components(vector, 2, 0.0).rows.tolist() == [0, 5]
    assert top_components(-np.ones(3), 2, 0.0).rows.tolist() == []
    assert top_components(np.zeros(0), 2, 0.0).rows.tolist() == []


@pytest.mark.parametrize(("n", "themes"), [(1000, 7), (1500, 17)])
def test_planted_themes_are_found_and_pure(n, themes):
    texts, means, labels = planted(n, themes)
    found = find_themes(MemoryGraph.of(means, texts), MemoryConfig(num_themes=themes))
    counts = [np.bincount(labels[members.rows], minlength=themes) for members in found]
    assert {int(count.argmax()) for count in counts} == set(range(themes))
    assert min(count.max() / count.sum() for count in counts) >= 0.95


@pytest.mark.parametrize(("n", "themes"), [(1000, 7), (300, 3)])
def test_clusters_of_k_means_are_the_planted_themes(n, themes):
    texts, means, labels = planted(n, themes)
    graph = MemoryGraph.of(means, texts)
    found = find_clusters(graph, MemoryConfig(themes="k-means", num_themes=themes))
    assert all(2 <= len(members.rows) <= MemoryConfig().theme_size for members in found)
    assert all((np.diff(members.weights) <= 1e-9).all() for members in found)
    purity = [np.bincount(labels[members.rows]).max() / len(members.rows) for members in found]
    assert np.mean(purity) >= 0.9
    again = find_clusters(graph, MemoryConfig(themes="k-means", num_themes=themes))
    assert [members.rows.tolist() for members in again] == [members.rows.tolist() for members in found]


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_few_nodes_have_no_cluster_or_few(n):
    texts, means, _ = planted(5, 2)
    graph = MemoryGraph.of(means[:n], texts[:n])
    assert len(find_clusters(graph, MemoryConfig(themes="k-means"))) <= n // 3


def test_equal_texts_are_one_cluster():
    texts = np.ones((9, 4), np.float32) / 2
    found = find_clusters(MemoryGraph.of(texts, texts), MemoryConfig(themes="k-means", num_themes=2))
    assert sum(len(members.rows) for members in found) >= 2


def test_the_spectrum_says_how_many_and_how_distinct():
    texts, means, _ = planted(1000, 7)
    found = spectrum_of(MemoryGraph.of(means, texts), 32)
    assert found.num_themes == 7
    assert found.values[0] == pytest.approx(1, abs=1e-6)
    mixed = np.random.default_rng(0).permutation(means.ravel()).reshape(means.shape) + 1
    assert found.distinctness > spectrum_of(MemoryGraph.of(mixed, mixed), 32).distinctness


def test_without_rotation_there_is_a_theme_a_vector_and_one_a_pole():
    texts, means, _ = planted(300, 4)
    graph = MemoryGraph.of(means, texts)
    plain = MemoryConfig(num_themes=3, published=PublishedThemes(rotate=False))
    assert len(find_themes(graph, plain)) == 3
    assert len(find_themes(graph, replace(plain, published=PublishedThemes(rotate=False, both_poles=True)))) == 6
    hubs = find_themes(
        graph, replace(plain, num_themes=1, published=PublishedThemes(rotate=False, include_trivial=True))
    )[0]
    assert hubs.rows[0] == graph.degrees.argmax()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_nodes_have_no_theme(n):
    texts, means, _ = planted(5, 2)
    assert find_themes(MemoryGraph.of(means[:n], texts[:n]), MemoryConfig()) == []


def test_the_plot_marks_the_themes():
    pytest.importorskip("matplotlib").use("Agg")
    texts, means, _ = planted(200, 3)
    found = spectrum_of(MemoryGraph.of(means, texts), 8)
    axes = found.plot()
    assert len(axes.patches) == len(found.values) - 1
    assert str(found.num_themes) in axes.get_title()
