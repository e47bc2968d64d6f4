"""The builder of the pseudo-graph: updates the cells of mind maps and the super nodes over topics and facts."""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from llama_index.pgrag.config import PGRAGConfig
from llama_index.pgrag.fusion.super_nodes import SuperNodes, restore, update
from llama_index.pgrag.maps.mind_map import path_text
from llama_index.pgrag.records import from_record, is_unverified, lost_texts, without_texts
from llama_index.pgrag.state import KINDS, FactPath, PseudoGraph, fact_paths, with_facts
from llama_index.ragkit import Builder, Change, SpaceRows, Steps, as_matrix, offload

__all__ = ["PseudoGraphBuilder"]

logger = logging.getLogger(__name__)

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
        unverified = [node_id for node_id, record in change.records.items() if is_unverified(record)]
        if unverified:
            logger.warning(
                "Nodes whose statements failed verification against the text in every attempt: %d, such as %s. The "
                "best attempts were kept; index.unverified() lists the nodes.",
                len(unverified), unverified[0],
            )  # fmt: skip
        return graph

    def _changed(self, old: PseudoGraph, change: Change) -> Steps[PseudoGraph]:
        entries = yield from self.storage.manifest.entries_of(node.node_id for node in change.added)
        records = {node_id: change.records.get(node_id, {}) for node_id in entries}
        reduced = yield from self._reduced(change)
        entries.update(reduced)
        records.update({node_id: entry.record or {} for node_id, entry in reduced.items()})
        new = {
            node_id: fact_paths(node_id, entry.ref_doc_id, entry.key, from_record(records[node_id])[1])
            for node_id, entry in entries.items()
        }
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

    def _reduced(self, change: Change) -> Steps[dict[str, Any]]:
        """Take from the facts of other nodes what they have from nodes that are gone, in the stored entries too.

        Nodes of a document are read together, so that a cell can hold words of another node's text. Replies in the
        cache that were about both are released.
        """
        manifest = self.storage.manifest
        gone = set(change.removed) - {node.node_id for node in change.added}
        touched = yield from manifest.entries_of([*change.removed, *change.repeated])
        found: dict[str, Any] = {}  # manifest entries
        unused: dict[str, list[str]] = {}
        for document in sorted({entry.ref_doc_id for entry in touched.values() if entry.ref_doc_id}):
            node_ids = (yield from manifest.nodes_of(document)) or []
            entries = yield from manifest.entries_of(i for i in node_ids if i not in gone)
            records = {i: entry.record for i, entry in entries.items() if entry.record}
            for node_id, texts in lost_texts(records).items():
                entry = entries[node_id]
                unused[self.storage.cache_user(node_id)] = entry.cache_keys
                found[node_id] = replace(entry, record=without_texts(records[node_id], texts), cache_keys=[])
        if found:
            yield from manifest.add(found, {})
            yield from self.resources.release(unused)
        return found

    def _embed_new(self, graph: PseudoGraph, topic_ids: Iterable[str]) -> Steps[dict[str, list[str]]]:
        """Embed and store the cells that have no row yet, embedding each text once; returns their ids by kind."""
        stored = {kind: self.storage.snapshot(kind) for kind in KINDS}
        cells: dict[str, dict[str, _Cell]] = {kind: {} for kind in KINDS}
        for topic_id in sorted(topic_ids):
            found = graph.maps[topic_id]
            cells["topics"][topic_id] = _Cell(found.topic, found.key)
            cells["routes"].update((i, _Cell(path_text(path), found.key)) for i, path in sorted(found.routes.items()))
            for fact in found.facts:
                cells["facts"][fact.id] = _Cell(fact.text, fact.key, {"node": fact.node_id, "topic": topic_id})
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
        stored: dict[str, list[FactPath]] = {}
        for node_id, entry in (yield from self.storage.manifest.entries()).items():
            if entry.record is not None and node_id in chunks:
                paths = from_record(entry.record)[1]
                stored[node_id] = list(fact_paths(node_id, entry.ref_doc_id, entry.key, paths))
        graph, _ = with_facts(self._empty(), stored, ())
        complete = {
            fact.id
            for found in graph.maps.values()
            for fact in found.facts
            if all(cell in rows[kind] for kind, cell in found.cells(fact))
        }
        if len(complete) < len(graph.map_of):
            kept = {node_id: [fact for fact in facts if fact.id in complete] for node_id, facts in stored.items()}
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


@dataclass(frozen=True)
class _Cell:
    text: str
    key: str
    metadata: dict[str, Any] = field(default_factory=dict)


def _collection(kind: str) -> str:
    return f"super_{kind}"
