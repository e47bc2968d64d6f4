"""The score of a node: nearness to the whole question and votes for the node, weighed by the number of subjects.

    s(node)  = (1 - v) * nearness(node) + v * z(votes of node)
    v        = max( 0.4 max(0, 2 - n)^2, min( 1 / (1 + exp(5 (2 - min(n, 4)))), t ) )
    t        = 0.35 + 0.65 max( r((n h - 0.2) / 0.2), r((u - 0.65) / 0.2) ),  r(x) = min(1, max(0, x))
    n        = g * sum over parts of max over nodes of BM25(part, node)  /  max over nodes of BM25(question, node)
    g        = 1 + min(1, max(0, p - 8) / 8) / 3, p being the number of parts

Nearness is dense and lexical together (:mod:`llama_index.ragkit.vectors.question_scores`). The votes of all aspects
(:mod:`llama_index.mrag.voting.votes`) are standardised in the same way, over their hundred best.

n is the number of subjects of the question, judged by its words; parts are the aspects that are not divided further.
BM25 adds up over words. If one node is the best for all parts, n is about 1, however many clauses there are; with
instructions for the answer ("Round to two decimal places.") it is mostly between 1.3 and 2. If each part has its own
best node, n is the number of parts. For a question of a single aspect only nearness counts; for one of many subjects,
votes do. With n = 1 the parts agree on a node, and their vote confirms it. With n = 1.5 they do not, although there is
only one subject: the best nodes for instructions are not answers, so votes do harm. Above two, v rises steeply, since
a question of three subjects is near to none of them. In a long text, common words add up to one best node for all of
it, which would make n too small. So n is raised from eight parts on, by a third from sixteen.

How far v may rise depends on the voters. They know more than chance in two cases: words and heads find the same nodes,
or the nodes have the words of the parts. h is the share of the heads whose best node for a part is that of BM25,
averaged over the parts that have words; n h is then the number of subjects that both find alike. u is the score of that
node as a share of that of a node of mean length that has each word of the part once, averaged over the parts. If parts
name their subjects, n h is 0.3 to 2 or u is about 1, and votes decide. If they describe them in other words, n h is
mostly below 0.2 and u about 0.5, and votes are only one sign next to nearness.

None of this is in the paper, which ranks only by votes (v = 1).
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.question_scores import standardised

__all__ = ["combine_with_nearness", "found_alike", "found_in_words", "subjects", "votes_weight"]

_HALF = 2.0  # subjects for which votes and nearness count alike
_STEEPNESS = 5.0
_LONG = 8.0  # parts from which common words matter
_AGREED = 0.4  # weight of votes of parts that agree on a node
_UNCERTAIN = 0.35  # maximum weight of votes if the voters know nothing
_ALIKE = (0.2, 0.4)  # subjects that words and heads find alike: too few to tell; enough
_IN_WORDS = (0.65, 0.85)  # share of the full score: the nodes do not have the words of the parts; they have them
_MANY = 4.0  # subjects beyond which votes weigh no more: nearness still orders the nodes without votes

Scores = NDArray[np.float64]


def subjects(parts: Sequence[float], question: float) -> float:
    """The number n of subjects of a question, from 1 to the number of its parts.

    Parameters
    ----------
    parts : for each part the BM25 score of the best node for it
    question : that of the best node for the whole question; 0 if no node has a word of it, so that only the number of
        parts is known

    >>> subjects([6.0, 2.0, 0.5], 8.0), subjects([6.0, 5.0, 7.0], 8.0), subjects([0.0, 0.0], 0.0)
    (1.0625, 2.25, 2.0)
    """
    most = float(max(1, len(parts)))
    if question <= 0:
        return most
    long = min(1.0, max(0.0, most - _LONG) / _LONG)
    return min(most, max(1.0, (1 + long / 3) * sum(parts) / question))


def found_alike(n: float, by_heads: NDArray[np.intp], by_words: Sequence[int | None]) -> float:
    """Whether words and heads find the same subjects, in [0, 1].

    Parts without a word in any node do not count, for example if the question is not in the language of the texts. If
    there are no others, it is 1.

    Parameters
    ----------
    n : number of subjects, at least 1
    by_heads : shape (parts, heads), the best row of each head for each part
    by_words : for each part the best row by BM25; None if no row has a word of it

    >>> found_alike(1.0, np.array([[3, 1, 1, 2], [2, 5, 7, 7], [6, 6, 6, 6]]), [3, 5, 8])
    0.0
    >>> found_alike(3.0, np.array([[3, 3, 1, 3], [2, 5, 5, 7]]), [3, None])
    1.0
    """
    alike = [float(np.mean(heads == row)) for heads, row in zip(by_heads, by_words, strict=True) if row is not None]
    return _between(n * sum(alike) / len(alike), *_ALIKE) if alike else 1.0


def found_in_words(best: Sequence[float], full: Sequence[float]) -> float:
    """Whether the words of the parts are in the nodes, in [0, 1].

    Parameters
    ----------
    best : for each part the BM25 score of the best node for it
    full : that of a node of mean length that has each of its words once; parts with 0 have no words and do not count

    >>> found_in_words([6.0, 9.0, 0.0], [8.0, 12.0, 0.0]), found_in_words([3.0], [6.0])
    (0.5, 0.0)
    """
    shares = [found / most for found, most in zip(best, full, strict=True) if most > 0]
    return _between(sum(shares) / len(shares), *_IN_WORDS) if shares else 0.0


def votes_weight(n: float, known: float = 1.0) -> float:
    """How much the votes count against nearness, v, in (0, 1).

    Parameters
    ----------
    n : number of subjects, at least 1
    known : whether the voters know more than chance, in [0, 1]: the larger of :func:`found_alike` and
        :func:`found_in_words`

    >>> [round(votes_weight(n), 3) for n in (1, 1.5, 2, 2.5, 3)], votes_weight(30) < 1
    ([0.4, 0.1, 0.5, 0.924, 0.993], True)
    >>> [round(votes_weight(3, known), 3) for known in (0, 0.5, 1)]
    [0.35, 0.675, 0.993]
    """
    agreed = _AGREED * max(0.0, _HALF - n) ** 2
    most = _UNCERTAIN + (1 - _UNCERTAIN) * known
    return max(agreed, min(most, 1 / (1 + math.exp(_STEEPNESS * (_HALF - min(n, _MANY))))))


def _between(value: float, low: float, high: float) -> float:
    return min(1.0, max(0.0, (value - low) / (high - low)))


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
