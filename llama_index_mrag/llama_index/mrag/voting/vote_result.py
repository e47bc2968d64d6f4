"""The vote on one question: its execution, its ranking, and the votes for each node."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from llama_index.mrag.config import Fusion, SearchConfig
from llama_index.mrag.heads.head_search import HeadHits
from llama_index.mrag.state import MRAGState
from llama_index.mrag.voting.ranking import combine_with_nearness
from llama_index.mrag.voting.votes import Tally, combine, head_votes, lexical_votes, mix, sum_votes
from llama_index.ragkit.vectors.question_scores import Nearness, best_rows, result_scores

__all__ = ["VoteFor", "VoteResult", "rank_by_nearness", "run_vote"]

Rows = NDArray[np.intp]


@dataclass(frozen=True)
class VoteFor:
    """A vote for a node.

    Attributes
    ----------
    aspect : the part of the question to which the vote belongs
    head : number of the head, from 0; None for BM25
    place : the node's place in that voter's list, from 1
    share : contribution of the vote to the node's agreement with the aspect, in [0, 1]
    """

    aspect: str
    head: int | None
    place: int
    share: float


@dataclass(frozen=True)
class VoteResult:
    """The result of a vote."""

    state: MRAGState  # that was searched
    aspects: Sequence[str]  # the parts of the question that had a vote
    hits: HeadHits  # of each head for each aspect
    votes: NDArray[np.float64]  # of each hit, shape (aspects, heads, c)
    lexical: Sequence[Mapping[int, float]]  # for each aspect, the votes of BM25 by row, best first
    tally: Tally  # agreement of all voters
    ranking: list[tuple[str, float]]  # node ids with scores in [0, 1], best first
    nearness: Nearness | None = None  # of all nodes to the whole question; None if only votes count
    vote_weight: float = 1.0  # of the votes against nearness, in [0, 1]
    fusion: Fusion = "votes"  # as for `combine`
    depth: int | None = None  # as for `combine`

    @classmethod
    def empty(cls, state: MRAGState) -> "VoteResult":
        """The result of a vote without nodes or aspects."""
        hits = HeadHits.unfilled(0, state.heads, 0)
        return cls(state, (), hits, hits.cosines, (), Tally(np.zeros(0, np.intp), np.zeros((0, 0))), [])

    def added(self) -> NDArray[np.float64]:
        """What the votes add to the nearness of nodes, shape (n,), in standard deviations."""
        near = np.zeros(0) if self.nearness is None else self.nearness.scores
        shown = np.isfinite(near)
        found = np.zeros(len(near))
        found[shown] = combine_with_nearness(near, self._votes(len(near)), self.vote_weight)[shown] - near[shown]
        return found

    def _votes(self, count: int) -> NDArray[np.float64]:
        votes = np.zeros(count)
        votes[self.tally.rows] = combine(self.tally.agreement, self.fusion, self.depth)
        return votes

    def votes_for(self, node_id: str) -> tuple[dict[str, float], list[VoteFor]]:
        """The agreement on a node of each aspect with votes for it, and these votes, largest first."""
        row = self.state.chunks.row_of(node_id)
        agreement = self.tally.agreement[:, self.tally.rows == row].sum(axis=1)
        votes = [
            VoteFor(self.aspects[aspect], head, place + 1, float(self.votes[aspect, head, place]))
            for aspect, head, place in np.argwhere(self.hits.rows == row).tolist()
        ]
        for name, shares in zip(self.aspects, self.lexical, strict=False):
            if row in shares:
                votes.append(VoteFor(name, None, list(shares).index(row) + 1, shares[row]))
        agreed = {self.aspects[aspect]: float(agreement[aspect]) for aspect in np.flatnonzero(agreement).tolist()}
        return agreed, sorted(votes, key=lambda vote: -vote.share)


def run_vote(
    state: MRAGState,
    aspects: Sequence[str],
    queries: NDArray[np.float32],
    options: SearchConfig,
    *,
    wanted: int = 0,
    rows: Rows | None = None,
    lexical: Sequence[Mapping[int, float]] | None = None,
    hits: HeadHits | None = None,
    ranked: bool = True,
) -> VoteResult:
    """Run the vote of every head for every aspect.

    Parameters
    ----------
    queries : shape (aspects, heads * head_dim)
    wanted : number of nodes for which all heads together must vote, if there are enough; more candidates count until
        they do. It is also the number of places of each ranking that count for "reciprocal_rank"
    rows : the rows that may be voted for; None for all
    lexical : for each aspect, the BM25 scores, above 0, of its best rows, best first; None for none
    hits : the results of the heads, if already known
    ranked : whether to rank by votes; a later ranking by nearness and votes does not need this ranking
    """
    hits = state.search_heads(queries, options.num_candidates, rows) if hits is None else hits
    most = len(state.chunks) if rows is None else len(rows)
    if len(np.unique(hits.rows)) < min(wanted, most):
        hits = state.search_heads(queries, wanted, rows)
    votes = head_votes(hits.cosines, state.importance, options.vote)
    tally = sum_votes(hits, votes)
    shares_of_rows: list[dict[int, float]] = []
    if lexical is not None:
        of_lexical, weight = lexical_votes(lexical), options.lexical_weight
        tally = mix(tally, of_lexical, weight)
        votes = votes * (1 - weight)
        column = {int(row): place for place, row in enumerate(of_lexical.rows)}
        shares_of_rows = [
            {row: weight * float(shares[column[row]]) for row in found}
            for shares, found in zip(of_lexical.agreement, lexical, strict=True)
        ]
    ranking: list[tuple[str, float]] = []
    fusion, depth = options.fusion, wanted or None
    if ranked:
        scores, ids = combine(tally.agreement, fusion, depth), state.chunks.ids
        ranking = [(ids[tally.rows[i]], float(scores[i])) for i in _best_first(scores, tally.rows, state)]
    return VoteResult(state, list(aspects), hits, votes, shares_of_rows, tally, ranking, fusion=fusion, depth=depth)


def _best_first(scores: NDArray[np.float64], rows: Rows, state: MRAGState) -> list[int]:
    """Positions by score; equal scores are in the canonical order of their rows, which is looked up only for these."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True)) + 1
    placed: list[int] = []
    for end in ends.tolist():
        equal = order[len(placed) : end].tolist()
        placed += equal if len(equal) == 1 else sorted(equal, key=lambda i: state.key(int(rows[i])))
    return placed


def rank_by_nearness(result: VoteResult, nearness: Nearness, vote_weight: float, wanted: int) -> VoteResult:
    """The same vote with `wanted` nodes ranked by nearness and votes, see :mod:`~llama_index.mrag.voting.ranking`.

    The nearness is that of all nodes, -inf for those that may not be shown.
    """
    scores = combine_with_nearness(nearness.scores, result._votes(len(nearness.scores)), vote_weight)
    best = best_rows(scores, wanted, result.state.chunks)
    ids = result.state.chunks.ids
    values = result_scores(scores[best], scores).tolist()
    ranking = [(ids[row], value) for row, value in zip(best, values, strict=True)]
    return replace(result, ranking=ranking, nearness=nearness, vote_weight=vote_weight)
