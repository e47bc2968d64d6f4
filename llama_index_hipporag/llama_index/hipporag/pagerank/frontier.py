"""The part of a graph that a walk needs, if the graph is not in memory: its rows are read a frontier at a time.

Forward push decides whether a row is worth reading (Andersen, Chung, Lang 2006, "Local graph partitioning using
PageRank vectors", section 3). Only the fetched rows of the graph are known, and a fetch costs far more than a push.
Hence two differences:

1. Within the rows at hand, nodes are pushed until little residual, the mass that has not been walked yet, is left on
them. The rest lies on nodes whose row is not at hand: the frontier. Those with enough residual are fetched together, in
one call.
2. A node is worth fetching if the mass that it would move, d r_u, is more than epsilon for each *stored row* that must
be read. The paper compares with the degree of u, which is unknown before u is fetched. The row of a hub is cut into
segments; its first row tells how many. A segment has as many edges as some sixteen rows of ordinary nodes, and each
edge gets correspondingly less mass. So further segments are read only if the mass exceeds 16 epsilon times their
number. At most ``1 / (epsilon (1 - d))`` rows are read, *whatever the size of the graph*. The last calls would read a
dozen nodes with far less mass than is left on all the others together, so they are not made.

The walk itself is that of any other graph (:mod:`llama_index.hipporag.pagerank.power_iteration`), over the rows that
were read. No edge leaves the other nodes, so a score is too low by at most the mass that they would have moved.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.pagerank.power_iteration import check_reset

__all__ = ["EPSILON", "Fetch", "FetchedRows", "Frontier"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

EPSILON = 2e-6  # mass that is left unmoved, per stored row
_AT_HAND = 0.1  # share of epsilon down to which nodes whose row is at hand are pushed
_SEGMENT = 16  # a segment of a hub counts as this many rows of an ordinary node: it has as many times the edges
_WORTH = 0.1  # least mass that a call must move, as a share of the mass that stays unmoved in any case
_UNKNOWN = {"residual": 0, "kept": 0, "strength": 0, "rows": 1, "further": -1, "start": 0, "degree": 0}  # a new node's


class FetchedRows(NamedTuple):
    """Rows of a graph, as compressed rows.

    Attributes
    ----------
    nodes : (m,) the ids of distinct nodes, including nodes without edges
    further : (m,) number of further rows with the edges of a node, if these are not given; 0 if they are
    indptr : (m + 1,) ``neighbors[indptr[i] : indptr[i + 1]]`` are the neighbours of node i
    neighbors : (e,) ids; a repeated one has the sum of its weights
    weights : (e,) positive
    """

    nodes: Ints
    further: Ints
    indptr: Ints
    neighbors: Ints
    weights: Floats


Fetch = Callable[[Ints, Ints], FetchedRows]
"""(nodes that are still unknown, nodes whose further rows are wanted), both ascending -> the rows of all of them."""


class Frontier:
    """The rows that were read, over the nodes in the order in which they were reached.

    Parameters
    ----------
    fetch : reads rows
    damping : probability of following an edge, 0 <= d < 1
    epsilon : mass that may be left unmoved at a node, per stored row that would have to be read, and 16 times as much
        per segment of a hub; positive

    Attributes
    ----------
    ids : (n,), of the nodes
    kept : (n,), mass that the last walk has certainly left at each node
    calls : number of fetches
    """

    def __init__(self, fetch: Fetch, *, damping: float = 0.5, epsilon: float = EPSILON) -> None:
        self.damping, self.epsilon = damping, epsilon
        self.ids = self._sorted = np.empty(0, np.int64)
        self._places = np.empty(0, np.int64)  # of the sorted ids
        self.kept: Floats = np.empty(0)
        self.residual: Floats = np.empty(0)
        self.further = np.empty(0, np.int64)  # -1: not fetched; 0: the row is at hand
        self.rows = np.empty(0)  # stored rows of a node, as far as known
        self.start, self.degree = np.empty(0, np.int64), np.empty(0, np.int64)
        self.strength = np.empty(0)  # of the rows at hand
        self.targets, self.edges = np.empty(0, np.int64), np.empty(0)
        self.calls = 0
        self._fetch = fetch

    def read(self, seeds: Ints, weights: Floats) -> None:
        """Fetch the rows that a walk needs and that are not yet there.

        At least one of the weights, shape (k,), must be positive; a repeated node has the sum of its weights.
        """
        places, shares = self._numbered(seeds), check_reset(weights)
        self.residual = np.bincount(places, shares, len(self.ids)).astype(np.float64)
        self.kept = np.zeros(len(self.ids))
        self._push()
        wanted = self._wanted()
        while any(len(part) for part in wanted):
            self._receive(self._fetch(*wanted))
            self._push()
            wanted = self._wanted()
        self.kept += (1.0 - self.damping) * self.residual

    def at_hand(self) -> csr_matrix:
        """The edges that leave the nodes whose row was read, shape (n, n); parallel ones add up."""
        held = np.where(self.further == 0, self.degree, 0)
        indptr = np.concatenate([[0], np.cumsum(held)])
        places = np.repeat(self.start - indptr[:-1], held) + np.arange(indptr[-1])
        return csr_matrix((self.edges[places], self.targets[places], indptr), shape=(len(held), len(held)))

    def places_of(self, nodes: Ints) -> Ints:
        """The places of nodes in `ids`, -1 for those that were not reached."""
        spots = np.minimum(np.searchsorted(self._sorted, nodes), max(0, len(self._sorted) - 1))
        if not len(self._sorted):
            return np.full(len(nodes), -1)
        return np.where(self._sorted[spots] == nodes, self._places[spots], -1)

    def _wanted(self) -> tuple[Ints, Ints]:
        """The frontier: ids of unknown nodes, and of hubs whose further rows are wanted.

        It is empty if all of them together would move little compared with the mass that stays unmoved.
        """
        moved = self.damping * self.residual
        unknown = (self.further < 0) & (moved > self.epsilon)
        hubs = (self.further > 0) & (moved > _SEGMENT * self.epsilon * self.further)
        gained = float(moved[unknown | hubs].sum())
        if gained < _WORTH * (float(moved.sum()) - gained):
            return self.ids[:0], self.ids[:0]
        return np.sort(self.ids[unknown]), np.sort(self.ids[hubs])

    def _receive(self, rows: FetchedRows) -> None:
        """Add rows, and number their neighbours."""
        self.calls += 1
        targets = self._numbered(rows.neighbors)
        sources = self.places_of(rows.nodes)
        self.further[sources] = rows.further
        self.rows[sources] += rows.further
        degree = np.diff(rows.indptr)
        self.start[sources], self.degree[sources] = rows.indptr[:-1] + len(self.targets), degree
        self.strength[sources] = np.bincount(np.repeat(np.arange(len(degree)), degree), rows.weights, len(degree))
        self.targets = np.concatenate([self.targets, targets])
        self.edges = np.concatenate([self.edges, rows.weights])

    def _push(self) -> None:
        """Push the nodes whose row is at hand until they have little residual."""
        least = _AT_HAND * self.epsilon
        while True:
            over = (self.further == 0) & (self.damping * self.residual > least * self.rows)
            active = np.flatnonzero(over)
            if not len(active):
                break
            mass = self.residual[active]
            self.kept[active] += (1.0 - self.damping) * mass
            self.residual[active] = 0.0
            moved, degree = self.damping * mass, self.degree[active]
            active, moved, degree = active[degree > 0], moved[degree > 0], degree[degree > 0]
            first = np.cumsum(degree) - degree
            places = np.repeat(self.start[active] - first, degree) + np.arange(int(degree.sum()))
            given = np.repeat(moved / self.strength[active], degree) * self.edges[places]
            self.residual += np.bincount(self.targets[places], given, len(self.ids))

    def _numbered(self, nodes: Ints) -> Ints:
        """The places of nodes; nodes without a place get a new one."""
        distinct, inverse = np.unique(nodes, return_inverse=True)
        numbers = self.places_of(distinct)
        new, n = distinct[numbers < 0], len(self.ids)
        spots = np.searchsorted(self._sorted, new)
        numbers[numbers < 0] = np.arange(n, n + len(new))
        self._sorted = np.insert(self._sorted, spots, new)
        self._places = np.insert(self._places, spots, np.arange(n, n + len(new)))
        self.ids = np.concatenate([self.ids, new])
        for name, value in _UNKNOWN.items():
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full(len(new), value, old.dtype)]))
        return numbers[inverse]
