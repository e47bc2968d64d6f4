"""Themes as clusters of k-means: what the paper compares its spectrum with (section IV, table I)."""

import numpy as np

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.memory_graph import MemoryGraph, unit_rows
from llama_index.gemrag.themes.eigenthemes import most_themes, spectrum_of
from llama_index.gemrag.themes.members import Members, top_components

__all__ = ["find_clusters"]

_SEED = 0
_ITERATIONS = 100


def find_clusters(graph: MemoryGraph, config: MemoryConfig) -> list[Members]:
    """Sets of rows with their cosines to the centre of their cluster, the largest cluster first.

    The paper does not say what is clustered, nor into how many. Here it is the texts, as unit vectors, into
    `num_themes` clusters, or as many as the spectrum of the graph indicates. A theme has at least two members, at most
    `theme_size`, and none of less than `min_component` times the cosine of the nearest. The same seed and order of rows
    give the same clusters.
    """
    most = most_themes(config, len(graph))
    if not most:
        return []
    count = most if config.num_themes is not None else min(most, spectrum_of(graph, most).num_themes)
    from scipy.cluster.vq import kmeans2  # loads in a third of a second, and only this baseline needs it

    texts = unit_rows(graph.b.astype(np.float64))
    count = max(1, min(count, len(np.unique(texts.round(9), axis=0))))  # equal texts are no clusters of their own
    centres, labels = kmeans2(texts, count, iter=_ITERATIONS, minit="++", seed=_SEED, missing="warn")
    near = np.einsum("ij,ij->i", texts, unit_rows(centres)[labels])
    sizes = np.bincount(labels, minlength=len(centres))
    found = []
    for cluster in np.argsort(-sizes, kind="stable").tolist():
        members = top_components(np.where(labels == cluster, near, 0.0), config.theme_size, config.min_component)
        if len(members.rows) > 1:
            found.append(members)
    return found
