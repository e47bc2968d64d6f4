"""Scores of passages from a walk, in [0, 1], as pure functions on arrays."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from llama_index.hipporag.config import PhraseCount
from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.pagerank.power_iteration import pagerank

__all__ = [
    "geometric_mean",
    "min_max",
    "passage_projection",
    "rescored",
    "share_of_best",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_LEAST = 1e-6  # smallest share in a geometric mean
_DECIMALS = 10  # of scores: hides the effect of the order of rows on sums


def passage_projection(
    graph: KnowledgeGraph,
    counted: PhraseCount = "contains",
    length_normalization: float = 0.0,
    *,
    passage_nodes: bool = False,
) -> csr_matrix:
    """The matrix from scores of nodes to scores of passages, shape (p, n), or (p, n + p) with passage nodes.

    Parameters
    ----------
    counted : "contains" takes each phrase of a passage once (this package's default), "mentions" as often as
        the passage mentions it (the paper, section 2.3), "facts" once for each different fact that has it
        (the published code)
    length_normalization : a in [0, 1]; the sum is divided by (phrases of the passage) ** a, so that passages with many
        phrases are not favoured
    passage_nodes : a passage has the score of its own node instead; these nodes follow the phrases
    """
    p, n, _ = graph.shape
    if passage_nodes:
        counts = csr_matrix((np.ones(p), np.arange(n, n + p), np.arange(p + 1)), shape=(p, n + p))
    elif counted == "contains":
        counts = graph.contains
    else:
        counts = graph.mentions if counted == "mentions" else graph.facts_with_phrase
    if not length_normalization:
        return counts
    lengths = np.maximum(np.diff(graph.contains.indptr), 1)
    return csr_matrix(diags(lengths**-length_normalization) @ counts)


def share_of_best(scores: Floats, allowed: Mask | None = None) -> Floats:
    """Scores of at least 0 as shares of the best of the allowed ones, in [0, 1]; others become 0."""
    if allowed is not None:
        scores = np.where(allowed, scores, 0.0)
    top = float(scores.max(initial=0.0))
    return np.round(scores / top, _DECIMALS) if top > 0 else scores


def geometric_mean(shares: Sequence[Floats]) -> Floats:
    """The geometric mean of shares in [0, 1], shape (p,); a zero is replaced by a millionth, so that the others still
    matter.
    """
    logs = np.mean([np.log(share + _LEAST) for share in shares], axis=0)
    mean: Floats = np.exp(logs) - _LEAST
    return np.maximum(mean, 0.0)


def min_max(values: Floats, allowed: Mask | None = None) -> Floats:
    """Values scaled to [0, 1]: the lowest of the allowed ones to 0, the highest to 1; others become 0.

    Where all are equal they are all 1, or all 0 if they are zero; the published code divides by zero there.
    """
    part = values if allowed is None else values[allowed]
    if not part.size:
        return np.zeros_like(values)
    low, high = float(part.min()), float(part.max())
    found = (values - low) / (high - low) if high > low else np.full_like(values, 1.0 if high else 0.0)
    if allowed is not None:
        found = np.where(allowed, found, 0.0)
    return np.round(found, _DECIMALS)


def rescored(
    graph: KnowledgeGraph,
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
    p, n, _ = graph.shape
    places = [place for place, row in enumerate(rows.tolist()) if row >= 0]
    if not places:
        return best_first(len(rows), places, np.empty(0))
    reset = np.zeros(n + p)
    np.add.at(reset, n + rows[places], rank_shares(places) * (node_weight if weights else 1.0))
    total = sum(weights.values())
    for row, weight in weights.items():
        reset[row] += (1 - node_weight) * weight / total
    walked = pagerank(graph.walk(subject_weight=subject_weight), reset)[n:]
    return best_first(len(rows), places, walked[rows[places]])


def rank_shares(places: Sequence[int]) -> Floats:
    """Weights in proportion to 1 / rank, sum 1, of the passages at some places from 0."""
    weights: Floats = 1.0 / (np.array(places) + 1)
    shares: Floats = weights / weights.sum()
    return shares


def best_first(count: int, places: Sequence[int], scores: Floats) -> list[tuple[int, float]]:
    """Passages by score at the places that they had; the others keep theirs, with the score of the one before them.

    Parameters
    ----------
    count : how many passages there are
    places : of those that have scores, ascending
    scores : theirs, at least 0

    Returns
    -------
    (place, score as a share of the best) in the new order
    """
    order = dict(zip(places, share_of_best(scores).tolist(), strict=True))
    ranked = iter(sorted(places, key=lambda place: (-order[place], place)))
    result: list[tuple[int, float]] = []
    for place in range(count):
        score = result[-1][1] if result else 1.0
        result.append(((best_place := next(ranked)), order[best_place]) if place in order else (place, score))
    return result
