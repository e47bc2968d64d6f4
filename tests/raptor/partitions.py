"""What the tests of clusterings share: planted vectors, hypothesis strategies, and ways to compare partitions."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from llama_index.raptor.clustering.base import directions


def planted(groups: int, size: int, dim: int = 24, noise: float = 0.35, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`groups` directions with `size` vectors around each, in mixed order, and the group of each vector."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((groups, dim))
    labels = rng.permutation(np.repeat(np.arange(groups), size))
    vectors = centres[labels] + noise * rng.standard_normal((groups * size, dim))
    return vectors.astype(np.float32), labels


def labels_of(clusters: Sequence[np.ndarray], n: int) -> np.ndarray:
    """The first cluster of each position, -1 where there is none."""
    labels = np.full(n, -1)
    for i, cluster in reversed(list(enumerate(clusters))):
        labels[cluster] = i
    return labels


def contents(clusters: Sequence[np.ndarray], vectors: np.ndarray) -> list[list[bytes]]:
    """Clusters as what they hold, so that equal vectors may stand for each other and order is nothing."""
    rows = directions(vectors)
    return sorted(sorted(rows[i].tobytes() for i in cluster) for cluster in clusters)


def check_cover(clusters: Sequence[np.ndarray], n: int) -> None:
    """The contract of every clustering."""
    assert all(len(cluster) for cluster in clusters)
    assert all((np.diff(cluster) > 0).all() for cluster in clusters)
    assert set(np.concatenate([np.empty(0, dtype=int), *clusters]).tolist()) == set(range(n))
    keys = [tuple(cluster.tolist()) for cluster in clusters]
    assert keys == sorted(set(keys))


# Small integers make equal vectors, parallel vectors, zero vectors and ties; the floats make everything else.
grids = hnp.arrays(np.float32, st.tuples(st.integers(0, 60), st.integers(1, 3)), elements=st.integers(-2, 2))
clouds = st.builds(
    lambda n, dim, seed: np.random.default_rng(seed).standard_normal((n, dim)).astype(np.float32),
    st.integers(0, 120),
    st.integers(1, 16),
    st.integers(0, 2**16),
)
vectors = grids | clouds
