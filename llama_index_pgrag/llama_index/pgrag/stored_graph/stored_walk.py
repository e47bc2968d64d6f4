"""The walk over names in a database: rows are read as the walk reaches them.

It is the walk of :mod:`llama_index.pgrag.search.name_walk` with two differences, so that its cost does not grow with
the index. In each step, rows that were not read before are read for the `ROWS_A_STEP` nodes and names that have most of
the walk; what others would pass on is left out. A name with more links than one row holds passes nothing on: a node
would get less than a five-hundredth of it.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.maps.name_links import TOPIC_WEIGHT
from llama_index.pgrag.search.name_walk import DAMPING, STEPS, name_seeds
from llama_index.pgrag.stored_graph.node_names import TOPIC
from llama_index.ragkit.sql.graph_rows import GraphReader, NodeRows
from llama_index.ragkit.sql.names import candidates
from llama_index.ragkit.text.known_names import KnownNames, lookups

__all__ = ["ROWS_A_STEP", "Allowed", "Mass", "StoredWalk"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Allowed = Callable[[Ints], NDArray[np.bool_]]
"""Numbers of nodes, distinct -> whether they may be returned."""

ROWS_A_STEP = 300


class Mass(NamedTuple):
    """How much of a walk is where: numbers of rows, ascending, and their shares."""

    rows: Ints
    shares: Floats

    @classmethod
    def of(cls, rows: Sequence[int] | Ints, shares: Sequence[float] | Floats) -> "Mass":
        """Shares of rows, those of the same row added up."""
        distinct, inverse = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        totals = np.bincount(inverse.ravel(), np.asarray(shares, np.float64), len(distinct))
        return cls(distinct, totals.astype(np.float64))

    def plus(self, other: "Mass") -> "Mass":
        """The sum of both."""
        return Mass.of(np.concatenate([self.rows, other.rows]), np.concatenate([self.shares, other.shares]))


class StoredWalk:
    """Reads links of names for one question, each row once.

    Parameters
    ----------
    reader : of the graph
    allowed : which nodes the walk may touch; None for all
    """

    def __init__(self, reader: GraphReader, allowed: Allowed | None = None) -> None:
        self._reader = reader
        self._allowed = allowed
        self._known: dict[int, bool] = {}  # nodes, whether they are allowed
        self._links: dict[int, Mass] = {}  # row -> the share of its weight that goes to each neighbor

    def seeds(self, texts: Sequence[str]) -> tuple[list[str], Mass]:
        """The names in some texts, best first, and what the walk starts with at each."""
        unspecific: set[str] = set()
        numbers = [np.empty(0, np.int64)]
        for text in texts:
            found = candidates(self._reader, lookups(text), self._allowed is not None)
            numbers.append(found.nodes)
            unspecific |= found.unspecific
        rows = self._reader.fetch(np.unique(np.concatenate(numbers)))
        frequency = self._keep(rows)
        order = [i for i in np.argsort(np.array(rows.labels, dtype=object), kind="stable").tolist() if rows.labels[i]]
        labels = [rows.labels[i] for i in order]
        weights = name_seeds(KnownNames(labels), texts, frequency[order], unspecific)
        best = sorted(np.flatnonzero(weights).tolist(), key=lambda i: -weights[i])
        return [labels[i] for i in best], Mass.of(rows.nodes[order][best], weights[best])

    def spread(self, names: Mass, nodes: Mass) -> Mass:
        """What reaches each node in all steps together."""
        total = nodes
        for _ in range(STEPS):
            names, nodes = self._passed(nodes), self._passed(names)
            total = total.plus(nodes)
        return total

    def _passed(self, mass: Mass) -> Mass:
        """What rows pass on to their neighbors."""
        known = np.array([row in self._links for row in mass.rows.tolist()], np.bool_)
        unknown = np.flatnonzero(~known)
        unknown = unknown[np.argsort(-mass.shares[unknown], kind="stable")[:ROWS_A_STEP]]
        if len(unknown):
            self._keep(self._reader.fetch(mass.rows[unknown]))
        links = [
            (share, self._links.get(row)) for row, share in zip(mass.rows.tolist(), mass.shares.tolist(), strict=True)
        ]
        parts = [(link.rows, DAMPING * share * link.shares) for share, link in links if link is not None]
        if not parts:
            return Mass.of([], [])
        return Mass.of(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _keep(self, rows: NodeRows) -> Floats:
        """Remember the links of rows; returns how many nodes each is linked to."""
        counts = np.zeros(len(rows.nodes))
        seen = self._seen(rows.records)
        for i, row in enumerate(rows.nodes.tolist()):
            if rows.further[i]:
                counts[i] = rows.totals[row]["records"].max()
                self._links[row] = Mass.of([], [])
                continue
            part = slice(int(rows.indptr[i]), int(rows.indptr[i + 1]))
            links = _weighed(rows.records[part][seen[part]])
            counts[i] = len(links.rows)
            self._links[row] = links
        return counts

    def _seen(self, records: NDArray[np.void]) -> NDArray[np.bool_]:
        """Which links are of nodes that are allowed; each node is asked for once."""
        if self._allowed is None:
            return np.ones(len(records), np.bool_)
        distinct, inverse = np.unique(records["source"], return_inverse=True)
        new = np.array([node for node in distinct.tolist() if node not in self._known], np.int64)
        if len(new):
            self._known.update(zip(new.tolist(), self._allowed(new).tolist(), strict=True))
        found: NDArray[np.bool_] = np.array([self._known[node] for node in distinct.tolist()], np.bool_)[
            inverse.ravel()
        ]
        return found


def _weighed(records: NDArray[np.void]) -> Mass:
    """The neighbors of a row, with the share of its weight that goes to each."""
    if not len(records):
        return Mass.of([], [])
    topic = records["kind"] == TOPIC
    neighbors, inverse = np.unique(records["neighbor"], return_inverse=True)
    inverse = inverse.ravel()
    said = np.minimum(1.0, np.bincount(inverse, ~topic, len(neighbors)))
    weights = said + TOPIC_WEIGHT * np.minimum(1.0, np.bincount(inverse, topic, len(neighbors)))
    return Mass(neighbors, weights / weights.sum())
