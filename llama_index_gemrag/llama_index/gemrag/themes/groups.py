"""Memory graphs and themes of groups of chunks."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.memory_graph import MemoryGraph, question_means, unit_rows
from llama_index.gemrag.layer import Layer
from llama_index.gemrag.state import Theme
from llama_index.gemrag.themes.clusters import find_clusters
from llama_index.gemrag.themes.eigenthemes import find_themes, most_themes

__all__ = ["factors_of", "graph_of", "precision", "rows_by_group", "themes_of_graph", "themes_of_rows"]

_EXACT_BELOW = 5_000  # nodes; below, double precision is cheap


def rows_by_group(names: Sequence[str], wanted: Collection[str], layer: Layer) -> dict[str, NDArray[np.intp]]:
    """The rows of each wanted group in the canonical order of the chunks, independent of insertion order.

    Parameters
    ----------
    names : the group of each row
    """
    rows: dict[str, list[int]] = {name: [] for name in wanted}
    for row, name in enumerate(names):
        if name in rows:
            rows[name].append(row)
    records = layer.texts.records
    return {name: np.array(sorted(found, key=lambda r: records[r].key), np.intp) for name, found in rows.items()}


def precision(n: int) -> type[np.floating[Any]]:
    """The type of the vectors of a graph of n nodes."""
    return np.float64 if n < _EXACT_BELOW else np.float32


def factors_of(
    layer: Layer, rows: NDArray[np.intp], config: MemoryConfig, kind: type[np.floating[Any]]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The rows of A and B of the memory graph, see :mod:`graph.memory_graph`, each of shape (len(rows), d)."""
    texts = unit_rows(layer.texts.vectors_of([layer.texts.ids[row] for row in rows]).astype(kind))
    question_rows, owners = layer.questions_of(rows)
    ids = [layer.questions.ids[row] for row in question_rows]
    questions = layer.questions.vectors_of(ids) if ids else texts[:0]
    return question_means(texts, unit_rows(questions), owners, config.blend, config.paper), texts


def graph_of(layer: Layer, rows: NDArray[np.intp], config: MemoryConfig) -> MemoryGraph:
    """The memory graph of some rows."""
    return MemoryGraph.of(*factors_of(layer, rows, config, precision(len(rows))), config.paper)


def themes_of_rows(layer: Layer, group: str, rows: NDArray[np.intp], config: MemoryConfig) -> list[Theme]:
    """The themes of a group of rows, in the order of their eigenvalues."""
    if not most_themes(config, len(rows)):
        return []
    return themes_of_graph(graph_of(layer, rows, config), group, [layer.texts.ids[row] for row in rows], config)


def themes_of_graph(graph: MemoryGraph, group: str, ids: Sequence[str], config: MemoryConfig) -> list[Theme]:
    """The themes of a group by its graph, in the order of their eigenvalues.

    Parameters
    ----------
    ids : of the rows of the graph
    """
    found = find_themes(graph, config) if config.themes == "spectral" else find_clusters(graph, config)
    return [
        Theme(group, tuple(ids[row] for row in theme.rows), tuple(float(w) for w in theme.weights)) for theme in found
    ]
