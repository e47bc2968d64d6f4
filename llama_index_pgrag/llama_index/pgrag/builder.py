"""The builder of PG-RAG: keeps the cells of mind maps, their super nodes and their names."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.changed_facts import MapCell, cells_of, facts_after, facts_of, report_unverified
from llama_index.pgrag.config import PGRAGConfig
from llama_index.pgrag.fusion.super_nodes import SuperNodes
from llama_index.pgrag.fusion_rows import FusionRows
from llama_index.pgrag.map_rows import MapRows
from llama_index.pgrag.map_view import MapView
from llama_index.pgrag.records import from_record
from llama_index.pgrag.state import KINDS, PseudoGraph, fact_paths, maps_of
from llama_index.ragkit import Builder, Change, Selection, Snapshot, SpaceRows, Steps
from llama_index.ragkit.errors import HalfWrittenError
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.llm.embeddings import as_matrix
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import sort_key
from llama_index.ragkit.storage.stored_chunks import ChunkView
from llama_index.ragkit.vectors.row_buffer import Record

__all__ = ["MapBuilder"]

Cells = Mapping[str, Mapping[str, MapCell]]
"""Cells by kind, then by id."""


class MapBuilder(Builder[PGRAGConfig, PseudoGraph]):
    """Keeps the vectors of the cells, the super nodes over them, and the rows by which parts of the maps are found.

    What a write reads and changes are the maps of its nodes, the super nodes that it touches, and the nodes that
    mention a topic which comes or goes.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.Builder`

    Attributes
    ----------
    maps : reads of the maps what questions need
    """

    spaces: ClassVar[tuple[str, ...]] = ("chunks", *KINDS)
    few: ClassVar[int] = 200  # which have some thousand facts

    def __init__(self, storage: IndexStorage, resources: Resources, config: PGRAGConfig) -> None:
        super().__init__(storage, resources, config)
        self._rows = MapRows(storage)
        thresholds = {"topics": config.topic_threshold, "facts": config.fact_threshold}
        self._fusions = {
            kind: FusionRows(kind, storage, SuperNodes(least, config.fusion)) for kind, least in thresholds.items()
        }
        self.maps = MapView(storage, self._rows, self._fusions)
        self._ready: dict[str, NDArray[np.float32]] = {}  # vectors by text
        # kind -> text -> stored rows that it may share a super node with
        self._linked: dict[str, dict[str, set[str]]] = {}

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[PseudoGraph]:
        """All of the index where it is in memory, else nothing; rows that a write has left which ended early are
        deleted.
        """
        rows = self._vectors()
        if rows is None:
            return PseudoGraph()
        entries = yield from self.storage.manifest.entries()
        read = {i: entry for i, entry in entries.items() if entry.record is not None and i in rows["chunks"]}
        stored = facts_of(read, read)
        graph = PseudoGraph.of(stored)
        complete = {
            fact.id
            for found in graph.maps.values()
            for fact in found.facts
            if all(cell in rows[kind] for kind, cell in found.cells(fact))
        }
        if len(complete) < len(graph.map_of):
            graph = PseudoGraph.of({i: tuple(f for f in facts if f.id in complete) for i, facts in stored.items()})
        routes = {route_id for found in graph.maps.values() for route_id in found.routes}
        wanted: dict[str, Collection[str]] = {"topics": graph.maps, "routes": routes, "facts": graph.map_of}
        for kind in KINDS:
            yield from self.storage.space(kind).remove([i for i in rows[kind].ids if i not in wanted[kind]])
        rows = self._vectors() or rows
        topics = yield from self._fusions["topics"].restored(rows["topics"])
        facts = yield from self._fusions["facts"].restored(rows["facts"])
        whole = graph.over(rows, topics, facts)
        self.storage.struct.counters.update(whole.counts)
        return whole

    def _vectors(self) -> dict[str, Snapshot] | None:
        """Those of all chunks and cells by the names of their spaces, where they are in memory."""
        rows = {name: self.storage.space(name).whole() for name in self.spaces}
        found = {name: snapshot for name, snapshot in rows.items() if snapshot is not None}
        return found if len(found) == len(rows) else None

    # -- writing ------------------------------------------------------------------------------------

    def prepare(self, change: Change) -> Steps[None]:
        """Embed the cells of new nodes that are not stored, and look for rows that they may share a super node with."""
        facts = {
            node.node_id: fact_paths(
                node.node_id, node.ref_doc_id, sort_key(node), from_record(change.records.get(node.node_id, {}))[1]
            )
            for node in change.added
        }
        maps = maps_of(fact for own in facts.values() for fact in own)
        new, _ = yield from self._unstored(cells_of(maps, maps))
        yield from self._embed(new)
        self._linked = {}
        try:
            for kind in self._fusions:
                yield from self._find_linked(kind, new[kind])
        except HalfWrittenError:  # another process deletes vectors meanwhile: they are looked for in the transaction
            return

    def apply(self, state: PseudoGraph, change: Change) -> Steps[PseudoGraph]:
        """Bring cells, super nodes and rows up to date."""
        facts = yield from facts_after(change, self.storage, self.resources)
        before, replaced = yield from self._rows.around(state, facts, change.removed)
        after, dropped = before.changed(facts, change.removed)
        topic_ids = {fact.topic_id for own in facts.values() for fact in own}
        super_nodes = yield from self._change_cells(after, dropped, topic_ids)
        yield from self._rows.replace(replaced, facts, before, after)
        self._ready, self._linked = {}, {}
        report_unverified(change)
        rows = self._vectors()
        if rows is None:
            return state
        super_topics = state.super_topics.changed(*super_nodes["topics"])
        super_facts = state.super_facts.changed(*super_nodes["facts"])
        return after.over(rows, super_topics, super_facts)

    def _change_cells(
        self, graph: PseudoGraph, dropped: Mapping[str, Sequence[str]], topic_ids: Iterable[str]
    ) -> Steps[dict[str, tuple[SuperNodes, SuperNodes]]]:
        """Delete the cells that are gone, store those that are new, and bring the super nodes up to date.

        Returns
        -------
        For each kind with super nodes, those of the components that may have changed, before and after.
        """
        for kind in KINDS:
            yield from self.storage.space(kind).remove(dropped[kind])
        if any(dropped.values()):
            self.storage.commits.note_removal()  # a question that has begun may miss the vectors
        cells = cells_of(graph.maps, topic_ids)
        yield from self._describe(cells["facts"])
        new, stale = yield from self._unstored(cells)
        yield from self._embed(new)
        counters = self.storage.struct.counters
        super_nodes = {}
        for kind in KINDS:
            rows, space = self._rows_of(new[kind]), self.storage.space(kind)
            if kind in self._fusions:
                linked = yield from self._find_linked(kind, new[kind])
                before, after = yield from self._fusions[kind].replace(_snapshot(rows), linked, dropped[kind])
                super_nodes[kind] = before, after
                counters[kind] = counters.get(kind, 0) - len(dropped[kind]) + len(rows.ids)
                counters[f"super_{kind}"] = counters.get(f"super_{kind}", 0) + after.count - before.count
            yield from space.put(rows)
            if stale[kind]:
                old = yield from space.fetch(stale[kind])
                yield from space.put(_rows({i: stale[kind][i] for i in old.ids}, old.matrix))
        return super_nodes

    def _describe(self, facts: dict[str, MapCell]) -> Steps[None]:
        """Give facts the metadata of their nodes, so that filters hold for them."""
        chunks = yield from self.storage.space().described({cell.metadata["node"]: None for cell in facts.values()})
        shared = {node_id: chunks.metadata_of(node_id) for node_id in chunks.ids}
        for fact_id, cell in facts.items():
            own = {f"pgrag_{name}": value for name, value in cell.metadata.items()}
            facts[fact_id] = replace(cell, metadata={**shared.get(cell.metadata["node"], {}), **own})

    def _unstored(self, cells: Cells) -> Steps[tuple[dict[str, dict[str, MapCell]], dict[str, dict[str, MapCell]]]]:
        """The cells without a row, and those whose row has another key or other metadata; by kind."""
        new: dict[str, dict[str, MapCell]] = {}
        stale: dict[str, dict[str, MapCell]] = {}
        for kind in KINDS:
            rows = yield from self.storage.space(kind).described(cells[kind])
            new[kind] = {i: cell for i, cell in cells[kind].items() if i not in rows}
            changed = [record.id for record in rows.records if not _is_same(cells[kind][record.id], record)]
            stale[kind] = {i: cells[kind][i] for i in changed}
        return new, stale

    def _embed(self, cells: Cells) -> Steps[None]:
        texts = sorted({cell.text for kind in KINDS for cell in cells[kind].values()} - self._ready.keys())
        if texts:
            vectors = yield from self.resources.embed(texts, "topics and facts")
            as_matrix(list(vectors), texts, self.storage.struct.embedding["dimension"])
            self._ready.update(zip(texts, vectors, strict=True))

    def _find_linked(self, kind: str, cells: Mapping[str, MapCell]) -> Steps[set[str]]:
        """The stored rows that new cells may share a super node with; each text is looked for once in a write."""
        known = self._linked.setdefault(kind, {})
        texts = sorted({cell.text for cell in cells.values()} - known.keys())
        if texts and self.storage.struct.counters.get(kind, 0):
            vectors = np.stack([self._ready[text] for text in texts])
            known.update(zip(texts, (yield from self._fusions[kind].linked(vectors)), strict=True))
        return {row_id for cell in cells.values() for row_id in known.get(cell.text, ())}

    def _rows_of(self, cells: Mapping[str, MapCell]) -> SpaceRows:
        vectors = [self._ready[cell.text] for cell in cells.values()]
        return _rows(cells, np.stack(vectors) if vectors else np.zeros((0, 0), np.float32))

    # -- questions where the index is served from stores --------------------------------------------

    @immediate
    def state_of(self, near: ChunkView, selection: Selection) -> PseudoGraph:
        """Some chunks; their maps are read by :class:`~llama_index.pgrag.map_view.MapView`."""
        return PseudoGraph(chunks=near.rows)


def _is_same(cell: MapCell, record: Record) -> bool:
    return bool(record.key == cell.key and json.loads(record.metadata) == cell.metadata)


def _rows(cells: Mapping[str, MapCell], vectors: NDArray[np.float32]) -> SpaceRows:
    ids, of_cells = list(cells), list(cells.values())
    documents = [cell.metadata.get("ref_doc_id") for cell in of_cells]
    return SpaceRows(ids, vectors, [cell.key for cell in of_cells], documents, [cell.metadata for cell in of_cells])


def _snapshot(rows: SpaceRows) -> Snapshot:
    if not len(rows.ids):
        return Snapshot.empty()
    records = [Record(i, None, key, "{}") for i, key in zip(rows.ids, rows.keys, strict=True)]
    return Snapshot.of(rows.vectors, records)
