"""Scores of passages from a walk, and how far to trust it, as pure functions on arrays.

The default ranking needs no LLM. It combines the walk and nearness:

1. The phrases of the graph that occur in the question are linked (`llama_index.ragkit.text.known_names`).
2. A walk starts from them, each with the weight 1 / (number of passages with it), and from the passages nearest to the
   question, with a total weight of `passage_seed_weight`: much less than a name in one or two passages, and more than a
   word in hundreds.
3. The score of a passage is its nearness to the question, dense and lexical together, plus the logarithm of its share
   of the walk, which counts as far as the walk can be trusted (:func:`walk_trust`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.graph.knowledge_graph import GraphPart, KnowledgeGraph
from llama_index.hipporag.pagerank.power_iteration import pagerank
from llama_index.ragkit.vectors.trust import lead, trust

__all__ = [
    "UNTRUSTED", "WALK_WEIGHT", "geometric_mean", "min_max", "rerank_weights", "rescored", "share_of_best",
    "walk_trust",
]  # fmt: skip

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WALK_WEIGHT = 7.0  # of a walk that is trusted fully
_LEAD_WEIGHT = 0.15  # per standard deviation by which the nearest passage is ahead
UNTRUSTED = "the walk does not reach the passage that is nearest to the question, or leads elsewhere than its words"

_LEAST = 1e-6  # smallest share in a geometric mean
_DECIMALS = 10  # of scores: hides the effect of the order of rows on sums


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

    Equal values are all 1, or all 0 if they are zero; the published code divides by zero there.
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


def walk_trust(nearness: Floats, walked: Floats, rarity: float, candidates: Mask | None = None) -> float:
    """How far to trust a walk for a question, in [0, 1]; see :func:`~llama_index.ragkit.vectors.trust.trust`.

    The further the nearest passage is ahead of the others, the more it counts whether the walk reaches it: a chain
    begins there, and a passage that has everything in the question answers it without a chain. `rarity` is that of the
    rarest name from which the walk starts.
    """
    return rarity * trust(nearness, walked, _LEAD_WEIGHT * lead(nearness), candidates)
