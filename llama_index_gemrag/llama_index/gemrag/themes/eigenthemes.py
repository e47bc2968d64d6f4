"""The themes of one memory graph: sets of nodes derived from its leading eigenvectors, or by k-means as a baseline.

The paper (section III.B.1) takes "the top e components" of each eigenvector. It does not specify the number of vectors,
their sign, e, or the treatment of the first one. Here (measurements in the docs):

- the first vector is D^1/2 times ones and selects hubs, not a theme: it is skipped;
- the number of themes is at the largest relative drop of the eigenvalues (Remark 2 of the paper requires a ratio close
  to 1, which a complete graph of cosines never has);
- the leading vectors are rotated by varimax, since eigenvectors are orthogonal but themes need not be;
- the sign is that of the heavier tail;
- members are the largest components, down to a share of the largest.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.memory_graph import MemoryGraph, unit_rows
from llama_index.gemrag.themes.spectrum import solved

__all__ = [
    "NODES_PER_THEME",
    "Members",
    "Spectrum",
    "find_clusters",
    "find_themes",
    "most_themes",
    "oriented",
    "spectrum_of",
    "theme_count",
    "top_components",
    "varimax",
]

Doubles = NDArray[np.float64]

NODES_PER_THEME = 3
_CLUSTERING_SEED, _CLUSTERING_STEPS = 0, 100  # of k-means
_TURNS = 100
_SETTLED = 1e-10
_LEAST_VALUE = 1e-9  # smaller eigenvalues are rounding errors


class Members(NamedTuple):
    """The nodes of a theme, strongest first, and their components."""

    rows: NDArray[np.intp]
    weights: Doubles


def most_themes(config: MemoryConfig, n: int) -> int:
    """The largest number of themes for n nodes."""
    wanted = config.max_themes if config.num_themes is None else config.num_themes
    return max(0, min(wanted, n // NODES_PER_THEME))


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the memory graph of a group of chunks, and the quantities that the paper derives from them.

    Attributes
    ----------
    values : the leading eigenvalues, descending, of an index with `paper=True` by magnitude; the first is 1
    num_themes : the estimated number of themes (Remark 2, read as the largest relative drop)
    distinctness : the sum of the squares of all eigenvalues (Lambda of Remark 3). The first always adds 1, so the
        minimum is 1: no theme is distinct
    num_nodes : chunks in the graph
    shifted : whether (1 + cos) / 2 replaced cos, because the similarity of a chunk to the others is negative
    """

    values: Doubles
    num_themes: int
    distinctness: float
    num_nodes: int
    shifted: bool = False

    def plot(self, ax: Any = None) -> Any:
        """Plot the eigenvalues after the first, with a mark after the last theme; returns the matplotlib axes.

        Raises
        ------
        ImportError
            Without matplotlib: `pip install llama-index-gemrag[plot]`.
        """
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("A plot needs matplotlib: pip install 'llama-index-gemrag[plot]'.") from error
        axes = pyplot.subplots()[1] if ax is None else ax
        numbers = np.arange(2, len(self.values) + 1)
        axes.bar(numbers, self.values[1:], color=["#4e79a7" if i <= self.num_themes else "#c8c8c8" for i in numbers])
        if 1 < self.num_themes < len(self.values):
            axes.axvline(self.num_themes + 0.5, color="#e15759", linewidth=1)
        axes.set_xlabel("eigenvalue")
        axes.set_title(f"{self.num_nodes} chunks: {self.num_themes} themes, distinctness {self.distinctness:.3f}")
        return axes


def spectrum_of(graph: MemoryGraph, max_themes: int) -> Spectrum:
    """The spectrum of a graph, up to one value after the last possible theme."""
    graph, values, _ = solved(graph, max_themes + 1)
    return Spectrum(values, _estimated(graph, values, max_themes), graph.squares, len(graph), graph.shifted)


def find_themes(graph: MemoryGraph, config: MemoryConfig) -> list[Members]:
    """Sets of rows with their components, strongest first; the themes in the order of the eigenvalues.

    A theme has at least two members. Rotated columns have no eigenvalue of their own and are ordered by the weighted
    mean of the eigenvalues, the Rayleigh quotient.
    """
    most = most_themes(config, len(graph))
    if not most:
        return []
    graph, values, vectors = solved(graph, most + 1)
    count = most if config.num_themes is not None else min(most, _estimated(graph, values, most))
    options = config.published
    if options.rotate:
        columns = varimax(vectors[:, :count])
        quotients = ((vectors.T @ columns) ** 2 * values[:, None]).sum(axis=0)
        columns = columns[:, np.argsort(-quotients.round(10), kind="stable")]
    elif config.num_themes is not None:
        first = 0 if options.include_trivial else 1
        columns = vectors[:, first : first + count]
    else:
        columns = vectors[:, 0 if options.include_trivial else 1 : count]
    columns = oriented(columns)
    found, seen = [], set()
    for column in columns.T:
        for pole in (column, -column) if options.both_poles and not options.rotate else (column,):
            members = top_components(pole, config.theme_size, config.min_component)
            key = frozenset(members.rows.tolist())
            if len(key) > 1 and key not in seen:
                seen.add(key)
                found.append(members)
    return found


def find_clusters(graph: MemoryGraph, config: MemoryConfig) -> list[Members]:
    """Sets of rows with their cosines to the centre of their cluster, the largest cluster first.

    This is the baseline of the paper (section IV, table I), which does not say what is clustered, nor the number of
    clusters. Here the texts, as unit vectors, are clustered into `num_themes` clusters, or as many as the spectrum of
    the graph indicates. A theme has 2 to `theme_size` members, none with a cosine of less than `min_component` times
    that of the nearest. The same seed and order of rows give the same clusters.
    """
    most = most_themes(config, len(graph))
    if not most:
        return []
    count = most if config.num_themes is not None else min(most, spectrum_of(graph, most).num_themes)
    from scipy.cluster.vq import kmeans2  # loads in a third of a second, and only this baseline needs it

    texts = unit_rows(graph.b.astype(np.float64))
    count = max(1, min(count, len(np.unique(texts.round(9), axis=0))))  # equal texts cannot be separate clusters
    centres, labels = kmeans2(texts, count, iter=_CLUSTERING_STEPS, minit="++", seed=_CLUSTERING_SEED, missing="warn")
    near = np.einsum("ij,ij->i", texts, unit_rows(centres)[labels])
    sizes = np.bincount(labels, minlength=len(centres))
    found = []
    for cluster in np.argsort(-sizes, kind="stable").tolist():
        members = top_components(np.where(labels == cluster, near, 0.0), config.theme_size, config.min_component)
        if len(members.rows) > 1:
            found.append(members)
    return found


def _estimated(graph: MemoryGraph, values: Doubles, most: int) -> int:
    """The d of Remark 2, which also counts the first eigenvalue; a `literal` graph has them by magnitude."""
    values = np.abs(values) if graph.literal else values
    return 1 + theme_count(values[1:], most - 1) if len(values) > 1 else len(values)


def theme_count(values: Doubles, most: int) -> int:
    """The number of themes of a spectrum: the d in 2..`most` with the largest (v_d - v_d+1) / v_d.

    It is at most the number of positive values, and 0 if there is none. The values are the eigenvalues without the
    first, descending; the drop after the last one is unknown.

    >>> theme_count(np.array([.20, .18, .16, .12, .10, .054, .008, .007]), 7)
    6
    >>> theme_count(np.array([.2, -.1]), 5)
    1
    """
    positive = int((values > _LEAST_VALUE).sum())
    most = min(most, positive)
    if most < 2:
        return max(most, 0)
    last = min(most, len(values) - 1)
    if last < 2:
        return most
    drops = (values[1:last] - np.maximum(values[2 : last + 1], 0)) / values[1:last]
    return 2 + int(np.argmax(drops))


def varimax(vectors: Doubles) -> Doubles:
    """Rotate orthonormal columns so that each has few large components (Kaiser 1958), shape (n, k).

    Fixed-point iteration of the polar factor of V^T (Y^3 - Y diag(mean of Y^2)), Y = V R. The span of the columns does
    not change. Stops when the criterion converges, after at most `_TURNS` iterations.
    """
    n, k = vectors.shape
    if k < 2 or n < 2:
        return np.array(vectors, dtype=np.float64)
    turn = np.eye(k)
    reached = 0.0
    for _ in range(_TURNS):
        turned = vectors @ turn
        left, strengths, right = np.linalg.svd(vectors.T @ (turned**3 - turned * ((turned**2).sum(axis=0) / n)))
        turn = left @ right
        if strengths.sum() <= reached * (1 + _SETTLED):
            break
        reached = strengths.sum()
    rotated: Doubles = vectors @ turn
    return rotated


def oriented(vectors: Doubles) -> Doubles:
    """Columns with the sign that makes the sum of their cubes positive, or, if it is 0, their largest component."""
    cubes = (vectors**3).sum(axis=0)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)[0] if len(vectors) else cubes
    flat = np.abs(cubes) <= 1e-12
    signs = np.where(np.where(flat, largest, cubes) < 0, -1.0, 1.0)
    found: Doubles = vectors * signs
    return found


def top_components(vector: Doubles, size: int, share: float) -> Members:
    """The `size` largest components above 0 that are at least `share` of the largest; ties by row.

    >>> top_components(np.array([.1, .8, -.9, .3]), 3, .25).rows.tolist()
    [1, 3]
    """
    # Rounded, so that differences in the last bits, which vary with the number of threads, have no effect.
    near: NDArray[np.intp] = np.argsort(-vector.round(10), kind="stable")[:size]
    least = share * vector[near[0]] if len(near) else 0.0
    kept = near[(vector[near] > 0) & (vector[near].round(10) >= least)]
    return Members(kept, vector[kept])
