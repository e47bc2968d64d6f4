"""The walk over names: which nodes are reached from the names in a question, over the names that mind maps share.

This is not in the paper. Paper and code find a map only by the cosine of its topic to the whole question, and never
follow a fact ("part of: Lewis Range") to a map with that name. Multi-hop questions need this.

The walk starts from the names in the question, each with the weight 1 / (number of nodes with it), and from the nodes
nearest to the question with a total of `NODE_SEEDS`. It goes from nodes to names and back, and each step is weighted by
`DAMPING`. So a name in few maps leads further than a name in many.
"""

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.maps.name_links import TOPIC_WEIGHT, LinkedNodes, NameLinks
from llama_index.pgrag.search.name_edges import TOPIC
from llama_index.ragkit.sql.names import candidates
from llama_index.ragkit.storage.graph.interface import GraphReader, NodeRows, asked_once
from llama_index.ragkit.text.known_names import KnownNames, lookups
from llama_index.ragkit.vectors.question_scores import Nearness
from llama_index.ragkit.vectors.trust import passage_seeds, trust

__all__ = ["NODE_SEEDS", "FrontierWalk", "Mass", "NameWalk", "walk_names", "walked"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Allowed = Callable[[Ints], Mask]
"""Distinct numbers of nodes -> whether each may be returned."""

STEPS = 8
ROWS_A_STEP = 1_000
DAMPING = 0.7
NODE_SEEDS = 0.01

_LOWER_CASE = 0.01  # weight of a lower-case name in a question that capitalises names: it may be a common word


@dataclass(frozen=True)
class NameWalk:
    """The result of a walk over names.

    Attributes
    ----------
    named : the names in the question, best first
    shares : shape (nodes,), relative to the best, in [0, 1]; zeros if the walk says nothing
    trust : how far the walk can be trusted for this question, in [0, 1]
    reason : why the walk says nothing; empty otherwise
    """

    named: Sequence[str]
    shares: Floats
    trust: float
    reason: str = ""


def walk_names(links: NameLinks, texts: Sequence[str], nearness: Nearness, allowed: Mask | None) -> NameWalk:
    """Walk from the names in some texts (the question and its key points) over the allowed nodes; None for all."""
    part = links.part(allowed)
    seeds = name_seeds(links.known, texts, part.frequency)
    if not seeds.any():
        return walked((), nearness, np.zeros(len(nearness.scores)))
    shown = np.arange(len(nearness.scores)) if allowed is None else np.flatnonzero(allowed)
    near = np.zeros(len(nearness.scores))
    places, shares = passage_seeds(nearness.cosines[shown])
    near[shown[places]] = NODE_SEEDS * shares
    reached = _spread(part, seeds, near)
    best = sorted((-seeds[i], links.names[i]) for i in np.flatnonzero(seeds).tolist())
    named = [name for _, name in best]
    return walked(named, nearness, reached / reached.max(), allowed)


def walked(named: Sequence[str], nearness: Nearness, shares: Floats, allowed: Mask | None = None) -> NameWalk:
    """The result of a walk with these shares, shape (nodes,), from these names; none if the question names nothing."""
    if not named:
        return NameWalk((), shares, 0.0, "the question names nothing that a mind map has")
    shown = slice(None) if allowed is None else allowed
    trusted = trust(nearness.scores[shown], shares[shown], candidates=nearness.candidates[shown])
    reason = "" if trusted else "the names in the question lead elsewhere than its other words"
    return NameWalk(named, shares, trusted, reason)


def name_seeds(
    known: KnownNames, texts: Sequence[str], frequency: Floats, unspecific: Container[str] = frozenset()
) -> Floats:
    """The weight of each name in some texts, shape (names,), by the number of nodes with each name."""
    seeds = np.zeros(len(frequency))
    for text in texts:
        for name in known.find(text, lambda row: bool(frequency[row]), unspecific):
            rows = [row for row in name.rows if frequency[row]]
            share = (_LOWER_CASE if name.lower_case else 1.0) / max(1.0, float(frequency[rows].sum()))
            seeds[rows] = np.maximum(seeds[rows], share)
    return seeds


def _spread(part: LinkedNodes, names: Floats, nodes: Floats) -> Floats:
    """The mass that reaches each node in all steps together.

    The mass of a node after two more steps is M times what it was. So the sum over an even number of steps is
    ``S + M(S + ... M(S + M nodes))``, where S is the mass before the first step and after it: half of the products.
    """
    first = nodes + DAMPING * (part.from_names @ names)
    total = nodes
    for _ in range(STEPS // 2):
        total = first + DAMPING * DAMPING * (part.from_names @ (part.from_nodes @ total))
    return total


class Mass(NamedTuple):
    """The distribution of a walk over rows: their numbers, ascending, and their shares."""

    rows: Ints
    shares: Floats

    @classmethod
    def of(cls, rows: Sequence[int] | Ints, shares: Sequence[float] | Floats) -> "Mass":
        """Shares of rows; shares of the same row are added up."""
        distinct, inverse = np.unique(np.asarray(rows, np.int64), return_inverse=True)
        totals = np.bincount(inverse.ravel(), np.asarray(shares, np.float64), len(distinct))
        return cls(distinct, totals.astype(np.float64))

    def plus(self, other: "Mass") -> "Mass":
        """The sum of both."""
        return Mass.of(np.concatenate([self.rows, other.rows]), np.concatenate([self.shares, other.shares]))


class FrontierWalk:
    """The walk in a database: reads the links of names for one question, each row once, as the walk reaches them.

    This is the walk of :func:`walk_names` with two differences, so that its cost does not grow with the index. Each
    step reads new rows only for the `ROWS_A_STEP` unread nodes and names with most of the walk; other unread ones pass
    nothing on. A name with more links than one row holds also passes nothing on: a node would get less than a
    five-hundredth of it.
    """

    def __init__(self, reader: GraphReader, allowed: Allowed | None = None) -> None:
        self._reader = reader
        self._allowed = allowed
        self._known: dict[int, bool] = {}  # node -> whether it is allowed
        self._links: dict[int, Mass] = {}  # row -> the share of its weight that goes to each neighbor

    def seeds(self, texts: Sequence[str]) -> tuple[list[str], Mass]:
        """The names in some texts, best first, and the mass with which the walk starts at each."""
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
        """The mass that reaches each node in all steps together."""
        total = nodes
        for _ in range(STEPS):
            names, nodes = self._passed(nodes), self._passed(names)
            total = total.plus(nodes)
        return total

    def _passed(self, mass: Mass) -> Mass:
        """The mass that rows pass on to their neighbors."""
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
        """Keep the links of rows; returns the number of nodes to which each is linked."""
        seen = np.ones(len(rows.records), np.bool_)
        if self._allowed is not None:
            seen = asked_once(self._known, self._allowed, rows.records["source"])
        links, starts = _weighed(rows, seen)
        counts = np.diff(starts).astype(np.float64)
        bounds = zip(rows.nodes.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True)
        self._links.update((row, Mass(links.rows[start:end], links.shares[start:end])) for row, start, end in bounds)
        for i in np.flatnonzero(rows.further).tolist():
            counts[i] = rows.totals[int(rows.nodes[i])]["records"].max()
        return counts


def _weighed(rows: NodeRows, seen: NDArray[np.bool_]) -> tuple[Mass, Ints]:
    """The neighbors of all rows by the links that count, row after row, with the share of the row's weight that goes to
    each; and where each row begins, and the last ends.
    """
    owners = np.repeat(np.arange(len(rows.nodes)), np.diff(rows.indptr))[seen]
    records = rows.records[seen]
    order = np.lexsort((records["neighbor"], owners))
    owners, records = owners[order], records[order]
    new = np.ones(len(owners), np.bool_)
    new[1:] = (np.diff(owners) > 0) | (np.diff(records["neighbor"]) != 0)
    first = np.flatnonzero(new)
    starts = np.searchsorted(owners[first], np.arange(len(rows.nodes) + 1))
    if not len(first):
        return Mass.of([], []), starts
    topic = records["kind"] == TOPIC
    said, named = (np.minimum(1.0, np.add.reduceat(of_kind.astype(np.float64), first)) for of_kind in (~topic, topic))
    weights = said + TOPIC_WEIGHT * named
    totals = np.bincount(owners[first], weights, len(rows.nodes))
    return Mass(records["neighbor"][first], weights / totals[owners[first]]), starts
