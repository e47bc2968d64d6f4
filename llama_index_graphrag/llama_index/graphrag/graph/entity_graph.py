"""The graph of entities as arrays, on which clusterings and searches work, and the chunks that name each entity.

A write updates the arrays that a search needs. They can be stored in a file, and are then available at once: chunks are
read one by one, and entities and links with their chunks, which only writes, communities and reports need, are computed
from all chunks.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.sorted_rows import SortedPlaces, edited, renamed, renewed
from llama_index.graphrag.graph.statement import ChunkStatements, scope_of, scoped
from llama_index.graphrag.graph.statement_graph import Occurrences, StatementGraph, Touched, statement_graph
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.layered_mapping import LaterMapping
from llama_index.ragkit.text.packed_words import PackedMapping, PackedWords

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "EntityGraph",
    "GraphArrays",
    "Naming",
    "entity_graph",
    "pack_graph",
    "short_names",
    "summed",
    "unpack_graph",
    "updated_entities",
]

Integers = NDArray[np.int64]
ShortNames = Mapping[str, frozenset[str]]
_COLUMNS = ("indptr", "indices", "weights", "tokens", "node_tokens")  # of the entities
_NAMING = ("starts", "where")
_COMPUTED = ("documents", "entities", "links")


@dataclass(frozen=True, eq=False)
class EntityGraph:
    """An undirected weighted graph as a symmetric sparse matrix, rows and columns in the order of the names."""

    names: tuple[str, ...]  # n keys of entities, sorted, without repetition
    # int64, shapes (n + 1,) and (m,): rows of sorted neighbours; each edge is in two rows
    indptr: Integers
    indices: Integers
    weights: Integers  # int64, shape (m,), at least 1: number of chunks that state the pair
    tokens: Integers  # int64, shape (m,): tokens of the statements about the pair
    node_tokens: Integers  # int64, shape (n,): tokens of the statements only about the entity
    # int64, shape (n,), for a part of a graph, whose rows lack unknown entities: the sum of the weights of all edges of
    # each entity, and its number of neighbours as far as it is known
    sums: Integers | None = None
    ends: Integers | None = None

    def __len__(self) -> int:
        """Number of entities."""
        return len(self.names)

    @classmethod
    def of(
        cls,
        names: Any,
        sources: Any,
        targets: Any,
        weights: Any = None,
        tokens: Any = None,
        node_tokens: Any = None,
    ) -> "EntityGraph":
        """The graph with these edges, each given once, in any order and direction.

        Parameters
        ----------
        names : n different keys, in any order
        sources, targets : shape (e,), positions in `names`
        weights, tokens : shape (e,), whole numbers; they add up for an edge that is given more than once [1 and 0]
        node_tokens : shape (n,) [0]

        Raises
        ------
        ConfigurationError
            If names repeat, an edge joins an entity with itself or with an unknown position, or a weight is not a
            whole number of at least 1.
        """
        n = len(names)
        order = sorted(range(n), key=names.__getitem__)
        ordered = tuple(names[i] for i in order)
        if len(set(ordered)) < n:
            raise ConfigurationError("Names of entities must differ from each other.")
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        ends = np.asarray(sources, np.int64).reshape(-1), np.asarray(targets, np.int64).reshape(-1)
        if len(ends[0]) != len(ends[1]) or any(((end < 0) | (end >= n)).any() for end in ends):
            raise ConfigurationError(f"sources and targets must be positions in the {n} names, as many of each.")
        if (ends[0] == ends[1]).any():
            raise ConfigurationError("An edge must join two different entities.")
        one, other = rank[ends[0]], rank[ends[1]]
        weight = _whole("weights", np.ones(len(one)) if weights is None else weights, len(one), 1)
        token = _whole("tokens", np.zeros(len(one)) if tokens is None else tokens, len(one), 0)
        alone = _whole("node_tokens", np.zeros(n) if node_tokens is None else node_tokens, n, 0)
        places = np.concatenate([one * n + other, other * n + one])
        cells, where = np.unique(places, return_inverse=True)
        indptr = np.searchsorted(cells, np.arange(n + 1) * n)
        sums = (summed(where, np.concatenate([values, values]), len(cells)) for values in (weight, token))
        return cls(ordered, indptr, cells % n if n else cells, next(sums), next(sums), alone[order])

    def adjacency(self) -> "csr_matrix":
        """The weights as a matrix, shape (n, n), that shares the memory of this graph."""
        from scipy.sparse import csr_matrix  # loads in a tenth of a second

        return csr_matrix((self.weights, self.indices, self.indptr), shape=(len(self), len(self)))

    @cached_property
    def rows(self) -> Integers:
        """The row of each entry, shape (m,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @cached_property
    def degrees(self) -> Integers:
        """Number of neighbours of each entity, shape (n,)."""
        return np.diff(self.indptr) if self.ends is None else self.ends

    @cached_property
    def strengths(self) -> Integers:
        """Sum of the weights of each entity's edges, shape (n,)."""
        return summed(self.rows, self.weights, len(self)) if self.sums is None else self.sums

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Key -> row."""
        return SortedPlaces(self.names)

    def neighbours(self, row: int) -> Integers:
        """The sorted neighbours of an entity."""
        return self.indices[self.indptr[row] : self.indptr[row + 1]]


def entity_graph(graph: StatementGraph) -> EntityGraph:
    """The graph of the entities of some statements."""
    names = tuple(sorted(graph.entities))
    position = {name: row for row, name in enumerate(names)}
    cells: list[int] = []
    weights: list[int] = []
    tokens: list[int] = []
    ends = [0]
    for name in names:
        row = sorted(((position[o], where) for o, where in graph.links.get(name, {}).items()), key=itemgetter(0))
        cells += [cell for cell, _ in row]
        weights += [len(where) for _, where in row]
        tokens += [sum(where.values()) for _, where in row]
        ends.append(len(cells))
    alone = [sum(graph.entities[name].values()) for name in names]
    return EntityGraph(names, *(np.array(values, np.int64) for values in (ends, cells, weights, tokens, alone)))


def updated_entities(
    earlier: EntityGraph,
    graph: StatementGraph,
    names: tuple[str, ...],
    places: Integers,
    pairs: Mapping[str, Collection[str]],
) -> EntityGraph:
    """The graph of the entities after a write of statements.

    `names` and `places` are the new keys, and the new place of each old one, -1 for a removed one; `pairs` has, for
    each changed entity, the entities whose pair with it changed.
    """
    position, columns = SortedPlaces(names), [places[earlier.indices], earlier.weights, earlier.tokens]
    there = {name: position[name] for name in pairs if name in graph.entities}
    new = {}
    for name, place in there.items():
        row = earlier.position.get(name, -1)
        own = slice(*earlier.indptr[row : row + 2].tolist()) if row >= 0 else slice(0)
        others = {position[other]: other for other in pairs[name] if other in position}
        links = graph.links.get(name, {})
        come = [(at, *_edge(links[other])) for at, other in others.items() if other in links]
        new[place] = edited([column[own] for column in columns], list(others), come)
    indptr, (indices, weights, tokens) = renewed(earlier.indptr, columns, places, len(names), new)
    alone = np.zeros(len(names), np.int64)
    alone[places[places >= 0]] = earlier.node_tokens[places >= 0]
    alone[list(there.values())] = [sum(graph.entities[name].values()) for name in there]
    return EntityGraph(names, indptr, indices, weights, tokens, alone)


def _edge(where: Occurrences) -> tuple[int, int]:
    """The weight and the tokens of a pair."""
    return len(where), sum(where.values())


def summed(where: Integers, values: Integers, length: int) -> Integers:
    """The sum of the values at each place, shape (length,)."""
    sums = np.zeros(length, np.int64)
    np.add.at(sums, where, values)
    return sums


def _whole(name: str, values: Any, length: int, least: int) -> Integers:
    given = np.asarray(values)
    if given.shape != (length,) or (length and not (np.equal(np.mod(given, 1), 0).all() and given.min() >= least)):
        raise ConfigurationError(f"{name} must be {length} whole numbers of at least {least}.")
    return given.astype(np.int64)


@dataclass(frozen=True, eq=False)
class Naming:
    """Which chunks name each entity."""

    names: tuple[str, ...]  # keys of the entities, sorted
    chunks: tuple[str, ...]  # ids of all chunks, sorted
    starts: Integers  # shape (entities + 1,), where the chunks of each entity begin and the last end
    where: Integers  # shape (m,), places of chunks, ascending for each entity
    # int64, shape (entities,), for a part of the chunks: how many of all chunks name each entity
    totals: Integers | None = None

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
    def sizes(self) -> Integers:
        """How many of these chunks name each entity."""
        return np.diff(self.starts)

    @property
    def counts(self) -> Integers:
        """How many of all chunks name each entity."""
        return self.sizes if self.totals is None else self.totals

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
