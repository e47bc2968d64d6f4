"""The builder of the pseudo-graph: updates the cells of mind maps and the super nodes over topics and facts."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from llama_index.pgrag.changed_facts import cells_of, facts_after, facts_of, report_unverified
from llama_index.pgrag.config import PGRAGConfig
from llama_index.pgrag.fusion.super_nodes import SuperNodes, restore, update
from llama_index.pgrag.state import KINDS, PseudoGraph, with_facts
from llama_index.ragkit import Builder, Change, SpaceRows, Steps, as_matrix, offload

__all__ = ["PseudoGraphBuilder"]

_FUSED = ("topics", "facts")  # the kinds of cells that have super nodes


class PseudoGraphBuilder(Builder[PGRAGConfig, PseudoGraph]):
    """Keeps the stored cells and super nodes consistent with the mind maps in the records."""

    # -- changing -----------------------------------------------------------------------------------

    def apply(self, state: PseudoGraph, change: Change) -> Steps[PseudoGraph]:
        """Return the graph after a write, and store its derived rows."""
        graph = yield from self._changed(state, change)
        self.storage.struct.counters.update(
            topics=len(graph.topics),
            facts=len(graph.facts),
            super_topics=sum(map(len, graph.super_topics.groups.values())),
            super_facts=sum(map(len, graph.super_facts.groups.values())),
        )
        report_unverified(change)
        return graph

    def _changed(self, old: PseudoGraph, change: Change) -> Steps[PseudoGraph]:
        new = yield from facts_after(change, self.storage, self.resources)
        graph, dropped = with_facts(old, new, change.removed)
        for kind in KINDS:  # delete removed rows before embedding new ones
            yield from self.storage.spaces[kind].remove(dropped[kind])
        added = yield from self._embed_new(graph, {fact.topic_id for facts in new.values() for fact in facts})
        super_nodes = {}
        for kind, known in (("topics", old.super_topics), ("facts", old.super_facts)):
            rows = self.storage.snapshot(kind)
            super_nodes[kind], changed = yield from offload(update, known, rows, added[kind], set(dropped[kind]))
            yield from self._store_super_nodes(kind, changed, dropped[kind])
        return self._with_rows(graph, super_nodes)

    def _embed_new(self, graph: PseudoGraph, topic_ids: Iterable[str]) -> Steps[dict[str, list[str]]]:
        """Embed and store the cells that have no row yet, embedding each text once; returns their ids by kind."""
        stored = {kind: self.storage.snapshot(kind) for kind in KINDS}
        cells = cells_of(graph.maps, topic_ids)
        new = {kind: {i: cell for i, cell in cells[kind].items() if i not in stored[kind]} for kind in KINDS}
        distinct = sorted({cell.text for kind in KINDS for cell in new[kind].values()})
        if distinct:
            vectors = yield from self.resources.embed(distinct, "topics and facts")
            as_matrix(list(vectors), distinct, self.storage.struct.embedding["dimension"])
            place = {text: i for i, text in enumerate(distinct)}
            for kind in KINDS:
                ids, of_kind = list(new[kind]), list(new[kind].values())
                matrix = vectors[[place[cell.text] for cell in of_kind]]
                metadatas = [cell.metadata for cell in of_kind]
                rows = SpaceRows(ids, matrix, [cell.key for cell in of_kind], ids, metadatas)
                yield from self.storage.spaces[kind].put(rows)
        return {kind: list(new[kind]) for kind in KINDS}

    def _store_super_nodes(self, kind: str, changed: Mapping[str, str], removed: Iterable[str]) -> Steps[None]:
        records = self.storage.records
        yield from records.put(_collection(kind), [(row_id, {"c": name}) for row_id, name in changed.items()])
        yield from records.delete(_collection(kind), removed)

    # -- reading ------------------------------------------------------------------------------------

    def load(self) -> Steps[PseudoGraph]:
        """Load the graph from records and spaces; rows left by an interrupted write are deleted."""
        spaces = self.storage.spaces
        rows = {kind: self.storage.snapshot(kind) for kind in KINDS}
        chunks = self.storage.snapshot()
        entries = yield from self.storage.manifest.entries()
        read = {i: entry for i, entry in entries.items() if entry.record is not None and i in chunks}
        stored = facts_of(read, read)
        graph, _ = with_facts(self._empty(), stored, ())
        complete = {
            fact.id
            for found in graph.maps.values()
            for fact in found.facts
            if all(cell in rows[kind] for kind, cell in found.cells(fact))
        }
        if len(complete) < len(graph.map_of):
            kept = {i: tuple(fact for fact in facts if fact.id in complete) for i, facts in stored.items()}
            graph, _ = with_facts(self._empty(), kept, ())
        routes = {route_id for found in graph.maps.values() for route_id in found.routes}
        wanted: dict[str, Collection[str]] = {"topics": graph.maps, "routes": routes, "facts": graph.map_of}
        for kind in KINDS:
            yield from spaces[kind].remove([row_id for row_id in rows[kind].ids if row_id not in wanted[kind]])
        super_nodes = {}
        for kind in _FUSED:
            labels = {i: r["c"] for i, r in (yield from self.storage.records.get_all(_collection(kind))).items()}
            empty: SuperNodes = getattr(graph, f"super_{kind}")
            super_nodes[kind], changed, removed = yield from offload(
                restore, labels, self.storage.snapshot(kind), empty.threshold, empty.fusion
            )
            yield from self._store_super_nodes(kind, changed, removed)
        return self._with_rows(graph, super_nodes)

    def _empty(self) -> PseudoGraph:
        config = self.config
        topics, facts = (SuperNodes(least, config.fusion) for least in (config.topic_threshold, config.fact_threshold))
        return PseudoGraph(super_topics=topics, super_facts=facts)

    def _with_rows(self, graph: PseudoGraph, super_nodes: Mapping[str, SuperNodes]) -> PseudoGraph:
        """The graph with these super nodes and the current rows of all spaces."""
        rows = {name: self.storage.snapshot(name) for name in ("chunks", *KINDS)}
        return replace(
            graph,
            chunks=rows["chunks"],
            topics=rows["topics"],
            routes=rows["routes"],
            facts=rows["facts"],
            super_topics=super_nodes["topics"],
            super_facts=super_nodes["facts"],
        )


def _collection(kind: str) -> str:
    return f"super_{kind}"
