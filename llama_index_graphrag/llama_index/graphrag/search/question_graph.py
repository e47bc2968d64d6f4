"""`QuestionGraph`: the rows of a stored graph that one question needs, read on demand, and what they make up."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.entity_graph import EntityGraph, Naming
from llama_index.graphrag.graph.statement_edges import (
    MEANT,
    NAMED,
    NO_SOURCE,
    PAIR,
    chunk_number,
    entity_number,
    name_number,
)
from llama_index.graphrag.search.linking import Link
from llama_index.ragkit.storage.graph.edges import SEGMENT, Records
from llama_index.ragkit.storage.graph.interface import GraphReader, NodeRows, asked_once
from llama_index.ragkit.text.known_names import names_part, possible_mentions

__all__ = ["Allowed", "NodeRow", "QuestionGraph", "entities_around", "naming_of", "read_around_entities"]

Ints = NDArray[np.int64]
Allowed = Callable[[Ints], NDArray[np.bool_]]
"""Numbers of chunks, distinct -> whether they may be returned."""

MOST_NEIGHBOURS = 4096  # most neighbours of a question's entities that are read, by activation
_KINDS = 4  # of edges
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class NodeRow:
    """A node: the key of an entity or the id of a chunk, its edges, and their number by kind.

    The label is empty if the node is not stored. A node with several rows that were not read is not whole: it has no
    edges.
    """

    label: str
    records: Records
    counts: Sequence[int]
    whole: bool = True

    def neighbours(self, kind: int) -> Ints:
        """The other ends of the edges of a kind, one for each record."""
        found: Ints = self.records["neighbor"][self.records["kind"] == kind]
        return found


class Neighbourhood(NamedTuple):
    """The numbers of an entity's neighbours, ascending, and of the chunks that state each pair."""

    others: Ints
    weights: Ints


class QuestionGraph:
    """Reads rows for one question, each once.

    If `allowed` says which chunks may be returned, the graph leaves out what only others state.
    """

    def __init__(self, reader: GraphReader, allowed: Allowed | None = None) -> None:
        self._reader = reader
        self._allowed = allowed
        self._rows: dict[int, NodeRow] = {}
        self._near: dict[int, Neighbourhood] = {}
        self._seen: dict[int, bool] = {NO_SOURCE: True}

    def read(self, nodes: Iterable[int], most: int | None = None) -> None:
        """Read nodes that were not read before.

        A node with several rows that more than `most` chunks name is not read whole.
        """
        new = np.array(sorted({node for node in nodes if node not in self._rows or not self._rows[node].whole}))
        if not len(new):
            return
        rows = self._reader.fetch(new.astype(np.int64))
        for node, row in _split(rows):
            self._rows[node] = row
        hubs = [
            int(node)
            for node in rows.nodes[rows.further > 0].tolist()
            if most is None or self._allowed is not None or self._rows[node].counts[NAMED] <= most
        ]
        if hubs:
            for node, row in _split(self._reader.fetch(rows.nodes[:0], hubs)):
                self._rows[node] = replace(row, label=self._rows[node].label)
        if self._allowed is not None:
            self._restrict(new.tolist(), self._allowed)

    def _restrict(self, nodes: Sequence[int], allowed: Allowed) -> None:
        """Leave out the edges that come from chunks that may not be returned."""
        rows = [self._rows[node] for node in nodes]
        ends = np.cumsum([len(row.records) for row in rows])
        seen = asked_once(self._seen, allowed, np.concatenate([row.records["source"] for row in rows]))
        for node, row, own in zip(nodes, rows, np.split(seen, ends[:-1]), strict=True):
            self._rows[node] = _row(row.label, row.records[own])

    # -- what was read --------------------------------------------------------------------------------

    def key(self, entity: int) -> str:
        """The key of an entity that was read; empty if no chunk that may be returned names it."""
        row = self._rows[entity]
        return row.label if row.counts[NAMED] else ""

    def chunks(self, entity: int) -> int:
        """The number of chunks that name an entity."""
        return self._rows[entity].counts[NAMED]

    def naming(self, entity: int) -> Ints:
        """The numbers of the chunks that name an entity; none for a hub that was not read whole."""
        return self._rows[entity].neighbours(NAMED)

    def entities(self, chunk: int) -> list[int]:
        """The numbers of the entities of a chunk."""
        found: list[int] = self._rows[chunk].neighbours(NAMED).tolist()
        return found

    def chunk_id(self, chunk: int) -> str:
        """The id of a chunk."""
        return self._rows[chunk].label

    def meanings(self, phrase: str) -> list[int]:
        """The entities for which a normalised name may stand."""
        return list(dict.fromkeys(self._rows[name_number(phrase)].neighbours(MEANT).tolist()))

    def neighbourhood(self, entity: int) -> Neighbourhood:
        """The pairs of an entity that was read whole."""
        if entity not in self._near:
            self._near[entity] = Neighbourhood(*np.unique(self._rows[entity].neighbours(PAIR), return_counts=True))
        return self._near[entity]

    def pairs(self, entity: int) -> int:
        """The sum of the weights of an entity's pairs."""
        return self._rows[entity].counts[PAIR]

    # -- steps of a search ----------------------------------------------------------------------------

    def read_names(self, question: str, chunks: Iterable[str], also: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
        """Read the names that a question may have, further normalised ones, and chunks.

        Returns the normalised names, with the sorted keys of the entities for which each may stand.
        """
        phrases = list(dict.fromkeys([*possible_mentions(names_part(question)), *also]))
        self.read([*map(name_number, phrases), *map(chunk_number, chunks)])
        meant = {phrase: found for phrase in phrases if (found := self.meanings(phrase))}
        self.read(entity for found in meant.values() for entity in found)
        names = {phrase: tuple(sorted(filter(None, map(self.key, found)))) for phrase, found in meant.items()}
        return {phrase: keys for phrase, keys in names.items() if keys}

    def read_entities_of(self, chunks: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Read the entities of chunks that were read, and return the sorted keys for each."""
        of = {node_id: self.entities(chunk_number(node_id)) for node_id in chunks}
        self.read(entity for entities in of.values() for entity in entities)
        return {node_id: tuple(sorted(map(self.key, entities))) for node_id, entities in of.items() if entities}

    def read_neighbours(self, links: Sequence[Link], spread: float) -> list[int]:
        """Read the neighbours of linked entities, only the most active if there are very many.

        Returns the numbers of all active entities.
        """
        active: dict[int, float] = {}
        for link in links if spread else ():
            entity = entity_number(link.entity)
            others, weights = self.neighbourhood(entity)
            shares = spread * link.weight * weights / max(1, self.pairs(entity))
            for other, share in zip(others.tolist(), shares.tolist(), strict=True):
                active[other] = active.get(other, 0.0) + share
        best = sorted(active, key=lambda other: (-active[other], other))[:MOST_NEIGHBOURS]
        self.read(best, SEGMENT)
        linked = [entity_number(link.entity) for link in links]
        return [entity for entity in dict.fromkeys([*linked, *best]) if self.key(entity)]

    def best_chunks(self, active: Mapping[str, float], count: int) -> list[str]:
        """Read the chunks with the largest shares of activations, as far as the entities were read whole."""
        shares: dict[int, float] = {}
        for key in sorted(active):
            entity = entity_number(key)
            for chunk in self.naming(entity).tolist():
                shares[chunk] = shares.get(chunk, 0.0) + active[key] / self.chunks(entity)
        best = sorted(shares, key=lambda chunk: (-shares[chunk], chunk))[:count]
        self.read(best)
        return [self.chunk_id(chunk) for chunk in best]


def _row(label: str, records: Records) -> NodeRow:
    return NodeRow(label, records, np.bincount(records["kind"], minlength=_KINDS).tolist())


def _split(rows: NodeRows) -> Iterator[tuple[int, NodeRow]]:
    ends = rows.indptr.tolist()
    for i, node in enumerate(rows.nodes.tolist()):
        if node in rows.totals:
            totals = {kind: number for kind, number, _ in rows.totals[node].tolist()}
            counts = [totals.get(kind, 0) for kind in range(_KINDS)]
            yield node, NodeRow(rows.labels[i], rows.records[:0], counts, whole=False)
        else:
            yield node, _row(rows.labels[i], rows.records[ends[i] : ends[i + 1]])


def entities_around(graph: QuestionGraph, links: Sequence[Link], active: Iterable[int]) -> EntityGraph:
    """The active entities, given by their numbers, with the edges of those that a question leads to."""
    keys = {graph.key(entity): entity for entity in active}
    ordered = sorted(keys)
    place = {keys[key]: row for row, key in enumerate(ordered)}
    rows: dict[int, list[tuple[int, int]]] = {}
    for entity in sorted({entity_number(link.entity) for link in links} & place.keys()):
        others, weights = graph.neighbourhood(entity)
        near = zip(others.tolist(), weights.tolist(), strict=True)
        rows[place[entity]] = sorted((place[other], weight) for other, weight in near if other in place)
    entries = [entry for row in range(len(ordered)) for entry in rows.get(row, ())]
    indptr = np.cumsum([0, *(len(rows.get(row, ())) for row in range(len(ordered)))])
    return EntityGraph(
        tuple(ordered),
        indptr.astype(np.int64),
        np.array([other for other, _ in entries], np.int64),
        np.array([weight for _, weight in entries], np.int64),
        np.zeros(len(entries), np.int64),
        np.zeros(len(ordered), np.int64),
        np.array([graph.pairs(keys[key]) for key in ordered], np.int64),
        np.diff(indptr).astype(np.int64),
    )


def naming_of(graph: QuestionGraph, entities: EntityGraph, chunks: Iterable[str]) -> Naming:
    """Which of these chunks, which were read, name each entity."""
    numbers = list(map(entity_number, entities.names))
    row_of = {number: row for row, number in enumerate(numbers)}
    ids = sorted(set(chunks))
    found = sorted(
        (row_of[entity], place)
        for place, node_id in enumerate(ids)
        for entity in graph.entities(chunk_number(node_id))
        if entity in row_of
    )
    rows, where = np.array(found, np.int64).reshape(-1, 2).T
    starts = np.searchsorted(rows, np.arange(len(numbers) + 1))
    return Naming(entities.names, tuple(ids), starts, where, np.array(list(map(graph.chunks, numbers)), np.int64))


def read_around_entities(graph: QuestionGraph, keys: Sequence[str]) -> tuple[list[str], dict[str, int]]:
    """Read entities, the chunks that name them, and their neighbours, with all edges.

    Returns the ids of these chunks, and the number of neighbours of each entity and of each neighbour.
    """
    linked = [entity_number(key) for key in keys]
    graph.read(linked)
    around = {entity: graph.neighbourhood(entity).others.tolist() for entity in linked}
    every = list(dict.fromkeys([*linked, *(other for others in around.values() for other in others)]))
    graph.read(every)
    chunks = list(dict.fromkeys(chunk for entity in linked for chunk in graph.naming(entity).tolist()))
    graph.read(chunks)
    degrees = {graph.key(entity): len(graph.neighbourhood(entity).others) for entity in every}
    return [graph.chunk_id(chunk) for chunk in chunks], degrees
