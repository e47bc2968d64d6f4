"""`GraphRAGIndex`: statements about entities, and communities of these (Edge et al. 2024, arXiv 2404.16130)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.llms import LLM
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import BaseNode, Document, IndexNode
from typing_extensions import Self, Unpack

from llama_index.graphrag.builder import GraphRAGBuilder
from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.clustering.leiden import LeidenClustering
from llama_index.graphrag.config import PUBLISHED_INDEX, GraphRAGConfig
from llama_index.graphrag.costs import QuestionCost, question_cost, work_of_reports
from llama_index.graphrag.extraction.cooccurrence import CooccurrenceExtractor
from llama_index.graphrag.extraction.entity_extractor import EntityExtractor
from llama_index.graphrag.found import FINDINGS_KEY
from llama_index.graphrag.keywords import GraphRAGKeywords, GraphRAGRetrieverKeywords
from llama_index.graphrag.page import page_of, rows_to_show
from llama_index.graphrag.prompts import REPORT_PROMPT
from llama_index.graphrag.published.run import PublishedRun, opened
from llama_index.graphrag.published_reports import ImportedReports, published_reports
from llama_index.graphrag.reporter import ReportWriter
from llama_index.graphrag.reports.planning import ReportPlan, unwritten
from llama_index.graphrag.reports.report import Report
from llama_index.graphrag.retriever import GraphRAGRetriever
from llama_index.graphrag.state import GraphRAGState
from llama_index.ragkit import (
    DerivedIndex,
    DerivedStruct,
    Estimate,
    LastQuery,
    NodeExtractor,
    Selection,
    Steps,
    Summarizer,
    offload,
    register_index,
)
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extras import need
from llama_index.ragkit.html import Page
from llama_index.ragkit.llm.completion import known_llm
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.storage.derived_nodes import texts_of
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["GraphRAGIndex", "GraphRAGStruct"]

_NUMBER = 4  # tokens of the number before a statement


class GraphRAGStruct(DerivedStruct):
    """The struct of a :class:`GraphRAGIndex`."""

    type_name = "llama_index.graphrag"


class GraphRAGIndex(DerivedIndex[GraphRAGConfig, GraphRAGState]):
    """A graph of what chunks state about entities, its nested communities, and reports about these.

    Questions about details follow the entities that they name to the chunks that state something about them. Reports,
    within a budget of tokens, answer questions about the whole.

    The statement is the unit: every count is a sum over chunks, so deletes are exact and need no LLM. Communities are a
    function of the graph, so an index that grew by inserts equals one that was built at once. The key of a report is a
    hash of its sources, so unchanged reports are not written again. The documentation of the package lists the
    deviations from paper and published code.

    `estimate` counts all reports, an upper bound for statements as long as the text; with `reports="lazy"` the
    questions that read reports have them written. Calls of a resolver are not counted, since the number of names that
    are near each other is unknown until they are embedded.

    Parameters
    ----------
    extractor : extracts entities and relations from a chunk; default :class:`EntityExtractor`, one LLM call per chunk.
        :class:`CooccurrenceExtractor` needs no LLM, :class:`RecordedExtractor` uses existing data
    summarizer : writes the reports of communities whose statements are longer than a report; default
        :class:`ReportWriter`. With a summarizer that needs no LLM, such as
        :class:`~llama_index.ragkit.ExtractiveSummarizer`, reports are statements that cover the entities of the
        community
    clustering : finds the communities; default :class:`AgglomerativeClustering`. :class:`LeidenClustering` is the
        published one
    resolver : judges which names of a document are one entity, beyond the rules on names: :class:`CosineResolver` or
        :class:`LLMResolver`. It needs `entity_vectors`. To write to an index that was built with a resolver, pass it
        again; an index that was built without one cannot get one [None]
    kwargs : see :class:`~llama_index.graphrag.config.GraphRAGConfig` and :class:`~llama_index.ragkit.DerivedIndex`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    index_struct_cls = GraphRAGStruct
    method: ClassVar[str] = "graphrag"
    space_names: ClassVar[tuple[str, ...]] = ("chunks", "entities")
    config_cls = GraphRAGConfig
    builder_cls = GraphRAGBuilder
    builder: GraphRAGBuilder
    retriever_cls = GraphRAGRetriever
    keywords = GraphRAGKeywords
    default_extractor = EntityExtractor
    default_summarizer = ReportWriter
    rule_extractor = CooccurrenceExtractor

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self,
            nodes: Sequence[BaseNode] | None = None,
            objects: Sequence[IndexNode] | None = None,
            index_struct: DerivedStruct | None = None,
            **kwargs: Unpack[GraphRAGKeywords],
        ) -> None: ...

        @classmethod
        def from_documents(cls, documents: Sequence[Document], **kwargs: Unpack[GraphRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        @classmethod
        async def afrom_documents(cls, documents: Sequence[Document], **kwargs: Unpack[GraphRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        def as_retriever(self, **kwargs: Unpack[GraphRAGRetrieverKeywords]) -> GraphRAGRetriever: ...  # type: ignore[override]  # noqa: D102

    @classmethod
    def paper(cls) -> dict[str, Any]:
        """Keywords of the published pipeline: `GraphRAGIndex(nodes, **GraphRAGIndex.paper())`.

        Raises
        ------
        ImportError
            If the extra `leiden` is not installed.
        """
        return {
            **PUBLISHED_INDEX,
            "extractor": EntityExtractor(gleanings=1, gleaning_test=True, min_in_text=0),
            "clustering": LeidenClustering.paper(),
        }

    def _get_prompt_modules(self) -> PromptMixinType:
        resolver = self.builder.resolver
        return {**super()._get_prompt_modules(), **({} if resolver is None else {"resolver": resolver})}

    @property
    def _everything(self) -> GraphRAGState:
        """The state of the whole index."""
        return run_steps(self.reader.in_one_generation(self._read_everything))

    def _read_everything(self) -> Steps[GraphRAGState]:
        return (yield from self.builder.parts.everything((yield from self.writer.recovered()).state))

    # -- communities and reports --------------------------------------------------------------------

    @property
    def communities(self) -> Hierarchy:
        """The communities of all entities, computed when first needed after a write."""
        return self._everything.everything.hierarchy

    def community_names(self, community: int) -> list[str]:
        """The names of the entities of a community, as most chunks spell them, sorted."""
        view = self._everything.everything
        return sorted(view.graph.name_of(key) for key in view.planner.names(community))

    def report(self, community: int) -> Report:
        """The report of a community, or its statements if it is not written."""
        state = self._everything
        return state.report(state.everything, community)

    def to_networkx(self) -> Any:
        """Entities, their relations and communities as a `networkx.Graph`.

        Nodes have `kind` ("chunk", "entity" or "community") and `text`; the text of a community is the names of its
        foremost entities. A chunk also has `document`, an entity `type`, and a community `level`, 0 at the top. Edges
        have `kind` and `weight`: "mention" from an entity to a chunk that names it, "relation" between two entities,
        weighted by the number of chunks that state it, "member" from an entity to its smallest community, "part" from a
        community to the one that contains it.

        Raises
        ------
        ImportError
            If the extra `networkx` is not installed.
        """
        networkx = need("networkx", "to_networkx()", "llama-index-graphrag[networkx]")
        state, found = self.state, networkx.Graph()
        view, texts = state.everything, run_steps(texts_of(state.chunks.ids, self.storage.get_node))
        for record in state.chunks.records:
            found.add_node(record.id, kind="chunk", text=texts.get(record.id, ""), document=record.ref_doc_id or "")
        graph, entities, hierarchy = view.graph, view.entities, view.hierarchy
        names = [("entity", key) for key in entities.names]
        for name, key in zip(names, entities.names, strict=True):
            found.add_node(name, kind="entity", text=graph.name_of(key), type=graph.type_of(key))
            found.add_edges_from(((name, chunk) for chunk in graph.entities[key]), kind="mention", weight=1)
        for row, name in enumerate(names):
            for place in range(entities.indptr[row], entities.indptr[row + 1]):
                other = int(entities.indices[place])
                if row < other:
                    found.add_edge(name, names[other], kind="relation", weight=int(entities.weights[place]))
        for community, parent in enumerate(hierarchy.parent.tolist()):
            own, level = ("community", community), int(hierarchy.level[community])
            found.add_node(own, kind="community", text=view.planner.title(community), level=level)
            if parent >= 0:
                found.add_edge(own, ("community", parent), kind="part", weight=1)
            if hierarchy.is_leaf[community]:
                members = (names[row] for row in hierarchy.members(community).tolist())
                found.add_edges_from(((member, own) for member in members), kind="member", weight=1)
        return found

    def write_reports(self) -> int:
        """Write the missing reports, and delete those of communities that no longer exist.

        Returns
        -------
        The number of reports that could not be written.
        """
        return run_steps(self._write_reports())

    async def awrite_reports(self) -> int:
        """Like :meth:`write_reports`."""
        return await arun_steps(self._write_reports())

    def _write_reports(self) -> Steps[int]:
        yield from self.writer.revise(self.builder.write_reports)
        return len(self.writer.state.failed)

    def rebuild(self) -> None:
        """Find the communities now, not when a question first needs them after a write.

        All processes of an index served from stores then read them. All statements are in memory meanwhile.
        """
        run_steps(self._rebuild())

    async def arebuild(self) -> None:
        """Like :meth:`rebuild`."""
        await arun_steps(self._rebuild())

    def _rebuild(self) -> Steps[None]:
        state = (yield from self.writer.recovered()).state
        if state.is_part:
            yield from self.writer.revise(self.builder.find_communities)
        else:
            yield from offload(state.everything.plans)

    def import_reports(self, run: PublishedRun | str | Path) -> ImportedReports:
        """Take over the reports of a run of the command-line tool, instead of having them written again.

        A report is taken over for the community with the same entities and statements, if that needs a written report:
        statements that fit into `report_tokens` are the report themselves. It is deleted with the first of the text
        units on which it rests, and no longer read once the statements change. To get the communities of the run, use
        `clustering=RecordedClustering.from_published(run)`.

        Parameters
        ----------
        run : the run as read, or its `output` folder, with the errors of :func:`~llama_index.graphrag.read_parquet`;
            its text units must be the nodes of the index, with the same ids
            (:func:`~llama_index.graphrag.published_nodes`)
        """
        return run_steps(self._import_reports(run))

    async def aimport_reports(self, run: PublishedRun | str | Path) -> ImportedReports:
        """Like :meth:`import_reports`."""
        return await arun_steps(self._import_reports(run))

    def _import_reports(self, given: PublishedRun | str | Path) -> Steps[ImportedReports]:
        run = yield from offload(opened, given)
        counts: list[ImportedReports] = []

        def imported(state: GraphRAGState) -> Steps[GraphRAGState]:
            whole = yield from self.builder.parts.everything(state)
            units = [unit for unit in run.texts if unit in whole.graph.chunks]
            texts = yield from texts_of(units, self.storage.get_node)
            present = {unit for unit, text in texts.items() if text == run.texts[unit]}
            found, count = yield from offload(published_reports, run, whole.everything, present, whole.reports.keys())
            counts.append(count)
            return (yield from self.builder.keep_reports(whole.everything, found, state))

        yield from self.writer.revise(imported)
        return counts[-1]

    # -- costs --------------------------------------------------------------------------------------

    @classmethod
    def _with_all_texts(cls, config: GraphRAGConfig) -> GraphRAGConfig:
        return replace(config, reports="eager")

    @classmethod
    def _writing_work(
        cls,
        nodes: Sequence[BaseNode],
        extractor: NodeExtractor | None,
        summarizer: Summarizer | None,
        llm: LLM | None,
        config: GraphRAGConfig,
        assumed: Mapping[str, float],
    ) -> Estimate:
        if config.reports == "lazy" or summarizer is None or not summarizer.needs_llm:
            return Estimate()
        return work_of_reports(nodes, summarizer, llm, config)

    def estimate_question(self, question: str, **kwargs: Unpack[GraphRAGRetrieverKeywords]) -> QuestionCost:
        """What a question about the whole would cost with :class:`ReportMapReduce`, without calling an LLM.

        Parameters
        ----------
        question : the question; it is embedded, since the reports nearest to it are read
        kwargs : keywords of the retriever; `mode` is "global"

        Returns
        -------
        Calls and tokens, and the tokens of reading every chunk instead.

        Raises
        ------
        ConfigurationError
            For another mode, or with `rating_threshold` or `relevance_budget`: there the model's replies decide how
            much is asked.
        """
        return run_steps(self._estimate_question(question, {"mode": "global", **kwargs}))

    def _estimate_question(self, question: str, keywords: Mapping[str, Any]) -> Steps[QuestionCost]:
        retriever = GraphRAGRetriever(self, **{**keywords, "max_reports": 0})
        options = retriever.options
        if options.mode != "global" or {options.rating_threshold, options.published.relevance_budget} != {None}:
            raise ConfigurationError(
                'estimate_question counts the calls of mode="global" without rating_threshold and relevance_budget: '
                "with these, and in other modes, the model's replies decide how much is asked."
            )
        found = yield from retriever.search(question)
        corpus = yield from self._corpus_tokens()
        if found is None or found.cut is None:
            return QuestionCost(0, 0, 0, corpus)
        plans = [found.view.planner.plan(community) for community in found.cut.communities]
        writes = self.builder.reports.by_model
        known = found.view.known(self.writer.state.reports)
        missing = unwritten(plans, known) if writes and self.config.reports == "lazy" else []
        missing = missing[: keywords.get("max_reports", 20)]
        texts = [text for node in found.derived.values() for text, _ in node.metadata[FINDINGS_KEY]]
        llm = known_llm(self.resources.given_llm)
        unwritten_tokens = [size for plan in missing for size in self._report_prompts(plan, llm)]
        return question_cost(question, texts, corpus, unwritten_tokens, llm)

    def _report_prompts(self, plan: ReportPlan, llm: LLM | None) -> list[int]:
        """The tokens of the prompt or prompts that write a report."""
        summarizer = self.resources.summarizer or ReportWriter()
        read = plan.tokens + _NUMBER * len(plan.lines)
        calls = summarizer.estimate(read, len(plan.lines), self.config.report_tokens, llm).calls
        return [read // calls + count_tokens(REPORT_PROMPT.get_template())] * calls

    def _corpus_tokens(self) -> Steps[int]:
        """Tokens of the texts of all chunks."""
        if (yield from self.writer.recovered()).state.is_part:
            return self.storage.struct.counters.get("tokens", 0)
        texts = yield from texts_of(self.state.chunks.ids, self.storage.get_node)
        return sum(map(count_tokens, texts.values()))

    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        state = self.state if query is None else self.writer.state
        if query is not None:
            state, query = run_steps(self.builder.parts.drawn(state, query))
        view = state.view(selection.allowed(state.chunks)) if query is None else query.found.view
        shown = rows_to_show(view, query)
        return page_of(state, view, shown, run_steps(texts_of(shown.texts, self.storage.get_node)), query)


register_index(GraphRAGIndex)
