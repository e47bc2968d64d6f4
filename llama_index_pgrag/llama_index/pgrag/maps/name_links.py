"""Which nodes have which names in their mind maps: what leads from one map to another.

The names of a map are its topic, its last cells ("Lewis Range"), and the topics of other maps that its longer facts
mention.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from llama_index.pgrag.maps.names import CellNames, name_of
from llama_index.ragkit.text.known_names import KnownNames

__all__ = ["LONG", "TOPIC_WEIGHT", "LinkedNodes", "NameLinks"]

TOPIC_WEIGHT = 3.0
"""Weight of the name of a topic, relative to other names of the same map."""

LONG = 40
"""Characters of a fact; in longer ones the topics of other maps are looked for."""


@dataclass(frozen=True)
class NameLinks:
    """Nodes and names as a weighted bipartite graph.

    Attributes
    ----------
    names : sorted
    weights : shape (nodes, names)
    """

    names: Sequence[str]
    weights: csr_matrix

    @classmethod
    def of(
        cls,
        rows: Mapping[str, int],
        topics: CellNames,
        facts: CellNames,
        nodes_of_topic: Mapping[str, Iterable[str]],
        said: Mapping[str, tuple[str, str, str]],
    ) -> "NameLinks":
        """The links of a graph.

        Parameters
        ----------
        rows : node id -> row
        topics, facts : topics and last cells by name
        nodes_of_topic : topic id -> ids of the nodes with facts under it
        said : fact id -> its node, its topic and its last cell
        """
        names = sorted({*topics.cells, *facts.cells})
        column = {name: i for i, name in enumerate(names)}
        found: defaultdict[tuple[int, int], float] = defaultdict(float)
        for name, ids in facts.cells.items():
            for fact_id in ids:
                found[rows[said[fact_id][0]], column[name]] = 1.0
        for node_id, topic, text in sorted({fact for fact in said.values() if len(fact[2]) > LONG}):
            for name in topics.names_in(text, but=name_of(topic)):
                found[rows[node_id], column[name]] = 1.0
        for name, ids in topics.cells.items():
            for row in {rows[node_id] for topic_id in ids for node_id in nodes_of_topic[topic_id]}:
                found[row, column[name]] += TOPIC_WEIGHT
        at = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
        values = np.array([found[place] for place in sorted(found)], dtype=np.float64)
        return cls(names, csr_matrix((values, (at[:, 0], at[:, 1])), shape=(len(rows), len(names))))

    @cached_property
    def known(self) -> KnownNames:
        """The names, to find them in a question."""
        return KnownNames(self.names)

    @cached_property
    def _all(self) -> "LinkedNodes":
        return _linked(self.weights)

    def part(self, allowed: NDArray[np.bool_] | None) -> "LinkedNodes":
        """The links of the nodes that a filter lets pass; None for all."""
        return self._all if allowed is None else _linked(self.weights.multiply(allowed[:, np.newaxis]).tocsr())


@dataclass(frozen=True)
class LinkedNodes:
    """The links of some nodes, from both sides.

    Attributes
    ----------
    from_nodes : shape (names, nodes), the share of each node's weight that goes to each name
    from_names : shape (nodes, names), the share of each name's weight that goes to each node
    frequency : shape (names,), in how many of the nodes each name is
    """

    from_nodes: csr_matrix
    from_names: csr_matrix
    frequency: NDArray[np.float64]


def _linked(weights: csr_matrix) -> LinkedNodes:
    weights.eliminate_zeros()
    of_node, of_name = (np.maximum(np.asarray(weights.sum(axis=axis)).ravel(), 1e-12) for axis in (1, 0))
    frequency = np.bincount(weights.indices, minlength=weights.shape[1]).astype(np.float64)
    return LinkedNodes((diags(1 / of_node) @ weights).T.tocsr(), (weights @ diags(1 / of_name)).tocsr(), frequency)
