"""The score of a node: its nearness to the whole question, and the votes for it, by the number of subjects.

    s(node)  = (1 - v) * nearness(node) + v * z(votes of node)            score = (1 + s / (1 + |s|)) / 2
    v        = max( n^2 / (n^2 + 4), 1 / (1 + exp(3 (2 - n))) )
    n        = sum over parts of max over nodes of BM25(part, node)  /  max over nodes of BM25(question, node)

Nearness is dense and lexical together (:mod:`llama_index.ragkit.vectors.nearness`), the votes of all aspects
(:mod:`llama_index.mrag.voting.votes`) are standardised in the same way, over their hundred best.

n is the number of subjects of the question, as its words tell; parts are the aspects that are not divided further. BM25
adds up over words. Where one node is the best for all parts, n is about 1, however many clauses there are; with
instructions for the answer ("Round to two decimal places.") it stays below 2. Where each part has a best node of its
own, n is the number of parts. A question of a single aspect is nearness alone, one of many subjects the votes. Up to
two subjects v rises slowly, since the votes of clauses that share a best node gain there; those of instructions do
harm. Above two it rises steeply, since a question of three subjects is near to none of them.

None of this is in the paper, which ranks by votes alone (v = 1).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.nearness import standardised

__all__ = ["combine_with_nearness", "subjects", "votes_weight"]

_HALF = 2.0  # subjects for which votes and nearness count alike
_STEEPNESS = 3.0

Scores = NDArray[np.float64]


def subjects(parts: Sequence[float], question: float) -> float:
    """The number n of subjects of a question, from 1 to the number of its parts.

    Parameters
    ----------
    parts : for each part the BM25 score of the best node for it
    question : that of the best node for the whole question; 0 if no node has a word of it, so that nothing but the
        number of parts is known

    >>> subjects([6.0, 2.0, 0.5], 8.0), subjects([6.0, 5.0, 7.0], 8.0), subjects([0.0, 0.0], 0.0)
    (1.0625, 2.25, 2.0)
    """
    most = float(max(1, len(parts)))
    return min(most, max(1.0, sum(parts) / question)) if question > 0 else most


def votes_weight(n: float) -> float:
    """How much the votes count beside nearness for so many subjects, in [0.2, 1).

    >>> [round(votes_weight(n), 3) for n in (1, 1.5, 2, 2.5, 3)]
    [0.2, 0.36, 0.5, 0.818, 0.953]
    """
    return max(n**2 / (n**2 + _HALF**2), 1 / (1 + math.exp(_STEEPNESS * (_HALF - n))))


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
