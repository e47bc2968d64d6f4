"""The score of a node: its nearness to the whole question, and the votes for it, by the number of aspects.

    s(node)  = (1 - v) * nearness(node) + v * z(votes of node)            score = (1 + s / (1 + |s|)) / 2
    v        = (n - 1) / (n + 1)

Nearness is dense and lexical together (:mod:`llama_index.ragkit.vectors.nearness`), the votes of all aspects
(:mod:`llama_index.mrag.voting.votes`) are standardised in the same way, over their hundred best. n is the number of
aspects: a question of one aspect is nearness alone, and of many the votes.

None of this is in the paper, which ranks by votes alone (v = 1).
"""

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.nearness import standardised

__all__ = ["aspects_weight", "combine_with_nearness"]

Scores = NDArray[np.float64]


def aspects_weight(aspects: int) -> float:
    """How much the votes of so many aspects may count beside nearness, in [0, 1).

    >>> [aspects_weight(n) for n in (1, 3, 9)]
    [0.0, 0.5, 0.8]
    """
    return max(0.0, (aspects - 1) / (aspects + 1))


def combine_with_nearness(nearness: Scores, votes: Scores, weight: float) -> Scores:
    """Nearness and votes as one score in standard deviations, shape (n,).

    Parameters
    ----------
    nearness : shape (n,), -inf for nodes that may not be shown
    votes : shape (n,), at least 0; 0 for nodes without votes
    weight : v, in [0, 1]
    """
    shown = np.isfinite(nearness)
    scores = np.full(len(nearness), -np.inf)
    if shown.any():
        scores[shown] = (1 - weight) * nearness[shown] + weight * standardised(votes[shown])
    return scores
