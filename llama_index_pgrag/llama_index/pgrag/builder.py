"""`StoredMapBuilder`: keeps the mind maps of an index that is served from stores, and reads what a question needs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.changed_facts import MapCell, cells_of, facts_after, report_unverified
from llama_index.pgrag.config import PGRAGConfig
from llama_index.pgrag.fusion.super_nodes import SuperNodes
from llama_index.pgrag.fusion_rows import FusionRows
from llama_index.pgrag.map_rows import MapRows
from llama_index.pgrag.map_view import MapReader, StoredPseudoGraph
from llama_index.pgrag.records import from_record
from llama_index.pgrag.state import KINDS, PseudoGraph, fact_paths, maps_of, with_facts
from llama_index.ragkit import (
    Change,
    ChunkView,
    IndexStorage,
    Record,
    Resources,
    Selection,
    Snapshot,
    SpaceRows,
    Steps,
    StoredBuilder,
    as_matrix,
    sort_key,
)
from llama_index.ragkit.errors import HalfWrittenError
from llama_index.ragkit.vectors.row_buffer import Record as RowRecord

__all__ = ["StoredMapBuilder"]


class StoredMapBuilder(StoredBuilder[PGRAGConfig, PseudoGraph]):
    """Keeps the cells of mind maps in vector stores, and maps, super nodes and names as rows.

    What a write reads and changes are the maps of its nodes, the super nodes that it touches, and the nodes that
    mention a topic which comes or goes.
    """

    spaces: ClassVar[tuple[str, ...]] = ("chunks", *KINDS)
    few: ClassVar[int] = 200  # which have some thousand facts

    def __init__(self, storage: IndexStorage, resources: Resources, config: PGRAGConfig) -> None:
        super().__init__(storage, resources, config)
        self._rows = MapRows(storage.stores.graph(), storage.records)
        thresholds = {"topics": config.topic_threshold, "facts": config.fact_threshold}
        self._fusions = {
            kind: FusionRows(kind, storage, SuperNodes(least, config.fusion)) for kind, least in thresholds.items()
        }
        self._ready: dict[str, NDArray[np.float32]] = {}  # vectors by text
        self._linked: dict[
            str, dict[str, set[str]]
        ] = {}  # kind -> text -> stored rows that it may share a super node with

    # -- writing ------------------------------------------------------------------------------------

    def load(self) -> Steps[PseudoGraph]:
        """Nothing: the maps stay in their stores."""
        return PseudoGraph()
        yield

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
        """Bring the maps up to date, as :class:`~llama_index.pgrag.builder.PseudoGraphBuilder` does."""
        facts = yield from facts_after(change, self.storage, self.resources)
        touched = [*change.removed, *facts]
        replaced = yield from self._rows.nodes(touched)
        topic_ids = {row.topic_id for row in replaced.values()}
        topic_ids |= {fact.topic_id for own in facts.values() for fact in own}
        nodes = yield from self._rows.nodes_of_maps(sorted(topic_ids))
        around = yield from self._rows.nodes(sorted({i for ids in nodes.values() for i in ids} - replaced.keys()))
        known = {i: row.facts for i, row in {**around, **replaced}.items()}
        before, _ = with_facts(PseudoGraph(), known, ())
        after, dropped = with_facts(before, facts, change.removed)
        yield from self._change_cells(after, dropped, {fact.topic_id for own in facts.values() for fact in own})
        maps = {i: sorted({f.node_id for f in after.maps[i].facts}) if i in after.maps else [] for i in topic_ids}
        topics: Counter[str] = Counter()
        for graph, count in ((before, -1), (after, 1)):
            for found in graph.maps.values():
                topics[found.topic] += count
        yield from self._rows.replace(replaced, facts, maps, topics)
        self._ready, self._linked = {}, {}
        report_unverified(change)
        return state

    def _change_cells(
        self, graph: PseudoGraph, dropped: Mapping[str, Sequence[str]], topic_ids: Iterable[str]
    ) -> Steps[None]:
        """Delete the cells that are gone, store those that are new, and bring the super nodes up to date."""
        for kind in KINDS:
            yield from self.storage.stored[kind].remove(dropped[kind])
        if any(dropped.values()):
            self.storage.note_removal()  # a question that has begun may miss the vectors
        cells = cells_of(graph.maps, topic_ids)
        yield from self._describe(cells["facts"], graph)
        new, stale = yield from self._unstored(cells)
        yield from self._embed(new)
        counters = self.storage.struct.counters
        for kind in KINDS:
            rows = self._rows_of(new[kind])
            if kind in self._fusions:
                fusion, count = self._fusions[kind], counters.get(kind, 0) - len(dropped[kind])
                linked = yield from self._find_linked(kind, new[kind])
                super_nodes = yield from fusion.replace(_snapshot(rows), linked, dropped[kind])
                counters[kind] = count + len(rows.ids)
                counters[f"super_{kind}"] = counters.get(f"super_{kind}", 0) + super_nodes
            yield from self.storage.stored[kind].put(rows)
            if stale[kind]:
                old = yield from self.storage.stored[kind].fetch(stale[kind])
                again = {i: stale[kind][i] for i in old.ids}
                yield from self.storage.stored[kind].put(_rows(again, old.matrix))

    def _describe(self, facts: dict[str, MapCell], graph: PseudoGraph) -> Steps[None]:
        """Give facts the metadata of their nodes, so that filters hold for them."""
        node_of = {fact.id: fact.node_id for found in graph.maps.values() for fact in found.facts}
        chunks = yield from self.storage.stored["chunks"].described({node_of[i]: None for i in facts})
        for fact_id, cell in facts.items():
            own = {"pgrag_node": node_of[fact_id], "pgrag_topic": cell.metadata["topic"]}
            shared = chunks.metadata_of(node_of[fact_id]) if node_of[fact_id] in chunks else {}
            facts[fact_id] = replace(cell, metadata={**shared, **own})

    def _unstored(
        self, cells: Mapping[str, Mapping[str, MapCell]]
    ) -> Steps[tuple[dict[str, dict[str, MapCell]], dict[str, dict[str, MapCell]]]]:
        """The cells without a row, and those whose row has another key or other metadata; by kind."""
        new: dict[str, dict[str, MapCell]] = {}
        stale: dict[str, dict[str, MapCell]] = {}
        for kind in KINDS:
            records = yield from self.storage.stored[kind].records_of(cells[kind])
            known = {record["id"]: record for record in records.values()}
            new[kind] = {i: cell for i, cell in cells[kind].items() if i not in known}
            stale[kind] = {i: c for i, c in cells[kind].items() if i in known and not _is_same(c, known[i])}
        return new, stale

    def _embed(self, cells: Mapping[str, Mapping[str, MapCell]]) -> Steps[None]:
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

    # -- reading ------------------------------------------------------------------------------------

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[PseudoGraph]:
        """Some chunks, and where their maps are."""
        return StoredPseudoGraph(chunks=near.rows, reader=self.map_reader(selection))
        yield

    def map_reader(self, selection: Selection) -> MapReader:
        """Reads the maps of chunks that count."""
        return MapReader(self.storage, self._rows, self._fusions, selection)


def _is_same(cell: MapCell, record: Record) -> bool:
    return bool(record["meta"] == cell.metadata and record["key"] == cell.key)


def _rows(cells: Mapping[str, MapCell], vectors: NDArray[np.float32]) -> SpaceRows:
    ids, of_cells = list(cells), list(cells.values())
    documents = [cell.metadata.get("ref_doc_id") for cell in of_cells]
    return SpaceRows(ids, vectors, [cell.key for cell in of_cells], documents, [cell.metadata for cell in of_cells])


def _snapshot(rows: SpaceRows) -> Snapshot:
    if not len(rows.ids):
        return Snapshot.empty()
    records = [RowRecord(i, None, key, "{}") for i, key in zip(rows.ids, rows.keys, strict=True)]
    return Snapshot.of(rows.vectors, records)
