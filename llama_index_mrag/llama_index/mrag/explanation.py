"""Explanations of retrieved nodes: nearness, the agreement of each aspect, and every vote."""

from collections.abc import Sequence
from dataclasses import dataclass

from llama_index.core.schema import NodeWithScore

from llama_index.mrag.voting.vote_result import VoteFor, VoteResult
from llama_index.ragkit import Explanation
from llama_index.ragkit.index.results import result_fields

__all__ = ["MRAGExplanation", "explain"]


@dataclass(frozen=True, kw_only=True)
class MRAGExplanation(Explanation):
    """Why a node was retrieved.

    Attributes
    ----------
    nearness : dense and lexical nearness to the whole question in standard deviations; None if only votes count
    cosine, lexical : of the question and the node: the cosine, and the BM25 score (0 with `lexical_weight=0`); None if
        only votes count
    lexical_weight : weight of the BM25 score in nearness for this question, in [0, 1]; None if only votes count
    vote_weight : weight of votes against nearness, in [0, 1]; 0 for a question of a single aspect
    aspects : agreement of the voters of each aspect on the node, in [0, 1], highest first
    votes : every vote for the node, largest first
    """

    nearness: float | None
    cosine: float | None
    lexical: float | None
    lexical_weight: float | None
    vote_weight: float
    aspects: dict[str, float]
    votes: list[VoteFor]


def explain(result: VoteResult, nodes: Sequence[NodeWithScore], fallback: str) -> list[MRAGExplanation]:
    """One explanation for each node of the answer, in the same order."""
    explained, near = [], result.nearness
    for each in nodes:
        row = result.state.chunks.row_of(each.node.node_id)
        agreement, votes = result.votes_for(each.node.node_id)
        explained.append(
            MRAGExplanation(
                **result_fields(each),
                nearness=None if near is None else float(near.scores[row]),
                cosine=None if near is None else float(near.cosines[row]),
                lexical=None if near is None else float(near.lexical[row]),
                lexical_weight=None if near is None else near.lexical_weight,
                vote_weight=result.vote_weight,
                aspects=dict(sorted(agreement.items(), key=lambda pair: -pair[1])),
                votes=votes,
                fallback=fallback,
            )
        )
    return explained
