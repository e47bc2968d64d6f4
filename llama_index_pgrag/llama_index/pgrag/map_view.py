"""`StoredPseudoGraph`: what one question to an index that is served from stores is answered from."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.config import SearchConfig
from llama_index.pgrag.fusion.super_nodes import SuperNodes
from llama_index.pgrag.fusion_rows import FusionRows
from llama_index.pgrag.map_rows import MapRows, NodeRow
from llama_index.pgrag.search.allowed import Allowed
from llama_index.pgrag.search.candidates import Candidate, Vector, find_candidates
from llama_index.pgrag.search.frontier_walk import FrontierWalk, Mass
from llama_index.pgrag.state import MindMap, PseudoGraph, maps_of
from llama_index.ragkit import IndexStorage, Record, Selection, Snapshot, Steps, offload, run_steps
from llama_index.ragkit.vectors.row_buffer import Record as RowRecord
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["MapReader", "NearCells", "StoredPseudoGraph"]

_FEWEST = 100  # facts near to a key point, by which cosines are standardised; under a filter, topics near to a question
_TOGETHER = 500  # members of a super node that are walked to

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class NearCells:
    """The maps that a question searches, and the facts near to its key points.

    Attributes
    ----------
    candidates : the maps
    nodes : of the maps, and of the facts
    super_topics, super_facts : those that were walked
    """

    candidates: Sequence[Candidate]
    nodes: Sequence[str]
    super_topics: SuperNodes
    super_facts: SuperNodes


@dataclass(frozen=True)
class MapReader:
    """Reads parts of the maps of an index.

    Attributes
    ----------
    storage, rows, fusions : of the index
    selection : which chunks count
    """

    storage: IndexStorage
    rows: MapRows
    fusions: Mapping[str, FusionRows]
    selection: Selection

    def walk(self, texts: Sequence[str], nodes: Mass) -> Steps[tuple[list[str], Mass]]:
        """The names in some texts, and what a walk from them and from some nodes reaches."""
        return (yield from offload(self._walk, texts, nodes))

    def _walk(self, texts: Sequence[str], nodes: Mass) -> tuple[list[str], Mass]:
        allowed = None if self.selection.is_whole else self._passing_numbers
        with self.rows.reader() as reader:
            walk = FrontierWalk(reader, allowed)
            named, names = walk.seeds(texts)
            return named, walk.spread(names, nodes) if named else Mass.of([], [])

    def _passing_numbers(self, numbers: Ints) -> Mask:
        ids = run_steps(self.rows.node_ids(numbers.tolist()))
        passing = run_steps(self.passing(ids.values()))
        return np.array([ids.get(number) in passing for number in numbers.tolist()], np.bool_)

    def passing(self, node_ids: Iterable[str]) -> Steps[Collection[str]]:
        """Those of some nodes that count."""
        rows = yield from self.storage.stored["chunks"].described(dict.fromkeys(node_ids))
        return {rows.ids[row] for row in np.flatnonzero(self.selection.mask(rows))} if len(rows) else set()

    # -- candidates ---------------------------------------------------------------------------------

    def near_cells(
        self, question: Vector, points: Sequence[Vector], config: SearchConfig, wanted: int, shown: Sequence[str]
    ) -> Steps[NearCells]:
        """The maps that :func:`~llama_index.pgrag.search.candidates.find_candidates` finds, and the facts near to the
        key points.

        Parameters
        ----------
        question, points : vectors of the question and of its key points
        wanted : how many facts must be in the right order
        shown : chunks near to the question
        """
        facts, topic_of, owners = yield from self._near_facts(points, max(wanted, _FEWEST, config.seed_facts), shown)
        count = min(config.seed_topics, config.max_topics)
        topics = yield from self._with_topics((yield from self._near_topics(question, count, shown)), topic_of.values())
        super_topics = super_facts = SuperNodes(1.0)
        maps: dict[str, MindMap] = {}
        before: Sequence[str] = ()
        while True:
            mask, passing = yield from self._allowed(topics)
            seeds = topics.search([question], count, mask)[0].ids if count and len(topics) else []
            if list(seeds) == list(before):  # what was walked to has no topic that is nearer, and was not found
                break
            before = seeds
            maps = yield from self._maps(seeds)
            walked = [f.id for m in maps.values() for f in m.facts if passing is None or f.passes(passing)]
            super_topics = _walkable(
                (yield from self.fusions["topics"].read(seeds if config.topic_walk else ())), seeds
            )
            super_facts = _walkable((yield from self.fusions["facts"].read(walked if config.fact_walk else ())), walked)
            topic_of |= {fact.id: found.id for found in maps.values() for fact in found.facts}
            topic_of |= yield from self._topics_of(_members(super_facts) - topic_of.keys())
            topics = yield from self._with_topics(topics, {*_members(super_topics), *topic_of.values()})
        graph = PseudoGraph(
            topics=topics,
            facts=facts,
            maps=maps,
            map_of=topic_of,
            super_topics=super_topics,
            super_facts=super_facts,
        )
        nodes = None if passing is None else frozenset(passing)
        # Where the selection names the chunks that count, all of their facts are there.
        of_few = None if self.selection.only is None else np.ones(len(facts), np.bool_)
        allowed = Allowed(topics=mask, facts=of_few, nodes=nodes)
        candidates = yield from offload(find_candidates, graph, question, points, config, allowed)
        of_maps = yield from self.rows.nodes_of_maps(candidate.topic_id for candidate in candidates)
        members = {i: None for ids in of_maps.values() for i in ids if passing is None or i in passing}
        return NearCells(candidates, [*{**members, **owners}], super_topics, super_facts)

    def _near_facts(
        self, points: Sequence[Vector], wanted: int, shown: Sequence[str]
    ) -> Steps[tuple[Snapshot, dict[str, str], dict[str, None]]]:
        """The facts near to key points, with their maps and their nodes; if few chunks count, all of their facts."""
        space = self.storage.stored["facts"]
        if self.selection.only is not None:
            rows = yield from self._passing_rows((yield from self.rows.nodes(shown)))
            own = [fact for row in rows.values() for fact in row.facts]
            found = yield from space.fetch(fact.id for fact in own)
            return found, {fact.id: fact.topic_id for fact in own}, dict.fromkeys(rows)
        records: dict[str, Record] = {}
        for near in (yield from space.records_near_each(points, wanted, self.selection)):
            records |= near
        found = yield from space.rows(records)
        metas = {record["id"]: record["meta"] for record in records.values()}
        topic_of = {fact_id: meta["pgrag_topic"] for fact_id, meta in metas.items()}
        return found, topic_of, dict.fromkeys(meta["pgrag_node"] for meta in metas.values())

    def _near_topics(self, question: Vector, count: int, shown: Sequence[str]) -> Steps[Snapshot]:
        """The topics near to a question, under a filter together with those of the chunks near to it."""
        space = self.storage.stored["topics"]
        if not count:
            return Snapshot.empty()
        if self.selection.is_whole:
            return (yield from space.candidates(question, count))
        rows = yield from self.rows.nodes(shown)
        known = {row.topic_id for row in rows.values()}
        if self.selection.only is None:
            known |= {record["id"] for record in (yield from space.records_near(question, _FEWEST)).values()}
        return (yield from space.fetch(sorted(known)))

    def _with_topics(self, topics: Snapshot, topic_ids: Iterable[str]) -> Steps[Snapshot]:
        """Some topics, and others."""
        unknown = sorted({topic_id for topic_id in topic_ids if topic_id not in topics})
        return topics.joined((yield from self.storage.stored["topics"].fetch(unknown)))

    def _allowed(self, topics: Snapshot) -> Steps[tuple[Mask | None, Collection[str] | None]]:
        """Which of some topics have a fact that passes the filter, and which nodes of their maps do; None for all."""
        if self.selection.is_whole:
            return None, None
        nodes = yield from self.rows.nodes_of_maps(topics.ids)
        passing = yield from self.passing(i for ids in nodes.values() for i in ids)
        mask = np.array([not set(nodes.get(i, ())).isdisjoint(passing) for i in topics.ids], np.bool_)
        return mask, passing

    def _maps(self, topic_ids: Sequence[str]) -> Steps[dict[str, MindMap]]:
        """Whole maps."""
        nodes = yield from self.rows.nodes_of_maps(topic_ids)
        rows = yield from self.rows.nodes(dict.fromkeys(i for ids in nodes.values() for i in ids))
        return maps_of(fact for row in rows.values() for fact in row.facts)

    def _passing_rows(self, rows: Mapping[str, NodeRow]) -> Steps[dict[str, NodeRow]]:
        """The rows of nodes that count, without the facts that have words of nodes which do not."""
        others = {i for row in rows.values() for fact in row.facts for i in fact.others}
        if self.selection.is_whole or not others:
            return dict(rows)
        shown = {*rows, *(yield from self.passing(sorted(others)))}
        kept = {i: replace(row, facts=tuple(f for f in row.facts if f.passes(shown))) for i, row in rows.items()}
        return {i: row for i, row in kept.items() if row.facts}

    def _topics_of(self, fact_ids: Iterable[str]) -> Steps[dict[str, str]]:
        """The maps of some facts."""
        records = yield from self.storage.stored["facts"].records_of(sorted(fact_ids))
        return {record["id"]: record["meta"]["pgrag_topic"] for record in records.values()}

    # -- the graph ----------------------------------------------------------------------------------

    def documents_of(self, node_ids: Iterable[str]) -> Steps[Snapshot]:
        """Some chunks and all others of their documents, with zeros for their vectors."""
        chunks = self.storage.stored["chunks"]
        rows = yield from chunks.described(dict.fromkeys(node_ids))
        documents = dict.fromkeys(record.ref_doc_id for record in rows.records if record.ref_doc_id)
        further = yield from self.storage.manifest.nodes_of_documents(documents)
        return rows.joined((yield from chunks.described(i for i in dict.fromkeys(further) if i not in rows)))

    def graph(
        self, chunks: Snapshot, cells: NearCells | None = None
    ) -> Steps[tuple[PseudoGraph, Mapping[str, NodeRow]]]:
        """The graph of some chunks and of no others, with the vectors that a walk over its candidate maps needs; and
        the rows of the chunks.

        Parameters
        ----------
        cells : what the chunks were found by; None if all of their maps are candidates
        """
        rows = yield from self._passing_rows((yield from self.rows.nodes(chunks.ids)))
        of_node = {node_id: row.facts for node_id, row in rows.items()}
        maps = maps_of(fact for own in of_node.values() for fact in own)
        map_of = {fact.id: topic_id for topic_id, found in maps.items() for fact in found.facts}
        graph = PseudoGraph(maps=maps, map_of=map_of, of_node=of_node)
        chosen = graph.maps if cells is None else [candidate.topic_id for candidate in cells.candidates]
        candidates = [topic_id for topic_id in chosen if topic_id in graph.maps]
        routes = [route_id for topic_id in candidates for route_id in graph.maps[topic_id].routes]
        spaces = self.storage.stored
        known = {fact.id: fact for own in of_node.values() for fact in own}
        vectors = yield from spaces["facts"].vectors_of(known)
        places = {(known[i].node_id, map_of[i]) for i in vectors}
        metas = {place: json.dumps(dict(zip(("node", "topic"), place, strict=True))) for place in places}
        described = [RowRecord(i, known[i].document, known[i].key, metas[known[i].node_id, map_of[i]]) for i in vectors]
        whole = replace(
            graph,
            chunks=chunks,
            topics=(yield from spaces["topics"].fetch(candidates)),
            routes=(yield from spaces["routes"].fetch(routes)),
            facts=Snapshot.of(np.stack(list(vectors.values())), described) if vectors else Snapshot.empty(),
        )
        if cells is None:
            return whole, rows
        topics = _among(cells.super_topics, graph.maps.__contains__)
        return replace(
            whole, super_topics=topics, super_facts=_among(cells.super_facts, whole.map_of.__contains__)
        ), rows


@dataclass(frozen=True)
class StoredPseudoGraph(PseudoGraph):
    """The chunks near to a question, and where the maps are."""

    reader: MapReader = field(kw_only=True)


def _members(super_nodes: SuperNodes) -> set[str]:
    """The members of all super nodes."""
    return {i for groups in super_nodes.groups.values() for group in groups for i in group}


def _walkable(super_nodes: SuperNodes, seeds: Sequence[str]) -> SuperNodes:
    """Super nodes with some of their members, if they have many."""
    own = set(seeds)
    groups = {
        name: tuple(
            group if len(group) <= _TOGETHER else tuple(sorted({*group[:_TOGETHER], *own.intersection(group)}))
            for group in of_name
        )
        for name, of_name in super_nodes.groups.items()
    }
    return replace(super_nodes, groups=groups)


def _among(super_nodes: SuperNodes, known: Callable[[str], bool]) -> SuperNodes:
    """Super nodes without the members that are not known."""
    groups = {
        name: tuple(found for group in of_name if len(found := tuple(i for i in group if known(i))) > 1)
        for name, of_name in super_nodes.groups.items()
    }
    return replace(super_nodes, groups={name: found for name, found in groups.items() if found})
