"""`GraphRAGBuilder`: keeps statements, names and reports up to date.

A write has a fixed order, so that the remains of a killed write can be repaired (:meth:`GraphRAGBuilder.load`): data
that rest on removed chunks are deleted first, then new names are embedded, then pairs of names are judged if there is a
resolver. Communities are a function of the graph. They are stored if no state in memory has the whole graph.
"""

import json
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.graphrag.clustering.agglomerative import AgglomerativeClustering
from llama_index.graphrag.clustering.hierarchy import Clustering
from llama_index.graphrag.community_rows import CommunityRows
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.entity_graph import pack_graph, unpack_graph
from llama_index.graphrag.graph.resolution import Judgements, judged_same
from llama_index.graphrag.graph.statement import ChunkStatements, bare, scoped
from llama_index.graphrag.graph.statement_edges import Resolved
from llama_index.graphrag.graph.statement_graph import GraphChange, StatementGraph, Touched, changed, statement_graph
from llama_index.graphrag.graph_parts import ENTITIES, GraphParts
from llama_index.graphrag.reporter import ReportMaker
from llama_index.graphrag.reports.planning import unwritten
from llama_index.graphrag.resolvers import EntityMerging, EntityResolver
from llama_index.graphrag.state import NEAREST, GraphRAGState, GraphView, WrittenReport, name_id, names_of
from llama_index.graphrag.statement_rows import StatementRows, chunk_statements, store_rewritten
from llama_index.ragkit import Builder, Change, Failure, Selection, Snapshot, SpaceRows, Steps, offload
from llama_index.ragkit.errors import ConfigurationError, ExtractionError
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import plain_text, sort_key
from llama_index.ragkit.storage.stored_chunks import ChunkView
from llama_index.ragkit.text.layered_mapping import with_changes
from llama_index.ragkit.text.packed_words import PackedMapping
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import check_component

__all__ = ["GraphRAGBuilder"]

logger = logging.getLogger(__name__)


class _Part(NamedTuple):
    """The statements and judgements that a write reads, and, if they are rows, the tokens of the text of each chunk."""

    graph: StatementGraph
    judgements: Judgements
    tokens: Mapping[str, int]


class GraphRAGBuilder(Builder[GraphRAGConfig, GraphRAGState]):
    """Updates the graph, the names and the reports that follow from the records of the extractor.

    If a state in memory has all statements, they follow from these records. Otherwise they are also stored as rows,
    which a write changes by exact sums and differences. `parts` reads the parts of all these that questions need.

    Raises
    ------
    ConfigurationError
        If `partition_by` or `entity_vectors` is not that of the stored index, or a resolver is given without
        `entity_vectors` or for an index that was built without one.
    """

    spaces: ClassVar[tuple[str, ...]] = ("chunks", ENTITIES)
    waits_for_all: ClassVar[bool] = True

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        config: GraphRAGConfig,
        clustering: Clustering | None = None,
        resolver: EntityResolver | None = None,
    ) -> None:
        super().__init__(storage, resources, config)
        wanted = "a clustering of Graph RAG, such as AgglomerativeClustering() or LeidenClustering()"
        chosen = AgglomerativeClustering() if clustering is None else clustering
        self._clustering: Clustering = check_component(
            "clustering", chosen, ("cluster", "fingerprint"), wanted, "graphrag"
        )
        self._check_fixed()
        self.reports = ReportMaker(storage, resources, config)
        self.resolver = resolver
        self._merging = None
        if resolver is not None:
            wanted = "a resolver of Graph RAG, such as CosineResolver() or LLMResolver()"
            check_component("resolver", resolver, EntityResolver, wanted, "graphrag")
            if not config.entity_vectors:
                raise ConfigurationError(
                    "A resolver compares vectors of names: pass entity_vectors=True with resolver=."
                )
            if not storage.is_empty and "resolver" not in storage.struct.components:
                raise ConfigurationError(
                    "The index was built without a resolver. Leave resolver= out, or build a new index."
                )
            self._merging = EntityMerging(storage, resources, resolver)
        self.rows = StatementRows(storage.stores.graph(), storage.records, config.entity_vectors)
        self.communities = CommunityRows(storage.records)
        self.parts = GraphParts(storage, self.rows, self.communities, self._merging)

    def _check_fixed(self) -> None:
        """Check that the parameters that cannot be changed are those of the stored index."""
        stored = self.storage.struct.parameters_of("graphrag")
        for name in ("partition_by", "entity_vectors"):
            if stored and stored.get(name) != getattr(self.config, name):
                raise ConfigurationError(
                    f"The index was built with {name}={stored.get(name)!r}, not {getattr(self.config, name)!r}. "
                    "Leave it out, or build a new index."
                )

    @property
    def summarizes(self) -> bool:
        """Whether reports are written with each write."""
        return self.config.reports == "eager"

    @property
    def fingerprints(self) -> Mapping[str, dict[str, str]]:
        """The fingerprints of clustering and resolver."""
        resolver = {} if self.resolver is None else {"resolver": self.resolver.fingerprint}
        return {"clustering": self._clustering.fingerprint, **resolver}

    def check_write(self) -> None:
        """Raise if the index was built with a resolver and has none."""
        stored = self.storage.struct.components.get("resolver")
        if stored and self.resolver is None:
            raise ConfigurationError(f"The index was built with the resolver {stored}. Pass the same resolver=.")

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[GraphRAGState]:
        """The whole index if it is in memory, without the remains of a killed write; else an empty state."""
        chunks = self.storage.space().whole()
        if chunks is None:
            return self._nothing()
        entries = yield from self.storage.manifest.entries()
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
            names, space = names_of(graph), self.storage.space(ENTITIES)
            stored = yield from space.described()
            yield from space.remove([row.id for row in stored.records if row.key not in names])
        reports = yield from self.communities.all_reports()
        gone = {key for key, report in reports.items() if not graph.chunks.keys() >= set(report.nodes)}
        yield from self.reports.release((yield from self.communities.delete_reports(gone)))
        reports = {key: report for key, report in reports.items() if key not in gone}
        self.storage.struct.counters["reports"] = len(reports)
        yield from self.communities.note_repairs(reports)
        return self._changed(self._nothing(), graph, Touched.of(()), reports, judgements)

    def arrays_of(self, state: GraphRAGState) -> Arrays:
        """The statements and the written reports; none with judgements."""
        if state.is_part or state.judgements:
            return {}
        graph = pack_graph(state.graph, state.everything.arrays)
        return nested({"graph": graph, "reports": PackedMapping.to_arrays(state.reports, WrittenReport.record)})

    def load_arrays(self, arrays: Arrays) -> GraphRAGState | None:
        """The state of :meth:`arrays_of`, of which objects are made when they are asked for."""
        graph, found = unpack_graph(part_of(arrays, "graph"))
        reports = PackedMapping.of_arrays(
            part_of(arrays, "reports"), lambda _, record: WrittenReport.from_record(record)
        )
        self.storage.struct.counters["reports"] = len(reports)
        view = self._view(graph).over(found)
        return GraphRAGState(self.storage.snapshot(), self.storage.snapshot(ENTITIES), view, reports)

    def _nothing(self) -> GraphRAGState:
        """An empty part of the index."""
        view = replace(self._view(StatementGraph()), whole=False)
        return GraphRAGState(Snapshot.empty(), Snapshot.empty(), view, is_part=True)

    def _view(self, graph: StatementGraph) -> GraphView:
        summarizer = self.resources.summarizer
        maker = "" if summarizer is None else json.dumps(summarizer.fingerprint, sort_keys=True)
        return GraphView(graph, self._clustering, self.config, maker)

    def _changed(
        self,
        state: GraphRAGState,
        graph: StatementGraph,
        touched: Touched,
        reports: Mapping[str, WrittenReport | None],
        judgements: Judgements,
        forget: bool = False,
    ) -> GraphRAGState:
        """The state after a write, which may have removed names, if the whole index is in memory, else that before."""
        chunks, entities = self.storage.space().whole(), self.storage.space(ENTITIES).whole()
        if chunks is None or entities is None:
            return state
        view = self._view(graph).following(state.everything, touched)
        view = view.without_earlier() if forget else view
        return GraphRAGState(chunks, entities, view, with_changes(state.reports, reports), judgements=judgements)

    def apply(self, state: GraphRAGState, change: Change) -> Steps[GraphRAGState]:
        """Store everything that follows from a change, and return the new state."""
        by = self.config.partition_by
        added = [
            chunk_statements(node.node_id, sort_key(node), change.records.get(node.node_id), node.metadata, by)
            for node in change.added
        ]
        part = yield from self._part(state, self.rows.around(change.removed, added))
        again = [chunk.chunk_id for chunk in added if part.graph.chunks.get(chunk.chunk_id, chunk) != chunk]
        gone = [part.graph.chunks[i] for i in dict.fromkeys([*change.removed, *again]) if i in part.graph.chunks]
        removed = yield from offload(changed, part.graph, list(change.removed))
        documents = {chunk.document for chunk in gone}
        judgements = yield from self._judged(removed.graph, part.judgements, documents, ask=False)
        yield from store_rewritten(self.storage, removed.rewritten)
        reports = yield from self.communities.delete_reports_on([chunk.chunk_id for chunk in gone])
        self.storage.struct.count(reports=-len(reports))
        yield from self.reports.release(reports)
        yield from self.communities.outdate(bool(gone))
        grown = yield from offload(changed, removed.graph, (), added)
        graph = grown.graph
        yield from self._remove_names(state, graph, gone, added)
        yield from self._add_names(added)
        written = {chunk.document for chunk in added}
        judgements = yield from self._judged(graph, judgements, written, ask=True)
        merged = yield from self._merged(graph, judgements, documents | written)
        yield from self._store(state, part, merged.graph, change.added)
        touched = Touched.of([removed.touched, grown.touched, merged.touched])
        new = self._changed(state, merged.graph, touched, dict.fromkeys(reports), judgements, forget=bool(gone))
        return (yield from self.write_reports(new)) if self.summarizes and not change.more else new

    def _part(self, state: GraphRAGState, reading: Steps[dict[str, Resolved]]) -> Steps[_Part]:
        """The statements that a write needs: all of them if they are in memory, or those that it reads."""
        if not state.is_part:
            return _Part(state.graph, state.judgements, {})
        rows = (yield from reading).values()
        chunks = [each.chunk for each in rows]
        judgements: Judgements = {}
        if self._merging is not None:
            judgements = yield from self._merging.of(chunk.document for chunk in chunks)
        graph = yield from offload(statement_graph, chunks, judged_same(judgements))
        return _Part(graph, judgements, {each.chunk.chunk_id: each.tokens for each in rows})

    def _store(
        self, state: GraphRAGState, part: _Part, graph: StatementGraph, added: Sequence[BaseNode] = ()
    ) -> Steps[None]:
        """Count statements, and store them as rows if no state has all of them."""
        struct = self.storage.struct
        if state.is_part:
            tokens = yield from offload(lambda: {node.node_id: count_tokens(plain_text(node)) for node in added})
            struct.count(tokens=(yield from self.rows.change(part.graph, graph, part.tokens, tokens)))
        else:
            struct.counters.update(entities=len(graph.entities), relations=graph.relations)

    # -- names --------------------------------------------------------------------------------------

    def _judged(
        self, graph: StatementGraph, known: Judgements, documents: Iterable[str], ask: bool
    ) -> Steps[Judgements]:
        return known if self._merging is None else (yield from self._merging.judge(graph, known, documents, ask))

    def _merged(self, graph: StatementGraph, judgements: Judgements, documents: Iterable[str]) -> Steps[GraphChange]:
        """The graph with the judgements on some documents."""
        if self._merging is None:
            return GraphChange(graph)
        same = {document: frozenset[tuple[str, str]]() for document in documents} | judged_same(
            {document: judgements[document] for document in documents if document in judgements}
        )
        return (yield from offload(changed, graph, same=same))

    def _remove_names(
        self,
        state: GraphRAGState,
        graph: StatementGraph,
        gone: Sequence[ChunkStatements],
        added: Iterable[ChunkStatements],
    ) -> Steps[None]:
        """Delete the vectors of names that no chunk states any longer."""
        if not self.config.entity_vectors:
            return
        lost = Counter(name for chunk in gone for name in _names_in([chunk]))
        for name in _names_in(added) | graph.entities.keys() & lost.keys():
            lost.pop(name, None)
        if lost:
            stated = (yield from self.rows.still_stated(lost)) if state.is_part else names_of(graph)
            yield from self.storage.space(ENTITIES).remove(map(name_id, sorted(lost.keys() - stated)))

    def _add_names(self, added: Sequence[ChunkStatements]) -> Steps[None]:
        """Embed new names."""
        if not self.config.entity_vectors:
            return
        names, space = sorted(_names_in(added)), self.storage.space(ENTITIES)
        known = yield from space.described(map(name_id, names))
        new = [name for name in names if name_id(name) not in known]
        if new:
            ids, texts = [name_id(name) for name in new], list(dict.fromkeys(map(bare, new)))
            vectors = yield from self.resources.embed(texts, ENTITIES)
            row_of = {text: row for row, text in enumerate(texts)}
            yield from space.put(SpaceRows(ids, vectors[[row_of[bare(name)] for name in new]], new, ids))

    # -- communities and reports ----------------------------------------------------------------------

    def need_communities(self, state: GraphRAGState) -> Steps[bool]:
        """Whether communities must be found before a question about the whole, since no state in memory has them."""
        if not state.is_part:
            return False
        current = yield from self.communities.current()
        return current is None or bool(current["stale"])

    def find_communities(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """Find the communities of all statements and store them; all statements are in memory meanwhile."""
        view = self._view((yield from self.rows.everything()))
        gone = yield from self.communities.replace(view, self.reports.by_model)
        yield from self.reports.release(gone)
        self.storage.struct.count(reports=-len(gone))
        self.storage.struct.counters.update(
            entities=len(view.graph.entities), relations=view.graph.relations, communities=len(view.hierarchy)
        )
        return state

    def write_reports(self, state: GraphRAGState, again: Collection[str] = ()) -> Steps[GraphRAGState]:
        """Write all missing reports and those of the keys `again`, and delete those of communities that are gone.

        Communities are found if a write has changed them.
        """
        if (yield from self.need_communities(state)):
            state = yield from self.find_communities(state)
        if not self.reports.by_model:
            return state
        view = yield from self.parts.communities(state, None)
        yield from view.load(range(len((yield from offload(lambda: view.hierarchy)))))
        plans = yield from offload(view.plans)
        keys = {plan.key for plan in plans}
        gone = yield from self.communities.delete_reports((yield from self.communities.sizes()).keys() - keys)
        yield from self.reports.release(gone)
        self.storage.struct.count(reports=-len(gone))
        state = self._with_reports(state, dict.fromkeys(gone))
        known = view.known(state.reports).difference(again)
        written, failed = yield from self.reports.make(state, view, unwritten(plans, known))
        state = yield from self._put_reports(state, written)
        if failed:
            key, reason = next(iter(failed.items()))
            if not self.resources.falls_back:  # otherwise the fallback is already reported
                logger.warning("%d of %d reports failed. The first: %s", len(failed), len(keys), reason)
            if self.resources.on_error == "raise":
                raise ExtractionError(f"The report {key} failed: {reason}")
        return replace(state, failed=failed)

    def derive_waiting(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """Write the reports that were left to the last of several writes, with `reports="eager"`."""
        return (yield from self.write_reports(state)) if self.summarizes else state

    def keep_reports(
        self, view: GraphView, written: Mapping[str, WrittenReport], state: GraphRAGState
    ) -> Steps[GraphRAGState]:
        """Store reports on the communities of `view`, except those on chunks that were removed meanwhile."""
        kept = yield from self.parts.still_there(state, view, written)
        yield from self.reports.release({key: report for key, report in written.items() if key not in kept})
        return (yield from self._put_reports(state, kept))

    def _put_reports(self, state: GraphRAGState, written: Mapping[str, WrittenReport]) -> Steps[GraphRAGState]:
        known = yield from self.communities.reports(sorted(written))
        yield from self.communities.put_reports(written)
        self.storage.struct.count(reports=len(written.keys() - known.keys()))
        return self._with_reports(state, written)

    def _with_reports(self, state: GraphRAGState, reports: Mapping[str, WrittenReport | None]) -> GraphRAGState:
        """The state with some reports changed, if it has reports; None removes one."""
        return state if state.is_part else replace(state, reports=with_changes(state.reports, reports))

    # -- failures -------------------------------------------------------------------------------------

    def retry(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """Judge the waiting pairs of names, and write the reports that are missing or made of statements instead."""
        waiting = [d for d, given in (yield from self._judgements(state)).items() if any(j.same is None for j in given)]
        if waiting:
            part = yield from self._part(state, self.rows.of_documents(waiting))
            judgements = yield from self._judged(part.graph, part.judgements, waiting, ask=True)
            merged = yield from self._merged(part.graph, judgements, waiting)
            yield from self._store(state, part, merged.graph)
            yield from self.communities.outdate(False)
            state = self._changed(state, merged.graph, merged.touched, {}, judgements)
        return (yield from self.write_reports(state, (yield from self.communities.by_rules())))

    def failures(self, state: GraphRAGState) -> list[Failure]:
        """The pairs of names without a judgement, the reports that failed, and those made of statements instead."""
        by_rules = run_steps(self.communities.by_rules())
        reports = [Failure(key, "report", reason) for key, reason in state.failed.items() if key not in by_rules]
        reports += [Failure(key, "report", reason, "extract") for key, reason in by_rules.items()]
        return [*EntityMerging.failures(run_steps(self._judgements(state))), *reports]

    def _judgements(self, state: GraphRAGState) -> Steps[Judgements]:
        return (yield from self._merging.all()) if state.is_part and self._merging else state.judgements

    # -- questions to an index served from stores -----------------------------------------------------

    def view(self, question: str, vector: NDArray[np.float32], wanted: int, selection: Selection) -> Steps[Any]:
        """The contents for a question, with enough chunks that the entities of the nearest are known."""
        return (yield from super().view(question, vector, max(NEAREST, wanted), selection))

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[GraphRAGState]:
        """The state of the chunks near to a question; if only given chunks count, with all that they state."""
        state = replace(self._nothing(), chunks=near.rows)
        return state if selection.only is None else (yield from self.parts.all_of(state))


def _names_in(chunks: Iterable[ChunkStatements]) -> set[str]:
    """The normalised names that chunks state, each within its scope."""
    return {scoped(chunk.scope, name) for chunk in chunks for name, _ in chunk.typed_names}
