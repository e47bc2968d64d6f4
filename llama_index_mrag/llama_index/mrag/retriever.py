"""`MRAGRetriever`: retrieves nodes by nearness and by the votes of the heads for every aspect of the question."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import NodeWithScore
from typing_extensions import Unpack

from llama_index.mrag.config import PAPER_SEARCHES, MRAGConfig, SearchConfig, Version
from llama_index.mrag.explanation import MRAGExplanation, explain
from llama_index.mrag.keywords import MRAGRetrieverKeywords
from llama_index.mrag.prompts import ASPECTS_PROMPT
from llama_index.mrag.state import MRAGState
from llama_index.mrag.vote_search import FoundByVote, search_votes
from llama_index.mrag.voting.vote_result import VoteResult
from llama_index.ragkit import DerivedIndex, DerivedRetriever, Query, Steps, offload
from llama_index.ragkit.index.chunk_scores import ChunkScores, Structure
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.validation import chosen

__all__ = ["MRAGRetriever"]


class MRAGRetriever(DerivedRetriever[MRAGState, FoundByVote, MRAGExplanation]):
    """Retrieves from a :class:`MRAGIndex` by nearness and the votes of the heads.

    A question of one aspect is answered by nearness, dense and lexical together. With more aspects, the votes of the
    heads and of BM25 for each aspect count too. They weigh more if the aspects have more subjects: instructions for the
    answer are aspects too, but a subject has its words in passages of its own. Votes decide only if the voters know
    more than chance (:mod:`llama_index.mrag.voting.ranking`).

    The mean vector of `QueryBundle.custom_embedding_strs` replaces that of the question in nearness, and in the votes
    for the question as a whole. The question's sentences vote with their own vectors.

    A score is the weighted mean of nearness and votes in standard deviations of the hundred best nodes, mapped to
    [0, 1] so that 0.5 is a cutoff (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`). With
    `vote_weight=1` scores are the votes themselves: 1 means that every head puts the node first for every aspect
    (:mod:`llama_index.mrag.voting.votes`). Scores are comparable within one question.

    Parameters
    ----------
    aspects : how the question is split. "none": not at all, as in the paper. "sentences": into its sentences, and the
        clauses of those that have several. "llm": as "sentences", and up to `num_queries` queries that an LLM derives
        from the question; "queries": only these queries (the paper's Fusion MRAG). If the LLM fails, the sentences are
        used ["sentences"]
    vote : "mrag" (importance times 2^-place), "decay" (2^-place) or "distance" (1 / distance): the paper's three
        ["mrag"]
    fusion : how the votes of several aspects are combined. "votes": the root of their mean square; "reciprocal_rank":
        reciprocal rank fusion of the ranking of each, as in the paper's Fusion MRAG ["votes"]
    num_candidates : number of nodes for which each head, and BM25, votes, the paper's c, at least 1; more if all heads
        together would vote for fewer nodes than are returned [32, as published]
    vote_weight : weight of votes against nearness, in [0, 1]; None to decide for each question, with 0 for one of a
        single aspect [None; paper: 1]
    lexical_weight : weight of BM25 in nearness, and of its votes for each aspect, in [0, 1]; cosines and heads have the
        rest [0.5; paper: 0]
    num_queries : queries requested from the LLM, at least 1 [4, as published]
    llm, prompts, retry : for "llm" and "queries"; the prompt "aspects" has the variables `question` and `num_queries`
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"aspects": ASPECTS_PROMPT}
    method: ClassVar[str] = "mrag"
    keywords = MRAGRetrieverKeywords
    options_cls = SearchConfig
    options: SearchConfig

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[MRAGConfig, MRAGState], **kwargs: Unpack[MRAGRetrieverKeywords]
        ) -> None: ...

    @staticmethod
    def paper(version: Version = "mrag") -> dict[str, Any]:
        """A published search as keywords: `index.as_retriever(**MRAGRetriever.paper())`.

        Parameters
        ----------
        version : "mrag", the whole question and the votes of its heads; "decay" and "distance", the "two additional
            voting strategies" of section 4.5; "fusion", Fusion MRAG: four queries of an LLM instead of the question,
            and reciprocal rank fusion of their rankings

        Raises
        ------
        ConfigurationError
            If there is no such version.
        """
        return chosen("version", version, PAPER_SEARCHES)

    def _search(self, query: Query[MRAGState]) -> Steps[FoundByVote]:
        return (yield from search_votes(query, self.options, partial(self._complete, "aspects")))

    @immediate
    def chunk_scores(self, query: Query[MRAGState], found: FoundByVote) -> ChunkScores | None:
        """See :meth:`DerivedRetriever.chunk_scores`."""
        result = found.result
        if result.nearness is None:
            return None
        return ChunkScores(result.state.chunks, result.nearness.scores, [Structure(result.added(), "votes")])

    def _explanations(self, found: FoundByVote, nodes: Sequence[NodeWithScore]) -> Steps[list[MRAGExplanation]]:
        return (yield from offload(explain, found.result, nodes, found.fallback))

    def _on_page(self, found: FoundByVote) -> VoteResult:
        return found.result
