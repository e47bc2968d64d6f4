"""A hierarchy of communities: nested, and each level a partition of the nodes; and the clusterings that find one."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement import scope_of

__all__ = ["Clustering", "Hierarchy", "clustered", "fingerprint_of", "hierarchy", "least_members"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """c communities of n nodes, numbered parents before children, in the order of their least members.

    Each community is a run of `order`; the children of a community partition it.
    """

    order: Integers  # int64, shape (n,), the nodes
    # int64, shape (c,): community i is `order[first[i]:last[i]]`
    first: Integers
    last: Integers
    parent: Integers  # int64, shape (c,), -1 for a root

    def __len__(self) -> int:
        """Number of communities."""
        return len(self.first)

    @cached_property
    def level(self) -> Integers:
        """Depth of each community, 0 for a root, shape (c,)."""
        level = np.zeros(len(self), np.int64)
        for community, parent in enumerate(self.parent.tolist()):
            if parent >= 0:
                level[community] = level[parent] + 1
        return level

    @cached_property
    def sizes(self) -> Integers:
        """Number of members of each community, shape (c,)."""
        return self.last - self.first

    @property
    def roots(self) -> Integers:
        """The communities that are in no other, in order."""
        roots: Integers = np.flatnonzero(self.parent < 0)
        return roots

    def members(self, community: int) -> Integers:
        """The nodes of a community, sorted."""
        return np.sort(self.order[self.first[community] : self.last[community]])

    def children(self, community: int) -> Integers:
        """The communities directly inside a community, in order; none for a leaf."""
        grouped, ends = self._children
        return grouped[ends[community] : ends[community + 1]]

    @cached_property
    def _children(self) -> tuple[Integers, Integers]:
        grouped = np.argsort(self.parent, kind="stable")
        return grouped, np.searchsorted(self.parent[grouped], np.arange(len(self) + 1))

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether a community has no children, shape (c,)."""
        leaf = np.ones(len(self), np.bool_)
        leaf[self.parent[self.parent >= 0]] = False
        return leaf

    @cached_property
    def leaf(self) -> Integers:
        """The leaf community of each node, shape (n,)."""
        leaves = np.flatnonzero(self.is_leaf)
        found = np.empty(len(self.order), np.int64)
        found[self.order] = np.repeat(leaves, self.sizes[leaves])
        return found

    def partition(self, level: int) -> Integers:
        """The deepest community of each node that is no deeper than a level, shape (n,)."""
        found: Integers = self.leaf.copy()
        while True:
            deep = self.level[found] > level
            if not deep.any():
                return found
            found[deep] = self.parent[found[deep]]

    def ancestors(self, community: int) -> list[int]:
        """The communities that a community is in, from its parent to its root."""
        found = []
        while (community := int(self.parent[community])) >= 0:
            found.append(community)
        return found


def hierarchy(nodes: int, levels: Sequence[Integers]) -> Hierarchy:
    """The hierarchy of nested partitions.

    A community with the same members as the one above it is left out.

    Parameters
    ----------
    nodes : n
    levels : labels of the nodes in [0, n), each of shape (n,), coarse before fine; nodes with different labels in one
        level have different labels in all later ones. Without levels, every node is a community
    """
    least = [least_members(labels) for labels in levels] or [np.arange(nodes)]
    place = np.zeros(nodes, np.int64)  # of a community among those of its level, by its least member
    above = np.zeros(nodes, np.int64)
    for labels in least:
        members = np.flatnonzero(labels == np.arange(nodes))
        place[members[np.argsort(place[above[members]] * nodes + members)]] = np.arange(len(members))
        above = labels
    order = np.argsort(place[above], kind="stable")
    runs = [np.flatnonzero(np.diff(labels[order], prepend=-1)) for labels in least]
    bounds = [np.append(run, nodes) for run in runs]
    # A run is known by its start and, longer runs first, by its end: the numbering of the class.
    codes = [bound[:-1] * (nodes + 1) + nodes - bound[1:] for bound in bounds]
    numbered = np.unique(np.concatenate(codes))
    first, last = numbered // (nodes + 1), nodes - numbered % (nodes + 1)
    parent = np.full(len(numbered), -1, np.int64)
    current = np.full(nodes, -1, np.int64)  # the deepest community so far, by place in the order
    for bound, code in zip(bounds, codes, strict=True):
        communities = np.searchsorted(numbered, code)
        above = current[bound[:-1]]
        new = above != communities
        parent[communities[new]] = above[new]
        current = np.repeat(communities, np.diff(bound))
    return Hierarchy(order, first, last, parent)


def least_members(labels: Integers) -> Integers:
    """For each node the least node with its label; labels are in [0, n)."""
    least = np.empty(len(labels), np.int64)
    least[labels[::-1]] = np.arange(len(labels))[::-1]
    return least[labels]


class Clustering(Protocol):
    """Finds the communities of a graph."""

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and parameters, stored with an index."""

    def cluster(self, graph: EntityGraph) -> Hierarchy:
        """The communities of a graph. They depend only on the graph; every entity is in one."""


def fingerprint_of(clustering: Any) -> dict[str, str]:
    """Class name and parameters of a clustering that is a dataclass."""
    return {"class": type(clustering).__name__} | {name: str(value) for name, value in asdict(clustering).items()}


def clustered(graph: EntityGraph, clustering: Clustering) -> Hierarchy:
    """The communities of a graph, found in each scope independently of the others; no edge joins two scopes."""
    scopes = [scope_of(name) for name in graph.names]
    starts = [i for i in range(len(scopes)) if not i or scopes[i] != scopes[i - 1]]
    if len(starts) < 2:
        return clustering.cluster(graph)
    parts = [clustering.cluster(_part(graph, *run)) for run in zip(starts, [*starts[1:], len(scopes)], strict=True)]
    communities = np.cumsum([0, *map(len, parts)]).tolist()
    return Hierarchy(
        order=np.concatenate([part.order + start for part, start in zip(parts, starts, strict=True)]),
        first=np.concatenate([part.first + start for part, start in zip(parts, starts, strict=True)]),
        last=np.concatenate([part.last + start for part, start in zip(parts, starts, strict=True)]),
        parent=np.concatenate(
            [np.where(part.parent < 0, -1, part.parent + n) for part, n in zip(parts, communities, strict=False)]
        ),
    )


def _part(graph: EntityGraph, start: int, stop: int) -> EntityGraph:
    """The rows of a scope as a separate graph."""
    first, last = graph.indptr[start], graph.indptr[stop]
    return EntityGraph(
        graph.names[start:stop],
        graph.indptr[start : stop + 1] - first,
        graph.indices[first:last] - start,
        graph.weights[first:last],
        graph.tokens[first:last],
        graph.node_tokens[start:stop],
    )
