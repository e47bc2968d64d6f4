import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.raptor import partitions

from llama_index.ragkit.vectors.neighbors import nearest_neighbors
from llama_index.raptor.clustering.base import directions
from llama_index.raptor.clustering.neighbor_graph import fuzzy_graph, scaled_graph


@pytest.mark.parametrize("make", [scaled_graph, fuzzy_graph])
@settings(max_examples=50)
@given(vectors=partitions.clouds.filter(lambda vectors: len(vectors) > 1), k=st.integers(1, 20))
def test_graphs_are_symmetric_and_keep_every_row_connected(make: object, vectors: np.ndarray, k: int) -> None:
    rows = directions(vectors)
    graph = make(*nearest_neighbors(rows, rows, min(k, len(rows) - 1), skip_self=True))  # type: ignore[operator]
    assert abs(graph - graph.T).max() < 1e-12
    assert not graph.diagonal().any()
    assert graph.has_sorted_indices
    assert graph.data.min() > 0
    assert graph.data.max() <= 2
    assert (np.diff(graph.indptr) >= 1).all()


def test_scaled_weights_by_hand() -> None:
    # Three points: distances 1 - cosine are .5 (0-1), .5 (1-2) and 1.5 (0-2); the last neighbour sets the scale.
    indices, cosines = np.array([[1, 2], [0, 2], [1, 0]]), np.array([[0.5, -0.5], [0.5, 0.5], [0.5, -0.5]])
    near, far = np.exp(-(0.5**2) / (1.5 * 0.5)), np.exp(-(1.5**2) / (1.5 * 1.5))
    expected = 2 * np.array([[0, near, far], [near, 0, near], [far, near, 0]])
    np.testing.assert_allclose(scaled_graph(indices, cosines).toarray(), expected)


def test_fuzzy_weights_are_those_of_umap() -> None:
    umap = pytest.importorskip("umap.umap_")
    rows = directions(np.random.default_rng(0).standard_normal((200, 10)))
    indices, cosines = nearest_neighbors(rows, rows, 14, skip_self=True)
    itself = np.arange(200)[:, None]
    expected = umap.fuzzy_simplicial_set(
        rows,
        15,
        np.random.RandomState(0),
        "cosine",
        knn_indices=np.hstack([itself, indices]),
        knn_dists=np.hstack([np.zeros((200, 1)), 1 - cosines]).astype(np.float32),
    )[0]
    np.testing.assert_allclose(fuzzy_graph(indices, cosines).toarray(), expected.toarray(), atol=1e-3)
