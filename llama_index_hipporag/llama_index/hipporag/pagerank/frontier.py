"""Personalised PageRank of a graph that lies in a database: forward push, one frontier of nodes at a time.

As in :mod:`llama_index.hipporag.pagerank.forward_push` a lower bound p of the result and the residual r, the mass that
has not been walked yet, are maintained (Andersen, Chung, Lang 2006, "Local graph partitioning using PageRank vectors",
section 3). Nothing is known of the graph but the rows that have been fetched, and a fetch costs far more than a push.
Hence two differences:

1. Within the rows at hand, nodes are pushed until little residual is left on them. What remains lies on nodes whose
row is not at hand: the frontier. Those with enough residual are fetched together, in one call.
2. A node is worth fetching if the mass that it would move, d r_u, is more than epsilon for each *stored row* that must
be read. The paper compares with the degree of u, which is unknown before u is fetched. The row of a hub is cut into
segments; its first row tells how many. A segment has as many edges as some sixteen rows of ordinary nodes, and each of
them gets the less of the mass, so the others are read only if the mass exceeds 16 epsilon times their number. At most
``1 / (epsilon (1 - d))`` rows are read, *whatever the size of the graph*. The last calls would read a dozen nodes with
far less mass than is left on all the others together: they are not made.

The graph is undirected. With G the operator of a walk that ends at nodes without edges, the exact vector is G v scaled
to sum 1, and G v = p + G r. Two bounds hold for what a node can still gain: the mass that is yet to be moved (all of it
together), and ``d s_u max_w r_w / s_w`` with s the strength, from ``G_uw s_u = G_wu s_w``.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.pagerank.power_iteration import check_damping, check_reset
from llama_index.ragkit.errors import ConfigurationError

__all__ = ["EPSILON", "Fetch", "FetchedRows", "FrontierEstimate", "frontiers"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

EPSILON = 2e-6  # mass that is left unmoved, per stored row
_AT_HAND = 0.1  # share of epsilon down to which nodes whose row is at hand are pushed
_SEGMENT = 16  # rows of an ordinary node that a segment of a hub counts as: it has as many more edges
_WORTH = 0.1  # mass that a call must move, as a share of what is left unmoved in any case
_UNKNOWN = {"residual": 0, "kept": 0, "strength": 0, "rows": 1, "further": -1, "start": 0, "degree": 0}  # a new node's


class FetchedRows(NamedTuple):
    """Rows of a graph, as compressed rows.

    Attributes
    ----------
    nodes : (m,) the ids of distinct nodes; those without edges too
    further : (m,) number of further rows to read for the edges of a node, which are not given then; 0 with its edges
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
"""(nodes that are unknown yet, nodes whose further rows are wanted), both ascending -> the rows of all of them."""


class FrontierEstimate(NamedTuple):
    """An approximate personalised PageRank vector: all nodes that the walk has reached so far, others have 0.

    Attributes
    ----------
    nodes : (n,) ids in the order in which they were reached
    scores : (n,) at most the exact ones
    missing : mass that is yet to be moved: the sum of the scores is 1 less this, and no score can gain more
    by_strength : no score can gain more than this times the strength of its node
    strength : (n,) sums of the weights of a node's edges; nan where its row is not at hand
    read : nodes that were fetched
    calls : number of fetches
    """

    nodes: Ints
    scores: Floats
    missing: float
    by_strength: float
    strength: Floats
    read: int
    calls: int

    @property
    def gains(self) -> Floats:
        """(n,), what each score can gain at most, by both bounds."""
        linked = self.strength != 0  # a node without edges gains nothing
        limit = np.multiply(self.strength, self.by_strength, out=np.zeros(len(self.nodes)), where=linked)
        return np.fmin(limit, self.missing)  # nan, where the strength is unknown, counts as no limit

    def settled(self, k: int, among: NDArray[np.bool_] | None = None) -> bool:
        """Whether the k best nodes are certain to be the k best, in whatever order.

        Nodes that the walk has not reached could gain all of the missing mass.

        Parameters
        ----------
        among : (n,), the nodes that are ranked; None for all
        """
        chosen = np.ones(len(self.nodes), np.bool_) if among is None else among
        scores, gains = self.scores[chosen], self.gains[chosen]
        if len(scores) < k:
            return self.missing <= 0
        best = np.argsort(-scores, kind="stable")
        others = best[k:]
        could = float((scores[others] + gains[others]).max(initial=self.missing))
        return float(scores[best[k - 1]]) >= could


def frontiers(
    fetch: Fetch, seeds: Ints, weights: Floats, *, damping: float = 0.5, epsilon: float = EPSILON
) -> Iterator[FrontierEstimate]:
    """Increasingly exact personalised PageRank from a few nodes: an estimate after each call of `fetch`.

    The iteration ends when no node is worth fetching; whoever needs less stops earlier.

    Parameters
    ----------
    seeds, weights : (k,) ids and reset, at least one positive; a repeated node has the sum of its weights
    damping : probability of following an edge, 0 <= d < 1
    epsilon : mass that may be left unmoved at a node, per stored row that would have to be read, 16 times that per
        segment of a hub; positive

    Raises
    ------
    ConfigurationError
        If weights are negative, not finite or all zero, or a parameter is out of range.
    """
    walk = _FrontierPush(np.asarray(seeds, np.int64), weights, damping, epsilon)
    wanted = walk.wanted()
    if not any(len(part) for part in wanted):
        yield walk.estimate()
    while any(len(part) for part in wanted):
        walk.receive(fetch(*wanted))
        walk.push()
        yield walk.estimate()
        wanted = walk.wanted()


class _FrontierPush:
    """p (`kept`) and r (`residual`) of one walk, over the nodes in the order in which they were reached."""

    def __init__(self, seeds: Ints, weights: Floats, damping: float, epsilon: float) -> None:
        check_damping(damping)
        if not epsilon > 0:
            raise ConfigurationError(f"epsilon must be positive, not {epsilon}.")
        if seeds.ndim != 1 or seeds.shape != np.shape(weights):
            raise ConfigurationError(f"Seeds of shape {seeds.shape} need as many weights, not {np.shape(weights)}.")
        self.damping, self.epsilon = damping, epsilon
        self.ids, places = np.unique(seeds, return_inverse=True)
        self.sorted_ids, self.places = self.ids, np.arange(len(self.ids))
        self.residual = np.bincount(places, check_reset(weights), len(self.ids))
        self.kept = np.zeros(len(self.ids))
        self.further = np.full(len(self.ids), -1)  # -1: not fetched; 0: the row is at hand
        self.rows = np.ones(len(self.ids))  # stored rows of a node, as far as known
        self.start = np.zeros(len(self.ids), np.int64)
        self.degree = np.zeros(len(self.ids), np.int64)
        self.strength = np.zeros(len(self.ids))  # of edges at hand: a lower bound where the row is not
        self.targets = np.empty(0, np.int64)
        self.edges = np.empty(0)
        self.ended, self.calls = 0.0, 0

    def wanted(self) -> tuple[Ints, Ints]:
        """The frontier: ids of unknown nodes, and of hubs whose further rows are wanted.

        It is empty where all of them together would move little beside what is left unmoved.
        """
        moved = self.damping * self.residual
        unknown = (self.further < 0) & (moved > self.epsilon)
        hubs = (self.further > 0) & (moved > _SEGMENT * self.epsilon * self.further)
        gained = float(moved[unknown | hubs].sum())
        if gained < _WORTH * (float(moved.sum()) - gained):
            return self.ids[:0], self.ids[:0]
        return np.sort(self.ids[unknown]), np.sort(self.ids[hubs])

    def receive(self, rows: FetchedRows) -> None:
        """Take rows in, and number their neighbours."""
        self.calls += 1
        targets = self._numbered(rows.neighbors)
        sources = self._found(rows.nodes)
        self.further[sources] = rows.further
        self.rows[sources] += rows.further
        degree = np.diff(rows.indptr)
        self.start[sources], self.degree[sources] = rows.indptr[:-1] + len(self.targets), degree
        # The strength of a node without its row is what is known from the other end of its edges.
        whole = rows.further == 0
        own = np.bincount(np.repeat(np.arange(len(degree)), degree), rows.weights, len(degree))
        absent = self.further[targets] != 0
        self.strength += np.bincount(targets[absent], rows.weights[absent], len(self.ids))
        self.strength[sources[whole]] = own[whole]
        self.targets = np.concatenate([self.targets, targets])
        self.edges = np.concatenate([self.edges, rows.weights])

    def push(self) -> None:
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
            self.ended += float(moved[degree == 0].sum())
            active, moved, degree = active[degree > 0], moved[degree > 0], degree[degree > 0]
            first = np.cumsum(degree) - degree
            places = np.repeat(self.start[active] - first, degree) + np.arange(int(degree.sum()))
            given = np.repeat(moved / self.strength[active], degree) * self.edges[places]
            self.residual += np.bincount(self.targets[places], given, len(self.ids))

    def estimate(self) -> FrontierEstimate:
        """What is known now."""
        total = 1.0 - self.ended  # 1, less what would have left nodes without an edge
        # Seeds that have not been fetched may have any strength; a node that is known to have no edges moves nothing.
        moved = np.where((self.further == 0) & (self.degree == 0), 0.0, self.damping * self.residual)
        unlimited = np.where(moved > 0, np.inf, 0.0)
        per_strength = np.divide(moved, self.strength, out=unlimited, where=self.strength > 0)
        return FrontierEstimate(
            nodes=self.ids,
            # Of the residual, the share 1 - d of each node ends where it is.
            scores=(self.kept + (1.0 - self.damping) * self.residual) / total,
            missing=self.damping * float(self.residual.sum()) / total,
            by_strength=float(per_strength.max(initial=0.0)) / total,
            strength=np.where(self.further == 0, self.strength, np.nan),
            read=int((self.further >= 0).sum()),
            calls=self.calls,
        )

    def _numbered(self, neighbors: Ints) -> Ints:
        """Numbers of nodes, new ones for those that have none."""
        distinct, inverse = np.unique(neighbors, return_inverse=True)
        spots = np.searchsorted(self.sorted_ids, distinct)
        known = spots < len(self.sorted_ids)
        known[known] = self.sorted_ids[spots[known]] == distinct[known]
        new, n = distinct[~known], len(self.ids)
        numbers = np.empty(len(distinct), np.int64)
        numbers[known] = self.places[spots[known]]
        numbers[~known] = np.arange(n, n + len(new))
        self.sorted_ids = np.insert(self.sorted_ids, spots[~known], new)
        self.places = np.insert(self.places, spots[~known], numbers[~known])
        self.ids = np.concatenate([self.ids, new])
        for name, value in _UNKNOWN.items():
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full(len(new), value, old.dtype)]))
        return numbers[inverse]

    def _found(self, nodes: Ints) -> Ints:
        return self.places[np.searchsorted(self.sorted_ids, nodes)]
