"""`MapBuilder` keeps the cells of mind maps, their super nodes and their names up to date.

Cells that an LLM wrote are embedded with each write. Sentences of the text are not, until a search needs vectors
(:meth:`MapBuilder.embedding`). From then on every write embeds the cells that it adds.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.config import PGRAGConfig
from llama_index.pgrag.extraction.outline_extractor import OutlineExtractor
from llama_index.pgrag.fusion.super_nodes import SuperNodes
from llama_index.pgrag.fusion_rows import FusionRows
from llama_index.pgrag.map_rows import MapRows, pack_maps, unpack_maps
from llama_index.pgrag.map_view import MapView
from llama_index.pgrag.records import facts_after, facts_of, from_record, report_unverified
from llama_index.pgrag.state import KINDS, MapCell, PseudoGraph, cells_of, fact_paths
from llama_index.ragkit import Builder, Change, Selection, Snapshot, SpaceRows, Steps
from llama_index.ragkit.errors import HalfWrittenError
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import sort_key
from llama_index.ragkit.storage.stored_chunks import ChunkView
from llama_index.ragkit.vectors.row_buffer import Record

__all__ = ["MapBuilder", "embeds_cells"]

Cells = Mapping[str, Mapping[str, MapCell]]
"""Cells by kind, then by id."""

_CELLS = "pgrag_cells"  # parameter of an index that compares cells by words; absent if always by vectors
_WORDS, _BOTH = "words", "both"  # without vectors, and with vectors that a search needed


class MapBuilder(Builder[PGRAGConfig, PseudoGraph]):
    """Keeps the vectors of the cells, the super nodes over them, and the rows by which parts of the maps are found.

    A write reads and changes the maps of its nodes, the super nodes that it touches, and the nodes that mention an
    added or removed topic. `maps` reads the part of the maps that questions need.
    """

    spaces: ClassVar[tuple[str, ...]] = ("chunks", *KINDS)
    few: ClassVar[int] = 200  # chunks, with a few thousand facts

    def __init__(self, storage: IndexStorage, resources: Resources, config: PGRAGConfig) -> None:
        super().__init__(storage, resources, config)
        self._rows = MapRows(storage)
        thresholds = {"topics": config.topic_threshold, "facts": config.fact_threshold}
        self._fusions = {
            kind: FusionRows(kind, storage, SuperNodes(least, config.fusion)) for kind, least in thresholds.items()
        }
        self.maps = MapView(storage, self._rows, self._fusions, lambda: self.has_words)
        self._ready: dict[str, NDArray[np.float32]] = {}  # vectors by text
        # kind -> text -> stored rows with which it may share a super node
        self._linked: dict[str, dict[str, set[str]]] = {}

    @property
    def by_words(self) -> bool:
        """Whether cells have no vectors."""
        return self.has_words and self.storage.struct.params.get(_CELLS) != _BOTH

    @property
    def has_words(self) -> bool:
        """Whether cells are compared by their words if a search does not need their vectors."""
        struct = self.storage.struct
        is_new = not struct.counters.get("facts", 0)
        return _CELLS in struct.params or (is_new and not embeds_cells(self.config, self.resources.extractor))

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[PseudoGraph]:
        """The whole index if it is in memory, else an empty state; leftover rows of a write that ended early are
        deleted.
        """
        rows = self._vectors()
        if rows is None:
            return PseudoGraph()
        entries = yield from self.storage.manifest.entries()
        read = {i: entry for i, entry in entries.items() if entry.record is not None and i in rows["chunks"]}
        stored = facts_of(read, read)
        graph = PseudoGraph.of(stored)
        if self.by_words:
            for kind in (kind for kind in KINDS if len(rows[kind])):
                yield from self.storage.space(kind).remove(rows[kind].ids)
            whole = replace(graph, chunks=rows["chunks"])
            self.storage.struct.counters.update(dict.fromkeys(whole.counts, 0))
            self._count_cells(PseudoGraph(), whole)
            return whole
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

    def arrays_of(self, state: PseudoGraph) -> Arrays:
        """The facts and the links of their names; none if cells have vectors."""
        return pack_maps(state) if self.by_words and state.of_node else {}

    def load_arrays(self, arrays: Arrays) -> PseudoGraph | None:
        """The state of :meth:`arrays_of`, of which objects are made when they are asked for."""
        rows = self._vectors()
        return None if rows is None else unpack_maps(arrays, rows["chunks"])

    def _vectors(self) -> dict[str, Snapshot] | None:
        """The vectors of all chunks and cells by the names of their spaces, if they are in memory."""
        rows = {name: self.storage.space(name).whole() for name in self.spaces}
        found = {name: snapshot for name, snapshot in rows.items() if snapshot is not None}
        return found if len(found) == len(rows) else None

    # -- writing ------------------------------------------------------------------------------------

    def prepare(self, change: Change) -> Steps[None]:
        """Embed the unstored cells of new nodes, and look for rows with which they may share a super node."""
        facts = {
            node.node_id: fact_paths(
                node.node_id, node.ref_doc_id, sort_key(node), from_record(change.records.get(node.node_id, {}))[1]
            )
            for node in change.added
        }
        if self.by_words:
            return
        maps = PseudoGraph.of(facts).maps
        new, _ = yield from self._unstored(cells_of(maps, sorted(maps)))
        yield from self._embed(new)
        self._linked = {}
        try:
            for kind in self._fusions:
                yield from self._find_linked(kind, new[kind])
        except HalfWrittenError:  # another process is deleting vectors: the rows are looked for in the transaction
            return

    def apply(self, state: PseudoGraph, change: Change) -> Steps[PseudoGraph]:
        """Bring cells, super nodes and rows up to date."""
        facts = yield from facts_after(change, self.storage, self.resources)
        before, replaced = yield from self._rows.around(state, facts, change.removed)
        after, dropped = before.changed(facts, change.removed)
        topic_ids = {fact.topic_id for own in facts.values() for fact in own}
        super_nodes: dict[str, tuple[SuperNodes, SuperNodes]] = {}
        for kind in KINDS:  # without vectors too: an attempt to embed all cells may have stored some
            yield from self.storage.space(kind).remove(dropped[kind])
        if any(dropped.values()):
            self.storage.commits.note_removal()  # a search that is already running may miss the vectors
        if self.by_words:
            self._count_cells(before, after)
        else:
            super_nodes = yield from self._change_cells(after, dropped, topic_ids)
        yield from self._rows.replace(replaced, facts, before, after)
        self._ready, self._linked = {}, {}
        report_unverified(change)
        rows = self._vectors()
        if rows is None:
            return state
        if self.by_words:
            return replace(after, chunks=rows["chunks"], fused=None)
        fused = state.fused or {kind: fusion.empty for kind, fusion in self._fusions.items()}
        super_topics, super_facts = (fused[kind].changed(*super_nodes[kind]) for kind in ("topics", "facts"))
        return after.over(rows, super_topics, super_facts)

    def _count_cells(self, before: PseudoGraph, after: PseudoGraph) -> None:
        """Note that cells have no vectors, and count them."""
        struct = self.storage.struct
        if after.maps:
            struct.params[_CELLS] = _WORDS
        struct.count(**{kind: count - before.counts[kind] for kind, count in after.counts.items()})

    @immediate
    def embedding(self) -> list[Callable[[PseudoGraph], Steps[PseudoGraph]]]:
        """The write that embeds all cells, if they have no vectors; later writes keep the vectors complete."""
        return [self._embed_all] if self.by_words and self.storage.struct.counters.get("facts", 0) else []

    def _embed_all(self, state: PseudoGraph) -> Steps[PseudoGraph]:
        if not self.by_words:  # another thread or process was first
            return state
        graph = state if not self._rows.are_kept else PseudoGraph.of((yield from self._rows.all_facts()))
        yield from self._embed(cells_of(graph.maps, sorted(graph.maps)))
        struct = self.storage.struct
        counted = dict(struct.counters)
        struct.counters.update(topics=0, facts=0)  # so that no linked rows are looked for
        try:
            super_nodes = yield from self._change_cells(graph, dict.fromkeys(KINDS, ()), graph.maps)
        except BaseException:
            struct.counters.clear()
            struct.counters.update(counted)
            raise
        finally:
            self._ready, self._linked = {}, {}
        struct.counters.update(topics=len(graph.maps), facts=len(graph.map_of))
        struct.params[_CELLS] = _BOTH
        rows = self._vectors()
        if rows is None:
            return state
        return graph.over(rows, *(self._fusions[kind].empty.changed(*super_nodes[kind]) for kind in self._fusions))

    def _change_cells(
        self, graph: PseudoGraph, dropped: Mapping[str, Sequence[str]], topic_ids: Iterable[str]
    ) -> Steps[dict[str, tuple[SuperNodes, SuperNodes]]]:
        """Store the new cells, and bring the super nodes up to date.

        Returns, by kind, the super nodes of the components that may have changed, before and after.
        """
        cells = cells_of(graph.maps, sorted(topic_ids))
        yield from self._describe(cells["facts"])
        new, stale = yield from self._unstored(cells)
        yield from self._embed(new)
        super_nodes = {}
        for kind in KINDS:
            rows, space = self._rows_of(new[kind]), self.storage.space(kind)
            if kind in self._fusions:
                linked = yield from self._find_linked(kind, new[kind])
                before, after = yield from self._fusions[kind].replace(_snapshot(rows), linked, dropped[kind])
                super_nodes[kind] = before, after
                more = {kind: len(rows.ids) - len(dropped[kind]), f"super_{kind}": after.count - before.count}
                self.storage.struct.count(**more)
            yield from space.put(rows)
            if stale[kind]:
                old = yield from space.fetch(stale[kind])
                yield from space.put(_rows({i: stale[kind][i] for i in old.ids}, old.matrix))
        return super_nodes

    def _describe(self, facts: dict[str, MapCell]) -> Steps[None]:
        """Give facts the metadata of their nodes, so that filters apply to them."""
        chunks = yield from self.storage.space().described({cell.metadata["node"]: None for cell in facts.values()})
        shared = {node_id: chunks.metadata_of(node_id) for node_id in chunks.ids}
        for fact_id, cell in facts.items():
            own = {f"pgrag_{name}": value for name, value in cell.metadata.items()}
            facts[fact_id] = replace(cell, metadata={**shared.get(cell.metadata["node"], {}), **own})

    def _unstored(self, cells: Cells) -> Steps[tuple[dict[str, dict[str, MapCell]], dict[str, dict[str, MapCell]]]]:
        """By kind, the cells without a row, and the cells whose row has another key or other metadata."""
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
            self._ready.update(zip(texts, vectors, strict=True))

    def _find_linked(self, kind: str, cells: Mapping[str, MapCell]) -> Steps[set[str]]:
        """The stored rows with which new cells may share a super node; each text is looked up once in a write."""
        known = self._linked.setdefault(kind, {})
        texts = sorted({cell.text for cell in cells.values()} - known.keys())
        if texts and self.storage.struct.counters.get(kind, 0):
            vectors = np.stack([self._ready[text] for text in texts])
            known.update(zip(texts, (yield from self._fusions[kind].linked(vectors)), strict=True))
        return {row_id for cell in cells.values() for row_id in known.get(cell.text, ())}

    def _rows_of(self, cells: Mapping[str, MapCell]) -> SpaceRows:
        vectors = [self._ready[cell.text] for cell in cells.values()]
        return _rows(cells, np.stack(vectors) if vectors else np.zeros((0, 0), np.float32))

    # -- questions if the index is served from stores -----------------------------------------------

    @immediate
    def state_of(self, near: ChunkView, selection: Selection) -> PseudoGraph:
        """The state of some chunks; :class:`~llama_index.pgrag.map_view.MapView` reads their maps."""
        return PseudoGraph(chunks=near.rows)


def embeds_cells(config: PGRAGConfig, extractor: object) -> bool:
    """Whether the cells of a new index are embedded with each write."""
    chosen = config.cell_vectors
    return not isinstance(extractor, OutlineExtractor) if chosen is None else chosen


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
