"""`GEMRAGRetriever` retrieves nodes by their texts and questions, or by a best-first search of the memory graph."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from llama_index.core.schema import NodeWithScore
from typing_extensions import Unpack

from llama_index.gemrag.builder import GEMRAGBuilder
from llama_index.gemrag.config import PAPER_RANKING, MemoryConfig, MemorySearchConfig
from llama_index.gemrag.explanation import GEMRAGExplanation, explain
from llama_index.gemrag.graph.similarity import Rule
from llama_index.gemrag.keywords import GEMRAGRetrieverKeywords
from llama_index.gemrag.memory_view import MemoryContents
from llama_index.gemrag.page import FoundForPage
from llama_index.gemrag.search.memory_scores import MemoryScores, rank_nodes
from llama_index.gemrag.search.traversal import Traversal
from llama_index.gemrag.state import GEMRAGState
from llama_index.ragkit import DerivedIndex, DerivedRetriever, Query, Steps, offload
from llama_index.ragkit.index.chunk_scores import ChunkScores, Structure
from llama_index.ragkit.index.results import deepened
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.text.lexical_index import NOT_KNOWN
from llama_index.ragkit.vectors.question_scores import best_rows, result_scores
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["GEMRAGRetriever"]


class _Hit(NamedTuple):
    """One node of a ranking."""

    node_id: str
    score: float
    via: str | None = None


@dataclass(frozen=True)
class _FoundInMemory:
    """The result of a search, with the values that explanations need; `hits` are the ranked nodes examined so far."""

    query: Query[GEMRAGState]
    scores: MemoryScores
    ranking: Iterable[_Hit]
    fallback: str
    hits: dict[str, _Hit] = field(default_factory=dict)

    def scored(self) -> Iterator[tuple[str, float]]:
        for hit in self.ranking:
            self.hits[hit.node_id] = hit
            yield hit.node_id, hit.score


class GEMRAGRetriever(DerivedRetriever[GEMRAGState, _FoundInMemory, GEMRAGExplanation]):
    """Retrieves chunks and themes from a :class:`~llama_index.gemrag.GEMRAGIndex`.

    Let t be the cosine of prompt and text, s the cosine of prompt and nearest question of the node, h the mean cosine
    of the text with all questions of the index, and z a value in standard deviations of the hundred best chunks. The
    dense score is `d + question_weight * max(0, z(s) - d)` with `d = z(t - hub_penalty * h)`. Combined with z(BM25) of
    the words of the chunk and of its questions (:mod:`llama_index.gemrag.search.memory_scores`) it gives S. In a
    best-first search S is the priority at which the node was selected, at most that of the node before it. The score
    that you get is S mapped to [0, 1]. It is comparable within one prompt, and 0.5 is a cutoff
    (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`).

    Parameters
    ----------
    mode : "argmax" selects the nodes with the best scores (the paper's Algorithm 1); "best_first" also uses the edges
        of the nodes selected so far, with `edge_weight` ["argmax"]
    question_weight : in [0, 1], how much a question raises the score of its node if it stands out among the questions
        more than the text among the texts [0.6]
    hub_penalty : in [0, 2], penalty for the mean similarity of a node to all questions [0.2]
    blend : in [0, 1], for the paper's ranking in place of these two: the weight of the question in its average with the
        text, whose cosine with the prompt is the score [None; for an index with `paper=True` 0.5]
    edge_weight : in [0, 1], in a best-first search the weight of edges relative to the score [0.2]
    max_summaries : largest number of themes in a result; None for no limit, 0 for none [None]
    summary_margin : at least 0, by how many standard deviations the score of a theme must exceed that of a chunk to
        rank above it [1.0; for an index with `paper=True` 0]
    keep_covered : whether a theme is kept if one of its members ranks higher [False; for an index with `paper=True`
        True]
    lexical_weight : in [0, 1], weight of BM25 in the score of a chunk, by its words and those of its questions; the
        rest is the weight of the dense score. The score of a theme is its dense score, at most that of the best chunk,
        less a penalty for the words of the prompt that its members lack [0.5; for an index with `paper=True` 0]
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Attributes
    ----------
    rule : the weights of the dense score
    summary_margin, keep_covered, lexical_weight : the passed values, else the defaults for the index

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    method: ClassVar[str] = "gemrag"
    keywords = GEMRAGRetrieverKeywords
    options_cls = MemorySearchConfig
    options: MemorySearchConfig
    _builder: GEMRAGBuilder

    @staticmethod
    def paper() -> dict[str, Any]:
        """The paper's search as keywords: `index.as_retriever(**GEMRAGRetriever.paper())`.

        This is Algorithm 1. Its budget is a number of nodes, four in the experiments (section IV.E). The "best-first
        search" that the text describes is `mode="best_first"`.
        """
        return {"mode": "argmax", "similarity_top_k": 4, **PAPER_RANKING}

    def __init__(
        self, index: DerivedIndex[MemoryConfig, GEMRAGState], **kwargs: Unpack[GEMRAGRetrieverKeywords]
    ) -> None:
        super().__init__(index, **kwargs)
        options, ranking = self.options, self.options.ranking(index.config.paper)
        self.rule = Rule(options.question_weight, options.hub_penalty, ranking["blend"])
        self.summary_margin: float = ranking["summary_margin"]
        self.keep_covered: bool = ranking["keep_covered"]
        self.lexical_weight: float = ranking["lexical_weight"]
        self._graph_blend = index.config.blend

    def _search(self, query: Query[GEMRAGState]) -> Steps[_FoundInMemory]:
        embedded = "questions" in self._index.index_struct.counters
        lacks = embedded and not len(query.state.chunk_layer.questions)
        fallback = "no chunk has a question" if lacks else ""

        def search(contents: MemoryContents) -> Steps[tuple[Query[GEMRAGState], MemoryScores, list[_Hit]]]:
            asked, scores = yield from self._scores(query if contents is query.contents else query.over(contents))
            return asked, scores, (yield from offload(self._ranked, scores, query.allowed, query.wanted))

        if self.options.mode == "argmax":
            found = yield from search(query.contents)
        else:
            _, found = yield from self._builder.memory.explored(
                query.contents, search, lambda found: [hit.node_id for hit in found[2]], (), self._graph_blend
            )
        asked, scores, first = found
        ranking = deepened(first, partial(self._ranked, scores, query.allowed), query.wanted)
        return _FoundInMemory(asked, scores, ranking, fallback)

    def _scores(self, query: Query[GEMRAGState]) -> Steps[tuple[Query[GEMRAGState], MemoryScores]]:
        """Exact scores of the nodes that may be shown, and the query with the contents that were read for them.

        If the whole memory is not here, only the questions near to the prompt have been read so far, and the scores of
        chunks with other questions are upper bounds.
        """
        vector = yield from query.vector()
        words = (yield from query.lexical_scores()) if self.lexical_weight else np.zeros(len(query.state.chunks))
        full_score = (yield from query.full_score()) if self.lexical_weight else NOT_KNOWN
        # In the paper's score, the nearest question of a chunk also depends on the text.
        unread: Iterable[str] = query.state.chunk_layer.unread if self.rule.blend is not None else ()
        while True:
            contents = yield from self._builder.memory.with_questions_of(query.contents, unread)
            query = query if contents is query.contents else query.over(contents)
            state = yield from offload(query.state.counting, query.allowed)
            scores = yield from offload(
                MemoryScores.of, state, vector, self.rule, words, self.lexical_weight, query.allowed,
                self.summary_margin, full_score,
            )  # fmt: skip
            of_chunks = state.chunk_layer.unread
            best = best_rows(scores.chunks, query.wanted, state.chunks) if of_chunks else []
            unread = [name for row in best if (name := state.chunks.ids[row]) in of_chunks]
            if not unread:
                return query, scores

    def _ranked(self, scores: MemoryScores, allowed: Mask | None, count: int) -> list[_Hit]:
        options = self.options
        if options.mode == "argmax":
            ranking = rank_nodes(scores, count, keep_covered=self.keep_covered, max_summaries=options.max_summaries)
            values = result_scores(np.array([score for _, score in ranking]), scores.chunks).tolist()
            return [_Hit(node_id, value) for (node_id, _), value in zip(ranking, values, strict=True)]
        traversal = Traversal(scores.state, self._graph_blend, allowed)
        limits = self.keep_covered, options.max_summaries
        steps = traversal.run(scores.all_nodes, count, options.edge_weight, (), *limits)
        priorities = result_scores(np.array([priority for _, priority, _ in steps]), scores.chunks)
        values = np.minimum.accumulate(priorities).tolist()
        return [_Hit(node_id, value, via) for (node_id, _, via), value in zip(steps, values, strict=True)]

    @immediate
    def chunk_scores(self, query: Query[GEMRAGState], found: _FoundInMemory) -> ChunkScores:
        """See :meth:`DerivedRetriever.chunk_scores`."""
        return ChunkScores(found.scores.state.chunks, None, [Structure(found.scores.chunks, "questions")])

    def _results(self, found: _FoundInMemory) -> Steps[list[NodeWithScore]]:
        return (yield from self._take_best(found.scored(), derived=found.scores.state.written))

    def _on_page(self, found: _FoundInMemory) -> FoundForPage:
        state = found.scores.state if not self._index.storage.is_whole else None
        layers = found.scores.state.chunk_layer, found.scores.state.theme_layer
        if self.options.mode != "argmax" or not any(len(layer.questions) for layer in layers):
            return FoundForPage({}, state)
        looked_at = list(found.hits)[: self._wanted]
        questions = {node_id: found.scores.match(node_id).question_id for node_id in looked_at}
        return FoundForPage({node_id: question for node_id, question in questions.items() if question}, state)

    def _explanations(self, found: _FoundInMemory, nodes: Sequence[NodeWithScore]) -> Steps[list[GEMRAGExplanation]]:
        via = {node_id: hit.via for node_id, hit in found.hits.items()}
        shown, query = [result.node.node_id for result in nodes], found.query
        contents = yield from self._builder.memory.with_themes_of(query.contents, shown)
        contents = yield from self._builder.memory.with_questions_of(contents, shown)
        scores = replace(found.scores, state=contents.state.counting(query.allowed))
        plain = yield from self._builder.questions(shown)
        by = yield from self._read_by(shown)
        return (yield from offload(explain, scores, query.allowed, via, nodes, plain, by, query.text, found.fallback))
