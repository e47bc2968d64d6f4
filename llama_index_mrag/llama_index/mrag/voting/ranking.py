"""The score of a node: its nearness to the whole question, and the votes for it, by the number of subjects.

    s(node)  = (1 - v) * nearness(node) + v * z(votes of node)            score = (1 + s / (1 + |s|)) / 2
    v        = max( 0.4 max(0, 2 - n)^2, 1 / (1 + exp(5 (2 - min(n, 4)))) )
    n        = g * sum over parts of max over nodes of BM25(part, node)  /  max over nodes of BM25(question, node)
    g        = 1 + min(1, max(0, p - 8) / 8) / 3, p being the number of parts

Nearness is dense and lexical together (:mod:`llama_index.ragkit.vectors.nearness`), the votes of all aspects
(:mod:`llama_index.mrag.voting.votes`) are standardised in the same way, over their hundred best.

n is the number of subjects of the question, as its words tell; parts are the aspects that are not divided further. BM25
adds up over words. Where one node is the best for all parts, n is about 1, however many clauses there are; with
instructions for the answer ("Round to two decimal places.") it is mostly between 1.3 and 2. Where each part has a best
node of its own, n is the number of parts. A question of a single aspect is nearness alone, one of many subjects the
votes. With n = 1 the parts agree on a node, which a vote of theirs confirms. With n = 1.5 they do not, though there are
no two subjects: instructions have best nodes that are no answer, so that votes do harm. Above two v rises steeply,
since a question of three subjects is near to none of them. In a long text, common words add up to a best node for all
of it, which would make n too small: from eight parts on it is raised, by a third from sixteen.

None of this is in the paper, which ranks by votes alone (v = 1).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.nearness import standardised

__all__ = ["combine_with_nearness", "subjects", "votes_weight"]

_HALF = 2.0  # subjects for which votes and nearness count alike
_STEEPNESS = 5.0
_LONG = 8.0  # parts from which on common words count
_AGREED = 0.4  # weight of votes of parts that agree on a node
_MANY = 4.0  # subjects beyond which votes weigh no more: nearness still orders the nodes without votes

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
    if question <= 0:
        return most
    long = min(1.0, max(0.0, most - _LONG) / _LONG)
    return min(most, max(1.0, (1 + long / 3) * sum(parts) / question))


def votes_weight(n: float) -> float:
    """How much the votes count beside nearness for so many subjects, in (0, 1).

    >>> [round(votes_weight(n), 3) for n in (1, 1.5, 2, 2.5, 3)], votes_weight(30) < 1
    ([0.4, 0.1, 0.5, 0.924, 0.993], True)
    """
    agreed = _AGREED * max(0.0, _HALF - n) ** 2
    return max(agreed, 1 / (1 + math.exp(_STEEPNESS * (_HALF - min(n, _MANY)))))


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
