"""`SpRAGRetriever`: ranks chunks by contextualised nearness, and extracts relevant segments from the ranking."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import Unpack

from llama_index.ragkit import DerivedIndex, DerivedRetriever, Query, Steps, offload
from llama_index.ragkit.errors import (
    CacheRequiredError,
    ConcurrentWriteError,
    ConfigurationError,
    ExtractionError,
    ExtractorMismatchError,
    ReadOnlyError,
)
from llama_index.ragkit.index.chunk_scores import ChunkScores, Structure
from llama_index.ragkit.index.results import deepened, fit_tokens, result_fields
from llama_index.ragkit.llm.json.shapes import Reply, TextList, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.steps import call, immediate
from llama_index.ragkit.vectors.question_scores import NEAREST, Nearness, result_scores
from llama_index.sprag.builder import ContextBuilder
from llama_index.sprag.config import SearchConfig, SpRAGConfig, published_search
from llama_index.sprag.context.headers import contextualised
from llama_index.sprag.descriptions import shown_text
from llama_index.sprag.documents import DocumentEntry
from llama_index.sprag.explanation import ChunkInSegment, SpRAGExplanation
from llama_index.sprag.keywords import SpRAGRetrieverKeywords
from llama_index.sprag.prompts import QUERIES_PROMPT
from llama_index.sprag.segment_nodes import header_of_segment, in_document_order, segment_results
from llama_index.sprag.segment_search import FoundSegment, RankedChunks, documents_considered, find_segments
from llama_index.sprag.state import SpRAGState

__all__ = ["QueriesReply", "SpRAGFound", "SpRAGRetriever"]

logger = logging.getLogger(__name__)


class QueriesReply(Reply):
    """Reply to the prompt for search queries."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {
        "queries": ("query", "searchqueries", "subqueries", "questions", "searches")
    }
    items: ClassVar[str] = "queries"

    queries: TextList = Field(min_length=1, description="search queries")


@dataclass(frozen=True)
class SpRAGFound:
    """The result of a search."""

    state: SpRAGState
    queries: Sequence[str]  # that represented the question
    near: Sequence[Nearness]  # of every chunk, for each query
    rankings: Sequence[RankedChunks]  # the best chunks for each query
    segments: Sequence[FoundSegment]  # in `mode="segments"`, best first
    ranking: Sequence[tuple[str, float]]  # in `mode="chunks"`, best first
    fallback: str = ""

    @property
    def nearness(self) -> list[NDArray[np.float64]]:
        """For each query the nearness of every chunk, -inf for chunks that may not be shown."""
        return [each.scores for each in self.near]


class SpRAGRetriever(DerivedRetriever[SpRAGState, SpRAGFound, SpRAGExplanation]):
    """Retrieves segments of documents, or chunks, from a :class:`SpRAGIndex`.

    Chunks are ranked by nearness: BM25 and the cosine of chunks with their headers, each standardised over its hundred
    best of this question. In `mode="segments"` the best chunks, reranked if there is a reranker, get values
    (:mod:`llama_index.sprag.segments.values`), and the most valuable runs of neighbouring chunks within the budget are
    returned, the one with the nearest chunk first. A segment of one chunk is the original node; a longer one is a node
    derived from its chunks, which its CHILD relationships and its metadata name.

    Scores are in [0, 1], higher is better: the nearness of a chunk, or of the nearest chunk of a segment, mapped so
    that 0.5 is a cutoff (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`). With a reranker, or a
    `calibration` other than by rank, the score of a segment is the calibrated relevance of its best chunk, and that of
    a chunk is the reranker's. With `order="value"`, as published, it is (1 + s / (1 + abs(s))) / 2, where s is the
    value of the segment: about the number of relevant chunks in it.

    Several queries may represent a question: `QueryBundle.custom_embedding_strs`, or those of `auto_query`.

    Parameters
    ----------
    similarity_top_k : maximum number of segments, or of chunks [10]
    token_budget : maximum number of tokens of all results; replaces `overall_max_length` if that counts tokens
    mode, candidates, lexical_weight, context_weight, auto_query, max_queries, segment_headers :
        see :class:`~llama_index.sprag.config.SearchConfig`
    reranker : a postprocessor that scores chunks again; it sees the header before each chunk [None]
    llm, prompts, retry : for `auto_query` (prompt "queries"); see :class:`~llama_index.ragkit.DerivedRetriever`
    kwargs : how segments are chosen, see :class:`~llama_index.sprag.config.SegmentConfig`; the rest, see
        :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"queries": QUERIES_PROMPT}
    method: ClassVar[str] = "sprag"
    keywords = SpRAGRetrieverKeywords
    options_cls = SearchConfig
    options: SearchConfig
    _builder: ContextBuilder

    def __init__(self, index: DerivedIndex[SpRAGConfig, SpRAGState], **kwargs: Unpack[SpRAGRetrieverKeywords]) -> None:
        super().__init__(index, **kwargs)
        reranker = kwargs.get("reranker")
        if reranker is not None and not isinstance(reranker, BaseNodePostprocessor):
            raise ConfigurationError(f"reranker must be a node postprocessor, not {type(reranker).__name__}.")
        self._reranker = reranker
        if self.token_budget is not None and self.options.length_unit == "tokens":
            self.options = replace(self.options, overall_max_length=self.token_budget)

    @staticmethod
    def paper(preset: str = "balanced") -> dict[str, Any]:
        """The published search as keywords: `index.as_retriever(**SpRAGRetriever.paper())`.

        Parameters
        ----------
        preset : "balanced" [the published default], "precision", "find_all" or "article"; see
            :func:`~llama_index.sprag.published_config`
        """
        return published_search(preset)

    # -- the search -------------------------------------------------------------------------------------

    @property
    def _candidates(self) -> int:
        return max(self._wanted, self.options.candidates)

    def _query(self, bundle: QueryBundle, vector: NDArray[np.float32] | None) -> Steps[Query[SpRAGState] | None]:
        """A question to the current state, after the vectors that it needs have been made."""
        if self.options.lexical_weight < 1:
            yield from self._embed_plain()
        return (yield from super()._query(bundle, vector))

    def _embed_plain(self) -> Steps[None]:
        builder, writer = self._builder, self._index.writer
        missing = builder.without_plain((yield from writer.recovered()).state, self.options.context_weight)
        if not missing:
            return
        yield from writer.checks.embed_model()
        try:
            yield from writer.revise(lambda latest: builder.embed_plain(latest, missing))
        except (CacheRequiredError, ConcurrentWriteError, ExtractorMismatchError, ReadOnlyError) as error:
            # The question is answered nevertheless.
            logger.warning("%d chunks could not be embedded without their headers: %s", len(missing), error)

    def _search(self, query: Query[SpRAGState]) -> Steps[SpRAGFound]:
        texts, fallback = yield from self._texts(query.bundle)
        vectors = []
        given = len(texts) > 1 and query.bundle.custom_embedding_strs  # of which the question's vector is the mean
        for text in texts:
            if text == query.text and not given:
                vectors.append((yield from query.vector()))
            else:
                vectors.append((yield from query.resources.embed_query(text, query.state.chunks.dim)))
        if texts != [query.text]:
            # So far, an index that is served from stores has read only the chunks near to the question itself.
            query = yield from query.including(texts, np.stack(vectors), max(NEAREST, self._candidates))
        state, allowed = query.state, query.allowed
        words = state.scored if state.is_whole else query.contents.scored
        advantage = query.contents.advantage
        nearnesses = []
        for text, vector in zip(texts, vectors, strict=True):
            found = yield from offload(state.nearness, text, vector, words, self.options, allowed, advantage)
            nearnesses.append(found)
        nearness = [each.scores for each in nearnesses]
        rankings = []
        for text, near in zip(texts, nearness, strict=True):
            rankings.append((yield from self._rank(state, text, near, query.wanted)))
        segments: Sequence[FoundSegment] = ()
        if self.options.mode == "segments":
            state = yield from self._with_considered(state, rankings)
            segments = yield from offload(
                find_segments, rankings, state.documents, state.place, self.options, state.shown
            )
            if not segments:
                segments, reason = self._best_chunk(state, rankings)
                fallback = fallback or reason
            if self._reranker is None and self.options.by_rank:
                segments = yield from offload(_scored_by_nearness, segments, state, nearness)
        return SpRAGFound(state, texts, nearnesses, rankings, segments, _merged(rankings), fallback)

    def _with_considered(self, state: SpRAGState, rankings: Sequence[RankedChunks]) -> Steps[SpRAGState]:
        """A state with the documents from which segments are taken; their number depends on their lengths."""
        read: list[str] = []
        is_final = False
        while not is_final:
            considered = documents_considered(rankings, state.place, self.options, state.documents)
            is_final = considered == read or all(key in state.documents for key in considered)
            state = yield from self._builder.with_documents(state, considered, self.selection)
            read = considered
        return state

    def _texts(self, bundle: QueryBundle) -> Steps[tuple[list[str], str]]:
        """The queries that represent a question, and why they are not the model's if they should be."""
        given = [text for text in bundle.custom_embedding_strs or () if text.strip()]
        if given:
            return list(dict.fromkeys(given)), ""
        if not self.options.auto_query:
            return [bundle.query_str], ""
        try:
            reply = yield from self._complete(
                "queries",
                partial(read_reply, model=QueriesReply),
                output_cls=QueriesReply,
                reply_tokens=64 + 60 * self.options.max_queries,
                like=bundle.query_str,
                question=fence([bundle.query_str], "question"),
                max_queries=self.options.max_queries,
            )
        except ExtractionError as error:
            return [bundle.query_str], f"the question itself was the query: {error}"
        texts = list(dict.fromkeys(text.strip() for text in reply.queries if text.strip()))
        return texts[: self.options.max_queries] or [bundle.query_str], ""

    def _rank(self, state: SpRAGState, text: str, nearness: NDArray[np.float64], wanted: int) -> Steps[RankedChunks]:
        count = self.options.candidates if self.options.mode == "segments" else max(wanted, self.options.candidates)
        best = yield from offload(state.nearest, nearness, count)
        if self._reranker is None:
            return RankedChunks([i for i, _ in best], np.array([score for _, score in best], np.float64))
        read = yield from self._index.storage.get_nodes([node_id for node_id, _ in best])
        nodes = []
        for node_id, score in best:
            if node_id in read:
                shown = contextualised(state.header(node_id), shown_text(read[node_id]))
                nodes.append(NodeWithScore(node=TextNode(id_=node_id, text=shown), score=score))
        bundle = QueryBundle(text)
        found = yield from call(
            self._reranker.postprocess_nodes, self._reranker.apostprocess_nodes, nodes, query_bundle=bundle
        )
        scores = [np.nan if result.score is None else float(result.score) for result in found]
        return RankedChunks([result.node.node_id for result in found], np.array(scores, np.float64), reranked=True)

    def _best_chunk(self, state: SpRAGState, rankings: Sequence[RankedChunks]) -> tuple[list[FoundSegment], str]:
        for number, ranking in enumerate(rankings):
            for rank, chunk in enumerate(ranking.ids):
                place = state.place(chunk)
                if place is not None:
                    reason = (
                        f"no segment has the minimum value of {self.options.minimum_value:g} within "
                        f"{self.options.overall_max_length} {self.options.length_unit}: this is the best chunk"
                    )
                    return [FoundSegment(*place, [chunk], [0.0], 0.0, 0.0, number, [rank])], reason
        return [], ""

    @immediate
    def chunk_scores(self, query: Query[SpRAGState], found: SpRAGFound) -> ChunkScores:
        """See :meth:`DerivedRetriever.chunk_scores`."""
        best = np.max(np.stack(found.nearness), axis=0)
        return ChunkScores(found.state.chunks, None, [Structure(best, "headers")])

    # -- results ----------------------------------------------------------------------------------------

    def _results(self, found: SpRAGFound) -> Steps[list[NodeWithScore]]:
        if self.options.mode == "chunks":
            first = self._shown(found, found.ranking)
            ranking = deepened(first, lambda depth: self._shown(found, self._deeper(found, depth)), max(1, len(first)))
            return (yield from self._take_best(ranking))
        return [result for _, result in (yield from self._segment_results(found))]

    def _shown(self, found: SpRAGFound, ranking: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
        """A ranking of chunks with scores in [0, 1]; those of a reranker are kept."""
        values = np.array([score for _, score in ranking])
        if self._reranker is None:
            values = result_scores(values, np.concatenate(found.nearness))
        return [(chunk, value) for (chunk, _), value in zip(ranking, values.tolist(), strict=True)]

    def _deeper(self, found: SpRAGFound, depth: int) -> Sequence[tuple[str, float]]:
        """A deeper ranking, for chunks that another index has deleted."""
        ranked = [found.state.nearest(nearness, depth) for nearness in found.nearness]
        if self._reranker is not None:
            known = {chunk for ranking in found.rankings for chunk in ranking.ids}
            lowest = min((score for _, score in found.ranking), default=0.0)
            return [*found.ranking, *((i, lowest) for ranking in ranked for i, _ in ranking if i not in known)]
        return _merged([RankedChunks([i for i, _ in r], np.array([s for _, s in r])) for r in ranked])

    def _segment_results(self, found: SpRAGFound) -> Steps[list[tuple[FoundSegment, NodeWithScore]]]:
        state = found.state
        headers = None
        if self.options.segment_headers:
            described = state.described(dict.fromkeys(s.document for s in found.segments))
            headers = {key: header_of_segment(entry.title, entry.summary) for key, entry in described.items()}
        results = yield from segment_results(found.segments, self._index.storage.get_nodes, headers)
        kept = {id(result) for result in fit_tokens([result for _, result in results], self.token_budget)}
        results = [pair for pair in results if id(pair[1]) in kept][: self.similarity_top_k]
        return in_document_order(results) if self.options.order == "document" else results

    def _explanations(self, found: SpRAGFound, nodes: Sequence[NodeWithScore]) -> Steps[list[SpRAGExplanation]]:
        if self.options.mode == "segments":
            chunks = [chunk for each in found.segments for chunk in each.chunks]
            state = yield from self._builder.with_headers(found.state, chunks)
            found = replace(found, state=state)
            pairs = yield from self._segment_results(found)
            described = found.state.described({segment.document for segment, _ in pairs})
            return [_explain(found, described, segment, result) for segment, result in pairs]
        documents = dict.fromkeys(found.state.document_of[result.node.node_id] for result in nodes)
        state = yield from self._builder.with_documents(found.state, documents, self.selection)
        found, described = replace(found, state=state), state.described(documents)
        rank_of = {chunk: rank for rank, (chunk, _) in enumerate(found.ranking)}
        explained = []
        for result in nodes:
            chunk, score = result.node.node_id, result.get_score()
            place = state.place(chunk) or (state.document_of[chunk], 0)
            segment = FoundSegment(*place, [chunk], [score], score, score, 0, [rank_of.get(chunk)])
            explained.append(_explain(found, described, segment, result))
        return explained


def _merged(rankings: Sequence[RankedChunks]) -> list[tuple[str, float]]:
    """One ranking of chunks, by the best score for any query, or, without scores, by the best rank."""
    best: dict[str, tuple[float, int]] = {}
    for ranking in rankings:
        for rank, (chunk, score) in enumerate(zip(ranking.ids, ranking.scores.tolist(), strict=True)):
            mine = (score if np.isfinite(score) else 1.0 / (1 + rank), -rank)
            best[chunk] = max(best.get(chunk, mine), mine)
    if len(rankings) == 1:
        return [(chunk, best[chunk][0]) for chunk in dict.fromkeys(rankings[0].ids)]
    return [(chunk, score) for chunk, (score, _) in sorted(best.items(), key=lambda item: (-item[1][0], item[0]))]


def _scored_by_nearness(
    segments: Sequence[FoundSegment], state: SpRAGState, nearness: Sequence[NDArray[np.float64]]
) -> list[FoundSegment]:
    """The same segments, scored by the nearness of their nearest chunks; no score is above the one before it."""
    shown = [result_scores(near, near) for near in nearness]
    scores = []
    for segment in segments:
        rows = state.chunks.rows_of(segment.chunks)
        scores.append(float(shown[segment.query][rows[rows >= 0]].max(initial=0.0)))
    lowest = np.minimum.accumulate(scores).tolist()
    return [replace(segment, score=score) for segment, score in zip(segments, lowest, strict=True)]


def _explain(
    found: SpRAGFound, described: Mapping[str, DocumentEntry], segment: FoundSegment, result: NodeWithScore
) -> SpRAGExplanation:
    entry = described[segment.document]
    whole = len(entry.chunks) == len(found.state.documents[segment.document].chunks)
    near, rows = found.near[segment.query], found.state.chunks.rows_of(segment.chunks).tolist()
    chunks = [
        ChunkInSegment(
            chunk,
            rank,
            float(value),
            float(near.cosines[row]) if row >= 0 else None,
            float(near.lexical[row]) if row >= 0 else None,
            found.state.header(chunk) if whole else "",
        )
        for chunk, rank, value, row in zip(segment.chunks, segment.ranks, segment.values, rows, strict=True)
    ]
    return SpRAGExplanation(
        **result_fields(result),
        value=segment.value,
        document=entry.title,
        start=segment.start,
        end=segment.start + len(segment.chunks),
        query=found.queries[segment.query],
        lexical_weight=near.lexical_weight,
        chunks=chunks,
        by=entry.by,
        fallback=found.fallback,
    )
