"""`MRAGRetriever`: the heads vote, for every aspect of the question."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import LLMType, resolve_llm
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.settings import Settings
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from llama_index.mrag.aspects import cut_aspects
from llama_index.mrag.election import Election, hold
from llama_index.mrag.index import MRAGIndex
from llama_index.mrag.prompts import ASPECTS_PROMPT
from llama_index.mrag.state import MRAGState
from llama_index.mrag.voting import VOTES, Vote
from llama_index.ragkit.checks import check_choice, check_count, check_number
from llama_index.ragkit.driver import Steps, arun_steps, call, gather, offload, run_steps
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.filters import select
from llama_index.ragkit.json_output import parse_model
from llama_index.ragkit.llm_calls import RetryPolicy, complete
from llama_index.ragkit.postprocessor import match_nodes
from llama_index.ragkit.prompts import PromptHolder, fence
from llama_index.ragkit.results import take_nodes
from llama_index.ragkit.retriever import DerivedRetriever

__all__ = ["ASPECTS", "Aspects", "MRAGExplanation", "MRAGRetriever", "VoteFor", "ask_for_aspects"]

logger = logging.getLogger(__name__)

Aspects = Literal["none", "sentences", "llm"]
ASPECTS = ("none", "sentences", "llm")
_CANDIDATES_PER_RESULT = 4  # with a token budget, how many more nodes than results are looked at for ones that fit
_RETRY = RetryPolicy()


class AspectQueries(BaseModel):
    """What the LLM answers."""

    queries: list[str] = Field(min_length=1)


@dataclass(frozen=True)
class VoteFor:
    """A vote that a node got.

    Attributes
    ----------
    aspect : the piece of the question that voted
    head : number of the head, from 0; None for the lexical retriever
    place : the node's place in that voter's list, from 1
    share : what the vote added to the node's agreement with the aspect, in [0, 1]
    """

    aspect: str
    head: int | None
    place: int
    share: float


@dataclass(frozen=True)
class MRAGExplanation:
    """Why a node was retrieved.

    Attributes
    ----------
    node_id, text : the node
    score : as the retriever gives it
    aspects : how far the voters of each aspect agree on the node, in [0, 1], most first
    votes : every vote that it got, the largest first
    """

    node_id: str
    text: str
    score: float
    aspects: dict[str, float]
    votes: list[VoteFor]


class MRAGRetriever(DerivedRetriever[MRAGIndex], PromptHolder):
    """Retrieves from a :class:`MRAGIndex` by the votes of the heads.

    Scores lie in [0, 1]: 1 means that for every aspect every head (and the lexical retriever) puts the node first.
    They compare the nodes of one question; between questions they say how far the voters agree, not how relevant a
    node is. :mod:`llama_index.mrag.voting` has the formulas.

    Parameters
    ----------
    aspects : what votes. "none": the question whole, as in the paper. "sentences": its sentences, and the clauses of
        those that have several. "llm": these, and up to `num_queries` queries that an LLM derives from the question
        (the paper's Fusion MRAG); when the LLM fails, these alone
    vote : "mrag" (importance times 2^-place), "decay" (2^-place) or "distance" (1 / distance): the paper's three
    num_candidates : nodes that each head names, the paper's c; more where all together would name
        fewer than are to be returned [32, as published]
    lexical : a retriever, such as a BM25 retriever over the same nodes, that votes beside the heads for each aspect.
        Nodes are matched by id, then by hash; those that the index does not know get no vote
    lexical_weight : what it counts, in [0, 1]; the heads count the rest [0.5]
    llm : for "llm"; default that of the index, else `Settings.llm`
    num_queries : queries asked of the LLM [4, as published]
    retry : how often the LLM is asked again
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter has a value that it cannot have.
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"aspects": ASPECTS_PROMPT}

    def __init__(
        self,
        index: MRAGIndex,
        *,
        aspects: Aspects = "sentences",
        vote: Vote = "mrag",
        num_candidates: int = 32,
        lexical: BaseRetriever | None = None,
        lexical_weight: float = 0.5,
        llm: LLMType | None = None,
        num_queries: int = 4,
        retry: RetryPolicy = _RETRY,
        **kwargs: Any,
    ) -> None:
        self.aspects = check_choice("aspects", aspects, ASPECTS)
        self.vote = check_choice("vote", vote, VOTES)
        self.num_candidates = check_count("num_candidates", num_candidates, 1)
        self.lexical = lexical
        self.lexical_weight = check_number("lexical_weight", lexical_weight, 0, 1)
        self.num_queries = check_count("num_queries", num_queries, 1)
        self.prompts = {}
        self._llm = llm
        self._retry = retry
        super().__init__(index, **kwargs)

    # PromptHolder's, before BaseRetriever's empty ones.
    def _get_prompts(self) -> PromptDictType:
        return PromptHolder._get_prompts(self)

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        PromptHolder._update_prompts(self, prompts_dict)

    def _retrieve_steps(self, query_bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        election = yield from self._election(query_bundle)
        nodes = yield from self._nodes(election)
        self._index._last_query = (query_bundle.query_str, election)
        return nodes

    def _nodes(self, election: Election) -> Steps[list[NodeWithScore]]:
        fetch = self._index._parts.get_node
        return (yield from take_nodes(election.ranking, fetch, self.similarity_top_k, self.token_budget))

    def _election(self, bundle: QueryBundle) -> Steps[Election]:
        index = self._index
        state = index._state  # one state from start to end, whatever is written meanwhile
        if not len(state.chunks):
            return Election.empty(state)
        yield from index._check_model()
        aspects = yield from self._cut(bundle.query_str)
        queries = yield from index._embed_queries(aspects)
        rows = self._allowed(state)
        if rows is not None and not rows.size:
            return Election.empty(state)
        wanted = self.similarity_top_k * (1 if self.token_budget is None else _CANDIDATES_PER_RESULT)
        lexical = yield from self._ask_lexical(state, aspects, rows)
        ballots = None
        if index._head_stores is not None and rows is None:
            ballots = yield from index._head_stores.ballots(state, queries, self.num_candidates)
        return (
            yield from offload(
                hold,
                state,
                aspects,
                queries,
                vote=self.vote,
                count=self.num_candidates,
                wanted=wanted,
                rows=rows,
                lexical=lexical,
                lexical_weight=self.lexical_weight,
                ballots=ballots,
            )
        )

    def _allowed(self, state: MRAGState) -> NDArray[np.intp] | None:
        if self.filters is None and self.node_ids is None and self.doc_ids is None:
            return None
        return np.flatnonzero(select(state.chunks, self.filters, self.node_ids, self.doc_ids))

    def _cut(self, question: str) -> Steps[list[str]]:
        if self.aspects == "none":
            return [question]
        pieces = cut_aspects(question)
        if self.aspects == "llm":
            llm = resolve_llm(self._llm) if self._llm is not None else self._index._given_llm or Settings.llm
            pieces += yield from ask_for_aspects(llm, self.prompt("aspects"), question, self.num_queries, self._retry)
        return list(dict.fromkeys(pieces))

    def _ask_lexical(
        self, state: MRAGState, aspects: Sequence[str], rows: NDArray[np.intp] | None
    ) -> Steps[list[dict[int, float]] | None]:
        """For each aspect the scores of the rows that the lexical retriever found, best first."""
        lexical = self.lexical
        if lexical is None or not self.lexical_weight:
            return None
        allowed = None if rows is None else set(rows.tolist())
        jobs = [partial(call, lexical.retrieve, lexical.aretrieve, aspect) for aspect in aspects]
        found = []
        for outcome in (yield from gather(jobs, num_workers=1)):
            nodes = [node for node in outcome.unwrap() if (node.score or 0.0) > 0]
            nodes.sort(key=lambda node: -node.get_score())
            scores: dict[int, float] = {}
            for node_id, node in zip(match_nodes(nodes, state.chunks), nodes, strict=True):
                row = -1 if node_id is None else state.chunks.row_of(node_id)
                if row >= 0 and (allowed is None or row in allowed):
                    scores.setdefault(row, node.get_score())
            found.append(scores)
        return found

    # -- explanations -------------------------------------------------------------------------------

    def explain(self, query: QueryType) -> list[MRAGExplanation]:
        """Which heads and aspects voted for each node of the answer to a question, in the order of the answer."""
        return run_steps(self._explain(query))

    async def aexplain(self, query: QueryType) -> list[MRAGExplanation]:
        """Which heads and aspects voted for each node of the answer to a question, in the order of the answer."""
        return await arun_steps(self._explain(query))

    def _explain(self, query: QueryType) -> Steps[list[MRAGExplanation]]:
        bundle = QueryBundle(query) if isinstance(query, str) else query
        election = yield from self._election(bundle)
        found = []
        for result in (yield from self._nodes(election)):
            agreement, votes = election.votes_for(result.node.node_id)
            found.append(
                MRAGExplanation(
                    node_id=result.node.node_id,
                    text=result.node.get_content(),
                    score=result.get_score(),
                    aspects=dict(sorted(agreement.items(), key=lambda pair: -pair[1])),
                    votes=[VoteFor(*vote) for vote in votes],
                )
            )
        return found


def ask_for_aspects(
    llm: LLM, prompt: BasePromptTemplate, question: str, num_queries: int, retry: RetryPolicy = _RETRY
) -> Steps[list[str]]:
    """Queries that an LLM derives from a question; none if it fails, which is logged: retrieval goes on."""
    try:
        reply: AspectQueries = yield from complete(
            llm,
            prompt,
            parse=partial(parse_model, model=AspectQueries),
            retry=retry,
            question=fence([question], "question"),
            num_queries=num_queries,
        )
    except ExtractionError as error:
        logger.warning("The LLM gave no queries (%s); the question's own sentences vote alone.", error)
        return []
    return [query.strip() for query in reply.queries[:num_queries] if query.strip()]
