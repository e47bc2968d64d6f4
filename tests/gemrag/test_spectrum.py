"""Both solvers against the dense one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gemrag.test_memory_graph import corpus, graph

from llama_index.gemrag.graph.memory_graph import MemoryGraph, unit_rows
from llama_index.gemrag.themes.spectrum import lanczos, leading, streamed


def clustered(n: int, seed: int = 0, d: int = 16, kind=np.float64) -> MemoryGraph:
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(4, d)) + 1
    texts = unit_rows(centres[rng.integers(0, 4, n)] + 0.3 * rng.normal(size=(n, d))).astype(kind)
    means = unit_rows(texts + 0.1 * rng.normal(size=(n, d))).astype(kind)
    return MemoryGraph.of(means, texts)


@pytest.mark.parametrize(("kind", "tolerance"), [(np.float64, 1e-8), (np.float32, 1e-6)])
def test_lanczos_is_the_dense_spectrum(kind, tolerance):
    own = clustered(700, kind=kind)
    values, vectors = lanczos(own, 6)
    dense = clustered(700).dense()
    assert values == pytest.approx(np.linalg.eigvalsh(dense)[::-1][:6], abs=tolerance)
    assert values[0] == pytest.approx(1, abs=tolerance)
    assert np.abs(dense @ vectors - vectors * values).max() < 100 * tolerance
    assert vectors.T @ vectors == pytest.approx(np.eye(6), abs=1e-5)


def test_the_streamed_spectrum_nears_the_dense_one_as_nodes_grow_in_number():
    errors = []
    for n in (200, 800, 3200):
        own = clustered(n, kind=np.float32)
        values, vectors = streamed(own, 5)
        exact, _ = lanczos(clustered(n), 5)
        errors.append(float(np.abs(values - exact).max()))
        assert vectors.T @ vectors == pytest.approx(np.eye(5), abs=1e-4)
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-5


def test_the_first_vector_is_the_square_root_of_the_degrees():
    own = clustered(300)
    _, vectors = leading(own, 2)
    expected = np.sqrt(own.degrees) / np.linalg.norm(np.sqrt(own.degrees))
    assert abs(vectors[:, 0] @ expected) == pytest.approx(1)


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(0, 12), st.integers(1, 12))
def test_any_small_graph_has_the_dense_spectrum(seed, n, k):
    own = graph(*corpus(seed, n=n, positive=False))
    values, vectors = leading(own, k)
    assert values.shape == (min(k, n),)
    assert vectors.shape == (n, min(k, n))
    if n:
        assert values == pytest.approx(np.linalg.eigvalsh(own.dense())[::-1][: min(k, n)], abs=1e-9)


def test_equal_texts_and_a_shifted_graph_are_no_trouble():
    same = np.ones((200, 8))
    values, _ = leading(graph(same, same[:0], np.empty(0, int)), 3)
    assert values[0] == pytest.approx(1)
    assert values[1] == pytest.approx(-1 / 199, abs=1e-6)
    rng = np.random.default_rng(0)
    wild = graph(rng.normal(size=(400, 3)), np.zeros((0, 3)), np.empty(0, int))
    assert wild.shifted
    exact = np.linalg.eigvalsh(wild.dense())[::-1][:3]
    assert leading(wild, 3)[0] == pytest.approx(exact, abs=1e-8)
    assert streamed(wild, 3)[0] == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("distinct", [1, 2, 3])
def test_many_equal_texts_have_the_dense_spectrum(kind, distinct):
    rng = np.random.default_rng(3)
    texts = unit_rows(rng.normal(size=(distinct, 32)) + 1).astype(kind)[np.arange(600) % distinct]
    own = MemoryGraph.of(texts, texts)
    values, vectors = streamed(own, 6)
    exact = np.linalg.eigvalsh(own.dense())[::-1][:6]
    assert values[:distinct] == pytest.approx(exact[:distinct], abs=1e-5)
    assert values == pytest.approx(exact, abs=1e-3)  # beyond the rank only the small diagonal is left
    assert vectors.T @ vectors == pytest.approx(np.eye(6), abs=1e-5)
