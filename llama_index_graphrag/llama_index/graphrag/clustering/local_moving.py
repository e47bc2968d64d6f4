"""Local moving in blocks: nodes go to the neighbouring community where modularity gains most.

For a node of strength k and a community of strength K (without the node), joined by weight w, in a graph whose
strengths sum to W, membership is worth

    gain = W w - k K

which is 2 W^2 times the change of modularity (Blondel, Guillaume, Lambiotte and Lefebvre 2008, arXiv 0803.0476,
section 2). For W stands the largest number below it with no more than three binary digits before its zeros, such as
160 for 180: else each edge that comes anywhere would change every comparison. It is modularity at a resolution of 1 to
1.25. The weight w to a community other than the node's own counts 1/16 less, and between communities that are nodes
1/8 less: close calls are decided for staying, so that a small change of the graph decides fewer moves otherwise. An
entity that is alone joins by the whole weight, else the last spokes of a star would stay alone. Everything is a 64-bit
integer, so that equal gains are equal and no rounding decides.

A pass takes the nodes in 16 blocks, told by a hash of the name of each node. All nodes of a block move at once: each
to the community of largest gain, of equal ones to that of least label, and only where it gains more than by staying.
Of two nodes that are alone, only the later one may join the earlier.

Neighbours that move at once do not know of each other and can change places for ever. So after three passes a node
waits while an earlier neighbour moves. No blocks are needed then, and only nodes in and beside communities that
changed in the pass before have their turn.

Deviations from the published method: it has W and w themselves, and takes the nodes one after the other. In blocks a
move depends on the neighbourhood of the node and hardly on other moves, so that communities stay the same where the
graph does.
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
_DIGITS = 3  # of the sum of the strengths that count
_RELUCTANCE_OF_ENTITIES, _RELUCTANCE_OF_COMMUNITIES = 4, 3  # binary digits that a weight is shifted by
_STILL = 10_000  # passes end when fewer than one node in so many moves


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
    strengths : shape (n,), sum of each node's weights, its loops included twice; the square of their sum W must be
        below 2^63
    blocks : shape (n,), in [0, 16)
    are_entities : whether the nodes are entities, and not communities of them

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
    """The rows of nodes that are sorted by block, one entry for each block that has any."""
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
    """Where each node would go, shape (len(nodes),); its own label where it stays."""
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
    """The same, but a node stays while an earlier neighbour moves."""
    own = labels[rows.nodes]
    moving = np.zeros(len(labels), np.bool_)
    moving[rows.nodes] = target != own
    row = np.repeat(np.arange(len(rows.nodes)), np.diff(rows.indptr))
    waiting = np.zeros(len(rows.nodes), np.bool_)
    waiting[row[moving[rows.indices] & (rows.indices < rows.nodes[row])]] = True
    return np.where(waiting, own, target)
