"""Modularity of a partition (Newman and Girvan 2004, arXiv cond-mat/0308217, equation 5)."""

import numpy as np
from numpy.typing import ArrayLike

from llama_index.graphrag.graph.entity_graph import EntityGraph

__all__ = ["modularity"]


def modularity(graph: EntityGraph, labels: ArrayLike) -> float:
    """Share of the weight inside communities, less the share expected from the strengths of the nodes.

    With W the sum of all strengths, w_ij the weights and S_c the sum of the strengths of community c:

        Q = sum_ij w_ij [c_i = c_j] / W - sum_c (S_c / W)^2

    Parameters
    ----------
    labels : shape (n,), the community of each node

    Returns
    -------
    at most 1; 0 for a graph without edges. Sums are of integers, so the order of summation does not matter
    """
    communities = np.unique(np.asarray(labels), return_inverse=True)[1].reshape(-1)
    total = int(graph.weights.sum())
    if not total:
        return 0.0
    inside = int(graph.weights[communities[graph.rows] == communities[graph.indices]].sum())
    strengths = np.zeros(len(graph), np.int64)
    np.add.at(strengths, communities, graph.strengths)
    squares: int = sum(strength * strength for strength in strengths.tolist())
    return (inside * total - squares) / (total * total)
