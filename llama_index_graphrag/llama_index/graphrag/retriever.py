"""`GraphRAGRetriever`: local, global, DRIFT and basic search in a graph of statements and its communities."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar, get_args

import numpy as np
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from numpy.typing import NDArray
from typing_extensions import Unpack

from llama_index.graphrag.builder import GraphRAGBuilder
from llama_index.graphrag.community_rows import CommunitiesGoneError
from llama_index.graphrag.config import PUBLISHED_SEARCH, GraphRAGConfig, SearchConfig, SearchMode
from llama_index.graphrag.drift_search import drift_chunks
from llama_index.graphrag.explanation import GraphRAGExplanation, explain
from llama_index.graphrag.found import GraphRAGFound, report_id, similarities
from llama_index.graphrag.global_search import Ask, global_reports, relevant_chunks
from llama_index.graphrag.keywords import GraphRAGRetrieverKeywords
from llama_index.graphrag.local_search import linked_chunks, mixed_context
from llama_index.graphrag.prompts import (
    FOLLOW_UP_PROMPT,
    HYPOTHESIS_PROMPT,
    PRIMER_PROMPT,
    RATE_PROMPT,
    RELEVANCE_PROMPT,
)
from llama_index.graphrag.reports.planning import ReportPlan
from llama_index.graphrag.state import GraphRAGState, GraphView, WrittenReport
from llama_index.ragkit import DerivedIndex, DerivedRetriever, Query, Selection, Steps, offload
from llama_index.ragkit.errors import ConcurrentWriteError, ConfigurationError, ReadOnlyError
from llama_index.ragkit.index.chunk_scores import ChunkScores, SharedQuestion, Structure
from llama_index.ragkit.index.results import fit_tokens, fresh
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.validation import check_choice

__all__ = ["GraphRAGRetriever"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_BUDGET = 12_000  # tokens of reports, or of a mixed context, as published
_BESIDE_OTHERS = 0.15  # weight of its walk next to other walks over names, which are trusted in vain less often
_TRIES = 5  # of a question while other processes write
_MOST_FILTERED = 20_000  # most chunks whose communities are found for one question


class GraphRAGRetriever(DerivedRetriever[GraphRAGState, GraphRAGFound, GraphRAGExplanation]):
    """Retrieves from a :class:`GraphRAGIndex`.

    - `mode="local"`: entities that the question names, and those of the chunks nearest to it, activate the chunks that
      state something about them. The score of a chunk is its nearness to the question, dense and lexical together,
      plus the logarithm of its share of the activations, as far as that can be trusted. It needs no LLM.
    - `mode="global"`: reports of communities that together cover the corpus, in more detail near the question, within
      `token_budget`. Results are report nodes, which name their sources. With `relevance_budget` of `published`, an LLM
      tests one chunk after another, and results are the relevant chunks.
    - `mode="drift"`: an LLM answers from reports, then asks follow-up questions; results are the chunks on which its
      answers rest.
    - `mode="basic"`: chunks only by nearness.

    If a part of the method does not apply, or a model fails, chunks are ranked by nearness; :meth:`explain` and an
    event (:class:`~llama_index.ragkit.FallbackEvent`) report this. Under a filter, the graph has only the allowed
    chunks.

    Scores are in [0, 1]; higher is better. They are comparable only within one answer, and do not depend on the scale
    of the embedding model's cosines. With `mode="drift"` they are shares of a full answer; with the published order of
    chunks by entities, 1 / rank. Otherwise they are mapped so that 0.5 is a cutoff
    (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`), for reports among all communities.

    Parameters
    ----------
    index : the index to search
    mode : see above ["local"]
    token_budget : tokens of all nodes; None for 12,000 tokens of reports and mixed contexts
    similarity_top_k : the largest number of results. If it is not given, there are at most 10 chunks, and only
        `token_budget` limits reports and mixed contexts
    llm, prompts, retry : for `mode="drift"` (prompts "hypothesis", "primer", "follow_up"), `rating_threshold` ("rate")
        and `relevance_budget` ("relevance")
    kwargs : see :class:`~llama_index.graphrag.config.SearchConfig` and
        :class:`~llama_index.ragkit.DerivedRetriever`

    Raises
    ------
    ConfigurationError
        If a parameter is invalid, or `entities_top_k` is given for an index without `entity_vectors`.
    """

    default_prompts = {  # noqa: RUF012 - read only
        "rate": RATE_PROMPT,
        "relevance": RELEVANCE_PROMPT,
        "hypothesis": HYPOTHESIS_PROMPT,
        "primer": PRIMER_PROMPT,
        "follow_up": FOLLOW_UP_PROMPT,
    }
    method: ClassVar[str] = "graphrag"
    keywords = GraphRAGRetrieverKeywords
    options_cls = SearchConfig
    options: SearchConfig
    _builder: GraphRAGBuilder

    def __init__(
        self, index: DerivedIndex[GraphRAGConfig, GraphRAGState], **kwargs: Unpack[GraphRAGRetrieverKeywords]
    ) -> None:
        super().__init__(index, **kwargs)
        self._most_of_reports = kwargs.get("similarity_top_k")
        self._to_store: dict[str, tuple[GraphView, WrittenReport]] = {}  # each with the graph of its community
        if self.options.entities_top_k and not index.config.entity_vectors:
            raise ConfigurationError(
                f"entities_top_k={self.options.entities_top_k} links entities by their vectors, but this index was "
                "built with entity_vectors=False. Build it with entity_vectors=True, or leave entities_top_k at 0."
            )

    @staticmethod
    def paper(mode: SearchMode = "local") -> dict[str, Any]:
        """The published search as keywords: `index.as_retriever(**GraphRAGRetriever.paper())`.

        It needs an index with `entity_vectors=True`, such as one built with `**GraphRAGIndex.paper()`.

        Parameters
        ----------
        mode : "local", "global", "drift" or "basic"

        Raises
        ------
        ConfigurationError
            If there is no such mode.
        """
        check_choice("mode", mode, get_args(SearchMode))
        return {"mode": mode, **PUBLISHED_SEARCH}

    def _search(self, query: Query[GraphRAGState]) -> Steps[GraphRAGFound]:
        options, parts, fetch = self.options, self._builder.parts, self._index.storage.get_node
        writes = self._index.config.reports == "lazy" and self._builder.reports.by_model
        write = self._write_reports if writes else None
        ask = Ask(self._complete, self._room)
        if options.mode == "basic":
            return (yield from self._basic(query))
        if options.mode == "drift":
            return (yield from drift_chunks(query, parts, options, ask, write, fetch))
        budget = _BUDGET if self.token_budget is None else self.token_budget
        if options.mode == "global":
            if options.published.relevance_budget is not None:
                return (yield from relevant_chunks(query, options, options.published.relevance_budget, ask, fetch))
            return (yield from global_reports(query, parts, options, budget, ask, write))
        found = yield from linked_chunks(query, parts, query.text, (yield from query.vector()), options)
        if options.context == "mixed":
            found = yield from mixed_context(query, parts, found, fetch, budget, options)
        return found

    def search(self, question: str) -> Steps[GraphRAGFound | None]:
        """Only the search, without results, events and record; None if there is nothing to search."""
        bundle = QueryBundle(question)

        def ask() -> Steps[GraphRAGFound | None]:
            vector = yield from self._index.reader.vector(bundle)
            return (yield from self._index.reader.in_one_generation(partial(self._searched, bundle, vector)))

        return (yield from self._with_communities(ask))

    def _searched(self, bundle: QueryBundle, vector: NDArray[np.float32] | None) -> Steps[GraphRAGFound | None]:
        query = yield from self._query(bundle, vector)
        return None if query is None else (yield from self._search(query))

    def _basic(self, query: Query[GraphRAGState]) -> Steps[GraphRAGFound]:
        near = yield from similarities(query, self.options.lexical_weight)
        view = yield from offload(query.state.view, query.allowed)
        return GraphRAGFound(view, near.ranking(near.scores, query.wanted), near=near)

    # -- reports ------------------------------------------------------------------------------------

    def _write_reports(
        self, state: GraphRAGState, view: GraphView, todo: Sequence[ReportPlan]
    ) -> Steps[tuple[Mapping[str, WrittenReport], str]]:
        """Write reports that are stored after the question."""
        written, failed = yield from self._builder.reports.make(state, view, todo)
        self._to_store.update({key: (view, report) for key, report in written.items()})
        reason = ""
        if failed:
            reason = f"{len(failed)} of {len(todo)} reports could not be written: {next(iter(failed.values()))}"
        return written, reason

    def _keep_reports(self) -> Steps[None]:
        """Store the reports that questions had written, if their sources still exist."""
        while self._to_store:
            key, (view, report) = self._to_store.popitem()
            written = {key: report}
            for other in [i for i, (of, _) in list(self._to_store.items()) if of is view]:
                written[other] = self._to_store.pop(other)[1]
            try:
                yield from self._index.writer.revise(partial(self._builder.keep_reports, view, written))
            except (ConcurrentWriteError, ReadOnlyError) as error:  # the question is answered anyway
                logger.warning("%d reports were written but not stored. %s", len(written), error)

    # -- data of a question ---------------------------------------------------------------------------

    @property
    def _reads_whole(self) -> bool:
        """Whether a question reads more than the chunks near to it and the entities to which these lead."""
        options = self.options
        return options.mode in ("global", "drift") or (options.mode == "local" and options.context == "mixed")

    @property
    def _wanted(self) -> int:
        return max(super()._wanted, self.options.published.relevance_budget or 0)

    def _selection(self) -> Steps[Selection]:
        """The chunks that count; for a question that reads the whole under a filter, as a list of chunks."""
        each = self._reads_whole or self.options.entities_top_k
        selection = yield from self._builder.select(self.selection, _MOST_FILTERED if each else None)
        if selection.filters is None or not each:
            return selection
        rows = yield from self._index.storage.space().described()
        only = [rows.ids[row] for row in np.flatnonzero(selection.mask(rows))] if len(rows) else []
        if len(only) > _MOST_FILTERED:
            raise ConfigurationError(
                f"{len(only)} chunks pass the filter. In an index served from stores, mode={self.options.mode!r} "
                f"reads the statements of at most {_MOST_FILTERED}. Narrow the filter, or build an index for each of "
                "its values, each with its own tenant=."
            )
        return replace(selection, only=only)

    def _about(
        self, bundle: QueryBundle, work: Callable[..., Steps[T]], nothing: T, shared: SharedQuestion | None = None
    ) -> Steps[T]:
        return (yield from self._with_communities(partial(super()._about, bundle, work, nothing, shared)))

    def _with_communities(self, ask: Callable[[], Steps[T]]) -> Steps[T]:
        """Find communities if the question reads them, ask, and store the reports that the question had written.

        Finding and storing are writes, which cannot happen while a question reads one state of the index.
        """
        for tries_left in reversed(range(_TRIES)):
            yield from self._find_communities()
            try:
                found = yield from ask()
                break
            except CommunitiesGoneError:
                if not tries_left:
                    raise
        yield from self._keep_reports()
        return found

    def _find_communities(self) -> Steps[None]:
        builder, writer = self._builder, self._index.writer
        if not self._reads_whole or self.options.published.relevance_budget is not None or not self.selection.is_whole:
            return
        for tries_left in reversed(range(_TRIES)):
            state = (yield from writer.recovered()).state
            if self._index.storage.is_empty or not (yield from builder.need_communities(state)):
                return
            try:
                yield from writer.revise(builder.find_communities)
            except ConcurrentWriteError:
                if not tries_left:
                    raise

    # -- results ------------------------------------------------------------------------------------

    def _results(self, found: GraphRAGFound) -> Steps[list[NodeWithScore]]:
        if not found.keep_all:
            return (yield from self._take_best(found.ranking, partial(self._fetch, found)))
        results = []
        for node_id, score in found.ranking:
            node = yield from self._fetch(found, node_id)
            results += [] if node is None else [fresh(node, score)]
        return fit_tokens(results, self.token_budget)[: self._most_of_reports]

    def _fetch(self, found: GraphRAGFound, node_id: str) -> Steps[BaseNode | None]:
        if node_id in found.derived:
            return found.derived[node_id]
        return (yield from self._index.storage.get_node(node_id))

    @immediate
    def chunk_scores(self, query: Query[GraphRAGState], found: GraphRAGFound) -> ChunkScores | None:
        """See :meth:`DerivedRetriever.chunk_scores`."""
        if found.near is None or found.added is None:
            return None
        structure = Structure(found.added, "names", _BESIDE_OTHERS)
        return ChunkScores(found.near.state.chunks, found.near.scores, [structure])

    def _explanations(self, found: GraphRAGFound, nodes: Sequence[NodeWithScore]) -> Steps[list[GraphRAGExplanation]]:
        if found.cut is not None:
            yield from found.view.load([*found.cut.opened, *found.cut.refused])
        found = yield from self._builder.parts.stating(found, [node.node.node_id for node in nodes])
        explained = yield from offload(lambda: [explain(found, result) for result in nodes])
        by = yield from self._read_by(each.node_id for each in explained)
        if found.derived:
            by |= dict.fromkeys((yield from self._failed_reports()), "extract")
        return [replace(each, by=by.get(each.node_id, "")) for each in explained]

    def _failed_reports(self) -> Steps[list[str]]:
        """Ids of the reports that are made of statements because the summarizer failed, stored or not yet."""
        failed = [key for key, (_, written) in self._to_store.items() if written.error]
        return [report_id(key) for key in [*failed, *(yield from self._builder.communities.by_rules())]]
