"""`HippoRAGRetriever`: retrieval by personalised PageRank on the knowledge graph."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from numpy.typing import NDArray
from typing_extensions import Self, Unpack

from llama_index.hipporag.builder import GraphBuilder
from llama_index.hipporag.config import PAPER_SEARCHES, GraphConfig, SearchConfig, Version
from llama_index.hipporag.explanation import HippoRAGExplanation, explain, passages_stating
from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.graph_view import AskedGraph
from llama_index.hipporag.keywords import HippoRAGRetrieverKeywords
from llama_index.hipporag.prompts import FACTS_PROMPT, QUESTION_PROMPT
from llama_index.hipporag.query_linking import Linker
from llama_index.hipporag.search.graph_search import GraphSearchResult, needs_dense, search_many
from llama_index.hipporag.search.query_seeds import QuerySeeds
from llama_index.hipporag.state import HippoRAGState
from llama_index.hipporag.text.normalization import normal_form
from llama_index.ragkit import DerivedIndex, DerivedRetriever, Query, Steps, offload
from llama_index.ragkit.index.chunk_scores import ChunkScores, Structure
from llama_index.ragkit.index.contents import ViewContents
from llama_index.ragkit.index.query import as_bundle
from llama_index.ragkit.steps import arun_steps, gather, immediate, run_steps
from llama_index.ragkit.validation import chosen
from llama_index.ragkit.vectors.question_scores import Nearness

__all__ = ["HippoRAGRetrievalEvent", "HippoRAGRetriever"]

dispatcher = get_dispatcher(__name__)
Floats = NDArray[np.float32]
Index: TypeAlias = DerivedIndex[GraphConfig, HippoRAGState]

_AT_ONCE = 32  # questions of a batch whose walks and scores are in memory together


class HippoRAGRetrievalEvent(BaseEvent):
    """The phrases and facts to which a question was linked."""

    question: str
    linked: list[str]

    @classmethod
    def class_name(cls) -> str:
        """Name of the event."""
        return "HippoRAGRetrievalEvent"


class HippoRAGRetriever(DerivedRetriever[HippoRAGState, GraphSearchResult[Any], HippoRAGExplanation]):
    """Retrieves passages from a :class:`HippoRAGIndex`.

    A question is linked to phrases of the graph. Personalised PageRank starts there and activates nodes connected to
    them by facts, synonym edges and passages. The score of a passage combines its probability with its nearness to the
    question, dense and lexical together. If nothing is linked, a language model for the linking fails, or the walk is
    unrelated to the passages near to the question, only nearness is used; :meth:`explain` and an event
    (:class:`~llama_index.ragkit.FallbackEvent`) report this.

    Scores are always in [0, 1], higher is better, and comparable only within one answer. By default a score is nearness
    in standard deviations, less a penalty for a small share of a trusted walk (`walk_weight`), mapped so that 0.5 is a
    cutoff (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`). The published methods give shares of the
    best. Scores do not depend on the scale of the embedding model's cosines.

    Parameters
    ----------
    linking : "text" finds phrases of the graph in the question by matching words, without a model; "entities"
        compares the question's entities with phrases by their vectors (HippoRAG 1); "facts" compares the
        question with facts (HippoRAG 2). Phrases or facts without vectors are embedded by the first search that needs
        them, which is a write to the index ["text"]
    question_entities : for linking by entities: "rules", "llm", a mapping from questions to recorded entities, or a
        function from a question to its entities, such as :meth:`SpacyExtractor.question_entities` ["rules"]
    phrase_encoder : for linking by entities: a model of token vectors, such as ColBERT, which compares an entity with
        the phrases whose vectors are nearest to it, in place of the cosine
        (:mod:`llama_index.hipporag.text.late_interaction`) [None]
    link_threshold : least cosine of a phrase to which an entity is linked, in [-1, 1] [0]
    facts_top_k : number of facts to which a question is linked, and of their phrases that become seeds [5]
    filter_facts : whether a language model selects the helpful facts among these (one call) [False]
    damping : probability of following an edge, in [0, 1); the rest is the restart probability [0.5]
    synonyms : whether similar phrases are connected [False; papers True]
    subject_weight : weight of the edge between a passage and its title, above 0; other phrases have 1 [10]
    max_phrase_share : largest share of the passages that a phrase may be in and still join them, in (0, 1]: a phrase
        that is nearly everywhere, such as the header of every page, does not tell passages apart [0.5; papers 1]
    passage_seeds, passage_seed_weight : whether the walk also starts from passages: "none"; "nearest": from those
        nearest to the question, with this total weight (that of a phrase is 1, or its specificity); "each": from all,
        each with its cosine (scaled to [0, 1]) times this weight, as in HippoRAG 2 ["nearest", 0.01]
    walk_weight : how much the walk counts against nearness, in [0, 1]; 0 uses only nearness. A score is nearness + 7
        `walk_weight` * trust * log(share of the walk); `ensemble` of `published` has other sums. See
        :func:`~llama_index.hipporag.search.graph_search.walk_trust` [1; 0.8 for averages]
    lexical_weight : weight of BM25 in nearness, in [0, 1]; the rest is that of the cosine [0.5; papers 0]
    num_workers : questions of a batch that are linked concurrently, at least 1 [4]
    published : parameters that only the published searches and their ablations need; see
        :class:`~llama_index.hipporag.PublishedWalk`
    llm, prompts, retry, llm_mode, same_language : for question_entities="llm" (prompt "question") and `filter_facts`
        (prompt "facts"); see :class:`~llama_index.ragkit.DerivedRetriever`
    kwargs : see :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter is invalid.
    """

    default_prompts = {"question": QUESTION_PROMPT, "facts": FACTS_PROMPT}  # noqa: RUF012 - read only
    method: ClassVar[str] = "hipporag"
    keywords = HippoRAGRetrieverKeywords
    options_cls = SearchConfig
    options: SearchConfig
    _builder: GraphBuilder

    def __init__(self, index: Index, **kwargs: Unpack[HippoRAGRetrieverKeywords]) -> None:
        super().__init__(index, **kwargs)
        self.options.check_reading(index.storage.space().whole() is not None)
        normal = normal_form(index.config.normalizer)
        self._linker = Linker(self.options, normal, index.resources.embed, self._complete)

    @staticmethod
    def paper(version: Version = "v1") -> dict[str, Any]:
        """A published search as keywords: `index.as_retriever(**HippoRAGRetriever.paper())`.

        It reproduces the authors' code for an index built with `**HippoRAGIndex.paper(version)`.

        Parameters
        ----------
        version : "v1", the paper: an LLM extracts the question's entities, one phrase each, damping 0.5;
            "v1_ensemble", with the uncertainty ensemble of its appendix F.2, a plain average with dense scores;
            "v1_nodes" and "v1_neighbors", its ablations without a walk (section 5.1, table 5): the linked phrases, or
            these and a tenth of their weight (our value; the paper says "a small amount") for their neighbours;
            "v1_code", the authors' first code, with its counts, edge weights and damping of 0.1; "v2", HippoRAG 2:
            facts near to the question, filtered by an LLM, and passages as nodes of the graph

        Raises
        ------
        ConfigurationError
            If there is no such version.
        """
        return chosen("version", version, PAPER_SEARCHES)

    @classmethod
    def v1(cls, index: Index, **kwargs: Unpack[HippoRAGRetrieverKeywords]) -> Self:
        """A retriever with the keywords `paper("v1")`, the search of the paper."""
        return cls(index, **cast(HippoRAGRetrieverKeywords, {**cls.paper("v1"), **kwargs}))

    @classmethod
    def v1_code(cls, index: Index, **kwargs: Unpack[HippoRAGRetrieverKeywords]) -> Self:
        """A retriever with the keywords `paper("v1_code")`, the search of the authors' first code."""
        return cls(index, **cast(HippoRAGRetrieverKeywords, {**cls.paper("v1_code"), **kwargs}))

    @classmethod
    def v2(cls, index: Index, **kwargs: Unpack[HippoRAGRetrieverKeywords]) -> Self:
        """A retriever with the keywords `paper("v2")`, the search of HippoRAG 2."""
        return cls(index, **cast(HippoRAGRetrieverKeywords, {**cls.paper("v2"), **kwargs}))

    # -- retrieval ----------------------------------------------------------------------------------

    def _prepare(self) -> Steps[None]:
        """Embed phrases or facts, if the search needs vectors that the index does not have."""
        phrases, facts = self.options.linking == "entities" or self.options.synonyms, self.options.linking == "facts"
        if phrases or facts:
            state = (yield from self._index.writer.recovered()).state
            for work in (yield from self._builder.embedding(state, phrases, facts)):
                yield from self._index.writer.revise(work)

    def _search(self, query: Query[HippoRAGState]) -> Steps[GraphSearchResult[Any]]:
        return (yield from self._search_many([query]))[0]

    def _results(self, found: GraphSearchResult[Any]) -> Steps[list[NodeWithScore]]:
        return (yield from self._take_best(found.ranking(self._wanted)))

    @immediate
    def chunk_scores(self, query: Query[HippoRAGState], found: GraphSearchResult[Any]) -> ChunkScores | None:
        """See :meth:`DerivedRetriever.chunk_scores`."""
        if found.near is None:
            return None
        return ChunkScores(found.state.chunks, found.near.scores, [Structure(found.added(self.options), "names")])

    def _explanations(
        self, found: GraphSearchResult[Any], nodes: Sequence[NodeWithScore]
    ) -> Steps[list[HippoRAGExplanation]]:
        drawn = yield from self._builder.graph.drawn(found)
        explained = yield from offload(_explained, drawn, nodes)
        facts = dict.fromkeys(fact for each in explained for fact in each.facts)
        stated = yield from offload(passages_stating, drawn, facts)
        passages = [each.node_id for each in explained]
        by = yield from self._read_by(dict.fromkeys([*passages, *chain.from_iterable(stated.values())]))
        facts_by = {fact: by[stating[0]] for fact, stating in stated.items() if by.keys() >= set(stating)}
        return [
            replace(
                each,
                by=by.get(each.node_id, ""),
                facts_by={fact: facts_by[fact] for fact in each.facts if fact in facts_by},
            )
            for each in explained
        ]

    def retrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """Answer many questions, with the same results as `retrieve`, by joint walks.

        It processes 32 questions at a time, or `num_workers` if that is more. So the memory besides that of the index
        depends on the number of passages and phrases, not on that of the questions.
        """
        return run_steps(self._batch([as_bundle(query) for query in queries]))

    async def aretrieve_batch(self, queries: Sequence[QueryType]) -> list[list[NodeWithScore]]:
        """As :meth:`retrieve_batch`."""
        return await arun_steps(self._batch([as_bundle(query) for query in queries]))

    def _batch(self, bundles: Sequence[QueryBundle]) -> Steps[list[list[NodeWithScore]]]:
        yield from self._prepare()
        queries = yield from self._index.reader.queries(bundles, self.selection, self._wanted)
        if queries is None:
            outcomes = yield from gather([partial(self._ask_steps, bundle) for bundle in bundles])
            return [outcome.unwrap()[0] for outcome in outcomes]
        if not queries:
            return [[] for _ in bundles]
        waiting = deque(queries)
        del queries
        answers: list[list[NodeWithScore]] = []
        while waiting:  # the data of an answer are released with its block
            size = min(len(waiting), max(_AT_ONCE, self.options.num_workers))
            answers += yield from self._answered([waiting.popleft() for _ in range(size)])
        return answers

    def _answered(self, queries: Sequence[Query[HippoRAGState]]) -> Steps[list[list[NodeWithScore]]]:
        answers: list[list[NodeWithScore]] = []
        for query, found in zip(queries, (yield from self._search_many(queries)), strict=True):
            self._report(query, found)
            answers.append((yield from self._results(found)))
        return answers

    def _search_many(self, queries: Sequence[Query[HippoRAGState]]) -> Steps[list[GraphSearchResult[Any]]]:
        """The answers to questions of one state: any number if it is the whole index, else one."""
        query = queries[0]
        selection = query.contents.selection if isinstance(query.contents, ViewContents) else self.selection
        graph = yield from self._builder.graph.asked(query.state, query.allowed, selection, self.options)
        jobs = [partial(self._seeds, graph, query) for query in queries]
        if len(jobs) == 1:
            linked = [(yield from jobs[0]())]
        else:
            linked = [outcome.unwrap() for outcome in (yield from gather(jobs, self.options.num_workers))]
        for query, (seeds, _) in zip(queries, linked, strict=True):
            linked_phrases = [link.phrase for link in seeds.links]
            dispatcher.event(HippoRAGRetrievalEvent(question=query.text, linked=linked_phrases))
        found = yield from graph.prepared(queries, [seeds for seeds, _ in linked], [near for _, near in linked])
        state, walked = found.queries[0].state, cast(KnowledgeGraph, found.graph)
        answer = partial(search_many, state, walked, query.allowed, found.seeds, found.nearness)
        return list((yield from offload(answer, self.options, query.wanted)))

    def _seeds(self, graph: AskedGraph, query: Query[HippoRAGState]) -> Steps[tuple[QuerySeeds, Nearness | None]]:
        """The seeds of a question, and its nearness to passages if the search needs it."""
        vector = (yield from query.vector()) if self.options.linking == "facts" else None
        seeds = yield from self._linker.link(graph, query.text, vector)
        if self.options.published.ensemble == "trust" and seeds.links:
            asked = list(dict.fromkeys(link.asked for link in seeds.links))
            frequencies, count = yield from query.frequencies(asked)
            seeds = seeds.with_words(dict(zip(asked, frequencies, strict=True)), count)
        if not needs_dense(seeds, self.options):
            return seeds, None
        return seeds, (yield from query.nearness(self.options.lexical_weight))


def _explained(found: GraphSearchResult[KnowledgeGraph], nodes: Sequence[NodeWithScore]) -> list[HippoRAGExplanation]:
    return [explain(found, result) for result in nodes]
