"""`HippoRAGRetriever`: from a question into the graph, through it, and out at passages."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from numpy.typing import NDArray

from llama_index.hipporag.explanation import HippoRAGExplanation, explain
from llama_index.hipporag.index import HippoRAGIndex
from llama_index.hipporag.linking import (
    Cue,
    Link,
    filter_facts,
    linked_facts,
    links_of_text,
    nearest_phrases,
    seeds_of_facts,
)
from llama_index.hipporag.memory import Memory
from llama_index.hipporag.noun_phrases import read_question
from llama_index.hipporag.openie_extractor import Entities
from llama_index.hipporag.options import PRESETS, Options
from llama_index.hipporag.phrases import normalise
from llama_index.hipporag.prompts import FACTS_PROMPT, QUESTION_PROMPT
from llama_index.hipporag.search import Found, needs_dense, search_many
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit.driver import Steps, arun_steps, gather, offload, run_steps
from llama_index.ragkit.embedding import embed_query, embed_texts
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.filters import select
from llama_index.ragkit.json_output import parse_model
from llama_index.ragkit.llm_calls import complete
from llama_index.ragkit.matrix_search import cosines
from llama_index.ragkit.prompts import PromptHolder, fence
from llama_index.ragkit.results import take_nodes
from llama_index.ragkit.retriever import DerivedRetriever
from llama_index.ragkit.retry import RetryPolicy

__all__ = ["HippoRAGRetrievalEvent", "HippoRAGRetriever"]

dispatcher = get_dispatcher(__name__)
Floats = NDArray[np.float32]
QuestionEntities = Literal["llm", "rules"] | Mapping[str, Sequence[str]]
_EXACT = 50_000  # passages; their exact cosines take some 30 ms
_OPTIONS = frozenset(field.name for field in fields(Options))


class HippoRAGRetrievalEvent(BaseEvent):
    """What a question was linked to; `fallback` says why nothing was, and that the answer is a dense search."""

    question: str
    linked: list[str]
    fallback: str = ""

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "HippoRAGRetrievalEvent"


class HippoRAGRetriever(PromptHolder, DerivedRetriever[HippoRAGIndex]):
    """Retrieves passages from a :class:`HippoRAGIndex`.

    A question is linked to phrases of the graph; a walk starts there (personalised PageRank) and wakes what
    is joined to them by facts, nearness and passages; passages score by what the walk brings them, and by
    their own nearness to the question. Where nothing links, the answer is a dense search, and
    :meth:`explain` and an event (:class:`HippoRAGRetrievalEvent`) say so.

    Scores are in [0, 1], higher is better, on every path: the walk counts as a share of the best passage's,
    nearness as (1 + cosine) / 2. See `ensemble` for how the two come together; a dense answer scores
    nearness alone.

    Parameters
    ----------
    linking : "text" finds phrases of the graph in the question, word by word, without a model; "entities"
        compares the question's entities with phrases by their vectors (HippoRAG 1); "facts" compares the
        question with facts (HippoRAG 2)
    question_entities : for linking by entities: "rules", "llm", or a mapping from questions to recorded ones
    links_per_entity, link_threshold : phrases for each entity, and the smallest cosine of one, in [-1, 1]
    node_specificity : whether a phrase starts with 1 / (passages that have it), or all alike
    facts_top_k : facts that a question is linked to, and phrases that these may start the walk from
    filter_facts : whether a language model says which of these facts help (one call)
    damping : probability of following an edge, in [0, 1); the rest goes back to the start
    edges, synonyms : see :meth:`.memory.Memory.adjacency`; whether near phrases are joined
    passage_nodes : whether passages are nodes of the graph, and score by what the walk brings to them;
        otherwise by the sum over their phrases (`counted`, see :func:`.scoring.passage_scores`)
    subject_weight : weight of the edge between a passage and its title; other phrases have 1
    passage_seeds, passage_seed_weight : whether the walk starts from passages too: "none"; "nearest": from those
        nearest to the question, which weigh this together (a phrase weighs 1, or its specificity); "each":
        from all, each with its cosine (scaled to [0, 1]) times this weight, as in HippoRAG 2
    length_normalization : a in [0, 1]: scores of the walk are divided by (phrases of the passage) ** a
    conjunction : in [0, 1]: 0 takes the walk from all linked phrases together, so that being near to one of them is
        enough; 1 the geometric mean of a walk from each, so that a passage must be on the way from all of them;
        between, the weighted geometric mean of the two. For questions that look for where paths meet; it costs a
        walk a phrase [0]
    ensemble : "product": nearness * (share of the walk) ** `ensemble_weight`; "average": both brought to
        [0, 1], the dense one weighing `ensemble_weight`; "uncertainty": that average where a link has a
        cosine of at most `recognition_threshold` (paper, appendix F.2); "none": the walk alone
    llm : default that of the index; asked only by question_entities="llm" and `filter_facts`
    prompts : {"question": ..., "facts": ...} to replace default prompts
    retry : see :class:`~llama_index.ragkit.llm_calls.RetryPolicy`
    num_workers : questions of a batch that are linked at once
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If an option is unknown or out of range, or `linking="facts"` meets an index without fact vectors.
    """

    default_prompts = {"question": QUESTION_PROMPT, "facts": FACTS_PROMPT}  # noqa: RUF012 - read only

    def __init__(
        self,
        index: HippoRAGIndex,
        *,
        question_entities: QuestionEntities = "rules",
        llm: LLM | None = None,
        prompts: Mapping[str, BasePromptTemplate] | None = None,
        retry: RetryPolicy | None = None,
        num_workers: int = 4,
        **kwargs: Any,
    ) -> None:
        if not (question_entities in ("llm", "rules") if isinstance(question_entities, str) else True):
            raise ConfigurationError(
                f"question_entities must be 'llm', 'rules' or a mapping from questions to lists, not "
                f"{question_entities!r}."
            )
        self.options = Options(**{name: kwargs.pop(name) for name in list(kwargs) if name in _OPTIONS})
        self.question_entities = question_entities
        self.prompts = dict(prompts or {})
        self.check_prompts(self.prompts)
        self._own_llm = llm
        self._retry = retry or RetryPolicy()
        self._num_workers = num_workers
        super().__init__(index, **kwargs)
        if self.options.linking == "facts" and not index._rules.fact_vectors:
            raise ConfigurationError(
                "linking='facts' compares the question with vectors of facts, and this index was built with "
                "fact_vectors=False. Build it with fact_vectors=True, or choose linking='entities' or 'text'."
            )

    @classmethod
    def v1(cls, index: HippoRAGIndex, **kwargs: Any) -> "HippoRAGRetriever":
        """HippoRAG as the paper has it: an LLM names the question's entities, one node each, damping 0.5."""
        return cls(index, **{"question_entities": "llm", **PRESETS["v1"], **kwargs})

    @classmethod
    def v1_code(cls, index: HippoRAGIndex, **kwargs: Any) -> "HippoRAGRetriever":
        """HippoRAG as the authors' first code has it, damping 0.1 and all.

        It is that code over an index that was built with `**HippoRAGIndex.PUBLISHED`.
        """
        return cls(index, **{"question_entities": "llm", **PRESETS["v1_code"], **kwargs})

    @classmethod
    def v2(cls, index: HippoRAGIndex, **kwargs: Any) -> "HippoRAGRetriever":
        """HippoRAG 2: facts near to the question, filtered by an LLM, and passages as nodes of the graph."""
        return cls(index, **{**PRESETS["v2"], **kwargs})

    # -- retrieval ----------------------------------------------------------------------------------

    def _retrieve_steps(self, query_bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        return (yield from self._answers([query_bundle.query_str]))[0]

    def retrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Answer many questions at once, each as :meth:`retrieve` would: the walks go through the graph together."""
        return run_steps(self._answers([_text(query) for query in queries]))

    async def aretrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Answer many questions at once; see :meth:`retrieve_batch`."""
        return await arun_steps(self._answers([_text(query) for query in queries]))

    def _answers(self, questions: Sequence[str]) -> Steps[list[list[NodeWithScore]]]:
        answers = []
        found = yield from self._search(questions)
        for question, one in zip(questions, found, strict=True):
            nodes = yield from self._take(one)
            if one is not None:
                self._index._last_query = (question, one, [(n.node.node_id, n.get_score()) for n in nodes])
            answers.append(nodes)
        return answers

    def _take(self, found: Found | None) -> Steps[list[NodeWithScore]]:
        if found is None:
            return []
        fetch = self._index._parts.get_node
        return (
            yield from take_nodes(found.ranking(self.similarity_top_k), fetch, self.similarity_top_k, self.token_budget)
        )

    def _search(self, questions: Sequence[str]) -> Steps[list[Found | None]]:
        index = self._index
        state = index._state  # one state from start to end, whatever is written meanwhile
        if not len(state.chunks) or not questions:
            return [None] * len(questions)
        yield from index._check_model()
        allowed = None
        if self.filters is not None or self.node_ids is not None or self.doc_ids is not None:
            allowed = select(state.chunks, self.filters, self.node_ids, self.doc_ids)
        memory = yield from offload(state.visible, allowed)
        jobs = [partial(self._cue, state, memory, question) for question in questions]
        if len(jobs) == 1:
            cued = [(yield from jobs[0]())]
        else:
            cued = [outcome.unwrap() for outcome in (yield from gather(jobs, self._num_workers))]
        cues = [cue for cue, _ in cued]
        near = [None if vector is None else _cosines(state, vector) for _, vector in cued]
        wanted = self.similarity_top_k
        found = yield from offload(search_many, state, memory, allowed, cues, near, self.options, wanted)
        for question, cue in zip(questions, cues, strict=True):
            linked = [link.phrase for link in cue.links]
            dispatcher.event(HippoRAGRetrievalEvent(question=question, linked=linked, fallback=cue.reason))
        return list(found)

    # -- linking ------------------------------------------------------------------------------------

    def _cue(self, state: HippoRAGState, memory: Memory, question: str) -> Steps[tuple[Cue, Floats | None]]:
        """What a question starts from, and its vector where the passages are to be compared with it."""
        model, dim = self._index.embed_model, state.chunks.dim
        vector: Floats | None = None
        if self.options.linking == "facts":
            vector = yield from embed_query(model, question, dim)
        if not len(state.phrases):
            cue = Cue(reason="the graph has no phrases")
        elif self.options.linking == "facts":
            cue = yield from self._cue_of_facts(state, memory, question, vector)
        else:
            cue = yield from self._cue_of_phrases(state, memory, question)
        if not needs_dense(cue, self.options):
            return cue, None
        if vector is None:
            vector = yield from embed_query(model, question, dim)
        return cue, vector

    def _cue_of_phrases(self, state: HippoRAGState, memory: Memory, question: str) -> Steps[Cue]:
        options, normalizer = self.options, self._index._rules.normalizer
        near = partial(
            nearest_phrases, state, memory, most=options.links_per_entity, threshold=options.link_threshold,
            by_specificity=options.node_specificity,
        )  # fmt: skip
        if options.linking == "text":
            links = links_of_text(state, memory, question, normalizer, options.node_specificity)
            return _cue_of(links, "no phrase of the question is in the graph")
        entities = yield from self._entities(question)
        if not entities:
            return Cue(reason="the question names no entity")
        names = list(dict.fromkeys(filter(None, (normalise(entity, normalizer) for entity in entities))))
        vectors = yield from embed_texts(self._index.embed_model, names)
        return _cue_of(near(names, vectors), "no phrase is near to an entity of the question")

    def _entities(self, question: str) -> Steps[Sequence[str]]:
        if isinstance(self.question_entities, Mapping):
            return self.question_entities.get(question, [])
        if self.question_entities == "rules":
            return read_question(question)
        reply = yield from complete(
            self._llm(),
            self.prompt("question"),
            parse=partial(parse_model, model=Entities),
            retry=self._retry,
            output_cls=Entities,
            question=fence([question], "question"),
        )
        return reply.named_entities

    def _cue_of_facts(self, state: HippoRAGState, memory: Memory, question: str, vector: Any) -> Steps[Cue]:
        options = self.options
        facts = yield from offload(linked_facts, state, memory, vector, options.facts_top_k)
        if not facts:
            return Cue(reason="the graph has no facts")
        if options.filter_facts:
            facts = yield from filter_facts(
                self._llm(), self.prompt("facts"), self._retry, question, facts, options.facts_top_k - 1 or 1
            )
            if not facts:
                return Cue(reason="none of the facts near to the question helps")
        links = seeds_of_facts(state, memory, facts, options.facts_top_k, options.node_specificity)
        return replace(_cue_of(links, "the facts near to the question have no phrases"), facts=facts)

    def _llm(self) -> LLM:
        return self._own_llm or self._index.llm

    # -- explanations -------------------------------------------------------------------------------

    def explain(self, query: QueryType) -> list[HippoRAGExplanation]:
        """Why each passage of the answer came, in the order of the answer."""
        return run_steps(self._explain(query))

    async def aexplain(self, query: QueryType) -> list[HippoRAGExplanation]:
        """Why each passage of the answer came, in the order of the answer."""
        return await arun_steps(self._explain(query))

    def _explain(self, query: QueryType) -> Steps[list[HippoRAGExplanation]]:
        (found,) = yield from self._search([_text(query)])
        nodes = yield from self._take(found)
        if found is None:
            return []
        return (yield from offload(_explained, found, nodes))

    def _get_prompts(self) -> PromptDictType:
        return {**self.default_prompts, **self.prompts}


def _explained(found: Found, nodes: Sequence[NodeWithScore]) -> list[HippoRAGExplanation]:
    return [explain(found, n.node.node_id, n.node.get_content(), n.get_score()) for n in nodes]


def _text(query: QueryType) -> str:
    return query if isinstance(query, str) else query.query_str


def _cosines(state: HippoRAGState, vector: Floats) -> NDArray[np.float64]:
    """Of the question and every passage: exact as long as that is quick, then to six decimals of a float32 product."""
    if len(state.chunks) <= _EXACT:
        return cosines(state.chunks.matrix, vector)
    near: NDArray[np.float64] = state.chunks.cosines([vector])[:, 0].astype(np.float64).round(6)
    return near


def _cue_of(links: Sequence[Link], reason: str) -> Cue:
    """A walk from these links; of several that name one phrase the last counts, as published."""
    weights = {link.row: link.weight for link in links}
    if not any(weights.values()):
        return Cue(reason=reason)
    return Cue(links, weights, weakest=min(link.cosine for link in links))
