"""A graph of statements as arrays: the data that a search for chunks needs, which a write updates, and those of a file.

From the arrays of a file, objects are made on demand. The arrays of a search are available at once. Chunks are read one
by one. Entities and links with their chunks, which only writes, communities and reports need, are computed from all
chunks.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.changes import Touched, statement_graph
from llama_index.graphrag.graph.entity_graph import EntityGraph, entity_graph, updated_entities
from llama_index.graphrag.graph.sorted_rows import SortedPlaces, edited, renamed, renewed
from llama_index.graphrag.graph.statement import ChunkStatements, scope_of, scoped
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.layered_mapping import LaterMapping
from llama_index.ragkit.text.packed_words import PackedMapping, PackedWords

__all__ = ["GraphArrays", "Naming", "pack_graph", "short_names", "unpack_graph"]

ShortNames = Mapping[str, frozenset[str]]
Integers = NDArray[np.int64]
_COLUMNS = ("indptr", "indices", "weights", "tokens", "node_tokens")  # of the entities
_NAMING = ("starts", "where")
_COMPUTED = ("documents", "entities", "links")


@dataclass(frozen=True, eq=False)
class Naming:
    """Which chunks name each entity.

    Attributes
    ----------
    names : keys of the entities, sorted
    chunks : ids of all chunks, sorted
    starts : shape (entities + 1,), where the chunks of each entity begin and the last end
    where : shape (m,), places of chunks, ascending for each entity
    """

    names: tuple[str, ...]
    chunks: tuple[str, ...]
    starts: Integers
    where: Integers

    @classmethod
    def of(cls, graph: StatementGraph, names: tuple[str, ...]) -> "Naming":
        """The chunks of the entities with these sorted keys."""
        chunks = tuple(sorted(graph.chunks))
        place = {chunk: row for row, chunk in enumerate(chunks)}
        rows = [sorted(map(place.__getitem__, graph.entities[name])) for name in names]
        starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(names, chunks, starts, np.array([chunk for row in rows for chunk in row], np.int64))

    def updated(
        self,
        graph: StatementGraph,
        names: tuple[str, ...],
        places: Integers,
        entities: Collection[str],
        chunks: Collection[str],
    ) -> "Naming":
        """The same after a write that changed at most these entities and chunks.

        `names` and `places` are the new keys, and the new place of each old one, -1 for a removed one.
        """
        known, row_of = SortedPlaces(self.chunks), SortedPlaces(names)
        removed = [chunk for chunk in chunks if chunk in known and chunk not in graph.chunks]
        added = [chunk for chunk in chunks if chunk not in known and chunk in graph.chunks]
        ids, moved = renamed(self.chunks, removed, added)
        place, rows, where = SortedPlaces(ids), SortedPlaces(self.names), moved[self.where]
        again = {chunk: place[chunk] for chunk in chunks if chunk in place}
        new = {}
        for name in (name for name in entities if name in graph.entities):
            row = rows.get(name, -1)
            old = where[self.starts[row] : self.starts[row + 1]] if row >= 0 else where[:0]
            entries = [(at,) for chunk, at in again.items() if chunk in graph.entities[name]]
            new[row_of[name]] = edited([old], list(again.values()), entries)
        starts, (where,) = renewed(self.starts, [where], places, len(names), new)
        return Naming(names, ids, starts, where)

    @cached_property
    def counts(self) -> Integers:
        """How many chunks name each entity."""
        return np.diff(self.starts)

    def entities_in(self, chunks: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The sorted keys of the entities that chunks name; chunks without one are left out."""
        places = SortedPlaces(self.chunks)
        known = {places[chunk]: chunk for chunk in chunks if chunk in places}
        wanted = np.zeros(len(self.chunks), np.bool_)
        wanted[list(known)] = True
        hits = np.flatnonzero(wanted[self.where])
        found: dict[str, list[str]] = {}
        rows = np.searchsorted(self.starts, hits, side="right") - 1
        for chunk, row in zip(self.where[hits].tolist(), rows.tolist(), strict=True):
            found.setdefault(known[chunk], []).append(self.names[row])
        return {chunk: tuple(keys) for chunk, keys in found.items()}


class GraphArrays(NamedTuple):
    """A graph as a search for chunks needs it; `short` is what :func:`short_names` gives."""

    entities: EntityGraph
    naming: Naming
    short: ShortNames

    @classmethod
    def of(cls, graph: StatementGraph) -> "GraphArrays":
        """The arrays of all statements."""
        entities = entity_graph(graph)
        return cls(entities, Naming.of(graph, entities.names), short_names(graph))

    def updated(self, graph: StatementGraph, touched: Touched) -> "GraphArrays":
        """The arrays of the graph after writes that changed these parts; equal to :meth:`of`."""
        known = self.entities.position
        removed = [key for key in touched.pairs if key in known and key not in graph.entities]
        added = [key for key in touched.pairs if key not in known and key in graph.entities]
        names, places = renamed(self.entities.names, removed, added)
        return GraphArrays(
            updated_entities(self.entities, graph, names, places, touched.pairs),
            self.naming.updated(graph, names, places, touched.pairs, touched.chunks),
            short_names(graph),
        )


def short_names(graph: StatementGraph) -> dict[str, frozenset[str]]:
    """Short forms and names that were merged, normalised, with the keys of the entities that they stand for."""
    names: dict[str, set[str]] = {}
    for document, short in graph.short.items():
        for name, full in short.items():
            names.setdefault(name, set()).add(scoped(scope_of(document), full))
    return {name: frozenset(keys) for name, keys in names.items()}


class _WholeGraph:
    """The graph of all chunks, made on demand."""

    def __init__(self, chunks: Mapping[str, ChunkStatements]) -> None:
        self._chunks = chunks

    @cached_property
    def graph(self) -> StatementGraph:
        return statement_graph(self._chunks.values())


def pack_graph(graph: StatementGraph, arrays: GraphArrays) -> Arrays:
    """The arrays of a graph without judgements of a resolver, with those that a search needs."""
    entities, naming, _ = arrays
    return nested(
        {
            "names": _packed(entities.names),
            "ids": _packed(naming.chunks),
            "entities": {name: getattr(entities, name) for name in _COLUMNS},
            "naming": {name: getattr(naming, name) for name in _NAMING},
            "short": PackedMapping.to_arrays(graph.short),
            "chunks": PackedMapping.to_arrays(graph.chunks, _values),
        }
    )


def unpack_graph(arrays: Arrays) -> tuple[StatementGraph, GraphArrays]:
    """The graph of :func:`pack_graph`, over the same memory."""
    names, ids = _unpacked(part_of(arrays, "names")), _unpacked(part_of(arrays, "ids"))
    chunks: PackedMapping[ChunkStatements] = PackedMapping.of_arrays(part_of(arrays, "chunks"), _chunk)
    short: PackedMapping[dict[str, str]] = PackedMapping.of_arrays(part_of(arrays, "short"))
    whole = _WholeGraph(chunks)
    documents, entities, links = (LaterMapping[Any](whole, f"graph.{part}") for part in _COMPUTED)
    graph = StatementGraph(chunks, documents, {}, short, entities, links)
    return graph, GraphArrays(
        EntityGraph(names, **part_of(arrays, "entities")),
        Naming(names, ids, **part_of(arrays, "naming")),
        short_names(graph),
    )


def _packed(words: tuple[str, ...]) -> Arrays:
    letters, ends = PackedWords(words).arrays
    return {"letters": letters, "ends": ends}


def _unpacked(arrays: Arrays) -> tuple[str, ...]:
    return tuple(PackedWords.of_arrays(arrays["letters"], arrays["ends"]))


def _values(chunk: ChunkStatements) -> list[Any]:
    return [chunk.text_hash, chunk.document_id, chunk.position, chunk.scope, chunk.record()]


def _chunk(chunk_id: str, values: list[Any]) -> ChunkStatements:
    text_hash, document_id, position, scope, record = values
    return ChunkStatements.from_record(record, chunk_id, text_hash, document_id, position, scope)
