"""RAPTOR's published clustering, written from its description: the slow reference of tests and benchmarks.

The procedure of Sarthi et al. 2024 (arXiv 2401.18059), section 3, with the constants of its public code:

1. UMAP of all rows: cosine, ``n_neighbors = int(sqrt(n - 1))``, ``min(10, n - 2)`` components, no seed.
2. Full-covariance Gaussian mixtures with every k from 1 to ``min(50, n) - 1``, seed 224; keep the k of least BIC.
3. Another mixture with that k, seed 0; a row belongs to every component with a posterior over 0.1.
4. Each global cluster with more than 11 members: steps 1 to 3 again from the members' own vectors, 10 neighbours.
   A smaller one is a single local cluster.
5. Members are found again by comparing their vectors with all vectors, so equal rows share their labels.

Not deterministic (step 1), and quadratic in n (step 5). It fails for fewer than 5 rows, as the public code does.
"""

from typing import Any

import numpy as np

__all__ = ["published_clusters"]

DIM = 10
THRESHOLD = 0.1
MAX_K = 50
SWEEP_SEED, FIT_SEED = 224, 0


def published_clusters(vectors: np.ndarray) -> list[np.ndarray]:
    """Clusters of the rows of ``vectors``, shape (n, d), as index arrays; a row may be in several or in none."""
    clusters = []
    for members in _soft_clusters(_reduced(vectors, int((len(vectors) - 1) ** 0.5))):
        subset = vectors[members]
        local = _soft_clusters(_reduced(subset, 10)) if len(subset) > DIM + 1 else [np.arange(len(subset))]
        clusters += [_rows_equal_to(subset[cluster], vectors) for cluster in local]
    return clusters


def _reduced(vectors: np.ndarray, n_neighbors: int) -> Any:
    import umap

    dim = min(DIM, len(vectors) - 2)
    points = umap.UMAP(n_neighbors=n_neighbors, n_components=dim, metric="cosine").fit_transform(vectors)
    return points.astype(np.float64)  # recent scikit-learn fits float32 in float32, which can fail


def _soft_clusters(points: np.ndarray) -> list[np.ndarray]:
    """Steps 2 and 3; components that no row belongs to are left out."""
    from sklearn.mixture import GaussianMixture

    candidates = range(1, min(MAX_K, len(points)))
    bic = [GaussianMixture(k, random_state=SWEEP_SEED).fit(points).bic(points) for k in candidates]
    mixture = GaussianMixture(candidates[int(np.argmin(bic))], random_state=FIT_SEED).fit(points)
    members = mixture.predict_proba(points) > THRESHOLD
    return [np.flatnonzero(column) for column in members.T if column.any()]


def _rows_equal_to(some: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Step 5, as published: a boolean array of shape (len(some), n, d)."""
    return np.flatnonzero((vectors == some[:, None]).all(axis=2).any(axis=0))
