"""`PGRAGRetriever` retrieves fact paths, or their source passages, by a walk over the pseudo-graph."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from pydantic import Field
from typing_extensions import Unpack

from llama_index.pgrag.builder import MapBuilder
from llama_index.pgrag.config import PAPER, PGRAGConfig, SearchConfig
from llama_index.pgrag.explanation import PGRAGExplanation, explain
from llama_index.pgrag.keywords import PGRAGRetrieverKeywords
from llama_index.pgrag.map_view import Asked, Gathered
from llama_index.pgrag.page import FoundForPage
from llama_index.pgrag.path_nodes import ContextPath, Format, context_text, path_node, sources_of
from llama_index.pgrag.prompts import KEY_POINTS_PROMPT
from llama_index.pgrag.search.candidates import Allowed
from llama_index.pgrag.search.ranking import Answer, node_scores, path_scores, score_facts
from llama_index.pgrag.state import PseudoGraph
from llama_index.ragkit import DerivedIndex, DerivedRetriever, Query, Steps, offload
from llama_index.ragkit.errors import ExtractionError, ParseError
from llama_index.ragkit.index.chunk_scores import ChunkScores
from llama_index.ragkit.index.query import as_bundle
from llama_index.ragkit.llm.announcements import plain_lines
from llama_index.ragkit.llm.embeddings import embed_texts, query_matrix
from llama_index.ragkit.llm.json.shapes import Reply, TextList, read_reply
from llama_index.ragkit.llm.prompts import fence
from llama_index.ragkit.llm.reasoning import strip_reasoning
from llama_index.ragkit.steps import arun_steps, immediate, run_steps
from llama_index.ragkit.text.held import is_self_talk
from llama_index.ragkit.vectors.question_scores import question_cosines, result_scores

__all__ = ["KeyPointsEvent", "PGRAGRetriever", "key_points_of"]


logger = logging.getLogger(__name__)
dispatcher = get_dispatcher(__name__)

# What a model writes in place of a point.
_NOTHING = re.compile(r"(?:null|none|nil|n/?a|unknown)?[\W\d]*", re.IGNORECASE)


class KeyPoints(Reply):
    """Reply to the prompt for key points."""

    other_names: ClassVar[Mapping[str, Sequence[str]]] = {"key_points": ("points", "keypoint", "statements", "facts")}
    items: ClassVar[str] = "key_points"

    key_points: TextList = Field(min_length=1, description="short statements that a full answer consists of")


class KeyPointsEvent(BaseEvent):
    """The key points that were used for a question."""

    question: str
    key_points: list[str]

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "KeyPointsEvent"


def key_points_of(
    bundle: QueryBundle, config: SearchConfig, complete: Callable[..., Steps[Any]]
) -> Steps[tuple[list[str], str]]:
    """The key points of a question; and if the LLM call failed, why the question itself is the only one.

    `complete` asks the LLM with the prompt "key_points"; it is called only with `key_points="llm"`.
    """
    question = bundle.query_str
    fallback = ""
    points = list(dict.fromkeys(text for text in bundle.embedding_strs if text.strip())) or [question]
    if config.mode == "PG":
        points = [question]
    elif config.key_points == "llm" and points == [question]:
        try:
            points = yield from complete(
                parse=_read_points,
                output_cls=KeyPoints,
                reply_tokens=64 + 60 * config.max_key_points,
                like=question,
                question=fence([question], "question"),
                max_points=config.max_key_points,
            )
            points = points[: config.max_key_points]
        except ExtractionError as error:
            fallback = str(error)
            logger.warning("No key points for %r, so the question itself is used. %s", question, fallback)
    dispatcher.event(KeyPointsEvent(question=question, key_points=points))
    return points, fallback


def _read_points(reply: str) -> list[str]:
    """The key points of a JSON reply, or the lines of a reply to a prompt that asks for lines.

    A refusal is none, and neither is "null".
    """
    try:
        found = read_reply(reply, KeyPoints).key_points
    except ParseError:
        if not set("{}").isdisjoint(strip_reasoning(reply)):
            raise
        found = plain_lines(reply)
    points = [point for point in found if not is_self_talk(point) and not _NOTHING.fullmatch(point)]
    if found and not points:
        raise ParseError("The reply has no key points.")
    return points


class PGRAGRetriever(DerivedRetriever[PseudoGraph, Answer, PGRAGExplanation]):
    """Retrieves fact paths, or their source nodes, from a :class:`PGRAGIndex`.

    Paths and source nodes are ranked by their nearness to the question, dense and lexical together, by their facts, and
    by a walk over names. The walk goes from the names in the question over the maps that share names; it counts as far
    as it can be trusted for this question (:mod:`llama_index.pgrag.search.ranking`). If it counts, the paths of an
    answer are spread over the nodes to which it leads. Scores are in [0, 1], and 0.5 is a cutoff
    (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`); with `ranking="support"` they are shares of the
    best support. They are comparable within one question; higher is better.

    Fact paths are returned as text nodes. The text is the path. The metadata hold its cells (`pgrag_path`), its
    documents (`pgrag_documents`), and the metadata that all its source nodes share (file name, page). The source nodes
    are CHILD relationships, and `ref_doc_id` is their document, if they have only one. Paths with the same text are
    merged into one result.

    Parameters
    ----------
    mode : "PG-RAG" walks; "PG w. KPs" ranks facts by their cosine to the key points, "PG" by their cosine to the
        question (the paper's ablations) ["PG-RAG"]
    return_source : whether to return the source nodes from the docstore instead of the paths [False]
    key_points : "question" uses the question itself; with "llm" a language model first generates key points, as in the
        paper. You can pass existing key points in `QueryBundle.custom_embedding_strs`; the mean of their vectors then
        replaces that of the question, unless you also pass `embedding` ["question"]
    max_key_points : largest number of generated key points, at least 1 [5]
    seed_topics : number of topics nearest to the question, at least 0 [3, as published]
    max_topics : largest number of topics from seeds and walks together, at least 0 [6, as published]
    topic_walk, fact_walk : whether super-topics, and super-facts, are walked [True, True]
    seed_facts : number of facts nearest to each key point whose maps become candidates, at least 0; 0 as in the paper,
        where only titles lead into the graph [30]
    num_seeds : number of facts from which each key point's walk starts, at least 1 [8, as published]
    control : when a cell supports a seed: "signed", "paper", "code", or a :class:`~llama_index.pgrag.Control`
        ["signed"]
    ranking : "trust" as above; "support" as published: paths only by the walk over the candidate maps, nodes by their
        best path ["trust"]
    fact_weight : weight in the score of a node of its nearest fact, or of its own cosine if that is larger, at least 0;
        for facts with vectors [0.3]
    walk_weight : weight of the walk over the candidate maps in the score of a path, at least 0 [0.3]
    bridge_weight : weight of the walk over names, at least 0; 0 as in the paper, which has no such walk [3]
    lexical_weight : weight of BM25 in the nearness of nodes and paths, in [0, 1]; their cosines have the rest [0.5;
        paper: 0]
    llm, prompts, retry : for generating key points; the prompt "key_points" has the variables `question` and
        `max_points`
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"key_points": KEY_POINTS_PROMPT}
    method: ClassVar[str] = "pgrag"
    keywords = PGRAGRetrieverKeywords
    options_cls = SearchConfig
    options: SearchConfig
    _builder: MapBuilder

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[PGRAGConfig, PseudoGraph], **kwargs: Unpack[PGRAGRetrieverKeywords]
        ) -> None: ...

    @staticmethod
    def paper() -> dict[str, Any]:
        """The published search as keywords: `index.as_retriever(**PGRAGRetriever.paper())`.

        An LLM generates key points; `{**PGRAGRetriever.paper(), "key_points": "question"}` needs no LLM.
        """
        return dict(PAPER)

    # -- steps --------------------------------------------------------------------------------------

    def _prepare(self) -> Steps[None]:
        """Embed the cells, if the search needs vectors that the index does not have."""
        if self.options.needs_vectors:
            yield from self._index.writer.recovered()
            for work in (yield from self._builder.embedding()):
                yield from self._index.writer.revise(work)

    def _search(self, query: Query[PseudoGraph]) -> Steps[Answer]:
        model = query.resources.embed_model
        question = yield from query.vector()
        texts, fallback = yield from key_points_of(query.bundle, self.options, partial(self._complete, "key_points"))
        points = [question]
        if texts != [query.text]:
            vectors = yield from embed_texts(model, texts)
            points = list(query_matrix(model, list(vectors), texts, len(question)))
        asked = Asked(question, texts, points)
        found = yield from self._builder.maps.gathered(query, asked, self.options)
        return (yield from offload(self._ranked, found, asked, fallback))

    def _ranked(self, found: Gathered, asked: Asked, fallback: str) -> Answer:
        options, query, near, names = self.options, found.query, found.near, found.names
        graph = query.state
        facts = score_facts(graph, found.points, found.candidates, options, Allowed.of(graph, query.allowed))
        fallback = fallback or ("" if names is None else names.reason)
        nodes = node_scores(graph, near, facts, names, options) if found.nodes is None else found.nodes
        paths = path_scores(graph, facts, nodes, near.lexical_weight, options)
        if not np.isfinite(paths).any():
            nothing = options.ranks_support and len(graph.facts)
            fallback = "no path has support" if nothing else "the mind maps have no facts"
            nodes = near.scores
            if options.ranks_support:
                nodes = np.where(np.isfinite(nodes), result_scores(nodes, nodes), -np.inf)
        cosines = [near.cosines]
        if len(asked.points) > 1 or asked.points[0] is not asked.vector:
            cosines = [question_cosines(graph.chunks, point) for point in asked.points]
        near_points = np.stack(cosines)
        return Answer(
            graph, options, asked.texts, near_points, near, facts, names, nodes, paths, query.wanted, fallback
        )

    def _results(self, found: Answer) -> Steps[list[NodeWithScore]]:
        if self.options.return_source or not np.isfinite(found.paths).any():
            return (yield from self._take_best(found.ranking))
        return (yield from self._paths(found))

    def _paths(self, answer: Answer) -> Steps[list[NodeWithScore]]:
        ranking = ((result.fact.id, result.score) for result in answer.results)
        path_of = {result.fact.id: result for result in answer.results}
        fetch = yield from self._fetch_of(sources_of(answer.results[: answer.wanted]))
        return (yield from self._take_best(ranking, lambda fact_id: path_node(path_of[fact_id], fetch)))

    def _on_page(self, found: Answer) -> FoundForPage:
        graph = found.graph if not self._index.storage.is_whole else None
        return FoundForPage(found.results[: self.similarity_top_k], graph)

    @immediate
    def chunk_scores(self, query: Query[PseudoGraph], found: Answer) -> ChunkScores:
        """See :meth:`DerivedRetriever.chunk_scores`."""
        return ChunkScores(found.graph.chunks, found.near.scores, found.added)

    def _explanations(self, found: Answer, nodes: Sequence[NodeWithScore]) -> Steps[list[PGRAGExplanation]]:
        explained = yield from offload(self._explained, found, nodes)
        by = yield from self._read_by(source for each in explained for source in each.sources)
        return [replace(each, by=by[each.sources[0]]) if by.keys() >= set(each.sources) else each for each in explained]

    def _explained(self, answer: Answer, nodes: Sequence[NodeWithScore]) -> list[PGRAGExplanation]:
        path_of = {} if self.options.return_source else {result.fact.id: result for result in answer.results}
        return [explain(answer, path_of.get(result.node.node_id), result) for result in nodes]

    # -- context ------------------------------------------------------------------------------------

    def as_context(self, query: QueryType, form: Format = "outline", documents: bool = False) -> str:
        """The fact paths that answer a question, merged into one nested outline.

        Parameters
        ----------
        query : the question
        form : "outline" (a list in markdown) or "json" (the paper's nested object)
        documents : whether each fact of an outline is followed by its documents and score

        Returns
        -------
        The text, empty if nothing was found.

        Raises
        ------
        ConfigurationError
            If `form` is unknown.
        """
        return run_steps(self._context(query, form, documents))

    async def aas_context(self, query: QueryType, form: Format = "outline", documents: bool = False) -> str:
        """As :meth:`as_context`."""
        return await arun_steps(self._context(query, form, documents))

    def _context(self, question: QueryType, form: Format, documents: bool) -> Steps[str]:
        nothing: list[ContextPath] = []
        paths = yield from self._about(as_bundle(question), self._context_paths, nothing)
        return context_text(paths, form, documents)

    def _context_paths(self, query: Query[PseudoGraph], answer: Answer) -> Steps[list[ContextPath]]:
        kept = {result.node.node_id for result in (yield from self._paths(answer))}
        shown = [result for result in answer.results if result.fact.id in kept]
        return [ContextPath(result.fact.path, tuple(result.documents), result.score) for result in shown]
