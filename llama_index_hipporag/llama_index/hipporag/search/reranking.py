"""Reranking of passages by a walk from phrases and from the passages themselves."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.graph.knowledge_graph import GraphPart, KnowledgeGraph
from llama_index.hipporag.pagerank.power_iteration import pagerank
from llama_index.hipporag.search.graph_search import share_of_best

__all__ = ["rerank_weights", "rescored"]

Floats = NDArray[np.float64]


def rescored(
    graph: KnowledgeGraph | GraphPart,
    rows: NDArray[np.int64],
    weights: Mapping[int, float],
    node_weight: float,
    subject_weight: float,
) -> list[tuple[int, float]]:
    """Rerank passages by a walk from phrases and from the passages themselves.

    Parameters
    ----------
    rows : the passages in their original order, repetitions allowed; -1 for an unknown one
    weights : phrase -> weight
    node_weight : share of the reset distribution for the passages, in proportion to 1 / rank
    subject_weight : weight of the edge between a passage and its subject; those to other phrases have 1

    Returns
    -------
    (position in `rows`, score in [0, 1]) in the new order. Unknown passages keep their positions, with the score of
    the one before them.
    """
    n = graph.shape[1]
    places = [place for place, row in enumerate(rows.tolist()) if row >= 0]
    if not places:
        return best_first(len(rows), places, np.empty(0))
    walk = graph.walk("added", synonyms=False, subject_weight=subject_weight)
    reset = np.zeros(len(walk))
    phrases, shares = rerank_weights(weights, places, node_weight)
    np.add.at(reset, n + rows[places], shares)
    for row, weight in phrases.items():
        reset[row] += weight
    walked = pagerank(walk, reset)[n:]
    return best_first(len(rows), places, walked[rows[places]])


def rerank_weights(
    weights: Mapping[int, float], places: Sequence[int], node_weight: float
) -> tuple[Mapping[int, float], Floats]:
    """The reset of a walk that reranks passages: weights of phrases, scaled, and of the passages at some places."""
    total = sum(weights.values())
    phrases = {row: (1 - node_weight) * weight / total for row, weight in weights.items()}
    ranks: Floats = 1.0 / (np.array(places) + 1)
    return phrases, ranks / ranks.sum() * (node_weight if weights else 1.0)


def best_first(count: int, places: Sequence[int], scores: Floats) -> list[tuple[int, float]]:
    """(place, score as a share of the best) of `count` passages in a new order.

    Those with scores (`places`, ascending) are sorted among their own places; others keep theirs and get the score
    before them.
    """
    order = dict(zip(places, share_of_best(scores).tolist(), strict=True))
    ranked = iter(sorted(places, key=lambda place: (-order[place], place)))
    result: list[tuple[int, float]] = []
    for place in range(count):
        score = result[-1][1] if result else 1.0
        result.append(((best_place := next(ranked)), order[best_place]) if place in order else (place, score))
    return result
