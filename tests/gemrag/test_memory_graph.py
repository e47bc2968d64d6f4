"""The memory graph in factors against the paper's formula written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gemrag.slow import normalised, similarities

from llama_index.gemrag.graph.memory_graph import MemoryGraph, question_means, unit_rows
from llama_index.gemrag.themes.spectrum import leading, solved
from llama_index.ragkit.errors import EmbeddingError


def corpus(seed: int, n: int = 9, d: int = 5, most: int = 3, positive: bool = True):
    rng = np.random.default_rng(seed)
    texts = rng.normal(size=(n, d)) + (2 if positive else 0)
    owners = np.repeat(np.arange(n), rng.integers(0, most + 1, n))
    questions = texts[owners] + rng.normal(size=(len(owners), d))
    return texts, questions, owners


def graph(texts, questions, owners, **kwargs) -> MemoryGraph:
    unit = unit_rows(texts.astype(np.float64))
    asked = unit_rows(questions.astype(np.float64)) if len(questions) else unit[:0]
    literal = kwargs.get("literal", False)
    return MemoryGraph.of(question_means(unit, asked, owners, kwargs.get("blend", 0.5), literal), unit, literal)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.floats(0, 1))
def test_it_is_the_papers_matrix(seed, blend):
    texts, questions, owners = corpus(seed)
    own = graph(texts, questions, owners, blend=blend)
    assert not own.shifted
    assert own.dense() == pytest.approx(normalised(similarities(texts, questions, owners, blend)), abs=1e-9)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans())
def test_the_papers_three_properties_hold(seed, positive):
    texts, questions, owners = corpus(seed, positive=positive)
    own, _, _ = solved(graph(texts, questions, owners), 3)
    values = np.linalg.eigvalsh(own.dense())
    assert values.sum() == pytest.approx(0, abs=1e-9) == own.trace
    assert values.max() == pytest.approx(1)
    assert values.min() >= -1 - 1e-9
    assert own.squares == pytest.approx((values**2).sum())
    assert own.degrees.min() > 0


def test_negative_weights_that_bring_an_eigenvalue_above_1_are_done_away_with():
    """Two groups that are each other's opposite: the vector that tells them apart would come before the trivial one."""
    texts = np.array([[1.0, 0.0]] * 4 + [[-0.4, 1.0]] * 5)
    plain = graph(texts, texts[:0], np.empty(0, int))
    assert not plain.shifted
    assert leading(plain, 1)[0][0] > 3
    own, values, vectors = solved(plain, 2)
    assert own.shifted
    assert values[0] == pytest.approx(1)
    assert np.abs(vectors[:, 0]) == pytest.approx(np.sqrt(own.degrees / own.degrees.sum()))


def test_opposite_vectors_shift_the_whole_graph():
    texts = np.array([[1.0, 0], [-1, 0.1], [-1, -0.1], [0.9, 0.1]])
    none = np.empty(0, int)
    own = graph(texts, texts[:0], none)
    assert own.shifted
    assert own.dense() == pytest.approx(normalised(similarities(texts, texts[:0], none), shift=True))


def test_literal_takes_sums_and_the_identity():
    texts, questions, owners = corpus(3, most=3)
    owners = np.repeat(np.arange(9), 2)
    questions = texts[owners] + 0.1
    own = graph(texts, questions, owners, literal=True)
    s = 2 * similarities(texts, questions, owners)
    w = (s + s.T) / 2 - np.eye(9)
    d = w.sum(axis=1)
    assert own.dense() == pytest.approx(w / np.sqrt(np.outer(d, d)))
    assert own.trace > 0.1  # the paper's first property fails, which is why this is not the default


def test_a_node_with_more_questions_has_no_greater_say():
    texts = np.array([[1.0, 0.2], [1, 0.3], [1, 0.1]])
    once = graph(texts, texts, np.array([0, 1, 2]))
    often = graph(texts, texts[[0, 0, 0, 1, 2]], np.array([0, 0, 0, 1, 2]))
    assert often.dense() == pytest.approx(once.dense())


def test_a_text_without_direction_has_no_edge():
    own = graph(np.array([[1.0, 0], [0.9, 0.1], [0, 0]]), np.zeros((0, 2)), np.empty(0, int))
    assert np.isfinite(own.dense()).all()


def test_vectors_that_are_not_finite_are_refused_by_row():
    with pytest.raises(EmbeddingError, match="Row 1"):
        unit_rows(np.array([[1.0, 2], [np.nan, 1]]))


def test_many_questions_are_blended_block_by_block():
    rng = np.random.default_rng(0)
    texts = unit_rows(rng.normal(size=(3000, 4)))
    owners = np.repeat(np.arange(3000), rng.integers(0, 6, 3000))
    questions = unit_rows(rng.normal(size=(len(owners), 4)))
    means = question_means(texts, questions, owners, 0.3, literal=False)
    for i in (0, 1, 1234, 2999):
        mine = unit_rows(0.3 * questions[owners == i] + 0.7 * texts[i])
        assert means[i] == pytest.approx(mine.mean(axis=0) if len(mine) else texts[i])
