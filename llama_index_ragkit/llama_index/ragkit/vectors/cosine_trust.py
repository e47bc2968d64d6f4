"""How far the cosines of a question can be trusted, seen from the chunks that have its words.

An embedding model that does not know the language of a text gives cosines that say little, and their size does not show
it. But chunks that have most words of the question are then no nearer to it than chunks that have one of them. So the
three best chunks by BM25 are compared with the others of the hundred best:

    D = P(cosine of one of the three > that of one of the others) - P(it is less)
    trust = 1 - c (1 - min(1, 0.4 + max(0, D)))

D is Somers' D (Somers 1962, "A New Asymmetric Measure of Association for Ordinal Variables", American Sociological
Review 27(6)), 2 AUC - 1: 1 where all of the three are nearer than all others, 0 by chance. It depends on the order of
cosines and scores alone, so neither on the habits of an embedding model nor on the size of the corpus. The least trust
is not 0, since a single question may have its words in the wrong chunks; it is 1 where there are fewer than 20 others.

The words show nothing where no chunk has much of the question, as where it asks for a theme in words of its own, or
where many have as much of it as the best one, as where filings repeat the same headings. c, in [0, 1], is the product
of two parts:

- how much of the question the best chunk has, by the weight of words in BM25: its score divided by that of a chunk of
  mean length that has each word of the question once, from 0 at 0.1 to 1 at 0.3;
- how far it stands out: one less the share of its score that the tenth best has, from 0 at 0.2 to 1 at 0.5.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["cosine_trust", "lexical_share"]

Doubles = NDArray[np.float64]

LEAST = 0.4
_FIRST = 3  # chunks with most of the words
_SEEN = 100  # best chunks by words
_STANDS_OUT = 10  # the chunk by words that the best one is compared with
_OF_QUESTION = (0.1, 0.3)  # of the full score: nothing, enough
_AHEAD = (0.2, 0.5)  # of the tenth best: not at all, far enough
_FEWEST = 20  # others that D is measured by; fewer show nothing


def cosine_trust(cosines: Doubles, lexical: Doubles, full_score: float = 0.0) -> float:
    """The trust in the cosines of a question, in [0.4, 1]; 1 where too few chunks have its words.

    Chunks that tie for the third place are among the first ones, the last of the hundred and those that tie with it are
    left out: the order of rows has no influence.

    Parameters
    ----------
    cosines, lexical : shape (n,), of the chunks that count: any dense scores, and BM25 scores
    full_score : the BM25 score of a chunk of mean length that has each word of the question once; 0 if unknown

    >>> lexical = np.arange(50.0) ** 4
    >>> cosine_trust(lexical, lexical), cosine_trust(-lexical, lexical)
    (1.0, 0.4)
    """
    with_words = np.flatnonzero(lexical > 0)
    scores = lexical[with_words]
    if len(scores) < _FIRST + _FEWEST:
        return 1.0
    third = np.partition(scores, -_FIRST)[-_FIRST]
    # The last one of a hundred is left out even if there are no more: an index that is served from stores cannot tell.
    last = np.partition(scores, -_SEEN)[-_SEEN] if len(scores) >= _SEEN else 0.0
    others = np.sort(cosines[with_words[(scores > last) & (scores < third)]])
    if len(others) < _FEWEST:
        return 1.0
    first = cosines[with_words[scores >= third]]
    below, not_above = np.searchsorted(others, first, "left"), np.searchsorted(others, first, "right")
    somers_d = float((below + not_above).mean()) / len(others) - 1
    best, tenth = float(scores.max()), float(np.partition(scores, -_STANDS_OUT)[-_STANDS_OUT])
    shown = _part(best / full_score if full_score else 1.0, *_OF_QUESTION) * _part(1 - tenth / best, *_AHEAD)
    return 1 - shown * (1 - min(1.0, LEAST + max(0.0, somers_d)))


def _part(share: float, nothing: float, enough: float) -> float:
    return min(1.0, max(0.0, (share - nothing) / (enough - nothing)))


def lexical_share(cosines: Doubles, lexical: Doubles, lexical_weight: float, full_score: float = 0.0) -> float:
    """The weight of BM25 for a question whose cosines are trusted so far: ``w / (w + (1 - w) trust)``.

    Parameters
    ----------
    cosines, lexical, full_score : see :func:`cosine_trust`
    lexical_weight : w, in [0, 1]; 0 and 1 stay what they are
    """
    if not lexical_weight:
        return 0.0
    return lexical_weight / (lexical_weight + (1 - lexical_weight) * cosine_trust(cosines, lexical, full_score))
