"""The scoring formulas: votes, agreement within an aspect, and combination of aspects.

1. *Votes.* In the list of head h for an aspect, the node at rank r (0 for the best) gets

       mrag       s_h / sum(s) * 2^-r      the paper's (Algorithm 2), s being the importance of the heads
       decay      1 / H * 2^-r             the paper's MRAG(1)
       distance   1 / (1 - cosine)         the paper's MRAG(2), as a share of all such votes of the aspect

2. *Agreement.* Votes of one aspect for one node are summed over the heads: a(aspect, node), in [0, 1]. It is 1 if every
   head ranks the node first.

3. *Aspects.*   score(node) = sqrt( mean over aspects of a(aspect, node)^2 ), in [0, 1].

With one aspect the score is the agreement, and with `mrag` the ranking is the paper's. With several, the squares rank a
node that the heads of *one* aspect agree on above one that is weakly related to many aspects. The votes of an aspect
without relevant nodes are scattered over many nodes and hardly count.

The paper's Algorithm 2 appends the votes of a node without adding them up; its code adds them, as here. Ranks start at
0 here and at 1 in the paper, which only doubles all votes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llama_index.mrag.config import Fusion, Vote
from llama_index.mrag.heads.head_search import HeadHits

__all__ = ["Tally", "combine", "head_votes", "lexical_votes", "mix", "sum_votes"]

_NEAREST = 1e-6  # least distance, to avoid division by zero for equal vectors
_RANK_CONSTANT = 60  # of reciprocal rank fusion (Cormack et al. 2009)
_DECIMALS = 12  # hides differences due to the order of summation


@dataclass(frozen=True)
class Tally:
    """The agreement of the voters of each aspect on each node.

    Attributes
    ----------
    rows : shape (m,), the rows that got a vote
    agreement : shape (aspects, m), in [0, 1]
    """

    rows: NDArray[np.intp]
    agreement: NDArray[np.float64]


def head_votes(cosines: NDArray[np.float64], scores: NDArray[np.float64], vote: Vote) -> NDArray[np.float64]:
    """The votes of every list, shape (aspects, heads, c); those of an aspect for one node sum to at most 1.

    Parameters
    ----------
    cosines : shape (aspects, heads, c), best first
    scores : shape (heads,), importance; if all are 0, all heads count equally
    """
    _, heads, places = cosines.shape
    if vote == "distance":
        votes: NDArray[np.float64] = 1 / np.maximum(1 - cosines, _NEAREST)
        votes /= votes.sum(axis=(1, 2), keepdims=True)
        return votes
    total = scores.sum() if vote == "mrag" else 0.0
    shares = scores / total if total > 0 else np.full(heads, 1 / heads)
    return np.broadcast_to(shares[:, None] * 0.5 ** np.arange(places), cosines.shape)


def sum_votes(hits: HeadHits, votes: NDArray[np.float64]) -> Tally:
    """Votes summed over the heads of each aspect.

    Parameters
    ----------
    votes : shape (aspects, heads, c), one vote for every hit
    """
    rows, places = np.unique(hits.rows, return_inverse=True)
    agreement = np.zeros((len(votes), len(rows)))
    for aspect, (columns, shares) in enumerate(zip(places.reshape(votes.shape), votes, strict=True)):
        np.add.at(agreement[aspect], columns.ravel(), shares.ravel())
    return Tally(rows, agreement)


def lexical_votes(found: Sequence[Mapping[int, float]]) -> Tally:
    """Votes by the words of each aspect: by rank, weighted by the BM25 score.

        l(aspect, node) = 2^-r * score / (best score of all aspects)

    Because of the weight, an aspect of rare words counts more than one of common words.

    Parameters
    ----------
    found : for each aspect, the BM25 score of each row, best first, above 0
    """
    rows = np.array(sorted({row for scores in found for row in scores}), dtype=np.intp)
    column = {int(row): place for place, row in enumerate(rows)}
    best = max((score for scores in found for score in scores.values()), default=0.0)
    agreement = np.zeros((len(found), len(rows)))
    for aspect, scores in enumerate(found):
        for place, (row, score) in enumerate(scores.items()):
            agreement[aspect, column[row]] = 0.5**place * score / best
    return Tally(rows, agreement)


def mix(heads: Tally, lexical: Tally, weight: float) -> Tally:
    """Both kinds of voters: `(1 - weight) * heads + weight * lexical`.

    Parameters
    ----------
    weight : in [0, 1], weight of the lexical votes
    """
    rows = np.union1d(heads.rows, lexical.rows).astype(np.intp)
    agreement = np.zeros((len(heads.agreement), len(rows)))
    agreement[:, np.searchsorted(rows, heads.rows)] += (1 - weight) * heads.agreement
    agreement[:, np.searchsorted(rows, lexical.rows)] += weight * lexical.agreement
    return Tally(rows, agreement)


def combine(agreement: NDArray[np.float64], fusion: Fusion = "votes", depth: int | None = None) -> NDArray[np.float64]:
    """Scores of nodes, shape (m,), in [0, 1].

    Parameters
    ----------
    agreement : shape (aspects, m)
    fusion : "votes": the root of the mean square over aspects; "reciprocal_rank": the sum over aspects of
        1 / (60 + place), places from 0, as a share of the sum for a node that is first for every aspect (the paper's
        Fusion MRAG); nodes of equal agreement share the best of their places, so that the order of rows has no effect
    depth : for "reciprocal_rank", how many places of each ranking count, as in the authors' code. In full rankings, a
        node far down in all of them would be above a node that is first for a single aspect. None for all

    >>> combine(np.array([[0.6, 0.3], [0.0, 0.3]])).round(3).tolist()
    [0.424, 0.3]
    >>> combine(np.array([[0.6, 0.3], [0.0, 0.3]]), "reciprocal_rank").round(3).tolist()
    [0.5, 0.992]
    """
    if not len(agreement):
        return np.zeros(agreement.shape[1])
    if fusion == "reciprocal_rank":
        rounded = agreement.round(_DECIMALS)
        places = np.array([np.searchsorted(np.sort(-row), -row) for row in rounded]).reshape(agreement.shape)
        counted = (agreement > 0) & (places < (np.inf if depth is None else depth))
        shares = np.where(counted, _RANK_CONSTANT / (_RANK_CONSTANT + places), 0.0)
        scores: NDArray[np.float64] = shares.mean(axis=0)
    else:
        scores = np.sqrt((agreement**2).mean(axis=0))
    rounded_scores: NDArray[np.float64] = scores.round(_DECIMALS)
    return rounded_scores
