"""Local moving in blocks: each node goes to the neighbouring community with the largest gain of modularity.

For a node of strength k and a community of strength K (without the node), joined by weight w, in a graph whose
strengths sum to W, membership is worth

    gain = W w - k K

which is 2 W^2 times the change of modularity (Blondel, Guillaume, Lambiotte and Lefebvre 2008, arXiv 0803.0476,
section 2). W is rounded down to three binary digits and zeros, such as 180 to 160; otherwise any new edge would change
every comparison. This is modularity at a resolution of 1 to 1.25. The weight w to a community other than the node's own
counts 1/16 less, and between communities that are nodes 1/8 less. Close calls are thus decided for staying, and a small
change of the graph changes fewer moves. An entity that is alone joins by the whole weight; otherwise the last spokes of
a star would stay alone. Everything is a 64-bit integer, so equal gains are equal and no rounding decides.

A pass takes the nodes in 16 blocks, chosen by a hash of each node's name. All nodes of a block move at once, each to
the community of the largest gain, or of equal ones to that of the least label, and only if it gains more than by
staying. Of two nodes that are alone, only the later one may join the earlier.

Neighbours that move at once do not know of each other and can change places for ever. After three passes a node
therefore waits while an earlier neighbour moves. No blocks are needed then, and only nodes in and next to communities
that changed in the previous pass take part.

Deviations from the published method: it uses W and w unchanged, and takes the nodes one after the other. In blocks a
move depends on the neighbourhood of the node and hardly on other moves, so communities stay the same where the graph
does.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = ["BLOCKS", "local_moves"]

Integers = NDArray[np.int64]

BLOCKS = 16
_PASSES = 12
_FREE_PASSES = 3  # in which neighbours may move at once
_DIGITS = 3  # binary digits of the sum of the strengths that count
_RELUCTANCE_OF_ENTITIES, _RELUCTANCE_OF_COMMUNITIES = 4, 3  # binary digits by which a weight is shifted
_STILL = 10_000  # passes end when fewer than one in so many nodes moves


class _Rows(NamedTuple):
    """Nodes and their rows of the adjacency matrix."""

    nodes: Integers
    indptr: Integers
    indices: Integers
    weights: Integers


def local_moves(adjacency: "csr_matrix", strengths: Integers, blocks: Integers, are_entities: bool) -> Integers:
    """Communities of the nodes after moves from singletons.

    Parameters
    ----------
    adjacency : shape (n, n), int64, symmetric, without diagonal; nodes in the order that breaks ties
    strengths : shape (n,), sum of each node's weights, with loops counted twice; the square of their sum W must be
        below 2^63
    blocks : shape (n,), in [0, 16)
    are_entities : whether the nodes are entities, not communities

    Returns
    -------
    labels : shape (n,), each label the number of a node; a community need not be connected
    """
    n, total = adjacency.shape[0], _coarse(int(strengths.sum()))
    labels = np.arange(n, dtype=adjacency.indices.dtype)
    held, sizes = strengths.copy(), np.ones(n, np.int64)
    linked = np.flatnonzero(np.diff(adjacency.indptr))
    turns = _by_block(adjacency, linked[np.argsort(blocks[linked], kind="stable")], blocks)
    for number in range(1, _PASSES + 1):
        changed = np.zeros(n, np.bool_)  # labels of communities
        moved = 0
        for rows in turns:
            target = _targets(rows, labels, held, sizes, strengths, total, are_entities)
            if number > _FREE_PASSES:
                target = _one_at_a_time(rows, target, labels)
            moving = target != labels[rows.nodes]
            mover, new = rows.nodes[moving], target[moving]
            old = labels[mover]
            np.subtract.at(held, old, strengths[mover])
            np.add.at(held, new, strengths[mover])
            np.subtract.at(sizes, old, 1)
            np.add.at(sizes, new, 1)
            labels[mover] = new
            changed[old] = changed[new] = True
            moved += len(mover)
        if not moved or moved * _STILL < n:
            break
        if number >= _FREE_PASSES:
            inside = changed[labels]
            due = inside.copy()
            due[adjacency[np.flatnonzero(inside)].indices] = True
            turns = [_rows(adjacency, np.flatnonzero(due))]
    return labels


def _coarse(total: int) -> int:
    """A number with all but its first three binary digits set to zero."""
    zeros = max(0, total.bit_length() - _DIGITS)
    return total >> zeros << zeros


def _by_block(adjacency: "csr_matrix", nodes: Integers, blocks: Integers) -> list[_Rows]:
    """The rows of nodes that are sorted by block, one entry for each block that has nodes."""
    rows = _rows(adjacency, nodes)
    ends = np.flatnonzero(np.diff(blocks[nodes], prepend=-1, append=-1))
    turns = []
    for a, b in pairwise(ends):
        entries = slice(rows.indptr[a], rows.indptr[b])
        indptr = rows.indptr[a : b + 1] - rows.indptr[a]
        turns.append(_Rows(nodes[a:b], indptr, rows.indices[entries], rows.weights[entries]))
    return turns


def _rows(adjacency: "csr_matrix", nodes: Integers) -> _Rows:
    chosen = adjacency[nodes]
    return _Rows(nodes, chosen.indptr, chosen.indices, chosen.data)


def _targets(
    rows: _Rows, labels: Integers, held: Integers, sizes: Integers, strengths: Integers, total: int, are_entities: bool
) -> Integers:
    """The label to which each node would go, shape (len(nodes),); its own label if it stays."""
    from scipy.sparse import csr_matrix

    near = csr_matrix(
        (rows.weights.copy(), labels[rows.indices], rows.indptr.copy()), shape=(len(rows.nodes), len(labels))
    )
    near.sum_duplicates()  # one entry for each node and neighbouring community
    row = np.repeat(np.arange(len(rows.nodes)), np.diff(near.indptr))
    own, strength = labels[rows.nodes], strengths[rows.nodes]
    at_home = near.indices == own[row]
    worth = total * near.data
    if are_entities:
        worth -= np.where(at_home | (sizes[own] == 1)[row], 0, worth >> _RELUCTANCE_OF_ENTITIES)
    else:
        worth -= np.where(at_home, 0, worth >> _RELUCTANCE_OF_COMMUNITIES)
    gain = worth - strength[row] * (held[near.indices] - np.where(at_home, strength[row], 0))
    stay = -strength * (held[own] - strength)
    stay[row[at_home]] = gain[at_home]
    starts = near.indptr[:-1]
    best = np.maximum.reduceat(gain, starts)
    target = np.minimum.reduceat(np.where(gain == best[row], near.indices, len(labels)), starts)
    towards_later = (sizes[own] == 1) & (sizes[target] == 1) & (target > own)
    return np.where((best > stay) & ~towards_later, target, own)


def _one_at_a_time(rows: _Rows, target: Integers, labels: Integers) -> Integers:
    """The same labels, but a node stays while an earlier neighbour moves."""
    own = labels[rows.nodes]
    moving = np.zeros(len(labels), np.bool_)
    moving[rows.nodes] = target != own
    row = np.repeat(np.arange(len(rows.nodes)), np.diff(rows.indptr))
    waiting = np.zeros(len(rows.nodes), np.bool_)
    waiting[row[moving[rows.indices] & (rows.indices < rows.nodes[row])]] = True
    return np.where(waiting, own, target)
