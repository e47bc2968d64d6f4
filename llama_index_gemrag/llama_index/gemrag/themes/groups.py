"""Memory graphs and themes of groups of chunks, from stored vectors."""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.graph.memory_graph import MemoryGraph, question_means, unit_rows
from llama_index.gemrag.layer import Layer
from llama_index.gemrag.state import Theme
from llama_index.gemrag.themes.clusters import find_clusters
from llama_index.gemrag.themes.eigenthemes import find_themes, most_themes

__all__ = ["graph_of", "group_themes", "rows_by_group"]

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


def graph_of(layer: Layer, rows: NDArray[np.intp], blend: float, literal: bool) -> MemoryGraph:
    """The memory graph of some rows; see :mod:`graph.memory_graph` for `blend` and `literal`."""
    kind = np.float64 if len(rows) < _EXACT_BELOW else np.float32
    texts = unit_rows(layer.texts.vectors_of([layer.texts.ids[row] for row in rows]).astype(kind))
    question_rows, owners = layer.questions_of(rows)
    ids = [layer.questions.ids[row] for row in question_rows]
    questions = layer.questions.vectors_of(ids) if ids else texts[:0]
    return MemoryGraph.of(question_means(texts, unit_rows(questions), owners, blend, literal), texts, literal)


def group_themes(layer: Layer, group: str, rows: NDArray[np.intp], config: MemoryConfig) -> list[Theme]:
    """The themes of a group of rows, in the order of their eigenvalues."""
    if not most_themes(config, len(rows)):
        return []
    ids = [layer.texts.ids[row] for row in rows]
    graph = graph_of(layer, rows, config.blend, config.paper)
    found = find_themes(graph, config) if config.themes == "spectral" else find_clusters(graph, config)
    return [
        Theme(group, tuple(ids[row] for row in theme.rows), tuple(float(w) for w in theme.weights)) for theme in found
    ]
