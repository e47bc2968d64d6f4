"""`GraphRows`: a graph as rows by node, read a frontier at a time and written by exact differences of its edges.

It is separate from the other parts of an index (:mod:`llama_index.ragkit.storage.interface`), since the steps of
methods, which know nothing of LlamaIndex, read it.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.storage.graph.edges import EdgeChange, Records

__all__ = ["GraphReader", "GraphRows", "NodeRows", "asked_once"]

Ints = NDArray[np.int64]


class NodeRows(NamedTuple):
    """Rows of nodes."""

    nodes: Ints  # (m,) as asked for, those that are not stored too
    further: Ints  # (m,) the number of segments of a hub, whose edges are not given then; otherwise 0
    labels: Sequence[str]  # (m,) what the node was made from; "" if it is not stored, or was read before
    # ``records[indptr[i] : indptr[i + 1]]`` are the edges of node i, in no order
    indptr: Ints
    records: Records
    # hub without its edges -> number and sum of counts of its edges by kind, of type `TOTAL`
    totals: Mapping[int, Records]


class GraphReader(Protocol):
    """Reads from one state of a graph."""

    def fetch(self, nodes: Ints, whole: Ints | Sequence[int] = ()) -> NodeRows:
        """The rows of nodes.

        A node with more than `SEGMENT` edges is a hub: its totals are read instead of its edges, so that no question
        reads a million edges unasked. The edges of the hubs in `whole` are read; their rows follow the others.
        """


class GraphRows(Protocol):
    """The graph of one index. A node is stored with its first edge and removed with its last."""

    def reader(self) -> AbstractContextManager[GraphReader]:
        """A reader that sees one state of the graph, whatever is written meanwhile."""

    def change(self, change: EdgeChange, labels: Mapping[int, str]) -> None:
        """Add differences to the counts of edges: all of them, or none if it raises.

        Parameters
        ----------
        labels : what each node of the change is made from

        Raises
        ------
        StorageError
            If a count would become negative, or two labels have the same number.
        """

    def whole(self) -> NodeRows | None:
        """All rows with all of their edges, nodes ascending; None where they are not held in memory."""


def asked_once(known: dict[int, bool], ask: Callable[[Ints], NDArray[np.bool_]], nodes: Ints) -> NDArray[np.bool_]:
    """The answers about nodes, shape (n,); `ask` is called with those that are not `known`, each once, ascending."""
    distinct, inverse = np.unique(nodes, return_inverse=True)
    new = np.array([node for node in distinct.tolist() if node not in known], np.int64)
    if len(new):
        known.update(zip(new.tolist(), ask(new).tolist(), strict=True))
    found: NDArray[np.bool_] = np.array([known[node] for node in distinct.tolist()], np.bool_)[inverse.ravel()]
    return found
