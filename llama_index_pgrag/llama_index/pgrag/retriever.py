"""`PGRAGRetriever`: key points, the walk over the pseudo-graph, fact paths or the passages behind them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from numpy.typing import NDArray

from llama_index.pgrag.allowed import Allowed
from llama_index.pgrag.candidates import Reach
from llama_index.pgrag.context import Format, Found, context_text
from llama_index.pgrag.explaining import CellSupport, PathExplanation, explain_paths
from llama_index.pgrag.graph import PseudoGraph
from llama_index.pgrag.index import PGRAGIndex
from llama_index.pgrag.leads import Leads, find_leads, lead_facts, named_leads
from llama_index.pgrag.prompts import KEY_POINTS_PROMPT
from llama_index.pgrag.ranking import Exploration, Merged, Settings, explore, merge_equal, rank_passages
from llama_index.pgrag.verification import statements_of
from llama_index.pgrag.walk import CODE, PAPER, SIGNED, Control
from llama_index.ragkit.driver import Steps, arun_steps, offload, run_steps
from llama_index.ragkit.embedding import embed_query, embed_texts
from llama_index.ragkit.errors import ConfigurationError, EmbeddingModelMismatchError, ExtractionError, ParseError
from llama_index.ragkit.filters import select
from llama_index.ragkit.llm_calls import complete
from llama_index.ragkit.prompts import PromptHolder, fence
from llama_index.ragkit.records import derived_node
from llama_index.ragkit.results import fit_tokens, take_nodes
from llama_index.ragkit.retriever import DerivedRetriever
from llama_index.ragkit.thoughts import strip_thoughts

__all__ = ["CellSupport", "KeyPointsEvent", "PGRAGRetriever", "PathExplanation"]

logger = logging.getLogger(__name__)
dispatcher = get_dispatcher(__name__)

Mode = Literal["PG-RAG", "PG w. KPs", "PG"]
_CONTROLS = {"signed": SIGNED, "paper": PAPER, "code": CODE}


class KeyPointsEvent(BaseEvent):
    """The key points that a question was walked for; `fallback` says why they are the question itself, if they are."""

    query: str
    key_points: list[str]
    fallback: str = ""

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "KeyPointsEvent"


class PGRAGRetriever(PromptHolder, DerivedRetriever[PGRAGIndex]):
    """Retrieves fact paths from a :class:`PGRAGIndex`, or the nodes behind them.

    Scores are at most 1, leads aside, and comparable within one answer, higher is better: the cosine of the nearest key
    point and the path, and `walk_weight` times the share of the support that the walk gave it, over 1 + `walk_weight`
    (:mod:`llama_index.pgrag.ranking`).

    Fact paths come as text nodes of their own: the text is the path, the metadata have its cells (`pgrag_path`) and
    documents (`pgrag_documents`), and the source nodes are its CHILD relationships. Paths of the same words are one
    result.

    Parameters
    ----------
    mode : "PG-RAG" walks; "PG w. KPs" ranks facts by their cosine to the key points, "PG" by that to the question (the
        paper's ablations)
    return_source : give the source nodes, as they are in the docstore, in place of the paths
    key_points : "question" takes the question itself; "llm" asks a language model for key points first, which is the
        paper's. Key points that are known already go into `QueryBundle.custom_embedding_strs`
    llm : for key points; defaults to the index's
    max_key_points : how many the model may name, at least 1
    seed_topics, max_topics, topic_walk, fact_walk, seed_facts : see :class:`~llama_index.pgrag.candidates.Reach`;
        `seed_facts=0` is the paper, where only titles lead into the graph
    num_seeds : facts that each key point walks from, at least 1 [8, as published]
    control : "signed" (default), "paper", "code", or a :class:`~llama_index.pgrag.walk.Control`
    walk_weight : weight of the walk beside the cosine, at least 0
    lead_weight : weight of what is named: topics and facts that the question or a key point names word by word, and
        topics that the best facts lead to, for which the ends of the `num_seeds` facts nearest to the key points are
        embedded by themselves. At least 0; 0 saves that call of the embedding model, and is the paper
    lead_threshold : cosine from which a fact names a topic, in [0, 1)
    dense_weight : with `return_source`, weight of a node's own cosine beside its best path, in [0, 1]
    prompts : {"key_points": ...} to replace the prompt; variables `question` and `max_points`
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter has a value that it cannot have.
    """

    default_prompts: ClassVar[Mapping[str, BasePromptTemplate]] = {"key_points": KEY_POINTS_PROMPT}

    def __init__(
        self,
        index: PGRAGIndex,
        *,
        mode: Mode = "PG-RAG",
        return_source: bool = False,
        key_points: Literal["question", "llm"] = "question",
        llm: LLM | None = None,
        max_key_points: int = 5,
        seed_topics: int = 3,
        max_topics: int = 6,
        topic_walk: bool = True,
        fact_walk: bool = True,
        seed_facts: int = 30,
        num_seeds: int = 8,
        control: Literal["signed", "paper", "code"] | Control = "signed",
        walk_weight: float = 0.1,
        lead_weight: float = 0.25,
        lead_threshold: float = 0.5,
        dense_weight: float = 0.7,
        prompts: Mapping[str, BasePromptTemplate] | None = None,
        **kwargs: Any,
    ) -> None:
        if mode not in ("PG-RAG", "PG w. KPs", "PG"):
            raise ConfigurationError(f"mode must be 'PG-RAG', 'PG w. KPs' or 'PG', not {mode!r}.")
        if key_points not in ("question", "llm"):
            raise ConfigurationError(f"key_points must be 'question' or 'llm', not {key_points!r}.")
        if not isinstance(control, Control) and control not in _CONTROLS:
            raise ConfigurationError(f"control must be 'signed', 'paper', 'code' or a Control, not {control!r}.")
        for name, value in (("num_seeds", num_seeds), ("max_key_points", max_key_points)):
            if value < 1:
                raise ConfigurationError(f"{name} must be at least 1, not {value}.")
        for name, weight in (("walk_weight", walk_weight), ("lead_weight", lead_weight)):
            if not 0 <= weight < float("inf"):
                raise ConfigurationError(f"{name} must be at least 0, not {weight}.")
        if not 0 <= lead_threshold < 1:
            raise ConfigurationError(f"lead_threshold must be in [0, 1), not {lead_threshold}.")
        if not 0 <= dense_weight <= 1:
            raise ConfigurationError(f"dense_weight must be in [0, 1], not {dense_weight}.")
        self.prompts = dict(prompts or {})
        self.check_prompts(self.prompts)
        super().__init__(index, **kwargs)
        self.mode = mode
        self.return_source = return_source
        self.key_points = key_points
        self.max_key_points = max_key_points
        self.settings = Settings(
            Reach(seed_topics, max_topics, topic_walk, fact_walk, seed_facts),
            control if isinstance(control, Control) else _CONTROLS[control],
            num_seeds,
            mode == "PG-RAG",
            walk_weight,
            dense_weight,
            lead_weight,
            lead_threshold,
        )
        self._llm = llm

    def _retrieve_steps(self, query_bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        asked = yield from self._ask(query_bundle)
        if asked is None:
            return []
        if self.return_source or not len(asked.graph.facts):
            return (yield from self._sources(asked))
        nodes = fit_tokens((_path_node(result) for result in asked.results), self.token_budget)
        return nodes[: self.similarity_top_k]

    # -- steps --------------------------------------------------------------------------------------

    def _ask(self, bundle: QueryBundle) -> Steps["_Asked | None"]:
        """Walk for a question; None if there is nothing to find."""
        index = self._index
        graph = index._state  # one state from start to end, whatever is written meanwhile
        if not len(graph.chunks):
            return None
        yield from index._check_model()
        question = yield from embed_query(index.embed_model, bundle.query_str, graph.chunks.dim)
        texts = yield from self._name_key_points(bundle)
        points = [question]
        if texts != [bundle.query_str]:
            points = list((yield from embed_texts(index.embed_model, texts)))
            if points[0].shape != question.shape:
                raise EmbeddingModelMismatchError("The embedding model gives questions and texts different lengths.")
        allowed = self._allowed(graph)
        leads = yield from self._find_leads(graph, [bundle.query_str, *texts], points, allowed)
        found = yield from offload(explore, graph, question, points, self.settings, allowed, leads)
        asked = _Asked(graph, bundle.query_str, question, texts, points, allowed, found)
        index._last_query = (bundle.query_str, asked.results[: self.similarity_top_k])
        return asked

    def _find_leads(
        self, graph: PseudoGraph, texts: Sequence[str], points: list[NDArray[np.float32]], allowed: Allowed
    ) -> Steps[Leads]:
        settings = self.settings
        if not settings.lead_weight or not settings.walks or not len(graph.facts):
            return {}
        facts = yield from offload(lead_facts, graph, points, settings.num_seeds, allowed)
        ends = yield from embed_texts(self._index.embed_model, [fact.path[-1] for fact, _ in facts])
        told = yield from offload(find_leads, graph, facts, list(ends), settings.lead_threshold, allowed)
        named = yield from offload(named_leads, graph, texts, allowed)
        return {topic_id: max(told.get(topic_id, 0.0), named.get(topic_id, 0.0)) for topic_id in {**named, **told}}

    def _name_key_points(self, bundle: QueryBundle) -> Steps[list[str]]:
        query = bundle.query_str
        given = [text for text in bundle.embedding_strs if text.strip()]
        reason = ""
        points = list(dict.fromkeys(given)) or [query]
        if self.mode == "PG":
            points = [query]
        elif self.key_points == "llm" and points == [query]:
            try:
                points = yield from complete(
                    self._llm or self._index.llm,
                    self.prompt("key_points"),
                    parse=_read_points,
                    question=fence([query], "question"),
                    max_points=self.max_key_points,
                )
                points = points[: self.max_key_points]
            except ExtractionError as error:
                reason = str(error)
                logger.warning("No key points for %r, which stands for itself. %s", query, reason)
        dispatcher.event(KeyPointsEvent(query=query, key_points=points, fallback=reason))
        return points

    def _allowed(self, graph: PseudoGraph) -> Allowed:
        if self.filters is None and self.node_ids is None and self.doc_ids is None:
            return Allowed()
        mask = select(graph.chunks, self.filters, self.node_ids, self.doc_ids)
        ids = graph.chunks.ids
        return Allowed.by_nodes(graph, frozenset(ids[row] for row in np.flatnonzero(mask)))

    def _sources(self, asked: "_Asked") -> Steps[list[NodeWithScore]]:
        graph, nodes = asked.graph, asked.allowed.nodes
        wanted = max(2 * self.similarity_top_k, 100)
        near = None
        if nodes is None:
            near = yield from self._index._parts.chunks.search(asked.question, wanted)
        if near is None:
            mask = None
            if nodes is not None:
                mask = np.fromiter((node_id in nodes for node_id in graph.chunks.ids), np.bool_, len(graph.chunks))
            near = (yield from offload(graph.chunks.search, [asked.question], wanted, mask))[0].ids
        ranking = yield from offload(
            rank_passages, graph, asked.question, asked.points, asked.found, near, self.settings
        )
        fetch = self._index._parts.get_node
        return (yield from take_nodes(ranking, fetch, self.similarity_top_k, self.token_budget))

    # -- context and explanations -------------------------------------------------------------------

    def as_context(self, query: QueryType, form: Format = "outline", documents: bool = False) -> str:
        """The fact paths that answer a question, merged into one nested outline.

        Parameters
        ----------
        form : "outline" (a list in markdown) or "json" (the paper's nested object)
        documents : whether each fact of an outline says its documents and score
        """
        return run_steps(self._context(query, form, documents))

    async def aas_context(self, query: QueryType, form: Format = "outline", documents: bool = False) -> str:
        """As :meth:`as_context`, with asynchronous calls."""
        return await arun_steps(self._context(query, form, documents))

    def _context(self, query: QueryType, form: Format, documents: bool) -> Steps[str]:
        asked = yield from self._ask(QueryBundle(query) if isinstance(query, str) else query)
        found = [_found(result) for result in self._shown(asked)]
        return context_text(found, form, documents)

    def explain(self, query: QueryType) -> list[PathExplanation]:
        """Why each fact path of the answer was found, in the order of the answer."""
        return run_steps(self._explain(query))

    async def aexplain(self, query: QueryType) -> list[PathExplanation]:
        """As :meth:`explain`, with asynchronous calls."""
        return await arun_steps(self._explain(query))

    def _explain(self, query: QueryType) -> Steps[list[PathExplanation]]:
        asked = yield from self._ask(QueryBundle(query) if isinstance(query, str) else query)
        if asked is None:
            return []
        return explain_paths(asked.found, self._shown(asked), asked.texts, self.settings.control)

    def _shown(self, asked: "_Asked | None") -> list[Merged]:
        if asked is None:
            return []
        fitting = fit_tokens((_path_node(result) for result in asked.results), self.token_budget)
        kept = {node.node.node_id for node in fitting[: self.similarity_top_k]}
        return [result for result in asked.results if result.fact.id in kept]


@dataclass(frozen=True)
class _Asked:
    """A question, and all that was computed for it."""

    graph: PseudoGraph
    query: str
    question: NDArray[np.float32]
    texts: list[str]
    points: list[NDArray[np.float32]]
    allowed: Allowed
    found: Exploration
    results: list[Merged] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "results", merge_equal(self.found.ranking))


def _path_node(result: Merged) -> NodeWithScore:
    documents = sorted({fact.document for fact in result.facts if fact.document is not None})
    metadata = {"pgrag_path": list(result.fact.path), "pgrag_documents": documents}
    sources = list(dict.fromkeys(fact.node_id for fact in result.facts))
    node = derived_node(result.fact.id, result.fact.text, metadata, sources)
    return NodeWithScore(node=node, score=result.score)


def _found(result: Merged) -> Found:
    documents = sorted({fact.document for fact in result.facts if fact.document is not None})
    return Found(result.fact.path, tuple(documents), result.score)


def _read_points(reply: str) -> list[str]:
    answer = strip_thoughts(reply)
    points = list(dict.fromkeys(statements_of(answer)))
    if not points:
        raise ParseError("The reply names no key point.")
    return points
