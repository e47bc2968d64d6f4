"""`GraphRAGBuilder`: keeps statements, names and reports up to date.

The order of a write, so that the remains of one that is killed can be repaired (:meth:`GraphRAGBuilder.load`): what
rests on removed chunks is deleted first, then new names are embedded, then pairs of names are judged where there is a
resolver. Communities are not stored: they are a function of the graph.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from llama_index.graphrag.chunk_reading import added_statements, chunk_statements, store_rewritten
from llama_index.graphrag.clustering.base import Clustering
from llama_index.graphrag.components import check_fixed, checked_clustering, maker_of
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.changes import changed, statement_graph
from llama_index.graphrag.graph.judgement import Judgements, judged_same
from llama_index.graphrag.graph.statement import ChunkStatements, bare, scoped
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.merging import EntityMerging
from llama_index.graphrag.report_maker import ReportMaker
from llama_index.graphrag.reports.planning import affected_reports, unwritten
from llama_index.graphrag.resolvers import EntityResolver
from llama_index.graphrag.state import GraphRAGState, GraphView, GraphViews, WrittenReport, name_id, names_of
from llama_index.ragkit import (
    Builder,
    Change,
    Failure,
    IndexStorage,
    Resources,
    SpaceRows,
    Steps,
    offload,
)
from llama_index.ragkit.errors import ConfigurationError, ExtractionError
from llama_index.ragkit.validation import check_component

__all__ = ["ENTITIES", "GraphRAGBuilder"]

logger = logging.getLogger(__name__)

ENTITIES = "entities"
REPORTS = "reports"


class GraphRAGBuilder(Builder[GraphRAGConfig, GraphRAGState]):
    """Updates what is derived from the records of the extractor.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.Builder`
    clustering : finds the communities; default :class:`~llama_index.graphrag.AgglomerativeClustering`
    resolver : judges which names of a document are one entity, beyond the rules on names; None for the rules alone

    Attributes
    ----------
    reports : has reports written

    Raises
    ------
    ConfigurationError
        If `partition_by` or `entity_vectors` is not that of the stored index, or for a resolver without
        `entity_vectors`, or that the stored index was built without.
    """

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        config: GraphRAGConfig,
        clustering: Clustering | None = None,
        resolver: EntityResolver | None = None,
    ) -> None:
        super().__init__(storage, resources, config)
        self._clustering = checked_clustering(clustering)
        check_fixed(storage.struct, config)
        self.reports = ReportMaker(storage, resources, config)
        self._resolver = resolver
        self._merging = None
        if resolver is not None:
            wanted = "a resolver of Graph RAG, such as CosineResolver() or LLMResolver()"
            check_component("resolver", resolver, EntityResolver, wanted, "graphrag")
            if not config.entity_vectors:
                raise ConfigurationError(
                    "A resolver compares vectors of names: pass entity_vectors=True with resolver=."
                )
            if len(storage.snapshot()) and "resolver" not in storage.struct.components:
                raise ConfigurationError(
                    "The index was built without a resolver. Leave resolver= out, or build a new index."
                )
            self._merging = EntityMerging(storage, resources, resolver)

    @property
    def summarizes(self) -> bool:
        """Whether reports are written with each write."""
        return self.config.reports == "eager"

    @property
    def fingerprints(self) -> Mapping[str, dict[str, str]]:
        """The fingerprints of clustering and resolver."""
        resolver = {} if self._resolver is None else {"resolver": self._resolver.fingerprint}
        return {"clustering": self._clustering.fingerprint, **resolver}

    @property
    def resolver(self) -> EntityResolver | None:
        """The resolver, if any."""
        return self._resolver

    def check_write(self) -> None:
        """Raise if the index was built with a resolver and has none."""
        stored = self.storage.struct.components.get("resolver")
        if stored and self._resolver is None:
            raise ConfigurationError(f"The index was built with the resolver {stored}. Pass resolver= of the build.")

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[GraphRAGState]:
        """The stored state, with the remains of a killed write removed."""
        entries = yield from self.storage.manifest.entries()
        chunks = self.storage.snapshot()
        graph = yield from offload(
            lambda: statement_graph(
                chunk_statements(
                    record.id,
                    record.key,
                    entries[record.id].record,
                    json.loads(record.metadata),
                    self.config.partition_by,
                )
                for record in chunks.records
                if record.id in entries
            )
        )
        judgements: Judgements = {}
        if self._merging is not None:
            judgements = yield from self._merging.load(graph)
            graph = (yield from offload(changed, graph, same=judged_same(judgements))).graph
        if self.config.entity_vectors:
            names = names_of(graph)
            space = self.storage.spaces[ENTITIES]
            yield from space.remove([row.id for row in space.store.snapshot().records if row.key not in names])
        stored = yield from self.storage.records.get_all(REPORTS)
        reports = {key: WrittenReport.from_record(stored[key]) for key in sorted(stored)}
        gone = [key for key, report in reports.items() if not graph.chunks.keys() >= set(report.nodes)]
        yield from self._delete_reports({key: reports.pop(key) for key in gone})
        return self._state(graph, reports, judgements)

    def apply(self, state: GraphRAGState, change: Change) -> Steps[GraphRAGState]:
        """Store what is derived from a change, and return the new state."""
        removed = yield from offload(changed, state.graph, list(change.removed))
        documents = {state.graph.chunks[i].document for i in change.removed if i in state.graph.chunks}
        judgements = yield from self._judged(removed.graph, state.judgements, documents, ask=False)
        yield from store_rewritten(self.storage, removed.rewritten)
        gone = affected_reports({key: written.nodes for key, written in state.reports.items()}, change.removed)
        yield from self._delete_reports({key: state.reports[key] for key in gone})
        reports = {key: written for key, written in state.reports.items() if key not in set(gone)}
        added = added_statements(change, self.config.partition_by)
        graph = (yield from offload(changed, removed.graph, (), added)).graph
        yield from self._remove_names(graph, [state.graph.chunks[i] for i in change.removed if i in state.graph.chunks])
        yield from self._add_names(added)
        written = {chunk.document for chunk in added}
        judgements = yield from self._judged(graph, judgements, written, ask=True)
        graph = yield from self._merged(graph, judgements, documents | written)
        new = self._state(graph, reports, judgements)
        if self.config.reports == "eager":
            new = yield from self.write_reports(new)
        self.storage.struct.counters.update(
            entities=len(graph.entities), relations=sum(map(len, graph.links.values())) // 2, reports=len(new.reports)
        )
        return new

    def _judged(
        self, graph: StatementGraph, known: Judgements, documents: Iterable[str], ask: bool
    ) -> Steps[Judgements]:
        return known if self._merging is None else (yield from self._merging.judge(graph, known, documents, ask))

    def _merged(self, graph: StatementGraph, judgements: Judgements, documents: Iterable[str]) -> Steps[StatementGraph]:
        """The graph with what was judged of some documents."""
        if self._merging is None:
            return graph
        same = {document: frozenset[tuple[str, str]]() for document in documents} | judged_same(
            {document: judgements[document] for document in documents if document in judgements}
        )
        return (yield from offload(changed, graph, same=same)).graph

    def _state(
        self, graph: StatementGraph, reports: Mapping[str, WrittenReport], judgements: Judgements
    ) -> GraphRAGState:
        views = GraphViews(GraphView(graph, self._clustering, self.config, maker_of(self.resources)))
        return GraphRAGState(
            self.storage.snapshot(), self.storage.snapshot(ENTITIES), views, dict(reports), judgements=judgements
        )

    # -- names --------------------------------------------------------------------------------------

    def _remove_names(self, graph: StatementGraph, removed: Sequence[ChunkStatements]) -> Steps[None]:
        """Delete the rows of names that no chunk states any more."""
        if not self.config.entity_vectors:
            return
        before = {scoped(chunk.scope, name) for chunk in removed for name, _ in chunk.typed_names}
        if before - graph.entities.keys():
            yield from self.storage.spaces[ENTITIES].remove(map(name_id, sorted(before - names_of(graph))))

    def _add_names(self, added: Sequence[ChunkStatements]) -> Steps[None]:
        """Embed new names."""
        rows = self.storage.snapshot(ENTITIES)
        named = dict.fromkeys(scoped(chunk.scope, name) for chunk in added for name, _ in chunk.typed_names)
        new = sorted(name for name in named if name_id(name) not in rows)
        if new and self.config.entity_vectors:
            ids = [name_id(name) for name in new]
            texts = list(dict.fromkeys(map(bare, new)))
            vectors = yield from self.resources.embed(texts, "entities")
            row_of = {text: row for row, text in enumerate(texts)}
            yield from self.storage.spaces[ENTITIES].put(
                SpaceRows(ids, vectors[[row_of[bare(name)] for name in new]], new, ids)
            )

    # -- reports ------------------------------------------------------------------------------------

    def write_reports(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """Write all reports that are missing, and delete those of communities that no longer exist."""
        if not self.reports.by_model:
            return state
        plans = yield from offload(state.everything.plans)
        keys = {plan.key for plan in plans}
        yield from self._delete_reports({key: w for key, w in state.reports.items() if key not in keys})
        state = replace(state, reports={key: w for key, w in state.reports.items() if key in keys})
        written, failed = yield from self.reports.make(state, state.everything, unwritten(plans, state.reports))
        state = yield from self.keep_reports(state, written)
        if failed:
            key, reason = next(iter(failed.items()))
            logger.warning("%d of %d reports failed. The first: %s", len(failed), len(keys), reason)
            if self.resources.on_error == "raise":
                raise ExtractionError(f"The report {key} failed: {reason}")
        return replace(state, failed=failed)

    def keep_reports(self, state: GraphRAGState, written: Mapping[str, WrittenReport]) -> Steps[GraphRAGState]:
        """Store reports, save those that rest on chunks that were removed meanwhile."""
        valid = {key: w for key, w in written.items() if state.graph.chunks.keys() >= set(w.nodes)}
        yield from self.reports.release({key: w for key, w in written.items() if key not in valid})
        yield from self.storage.records.put(REPORTS, [(key, w.record()) for key, w in valid.items()])
        self.storage.struct.counters["reports"] = len({**state.reports, **valid})
        return replace(state, reports={**state.reports, **valid})

    def _delete_reports(self, reports: Mapping[str, WrittenReport]) -> Steps[None]:
        yield from self.storage.records.delete(REPORTS, reports)
        yield from self.reports.release(reports)

    def retry(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """Judge the pairs of names that wait, and write the missing reports."""
        documents = [d for d, given in state.judgements.items() if any(j.same is None for j in given)]
        if documents:
            judgements = yield from self._judged(state.graph, state.judgements, documents, ask=True)
            graph = yield from self._merged(state.graph, judgements, documents)
            state = self._state(graph, state.reports, judgements)
        return (yield from self.write_reports(state))

    def failures(self, state: GraphRAGState) -> list[Failure]:
        """The pairs of names without a judgement, and the reports that could not be written."""
        reports = [Failure(key, "report", reason) for key, reason in state.failed.items()]
        return [*EntityMerging.failures(state.judgements), *reports]
