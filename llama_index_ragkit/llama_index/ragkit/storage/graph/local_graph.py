"""`LocalGraph`: a graph as rows by node, in the memory of this process.

The rows are kept in parts. Within a part they are in the order of their nodes (CSR). A write adds a part with the new
state of the rows that it touches, which hide those of earlier parts. Parts of similar size are merged, so each row is
copied a logarithmic number of times. A write that takes something away cuts the rows that it touches out of all parts:
nothing of what was removed stays in memory.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.storage.graph.edges import (
    RECORD,
    EdgeChange,
    Records,
    check_label,
    joined,
    merged,
    segment_counts,
    totals_of,
)
from llama_index.ragkit.storage.graph.interface import NodeRows

__all__ = ["LocalGraph"]

Ints = NDArray[np.int64]


class _Part(NamedTuple):
    """Rows of nodes, shape (m,), with all edges: those of node i are ``records[indptr[i] : indptr[i + 1]]``."""

    nodes: Ints
    labels: NDArray[np.object_]
    segments: Ints
    indptr: Ints
    records: Records

    def only(self, kept: NDArray[np.bool_]) -> "_Part":
        """The rows of a mask, shape (m,)."""
        if kept.all():
            return self
        sizes = np.diff(self.indptr)
        records = self.records[np.repeat(kept, sizes)]
        return _Part(self.nodes[kept], self.labels[kept], self.segments[kept], _starts(sizes[kept]), records)

    def without(self, nodes: Ints) -> "_Part":
        """The rows of other nodes than these, if those of the part are in ascending order."""
        places, here = self.find(nodes)
        kept = np.ones(len(self.nodes), np.bool_)
        kept[places[here]] = False
        return self.only(kept)

    def find(self, nodes: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """The places of nodes among those of the part, which are in ascending order, and whether they are there."""
        places = np.minimum(np.searchsorted(self.nodes, nodes), len(self.nodes) - 1)
        return places, self.nodes[places] == nodes


@dataclass(frozen=True)
class _State:
    """A state of a graph, of parts none of which is empty. A row hides those of the same node in earlier parts."""

    parts: Sequence[_Part] = ()

    @cached_property
    def whole(self) -> NodeRows:
        """All rows."""
        rows = _together(self.parts) if self.parts else _read((), np.empty(0, np.int64))
        none = np.zeros(len(rows.nodes), np.int64)
        return NodeRows(rows.nodes, none, rows.labels.tolist(), rows.indptr, rows.records, {})

    def fetch(self, nodes: Ints, whole: Ints | Sequence[int] = ()) -> NodeRows:
        """See :class:`~llama_index.ragkit.storage.graph.interface.GraphReader`."""
        heads = np.asarray(nodes, np.int64)
        rows = _read(self.parts, np.concatenate([heads, np.asarray(whole, np.int64)]), len(heads))
        hubs = _read(self.parts, heads[rows.segments[: len(heads)] > 0])
        ends = zip(hubs.nodes.tolist(), hubs.indptr.tolist(), hubs.indptr[1:].tolist(), strict=False)
        totals = {node: totals_of(hubs.records[start:end]) for node, start, end in ends}
        rows.segments[len(heads) :], rows.labels[len(heads) :] = 0, ""
        return NodeRows(rows.nodes, rows.segments, rows.labels.tolist(), rows.indptr, rows.records, totals)

    def changed(self, change: EdgeChange, labels: Mapping[int, str]) -> "_State":
        """The state after a change, see :meth:`LocalGraph.change`."""
        nodes = np.unique(change.nodes)
        old, given = _read(self.parts, nodes), np.array([labels.get(node, "") for node in nodes.tolist()], object)
        sizes = np.diff(old.indptr)
        for i in np.flatnonzero((sizes > 0) & (old.labels != given)).tolist():
            check_label(int(nodes[i]), old.labels[i], given[i])
        owners = np.concatenate([np.repeat(np.arange(len(nodes)), sizes), np.searchsorted(nodes, change.nodes)])
        owners, records = merged(owners, joined([old.records, change.records]))
        indptr = np.searchsorted(owners, np.arange(len(nodes) + 1))
        new = _Part(nodes, given, segment_counts(indptr, records), indptr, records)
        parts = [*self.parts, new.only(np.diff(indptr) > 0)]
        if (change.records["count"] < 0).any():
            parts[:-1] = [part.without(nodes) for part in parts[:-1]]
        parts = [part for part in parts if len(part.nodes)]
        while len(parts) > 1 and len(parts[-2].records) < 2 * len(parts[-1].records):
            parts[-2:] = [_together(parts[-2:])]
        return _State(tuple(parts))


class LocalGraph:
    """A :class:`~llama_index.ragkit.storage.graph.interface.GraphRows` in the memory of this process.

    Copies and pickles have a state of their own.
    """

    def __init__(self) -> None:
        self._state = _State()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalGraph._of, (self._state.parts,)

    @classmethod
    def _of(cls, parts: Sequence[_Part]) -> "LocalGraph":
        graph = cls()
        graph._state = _State(parts)
        return graph

    def reader(self) -> AbstractContextManager[_State]:
        """A reader that sees one state of the graph, whatever is written meanwhile."""
        return nullcontext(self._state)

    def change(self, change: EdgeChange, labels: Mapping[int, str]) -> None:
        """See :meth:`~llama_index.ragkit.storage.graph.interface.GraphRows.change`."""
        with self._lock:
            self._state = self._state.changed(change, labels)

    def whole(self) -> NodeRows | None:
        """All rows with all of their edges, nodes ascending; put together once for each state."""
        return self._state.whole


def _read(parts: Sequence[_Part], nodes: Ints, heads: int = 0) -> _Part:
    """The rows of nodes in any order, without edges of those that no part has and of hubs among the first `heads`."""
    of, places = np.full(len(nodes), -1), np.zeros(len(nodes), np.int64)
    for number in reversed(range(len(parts))):
        left = np.flatnonzero(of < 0)
        found, here = parts[number].find(nodes[left])
        of[left[here]], places[left[here]] = number, found[here]
    rows = _Part(
        nodes,
        np.full(len(nodes), "", object),
        np.zeros(len(nodes), np.int64),
        np.zeros(len(nodes) + 1, np.int64),
        np.empty(0, RECORD),
    )
    starts, sizes = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
    own = [np.flatnonzero(of == number) for number in range(len(parts))]
    for part, mine in zip(parts, own, strict=True):
        at = places[mine]
        rows.labels[mine], rows.segments[mine] = part.labels[at], part.segments[at]
        starts[mine], sizes[mine] = part.indptr[at], part.indptr[at + 1] - part.indptr[at]
    sizes[:heads][rows.segments[:heads] > 0] = 0
    indptr = _starts(sizes)
    records = np.empty(indptr[-1], RECORD)
    for part, mine in zip(parts, own, strict=True):
        records[_ranges(indptr[mine], sizes[mine])] = part.records[_ranges(starts[mine], sizes[mine])]
    return rows._replace(indptr=indptr, records=records)


def _together(parts: Sequence[_Part]) -> _Part:
    """One part with the rows of several."""
    return parts[0] if len(parts) == 1 else _read(parts, np.unique(np.concatenate([part.nodes for part in parts])))


def _starts(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _ranges(starts: Ints, sizes: Ints) -> Ints:
    """The whole numbers of ranges, one range after the other."""
    return np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
