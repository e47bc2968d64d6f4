"""The immutable state that a query reads: mind maps, their facts, and the super nodes over both.

Maps with the same topic from nodes of one document are merged into one mind map, so that a long text split into chunks
under one title has a single map. A fact belongs to the node from which it was extracted: the same words in two nodes
are two facts, linked by a super node.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.fusion.super_nodes import SuperNodes
from llama_index.pgrag.maps.mind_map import Path, path_text
from llama_index.pgrag.maps.name_links import MapNames, NameLinks, NodeNames, name_of
from llama_index.pgrag.maps.node_maps import TOPIC
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.text.layered_mapping import LayeredMapping
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["KINDS", "FactPath", "Facts", "MapCell", "MindMap", "PseudoGraph", "cells_of", "fact_paths"]

KINDS = ("topics", "routes", "facts")  # the cells of a mind map; each kind has its own vector space


@dataclass(frozen=True)
class FactPath:
    """A fact path, from its topic over routes to its fact, and its source."""

    id: str  # a UUID derived from node and path
    path: Path
    topic_id: str
    node_id: str
    document: str | None  # None for a node without one
    order: tuple[str, int]  # sort key of the facts of a map; derived from content, not from the order of insertion
    # sorted ids of other nodes of the document whose texts have words of the path that its node lacks; a fact passes a
    # filter only if all of these nodes pass
    others: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole path, which is embedded (Eq. 2)."""
        return path_text(self.path)

    def passes(self, nodes: Container[str]) -> bool:
        """Whether it passes a filter that lets only these nodes pass."""
        return self.node_id in nodes and all(node_id in nodes for node_id in self.others)

    @property
    def key(self) -> str:
        """Canonical order among equal scores: the text, then the position."""
        return f"{self.text}\x1f{self.order[0]}\x1f{self.order[1]:06d}"


@dataclass(frozen=True)
class MindMap:
    """A topic and the facts under it, in canonical order; the id is derived from document (or node) and topic."""

    id: str
    topic: str
    document: str | None
    facts: tuple[FactPath, ...]

    @property
    def key(self) -> str:
        """Canonical order among equal scores."""
        return f"{self.topic}\x1f{self.document or self.facts[0].order[0]}"

    @cached_property
    def _route_ids(self) -> dict[Path, str]:
        prefixes = {fact.path[:i] for fact in self.facts for i in range(2, len(fact.path))}
        return {prefix: content_id("route", self.id, *prefix) for prefix in prefixes}

    @property
    def routes(self) -> dict[str, Path]:
        """The cells between topic and facts: id (a UUID derived from the id of the map) -> path from the topic on."""
        return {route_id: prefix for prefix, route_id in self._route_ids.items()}

    def cells(self, fact: FactPath) -> list[tuple[str, str]]:
        """The cells of a fact path, each as kind and id."""
        between = [("routes", self._route_ids[fact.path[:i]]) for i in range(2, len(fact.path))]
        return [("topics", self.id), *between, ("facts", fact.id)]


Facts = Mapping[str, Sequence[FactPath]]
"""Node id -> its facts."""


@dataclass(frozen=True)
class NamesLater:
    """The names of the maps, which are brought up to date when a question first needs them.

    Until then `pending` has the names before some writes, and the facts of each node that was written or removed since.
    From then on it holds no name of a removed node. `links` are as they last were, or earlier.
    """

    pending: tuple[MapNames, Facts] = (MapNames(), MappingProxyType({}))
    links: NameLinks = field(default_factory=NameLinks)

    @cached_property
    def now(self) -> MapNames:
        """The current names."""
        earlier, since = self.pending
        found = earlier.changed({i: [fact.path for fact in facts] for i, facts in since.items()})
        vars(self)["pending"] = found, {}
        return found

    def links_of(self, chunks: Snapshot) -> NameLinks:
        """The current links of these nodes."""
        names: list[NodeNames | None] = [None] * (len(chunks) + 1)  # the last is for nodes without a row
        for row, own in zip(chunks.rows_of(list(self.now.nodes)).tolist(), self.now.nodes.values(), strict=True):
            names[row] = own
        vars(self)["links"] = found = self.links.changed(self.now.known, names[:-1])
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles contain nothing from removed nodes."""
        earlier, since = self.pending
        return NamesLater, ((self.now, {}),) if earlier.nodes else ((earlier, dict(since.items())),)

    def changed(self, facts: Facts, links: NameLinks | None) -> "NamesLater":
        """The names after a further write; `links` as they were before it, if a question has asked for them."""
        links = self.links if links is None else replace(links)  # without what was computed from it
        earlier, since = self.pending
        return NamesLater((earlier, {**dict(since.items()), **facts}), links)


@dataclass(frozen=True)
class PseudoGraph:
    """The state that a query reads: the whole index, or the part that a question or a write needs."""

    # vectors of the nodes and of the cells of the maps; a cell is embedded together with its path. If cells are
    # compared by their words, `topics`, `routes` and `facts` are empty
    chunks: Snapshot = field(default_factory=Snapshot.empty)
    topics: Snapshot = field(default_factory=Snapshot.empty)
    routes: Snapshot = field(default_factory=Snapshot.empty)
    facts: Snapshot = field(default_factory=Snapshot.empty)
    # topic id -> mind map; each of its cells has a row if cells have vectors
    maps: Mapping[str, MindMap] = field(default_factory=dict)
    map_of: Mapping[str, str] = field(default_factory=dict)  # fact id -> topic id
    of_node: Mapping[str, tuple[FactPath, ...]] = field(default_factory=dict)  # node id -> its facts
    # kind -> the super nodes over topics, and over facts, by their vectors; None if cells have no vectors
    fused: Mapping[str, SuperNodes] | None = None
    names: NamesLater = field(default_factory=NamesLater)  # the names of the maps of the whole index
    # id of a cell -> how often its text has each term, for cells that were counted for a question
    terms: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    links: NameLinks | None = None  # which nodes have which names, where that was stored

    @classmethod
    def of(cls, facts: Facts) -> "PseudoGraph":
        """The maps of nodes, without vectors and super nodes."""
        return cls().changed(facts)[0]

    def over(self, rows: Mapping[str, Snapshot], super_topics: SuperNodes, super_facts: SuperNodes) -> "PseudoGraph":
        """The graph with these super nodes, and the vectors of spaces by their names."""
        chunks, topics, routes, facts = (rows[name] for name in ("chunks", *KINDS))
        fused = {"topics": super_topics, "facts": super_facts}
        return replace(self, chunks=chunks, topics=topics, routes=routes, facts=facts, fused=fused)

    @cached_property
    def super_topics(self) -> SuperNodes:
        """The super nodes over topics with near vectors, or without vectors over topics with the same name."""
        if self.fused is not None:
            return self.fused["topics"]
        return SuperNodes.of_texts({i: name_of(found.topic) for i, found in self.maps.items()})

    @cached_property
    def super_facts(self) -> SuperNodes:
        """The super nodes over facts with near vectors, or without vectors over facts with the same text."""
        if self.fused is not None:
            return self.fused["facts"]
        return SuperNodes.of_texts({f.id: f.text.casefold() for found in self.maps.values() for f in found.facts})

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of topics, facts and super nodes; without vectors, only of topics and facts."""
        cells = {"topics": len(self.maps), "facts": len(self.map_of)}
        return cells | {f"super_{kind}": found.count for kind, found in (self.fused or {}).items()}

    @cached_property
    def name_links(self) -> NameLinks:
        """Which nodes have which names in their maps."""
        return self.links or self.names.links_of(self.chunks)

    @cached_property
    def _fact_of(self) -> dict[str, FactPath]:
        return {fact.id: fact for facts in self.of_node.values() for fact in facts}

    @cached_property
    def node_rows(self) -> NDArray[np.int64]:
        """The row of each fact's node, shape (facts,)."""
        return np.asarray(self.chunks.rows_of([self.fact(i).node_id for i in self.facts.ids]), np.int64)

    @cached_property
    def topic_rows(self) -> NDArray[np.int64]:
        """The row of each fact's topic, shape (facts,)."""
        return np.asarray(self.topics.rows_of([self.fact(i).topic_id for i in self.facts.ids]), np.int64)

    @cached_property
    def with_others(self) -> list[FactPath]:
        """The facts that have words of other nodes."""
        return [fact for facts in self.of_node.values() for fact in facts if fact.others]

    def only(self, allowed: Mask | None) -> "PseudoGraph":
        """The maps and super nodes of the nodes that pass a filter, with the vectors of all nodes."""
        if allowed is None:
            return self
        nodes = frozenset(self.chunks.ids[row] for row in np.flatnonzero(allowed))
        shown = {i: tuple(f for f in facts if f.passes(nodes)) for i, facts in self.of_node.items() if i in nodes}
        graph = PseudoGraph.of(shown)
        part = replace(self, maps=graph.maps, map_of=graph.map_of, of_node=graph.of_node)
        part = replace(part, names=graph.names, links=None)
        if self.fused is None:
            return part
        kept = [
            np.array([i in known for i in rows.ids], np.bool_)
            for rows, known in ((self.topics, graph.maps), (self.facts, graph.map_of))
        ]
        fused = {
            "topics": self.super_topics.among(self.topics, kept[0], graph.maps),
            "facts": self.super_facts.among(self.facts, kept[1], graph.map_of),
        }
        return replace(part, fused=fused)

    def changed(self, new: Facts, removed: Collection[str] = ()) -> tuple["PseudoGraph", dict[str, list[str]]]:
        """The graph after a write, equal to that of all remaining nodes written at once; vectors and super nodes stay.

        New facts replace earlier ones of the same nodes. Also returns the removed cells: kind -> ids.
        """
        forget = bool(removed) or not self.of_node.keys().isdisjoint(new)
        maps = LayeredMapping.over(self.maps, forget)
        map_of = LayeredMapping.over(self.map_of, forget)
        of_node = LayeredMapping.over(self.of_node, forget)
        before = {fact.id: fact for node_id in {*removed, *new} for fact in of_node.pop(node_id, ())}
        after = {fact.id: fact for facts in new.values() for fact in facts}
        of_node.update((node_id, tuple(facts)) for node_id, facts in new.items() if facts)
        by_topic: dict[str, list[FactPath]] = defaultdict(list)
        for fact in after.values():
            by_topic[fact.topic_id].append(fact)
        dropped: dict[str, list[str]] = {"topics": [], "routes": [], "facts": [i for i in before if i not in after]}
        for topic_id in dict.fromkeys(fact.topic_id for fact in (*before.values(), *after.values())):
            known = maps.pop(topic_id, None)
            kept = [fact for fact in known.facts if fact.id not in before] if known is not None else []
            facts = sorted([*kept, *by_topic[topic_id]], key=lambda fact: fact.order)
            if facts:
                maps[topic_id] = MindMap(topic_id, facts[0].path[0], facts[0].document, tuple(facts))
            if known is not None:
                routes = maps[topic_id].routes if facts else {}
                dropped["routes"] += [route_id for route_id in known.routes if route_id not in routes]
                dropped["topics"] += [] if facts else [topic_id]
        for fact_id in dropped["facts"]:
            del map_of[fact_id]
        map_of.update((fact.id, fact.topic_id) for fact in after.values())
        names = self.names.changed({**dict.fromkeys(removed, ()), **new}, vars(self).get("name_links"))
        return replace(self, maps=maps, map_of=map_of, of_node=of_node, names=names, links=None), dropped

    def fact(self, fact_id: str) -> FactPath:
        """A fact by its id."""
        return self._fact_of[fact_id]


def fact_paths(
    node_id: str,
    document: str | None,
    key: str,
    paths: Iterable[Path],
    others: Mapping[int, Collection[str]] = MappingProxyType({}),
) -> tuple[FactPath, ...]:
    """The facts of a node with this sort key; `others` as in :func:`~llama_index.pgrag.records.other_sources`."""
    paths = list(paths)
    topic_ids = {
        topic: content_id("topic", "document" if document else "node", document or node_id, topic)
        for topic in dict.fromkeys(path[0] for path in paths)
    }
    return tuple(
        FactPath(
            content_id("fact", node_id, *path),
            path,
            topic_ids[path[0]],
            node_id,
            document,
            (key, i),
            tuple(sorted({*others.get(i, ()), *others.get(TOPIC, ())})),
        )
        for i, path in enumerate(paths)
    )


@dataclass(frozen=True)
class MapCell:
    """The stored parts of a cell: the text that is embedded, its sort key, its metadata."""

    text: str
    key: str
    metadata: dict[str, Any] = field(default_factory=dict)


def cells_of(maps: Mapping[str, MindMap], topic_ids: Iterable[str]) -> dict[str, dict[str, MapCell]]:
    """The cells of some maps: kind -> id -> cell."""
    cells: dict[str, dict[str, MapCell]] = {kind: {} for kind in KINDS}
    for topic_id in topic_ids:
        found = maps[topic_id]
        cells["topics"][topic_id] = MapCell(found.topic, found.key)
        cells["routes"].update((i, MapCell(path_text(path), found.key)) for i, path in sorted(found.routes.items()))
        for fact in found.facts:
            cells["facts"][fact.id] = MapCell(fact.text, fact.key, {"node": fact.node_id, "topic": topic_id})
    return cells
