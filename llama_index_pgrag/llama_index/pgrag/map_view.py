"""`MapView` gives a question its maps, and reads them from the rows if not all maps are in memory."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.pgrag.config import SearchConfig
from llama_index.pgrag.fusion.super_nodes import SuperNodes
from llama_index.pgrag.fusion_rows import FusionRows
from llama_index.pgrag.map_rows import MapRows, NodeRow
from llama_index.pgrag.maps.name_links import NameLinks, cell_name
from llama_index.pgrag.search.candidates import Allowed, Candidate, Vector, cells_by_words, find_candidates
from llama_index.pgrag.search.name_edges import chunk_number
from llama_index.pgrag.search.name_walk import NODE_SEEDS, FrontierWalk, Mass, NameWalk, walk_names, walked
from llama_index.pgrag.search.ranking import nearness_of_nodes
from llama_index.pgrag.state import MindMap, PseudoGraph
from llama_index.ragkit import Query, Selection, Snapshot, Steps, offload
from llama_index.ragkit.index.contents import ViewContents
from llama_index.ragkit.steps import gather, immediate, run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.text.known_names import KnownNames
from llama_index.ragkit.vectors.question_scores import NEAREST, Nearness, question_cosines
from llama_index.ragkit.vectors.row_buffer import Record as RowRecord
from llama_index.ragkit.vectors.snapshot import Mask
from llama_index.ragkit.vectors.trust import passage_seeds

__all__ = ["Asked", "Gathered", "MapView"]

_FEWEST = 100  # facts near to a key point, which standardise cosines; with a filter, topics near to a question
_TOGETHER = 500  # members of a super node to which the walk goes
_WALKED = 60  # best nodes of the walk over names; further ones have too small a share

Ints = NDArray[np.int64]


class Asked(NamedTuple):
    """The vector of a question, its key points, and their vectors."""

    vector: Vector
    texts: list[str]
    points: Sequence[Vector]


@dataclass(frozen=True)
class Gathered:
    """The part of the index from which a question is answered.

    Attributes
    ----------
    query, near : the query, with the graph as its state, and the nearness of its chunks
    candidates, names : the maps to search, and the walk over names; None without a walk
    points : the vectors of the key points, in the space of the cells
    nodes : the scores of all nodes where they are known: without vectors of cells, facts have no part in them
    """

    query: Query[PseudoGraph]
    near: Nearness
    candidates: Sequence[Candidate]
    names: NameWalk | None
    points: Sequence[Vector]
    nodes: NDArray[np.float64] | None = None


class NearCells(NamedTuple):
    """The maps that a question searches; their nodes, and those of near facts; and the super nodes that were walked."""

    candidates: Sequence[Candidate]
    nodes: Sequence[str]
    super_topics: SuperNodes
    super_facts: SuperNodes


class MapView:
    """Gives questions the maps that they need: all maps if they are in memory, otherwise a part."""

    def __init__(
        self, storage: IndexStorage, rows: MapRows, fusions: Mapping[str, FusionRows], has_words: Callable[[], bool]
    ) -> None:
        self._part = partial(_Part, storage, rows, fusions)
        self._has_words = has_words

    def by_words(self, config: SearchConfig) -> bool:
        """Whether a search compares cells by their words, even if another search has embedded them."""
        return self._has_words() and not config.needs_vectors

    def gathered(self, query: Query[PseudoGraph], asked: Asked, config: SearchConfig) -> Steps[Gathered]:
        """The chunks near to a question, to its key points or to its names, and their maps.

        If the maps are not in memory, the query has the chunks near to it.
        """
        if isinstance(query.contents, ViewContents):
            part = self._part(self.by_words(config), query.contents.selection)
            return (yield from part.gathered(query, asked, config))
        near = yield from query.nearness(config.lexical_weight)
        return (yield from offload(_of_whole, query, asked, config, near, self.by_words(config)))

    def of_documents(self, state: PseudoGraph, nodes: Sequence[BaseNode]) -> Steps[PseudoGraph]:
        """The maps of the documents of some chunks, or of those that they are copies of, and perhaps others."""
        part = self._part(self.by_words(SearchConfig()), Selection())
        if not part.rows.are_kept:
            return state
        graph, _ = yield from part.graph((yield from part.documents_of(nodes)))
        return graph


def _of_whole(
    query: Query[PseudoGraph], asked: Asked, config: SearchConfig, near: Nearness, by_words: bool
) -> Gathered:
    graph, names = query.state, None
    if config.follows_names and graph.of_node:
        texts = list(dict.fromkeys([query.text, *asked.texts]))
        names = walk_names(graph.name_links, texts, near, query.allowed)
    if by_words:
        return _by_words(query, asked, config, near, names)
    candidates = find_candidates(graph, asked.vector, asked.points, config, Allowed.of(graph, query.allowed))
    return Gathered(query, near, candidates, names, asked.points)


def _by_words(
    query: Query[PseudoGraph], asked: Asked, config: SearchConfig, near: Nearness, names: NameWalk | None
) -> Gathered:
    """See :meth:`MapView.gathered`; cells are compared by their words, and only cells of the best nodes are used."""
    scores = nearness_of_nodes(near, names, config)
    graph, points = cells_by_words(query.state, scores, query.wanted, asked.texts)
    candidates = find_candidates(graph, points[0], points, config, Allowed.of(graph, query.allowed))
    query = replace(query, contents=replace(query.contents, state=graph))
    return Gathered(query, near, candidates, names, points, scores if config.ranking == "trust" else None)


@dataclass(frozen=True)
class _Part:
    """Reads parts of the maps of an index, of the selected chunks."""

    storage: IndexStorage
    rows: MapRows
    fusions: Mapping[str, FusionRows]
    by_words: bool
    selection: Selection

    def gathered(self, query: Query[PseudoGraph], asked: Asked, config: SearchConfig) -> Steps[Gathered]:
        """See :meth:`MapView.gathered`."""
        query = yield from query.including(asked.texts, np.stack(asked.points), max(NEAREST, query.wanted))
        contents: Any = query.contents
        texts = list(dict.fromkeys([query.text, *asked.texts]))
        has_facts = self.storage.struct.counters.get("facts", 0) > 0
        follows = config.follows_names and has_facts
        few = self.selection.only is not None
        near_cells = partial(self.near_cells, asked, config, query.wanted, contents.near.rows.ids)
        jobs: list[Callable[[], Steps[Any]]] = [_no_cells if self.by_words else near_cells]
        if follows and not few:
            seeds = yield from offload(_near_nodes, contents.near.rows, asked.vector)
            jobs.append(partial(self._walked_to, texts, seeds, max(_WALKED, query.wanted)))
        # One job waits for the indexes of vectors, the other reads the rows of the graph.
        cells, *others = [outcome.unwrap() for outcome in (yield from gather(jobs, len(jobs)))]
        named, mass, further = others[0] if others else ([], Mass.of([], []), [])
        ids = [] if few else list(dict.fromkeys([*further, *cells.nodes]))
        near = yield from contents.stored.including(contents.near, query.text, ids, contents.selection)
        graph, rows = yield from self.graph(near.rows, None if self.by_words else cells)
        query = replace(query, contents=replace(contents, state=graph, near=near), _lexical=None)
        nearness = yield from query.nearness(config.lexical_weight)
        names = None
        if follows and few:
            links = yield from offload(_links, near.rows, rows)
            names = yield from offload(walk_names, links, texts, nearness, None)
        elif follows:
            names = walked(named, nearness, _shares(near.rows, mass))
        if self.by_words:
            return (yield from offload(_by_words, query, asked, config, nearness, names))
        return Gathered(query, nearness, cells.candidates, names, asked.points)

    def _walked_to(self, texts: Sequence[str], seeds: Mass, count: int) -> Steps[tuple[list[str], Mass, list[str]]]:
        """The names from which a walk started, its mass, and the nodes with most of it."""
        named, mass = yield from offload(self._walk, texts, seeds)
        best = np.argsort(-mass.shares, kind="stable")[:count]
        return named, mass, list((yield from self.rows.node_ids(mass.rows[best].tolist())).values())

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
        """The nodes among these that count."""
        rows = yield from self.storage.space().described(dict.fromkeys(node_ids))
        return {rows.ids[row] for row in np.flatnonzero(self.selection.mask(rows))} if len(rows) else set()

    # -- candidates ---------------------------------------------------------------------------------

    def near_cells(self, asked: Asked, config: SearchConfig, wanted: int, shown: Sequence[str]) -> Steps[NearCells]:
        """The maps of :func:`~llama_index.pgrag.search.candidates.find_candidates`, and the facts near to key points.

        `wanted` facts must be in the right order; `shown` are chunks near to the question.
        """
        facts, topic_of, owners = yield from self._near_facts(
            asked.points, max(wanted, _FEWEST, config.seed_facts), shown
        )
        count = min(config.seed_topics, config.max_topics)
        topics = yield from self._with_topics(
            (yield from self._near_topics(asked.vector, count, shown)), topic_of.values()
        )
        super_topics = super_facts = SuperNodes(1.0)
        maps: Mapping[str, MindMap] = {}
        before: Sequence[str] = ()
        while True:
            mask, passing = yield from self._allowed(topics)
            seeds = topics.search([asked.vector], count, mask)[0].ids if count and len(topics) else []
            if list(seeds) == list(before):  # the walk has found no nearer topic
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
            topics=topics, facts=facts, maps=maps, map_of=topic_of, fused={"topics": super_topics, "facts": super_facts}
        )
        nodes = None if passing is None else frozenset(passing)
        # If the selection names the chunks that count, all of their facts are there.
        of_few = None if self.selection.only is None else np.ones(len(facts), np.bool_)
        allowed = Allowed(topics=mask, facts=of_few, nodes=nodes)
        candidates = yield from offload(find_candidates, graph, asked.vector, asked.points, config, allowed)
        of_maps = yield from self.rows.nodes_of_maps(candidate.topic_id for candidate in candidates)
        members = {i: None for ids in of_maps.values() for i in ids if passing is None or i in passing}
        return NearCells(candidates, [*{**members, **owners}], super_topics, super_facts)

    def _near_facts(
        self, points: Sequence[Vector], wanted: int, shown: Sequence[str]
    ) -> Steps[tuple[Snapshot, dict[str, str], dict[str, None]]]:
        """The facts near to key points, with their maps and their nodes; if few chunks count, all of their facts."""
        space = self.storage.space("facts")
        if self.selection.only is not None:
            rows = yield from self._passing_rows((yield from self.rows.nodes(shown)))
            own = [fact for row in rows.values() for fact in row.facts]
            found = yield from space.fetch(fact.id for fact in own)
            return found, {fact.id: fact.topic_id for fact in own}, dict.fromkeys(rows)
        found = yield from space.near(np.stack(points), wanted, self.selection)
        metas = {fact_id: found.metadata_of(fact_id) for fact_id in found.ids}
        topic_of = {fact_id: meta["pgrag_topic"] for fact_id, meta in metas.items()}
        return found, topic_of, dict.fromkeys(meta["pgrag_node"] for meta in metas.values())

    def _near_topics(self, question: Vector, count: int, shown: Sequence[str]) -> Steps[Snapshot]:
        """The topics near to a question; with a filter, also the topics of the chunks near to it."""
        space = self.storage.space("topics")
        if not count:
            return Snapshot.empty()
        near = Snapshot.empty()
        if self.selection.only is None:
            near = yield from space.near(question[None], max(count, _FEWEST))
        if self.selection.is_whole:
            return near
        rows = yield from self.rows.nodes(shown)
        return (yield from self._with_topics(near, (row.topic_id for row in rows.values())))

    def _with_topics(self, topics: Snapshot, topic_ids: Iterable[str]) -> Steps[Snapshot]:
        """The given topics and further ones."""
        unknown = sorted({topic_id for topic_id in topic_ids if topic_id not in topics})
        return topics.joined((yield from self.storage.space("topics").fetch(unknown)))

    def _allowed(self, topics: Snapshot) -> Steps[tuple[Mask | None, Collection[str] | None]]:
        """The topics with a fact that passes the filter, and the nodes of their maps that pass; None for all."""
        if self.selection.is_whole:
            return None, None
        nodes = yield from self.rows.nodes_of_maps(topics.ids)
        passing = yield from self.passing(i for ids in nodes.values() for i in ids)
        mask = np.array([not set(nodes.get(i, ())).isdisjoint(passing) for i in topics.ids], np.bool_)
        return mask, passing

    def _maps(self, topic_ids: Sequence[str]) -> Steps[Mapping[str, MindMap]]:
        """The maps of these topics, complete."""
        nodes = yield from self.rows.nodes_of_maps(topic_ids)
        rows = yield from self.rows.nodes(dict.fromkeys(i for ids in nodes.values() for i in ids))
        return PseudoGraph.of({node_id: row.facts for node_id, row in rows.items()}).maps

    def _passing_rows(self, rows: Mapping[str, NodeRow]) -> Steps[dict[str, NodeRow]]:
        """The rows of nodes that count, without facts that have words of nodes that do not count."""
        others = {i for row in rows.values() for fact in row.facts for i in fact.others}
        if self.selection.is_whole or not others:
            return dict(rows)
        shown = {*rows, *(yield from self.passing(sorted(others)))}
        kept = {i: replace(row, facts=tuple(f for f in row.facts if f.passes(shown))) for i, row in rows.items()}
        return {i: row for i, row in kept.items() if row.facts}

    def _topics_of(self, fact_ids: Iterable[str]) -> Steps[dict[str, str]]:
        """The maps of some facts."""
        found = yield from self.storage.space("facts").described(sorted(fact_ids))
        return {fact_id: found.metadata_of(fact_id)["pgrag_topic"] for fact_id in found.ids}

    # -- the graph ----------------------------------------------------------------------------------

    def documents_of(self, nodes: Sequence[BaseNode]) -> Steps[Snapshot]:
        """Some chunks and all others of their documents; with zeros for their vectors if cells have vectors."""
        chunks = self.storage.space()
        rows = yield from self.storage.rows_matching(nodes)
        documents = dict.fromkeys(record.ref_doc_id for record in rows.records if record.ref_doc_id)
        further = yield from self.storage.manifest.nodes_of_documents(documents)
        if self.by_words:
            return (yield from chunks.fetch(dict.fromkeys([*rows.ids, *further])))
        return rows.joined((yield from chunks.described(i for i in dict.fromkeys(further) if i not in rows)))

    def graph(
        self, chunks: Snapshot, cells: NearCells | None = None
    ) -> Steps[tuple[PseudoGraph, Mapping[str, NodeRow]]]:
        """The graph of only these chunks, with the vectors that a walk over its candidate maps needs; and their rows.

        `cells` are those by which the chunks were found; None if all of their maps are candidates.
        """
        rows = yield from self._passing_rows((yield from self.rows.nodes(chunks.ids)))
        of_node = {node_id: row.facts for node_id, row in rows.items()}
        graph = replace(PseudoGraph.of(of_node), chunks=chunks)
        if self.by_words:
            return graph, rows
        chosen = graph.maps if cells is None else [candidate.topic_id for candidate in cells.candidates]
        candidates = [topic_id for topic_id in chosen if topic_id in graph.maps]
        routes = [route_id for topic_id in candidates for route_id in graph.maps[topic_id].routes]
        facts = {fact.id: fact for own in of_node.values() for fact in own}
        vectors = yield from self.storage.space("facts").vectors_of(facts)
        described = [RowRecord(i, facts[i].document, facts[i].key, "{}") for i in vectors]
        whole = replace(
            graph,
            topics=(yield from self.storage.space("topics").fetch(candidates)),
            routes=(yield from self.storage.space("routes").fetch(routes)),
            facts=Snapshot.of(np.stack(list(vectors.values())), described) if vectors else Snapshot.empty(),
            fused={kind: fusion.empty for kind, fusion in self.fusions.items()},
        )
        if cells is None:
            return whole, rows
        topics = _among(cells.super_topics, graph.maps.__contains__)
        facts_ = _among(cells.super_facts, whole.map_of.__contains__)
        return replace(whole, fused={"topics": topics, "facts": facts_}), rows


@immediate
def _no_cells() -> NearCells:
    """No cells, since none is compared by its vector."""
    return NearCells([], [], SuperNodes(1.0), SuperNodes(1.0))


def _near_nodes(chunks: Snapshot, question: Vector) -> Mass:
    """The mass with which the walk over names starts at the nodes nearest to the question."""
    places, shares = passage_seeds(question_cosines(chunks, question))
    return Mass.of([chunk_number(chunks.ids[place]) for place in places.tolist()], NODE_SEEDS * shares)


def _shares(chunks: Snapshot, mass: Mass) -> np.ndarray:
    """Each chunk's share of a walk, relative to the best."""
    if not len(mass.rows):
        return np.zeros(len(chunks))
    of = dict(zip(mass.rows.tolist(), (mass.shares / mass.shares.max()).tolist(), strict=True))
    return np.array([of.get(chunk_number(node_id), 0.0) for node_id in chunks.ids])


def _links(chunks: Snapshot, rows: Mapping[str, NodeRow]) -> NameLinks:
    """The links of names of these chunks, as if there were no others."""
    topics = {cell_name(row.facts[0].path[0]) for row in rows.values()}
    nodes = {i: row.names_among(topics.intersection(row.present)) for i, row in rows.items()}
    known = KnownNames(sorted({name for names in nodes.values() for name in names.all}))
    return NameLinks().changed(known, [nodes.get(node_id) for node_id in chunks.ids])


def _members(super_nodes: SuperNodes) -> set[str]:
    """The members of all super nodes."""
    return {i for groups in super_nodes.groups.values() for group in groups for i in group}


def _walkable(super_nodes: SuperNodes, seeds: Sequence[str]) -> SuperNodes:
    """Super nodes with only some of their members if they have many."""
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
    """Super nodes without unknown members."""
    groups = {
        name: tuple(found for group in of_name if len(found := tuple(i for i in group if known(i))) > 1)
        for name, of_name in super_nodes.groups.items()
    }
    return replace(super_nodes, groups={name: found for name, found in groups.items() if found})
