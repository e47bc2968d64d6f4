"""`Naming`: which chunks name each entity, as arrays."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.sorted_rows import SortedPlaces, edited, renamed, renewed
from llama_index.graphrag.graph.statement_graph import StatementGraph

__all__ = ["Naming"]

Integers = NDArray[np.int64]


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
        """The same after a write.

        Parameters
        ----------
        names, places : the new keys, and the new place of each old one, -1 for a removed one
        entities, chunks : at least the entities and chunks that the write changed
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
