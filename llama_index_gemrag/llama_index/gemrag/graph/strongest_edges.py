"""The strongest edges of the memory graph, for the page and exports. Pure functions on arrays."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["strongest_edges"]

_BLOCK = 1024


def strongest_edges(a: NDArray[np.floating], b: NDArray[np.floating], k: int) -> list[tuple[int, int, float]]:
    """Pairs i < j of which at least one node is among the k strongest neighbours of the other, with their weights.

    The weight is (a_i.b_j + a_j.b_i) / 2. All pairs of rows are compared in blocks: time is quadratic in n, memory is
    linear.

    Parameters
    ----------
    a, b : shape (n, d), mean blended questions and unit texts
    k : at least 0
    """
    n = len(b)
    k = min(k, n - 1)
    if k < 1:
        return []
    found: dict[tuple[int, int], float] = {}
    for start in range(0, n, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, n))
        weights = (a[rows] @ b.T + b[rows] @ a.T) / 2
        weights[rows - start, rows] = -np.inf
        near = np.argpartition(-weights, k - 1, axis=1)[:, :k]
        for i, others in zip(rows.tolist(), near.tolist(), strict=True):
            for j in others:
                found[min(i, j), max(i, j)] = float(weights[i - start, j])
    return [(i, j, weight) for (i, j), weight in sorted(found.items())]
