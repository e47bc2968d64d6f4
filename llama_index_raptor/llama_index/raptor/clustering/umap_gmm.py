"""`UMAPGMMClustering`, the published clustering: UMAP and Gaussian mixtures in two stages, seeded."""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from llama_index.ragkit.blas import one_blas_thread
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.neighbors import nearest_neighbors
from llama_index.raptor.clustering.base import Distinct, canonical, fingerprint_of
from llama_index.raptor.clustering.neighbor_graph import fuzzy_graph

__all__ = ["UMAPGMMClustering"]

COVARIANCES = ("full", "tied", "diag", "spherical")
GOLDEN = (3 - 5**0.5) / 2


@dataclass(frozen=True)
class UMAPGMMClustering:
    """The clustering of RAPTOR (Sarthi et al. 2024, arXiv 2401.18059, section 3).

    1. Global: UMAP of all rows to ``n_components`` dimensions, then a Gaussian mixture with the number of components k
       that has the lowest BIC.
    2. A row belongs to every component with a posterior probability above ``threshold``.
    3. Local: steps 1 and 2 again in each global cluster, on the original vectors. A cluster or an input of at most
       ``n_components`` + 1 rows is not split.

    Deviations from the published code:

    - Seeded, single-threaded, distinct rows in canonical order: the same clusters in every run and for every input
      order. The published code does not seed UMAP; its runs differ.
    - UMAP starts from exact neighbours (:func:`~llama_index.ragkit.vectors.neighbors.nearest_neighbors`), not from
      NN-descent; ``n_neighbors`` is at most 100, since the memory for the published square root of n is unbounded.
    - The layout is initialised with principal components; UMAP's spectral initialisation is not reproducible when its
      solver restarts, and gave no better results.
    - k is found by golden-section search on log k in about 10 fits instead of 49; it is not guaranteed to be the k with
      the lowest BIC. The mixture of that fit is used; the published code fits again with another seed.
    - A row with no posterior above ``threshold`` belongs to its most likely component; the published code loses it.
    - Clusters contain positions, not vectors: equal texts are one point of the mixture, and no n x n x d array is
      allocated to look vectors up.
    - Any number of rows is supported; the published code fails below 5.

    Parameters
    ----------
    n_components : dimensions after UMAP, at least 1
    n_neighbors : neighbours in the global UMAP, at least 2; None for the square root of n - 1, limited to 2 to 100
    local_neighbors : neighbours in the local UMAPs, at least 2
    threshold : posterior probability above which a row belongs to a component, 0 <= threshold < 1
    max_clusters : exclusive upper bound of k in each mixture, as published; at least 2
    covariance : "full" (published), "tied", "diag" or "spherical"
    seed : seed of UMAP and the mixtures

    Raises
    ------
    ConfigurationError
        If a parameter is out of range, or umap-learn or scikit-learn is not installed.
    """

    method: ClassVar[str] = "raptor"
    n_components: int = 10
    n_neighbors: int | None = None
    local_neighbors: int = 10
    threshold: float = 0.1
    max_clusters: int = 50
    covariance: str = "full"
    seed: int = 0

    def __post_init__(self) -> None:
        missing = [
            name for name, module in (("umap-learn", "umap"), ("scikit-learn", "sklearn")) if not find_spec(module)
        ]
        if missing:
            raise ConfigurationError(
                f"UMAPGMMClustering needs {' and '.join(missing)}: pip install llama-index-raptor[umap]"
            )
        limits = {"n_components": 1, "n_neighbors": 2, "local_neighbors": 2, "max_clusters": 2, "seed": 0}
        for name, least in limits.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise ConfigurationError(f"{name} must be at least {least}, not {value}.")
        if not 0 <= self.threshold < 1:
            raise ConfigurationError(f"threshold must be at least 0 and below 1, not {self.threshold}.")
        if self.covariance not in COVARIANCES:
            raise ConfigurationError(f"covariance must be one of {', '.join(COVARIANCES)}, not {self.covariance!r}.")

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and parameters."""
        return fingerprint_of(self)

    def cluster(self, vectors: np.ndarray, weights: np.ndarray | None = None) -> list[np.ndarray]:
        """Group the rows of ``vectors``, shape (n, d); see the class. ``weights`` have no influence.

        Raises
        ------
        EmbeddingError
            If the vectors are not a two-dimensional array of finite numbers.
        """
        if not len(vectors):
            return []
        distinct = Distinct.of(vectors)
        rows = distinct.rows
        if len(rows) <= self.n_components + 1:
            return canonical(distinct.clusters([np.arange(len(rows))] if len(rows) else []))
        for module in ("umap", "sklearn.mixture"):
            import_module(module)  # before the thread limit, which applies only to existing thread pools
        with one_blas_thread:
            return canonical(distinct.clusters(self._parts(rows)))

    def _parts(self, rows: np.ndarray) -> list[np.ndarray]:
        """Run both stages."""
        parts = []
        for part in self._components(rows, self.n_neighbors or min(max(int((len(rows) - 1) ** 0.5), 2), 100)):
            if len(part) <= self.n_components + 1:
                parts.append(part)
            else:
                parts += [part[local] for local in self._components(rows[part], self.local_neighbors)]
        return parts

    def _components(self, rows: np.ndarray, n_neighbors: int) -> list[np.ndarray]:
        """Run one stage: the rows of each component of the best mixture."""
        points = self._reduced(rows, n_neighbors)
        posterior = self._best_mixture(points).predict_proba(points)
        belongs = posterior > self.threshold
        belongs[np.arange(len(rows)), posterior.argmax(axis=1)] = True
        return [np.flatnonzero(column) for column in belongs.T if column.any()]

    def _reduced(self, rows: np.ndarray, n_neighbors: int) -> np.ndarray:
        """UMAP with its defaults on the exact neighbour graph; ``n_neighbors`` counts the row itself, as in UMAP."""
        umap = import_module("umap.umap_")
        a, b = umap.find_ab_params(spread=1.0, min_dist=0.1)
        points: np.ndarray = umap.simplicial_set_embedding(
            data=rows,
            graph=fuzzy_graph(*nearest_neighbors(rows, rows, min(n_neighbors, len(rows)) - 1, skip_self=True)),
            n_components=min(self.n_components, rows.shape[1]),
            initial_alpha=1.0,
            a=a,
            b=b,
            gamma=1.0,
            negative_sample_rate=5,
            n_epochs=None,
            init="pca",
            random_state=np.random.RandomState(self.seed),
            metric="cosine",
            metric_kwds={},
            densmap=False,
            densmap_kwds={},
            output_dens=False,
        )[0]
        return points.astype(np.float64)

    def _best_mixture(self, points: np.ndarray) -> Any:
        """The fitted mixture with the lowest BIC among those visited by a golden-section search over log k, 1 <= k."""
        gaussian_mixture = import_module("sklearn.mixture").GaussianMixture
        bic: dict[int, float] = {}
        best: Any = None

        def cost(k: int) -> float:
            nonlocal best
            if k not in bic:
                mixture = gaussian_mixture(k, covariance_type=self.covariance, random_state=self.seed).fit(points)
                bic[k] = mixture.bic(points)
                if bic[k] == min(bic.values()):
                    best = mixture
            return bic[k]

        low, high = 1, min(self.max_clusters, len(points)) - 1
        while high - low > 2:
            span = np.log(high / low)
            left = min(max(round(low * np.exp(GOLDEN * span)), low + 1), high - 2)
            right = min(max(round(high * np.exp(-GOLDEN * span)), left + 1), high - 1)
            if cost(left) <= cost(right):
                high = right
            else:
                low = left
        for k in range(low, high + 1):
            cost(k)
        return best
