"""The search for one question: its aspects, the votes for each, and the ranking by votes and nearness."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from llama_index.mrag.config import SearchConfig
from llama_index.mrag.embedding import with_heads
from llama_index.mrag.state import MRAGState
from llama_index.mrag.text.aspects import cut_aspects, undivided
from llama_index.mrag.voting.ranking import found_alike, found_in_words, subjects, votes_weight
from llama_index.mrag.voting.vote_result import VoteResult, rank_by_nearness, run_vote
from llama_index.ragkit import Query, Steps, offload
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.index.results import deepened
from llama_index.ragkit.llm.embeddings import query_matrix
from llama_index.ragkit.llm.json.shapes import Reply, TextList, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.steps import call
from llama_index.ragkit.vectors.question_scores import best_rows

__all__ = ["AspectQueries", "FoundByVote", "search_votes"]

logger = logging.getLogger(__name__)


class AspectQueries(Reply):
    """The schema of the LLM's reply."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "queries": ("query", "searchqueries", "subqueries", "questions", "searches", "aspects")
    }
    items: ClassVar[str] = "queries"

    queries: TextList = Field(min_length=1, description="search queries")


@dataclass(frozen=True)
class FoundByVote:
    """The result of a search, and why it was degraded."""

    result: VoteResult
    fallback: str = ""
    deeper: Callable[[int], list[tuple[str, float]]] | None = None

    @property
    def ranking(self) -> Iterable[tuple[str, float]]:
        """Ids with scores, best first; a ranking by nearness may be of any length."""
        first = self.result.ranking
        return first if self.deeper is None or not first else deepened(first, self.deeper, len(first))


def search_votes(
    query: Query[MRAGState], options: SearchConfig, complete: Callable[..., Steps[Any]]
) -> Steps[FoundByVote]:
    """Rank the nodes that may be shown; `complete` asks for the prompt "aspects" if `aspects` is "llm" or "queries"."""
    state = query.state
    aspects, fallback = yield from _aspects_of(query.text, options, complete)
    rows = None if query.allowed is None else np.flatnonzero(query.allowed)
    if rows is not None and not rows.size:
        return FoundByVote(VoteResult.empty(state), fallback)
    weight = options.vote_weight
    if weight is None and len(aspects) < 2:
        weight = 0.0
    texts = list(dict.fromkeys([*aspects, *([query.text] if weight != 1 else [])]))
    vectors = yield from _vectors(query, texts)
    votes = VoteResult.empty(state)
    if weight != 0:
        # So far, an index that is served from stores has read only the chunks near to the whole question.
        query = yield from query.including(aspects, vectors[: len(aspects)], options.num_candidates)
        lexical = (
            (yield from offload(_lexical, query, aspects, options.num_candidates)) if options.lexical_weight else None
        )
        votes = yield from _vote(query, options, aspects, vectors[: len(aspects)], rows, lexical)
        if weight is None:
            weight = yield from _weight(query, aspects, votes, lexical)
    if options.vote_weight == 1:
        return FoundByVote(votes, fallback)
    nearness = yield from query.nearness(options.lexical_weight, vectors[texts.index(query.text)])
    ranked = partial(rank_by_nearness, votes, nearness, weight)
    return FoundByVote((yield from offload(ranked, query.wanted)), fallback, lambda count: ranked(count).ranking)


def _aspects_of(
    question: str, config: SearchConfig, complete: Callable[..., Steps[Any]]
) -> Steps[tuple[list[str], str]]:
    """The aspects of a question, and, if the LLM call failed, why they lack its queries."""
    if config.aspects == "none":
        return [question], ""
    aspects = [] if config.aspects == "queries" else cut_aspects(question)
    fallback = ""
    if config.aspects != "sentences":
        try:
            reply: AspectQueries = yield from complete(
                parse=partial(read_reply, model=AspectQueries),
                output_cls=AspectQueries,
                reply_tokens=64 + 60 * config.num_queries,
                like=question,
                question=fence([question], "question"),
                num_queries=config.num_queries,
            )
            aspects += [query.strip() for query in reply.queries[: config.num_queries] if query.strip()]
        except ExtractionError as error:
            fallback = str(error)
            logger.warning("The LLM returned no queries (%s); only the question's own sentences are used.", error)
            aspects = cut_aspects(question)
    return list(dict.fromkeys(aspects)), fallback


def _vectors(query: Query[MRAGState], texts: Sequence[str]) -> Steps[NDArray[np.float32]]:
    """Flat vectors of texts, shape (n, dimension); that of the question may already be known."""
    vectors: dict[str, NDArray[np.float32]] = {}
    if others := [text for text in texts if text != query.text]:
        model = with_heads(query.resources.embed_model)
        found = yield from call(model.get_query_embedding_batch, model.aget_query_embedding_batch, others)
        vectors.update(zip(others, query_matrix(model, found, others, query.state.chunks.dim), strict=True))
    if query.text in texts:
        vectors[query.text] = yield from query.vector()
    return np.stack([vectors[text] for text in texts])


def _vote(
    query: Query[MRAGState],
    options: SearchConfig,
    aspects: Sequence[str],
    vectors: NDArray[np.float32],
    rows: NDArray[np.intp] | None,
    lexical: Sequence[Mapping[int, float]] | None,
) -> Steps[VoteResult]:
    state = yield from offload(query.state.counting, query.allowed)
    hits = None
    if state.external is not None and rows is None:
        hits = yield from state.external.search(state, vectors, options.num_candidates)
    return (
        yield from offload(
            run_vote,
            state,
            aspects,
            vectors,
            options,
            wanted=query.wanted,
            rows=rows,
            lexical=lexical,
            hits=hits,
            ranked=options.vote_weight == 1,
        )
    )


def _weight(
    query: Query[MRAGState], aspects: Sequence[str], votes: VoteResult, lexical: Sequence[Mapping[int, float]] | None
) -> Steps[float]:
    """The weight of the votes for this question; if words do not count, it depends only on the number of parts."""
    smallest = set(undivided(aspects))
    parts = [place for place, aspect in enumerate(aspects) if aspect in smallest]
    if lexical is None:
        return votes_weight(subjects([0.0] * len(parts), 0.0))
    whole = float((yield from query.lexical_scores()).max(initial=0.0))
    best = [max(lexical[place].values(), default=0.0) for place in parts]
    n = subjects(best, whole)
    by_words = [next(iter(lexical[place]), None) for place in parts]
    known = found_alike(n, votes.hits.rows[parts, :, 0], by_words)
    if votes_weight(n, known) < votes_weight(n):  # look up the words of each part only if they may matter
        full = yield from offload(query.contents.full_scores, [aspects[place] for place in parts], query.allowed)
        known = max(known, found_in_words(best, [found.score for found in full]))
    return votes_weight(n, known)


def _lexical(query: Query[MRAGState], aspects: Sequence[str], count: int) -> list[dict[int, float]]:
    """For each aspect, its best rows by BM25 with their scores, best first."""
    found = []
    for aspect in aspects:
        scores = query.contents.lexical_scores(aspect, query.allowed)
        best = best_rows(np.where(scores > 0, scores, -np.inf), count, query.state.chunks)
        found.append({row: float(scores[row]) for row in best})
    return found
