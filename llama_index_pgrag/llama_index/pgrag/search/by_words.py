"""Cells without vectors are compared with key points by their words.

Facts that were read without a language model are sentences of the text that is embedded anyway. Their own vectors find
nothing that their words and the vector of their node do not. So the nodes nearest to a question are chosen first, and
then their cells are ranked by BM25 among each other. The scores take the place of cosines in the walk over the
candidate maps. A cell has the coordinates s_k, its scores for the key points k as shares of the best score, and one
more that makes its length 1, so its cosine to the unit vector of k is s_k.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.search.candidates import Vector
from llama_index.pgrag.state import KINDS, PseudoGraph, cells_of
from llama_index.ragkit.text.lexical_index import lexical_terms, scores_of_few
from llama_index.ragkit.vectors.question_scores import best_rows
from llama_index.ragkit.vectors.row_buffer import Record
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["MORE_NODES", "cells_by_words"]

MORE_NODES = 10
"""Nodes whose cells are compared in addition to the number of wanted results: some have no fact, or a shared one."""

Floats = NDArray[np.float64]


def cells_by_words(
    graph: PseudoGraph, scores: Floats, wanted: int, key_points: Sequence[str]
) -> tuple[PseudoGraph, list[Vector]]:
    """The graph of the best nodes, with vectors of words for its cells; and the vectors of the key points.

    `scores` has the shape (nodes,), -inf for nodes that may not be shown; `wanted` results must be in the right order.
    """
    ids = graph.chunks.ids
    best = [ids[row] for row in best_rows(scores, wanted + MORE_NODES, graph.chunks)]
    of_node = {node_id: graph.of_node[node_id] for node_id in best if node_id in graph.of_node}
    part = PseudoGraph.of(of_node)
    cells = cells_of(part.maps, part.maps)
    document_of = {i: found.document for topic_id, found in part.maps.items() for i in (topic_id, *found.routes)}
    document_of |= {fact.id: fact.document for own in of_node.values() for fact in own}
    terms = {i: lexical_terms(cell.text) for kind in KINDS for i, cell in cells[kind].items()}
    vectors = dict(zip(terms, _vectors(terms.values(), key_points), strict=True))
    records = {i: Record(i, document_of[i], cell.key, "{}") for kind in KINDS for i, cell in cells[kind].items()}
    topics, routes, facts = (
        Snapshot.of(np.stack([vectors[i] for i in own]), [records[i] for i in own]) if own else Snapshot.empty()
        for own in cells.values()
    )
    part = replace(graph, maps=part.maps, map_of=part.map_of, of_node=of_node, fused=None, terms=terms)
    points = np.eye(len(key_points), len(key_points) + 1, dtype=np.float32)
    return replace(part, topics=topics, routes=routes, facts=facts), list(points)


def _vectors(cells: Collection[Counter[str]], key_points: Sequence[str]) -> NDArray[np.float32]:
    """The unit vectors of some cells by their terms, shape (cells, key points + 1)."""
    texts = list(cells)
    found = np.zeros((len(texts), len(key_points) + 1))
    for k, point in enumerate(key_points if texts else ()):
        scores = scores_of_few(texts, point)
        found[:, k] = scores / (scores.max() or 1.0) / np.sqrt(len(key_points))
    found[:, -1] = np.sqrt(np.maximum(0.0, 1.0 - (found * found).sum(axis=1)))
    return found.astype(np.float32)
