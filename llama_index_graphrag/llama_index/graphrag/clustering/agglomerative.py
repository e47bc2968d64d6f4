"""`AgglomerativeClustering`: a hierarchy of communities that changes only where the graph does.

1. Local moving from single nodes (:mod:`llama_index.graphrag.clustering.local_moving`), in 16 blocks by a hash of the
   name.
2. Communities are cut into their connected parts.
3. Each becomes one node, named by its strongest member. Steps 1 and 2 are repeated until nothing moves.

The dendrogram of these steps is the hierarchy, so a leaf depends on its neighbourhood and not on the top.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.clustering.hierarchy import Hierarchy, fingerprint_of, hierarchy, least_members
from llama_index.graphrag.clustering.local_moving import BLOCKS, local_moves
from llama_index.graphrag.graph.entity_graph import EntityGraph, summed
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import CheckedFields, CountOrNone

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["AgglomerativeClustering"]

Integers = NDArray[np.int64]

_MOST_WEIGHT = 3_000_000_000  # its square is below 2**63


@dataclass(frozen=True)
class AgglomerativeClustering(CheckedFields):
    """Louvain's method as a local function of the graph (Blondel et al. 2008, arXiv 0803.0476); see the module.

    Deviations from the published method, besides those of the local moving:

    - Disconnected communities are cut; Louvain keeps them (Traag, Waltman and van Eck 2019, arXiv 1810.08473).
    - A community takes its place in the order and its block from its strongest member, the first of equal ones. This
      member is rarely lost when the graph changes at its edges.
    - A leaf with more than `leaf_tokens` tokens of statements is divided again, as a separate graph, into the
      communities of the coarsest level that has more than one.

    All components are clustered; an entity without edges is a community.

    Parameters
    ----------
    leaf_tokens : the largest number of tokens of statements inside a leaf, at least 1; None for no limit. A leaf that
        cannot be divided, such as a star, stays whole

    Raises
    ------
    ConfigurationError
        If `leaf_tokens` is out of range.
    """

    method: ClassVar[str] = "graphrag"
    leaf_tokens: CountOrNone = 4000

    @property
    def fingerprint(self) -> dict[str, str]:
        """Class and parameters."""
        return fingerprint_of(self)

    def cluster(self, graph: EntityGraph) -> Hierarchy:
        """The communities of a graph.

        Raises
        ------
        ConfigurationError
            If the weights sum to more than 1.5 billion.
        """
        if not len(graph):
            return hierarchy(0, [])
        adjacency = graph.adjacency()
        if graph.weights.sum() > _MOST_WEIGHT:
            raise ConfigurationError(
                f"The weights of a graph must sum to no more than {_MOST_WEIGHT // 2:,}, not "
                f"{int(graph.weights.sum()) // 2:,}: divide them by a common factor."
            )
        hashes = np.fromiter(map(crc32, map(str.encode, graph.names)), np.int64, len(graph))
        blocks = hashes * BLOCKS >> 32
        levels = _dendrogram(adjacency, blocks)
        finer = [] if self.leaf_tokens is None else _divisions(graph, adjacency, blocks, levels[0], self.leaf_tokens)
        return hierarchy(len(graph), [*reversed(levels), *finer])


def _divisions(
    graph: EntityGraph, adjacency: "csr_matrix", blocks: Integers, leaves: Integers, limit: int
) -> list[Integers]:
    """Ever finer partitions, as long as a leaf over the limit can be divided."""
    found: list[Integers] = []
    labels, whole = least_members(leaves), np.zeros(len(graph), np.bool_)
    while True:
        over = np.flatnonzero((_tokens(graph, labels) > limit) & ~whole)
        finer = labels.copy()
        for label in over:
            members = np.flatnonzero(labels == label)
            parts = [part for part in _dendrogram(adjacency[members][:, members], blocks[members]) if part.any()]
            if parts:
                finer[members] = members[least_members(parts[-1])]
            else:
                whole[label] = True
        if not len(over):
            return found
        labels = finer
        found.append(labels)


def _dendrogram(adjacency: "csr_matrix", blocks: Integers) -> list[Integers]:
    """Labels of the nodes, each of shape (n,) and numbered from 0, fine before coarse; at least one."""
    n = adjacency.shape[0]
    strengths = own = np.asarray(adjacency.sum(axis=1)).ravel()
    labels = names = np.arange(n)  # the unit of each node; the node that names each unit
    levels: list[Integers] = []
    while True:
        number, found = _connected(adjacency, local_moves(adjacency, strengths, blocks[names], not levels))
        if number == adjacency.shape[0]:
            return levels or [labels]
        # The strongest unit's node names the community; units stand in the order of their nodes.
        by_strength = np.lexsort((names, -own[names], found))
        firsts = by_strength[np.diff(found[by_strength], prepend=-1) > 0]
        ranked = np.argsort(names[firsts])
        place = np.empty(len(firsts), np.int64)
        place[ranked] = np.arange(len(firsts))
        units, names = place[found], names[firsts][ranked]
        adjacency, strengths = _merged(adjacency, units, len(names)), summed(units, strengths, len(names))
        labels = units[labels]
        levels.append(labels)


def _connected(adjacency: "csr_matrix", labels: Integers) -> tuple[int, Integers]:
    """The connected parts of communities: the number of parts, and for each node the number of its part."""
    # Deferred: loading them takes a fifth of a second.
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    rows = np.repeat(np.arange(adjacency.shape[0]), np.diff(adjacency.indptr))
    inside = labels[rows] == labels[adjacency.indices]
    links = csr_matrix(
        (np.ones(np.count_nonzero(inside), np.int8), (rows[inside], adjacency.indices[inside])), adjacency.shape
    )
    number, found = connected_components(links, directed=False)
    return number, found.astype(np.int64)


def _merged(adjacency: "csr_matrix", units: Integers, number: int) -> "csr_matrix":
    """Weights between communities, without those inside."""
    from scipy.sparse import csr_matrix

    rows = np.repeat(units, np.diff(adjacency.indptr))
    columns = units[adjacency.indices]
    between = rows != columns
    merged = csr_matrix((adjacency.data[between], (rows[between], columns[between])), shape=(number, number))
    merged.sum_duplicates()
    return merged


def _tokens(graph: EntityGraph, labels: Integers) -> Integers:
    """Tokens of the statements inside each community, shape (n,), at the place of its least member."""
    inside = labels[graph.rows] == labels[graph.indices]
    tokens = summed(labels[graph.rows[inside]], graph.tokens[inside], len(graph)) // 2
    return tokens + summed(labels, graph.node_tokens, len(graph))
