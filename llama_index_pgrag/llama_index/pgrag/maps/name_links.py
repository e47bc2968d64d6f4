"""Which nodes have which names in their mind maps: what leads from one map to another.

The names of a map are its topic, its last cells ("Lewis Range"), and the topics of other maps that its longer facts
mention.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from llama_index.pgrag.maps.names import CellNames, name_of
from llama_index.ragkit.text.known_names import KnownNames
from llama_index.ragkit.vectors.masks import recent

__all__ = ["LONG", "TOPIC_WEIGHT", "LinkedNodes", "LongFact", "NameLinks"]

TOPIC_WEIGHT = 3.0
"""Weight of the name of a topic, relative to other names of the same map."""

LONG = 40
"""Characters of a fact; in longer ones the topics of other maps are looked for."""

Place = tuple[int, int]


class LongFact(NamedTuple):
    """A long fact that mentions topics of other maps.

    Attributes
    ----------
    row : of its node
    text : the fact
    topic : the name of its own map
    columns : the names that it mentions
    """

    row: int
    text: str
    topic: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class NameLinks:
    """Nodes and names as a weighted bipartite graph.

    Attributes
    ----------
    names : sorted
    said : shape (nodes, names), 1 where a name is a last cell of a map
    topics : shape (nodes, names), 1 where it is the topic
    mentions : the long facts that mention topics
    """

    names: Sequence[str]
    said: csr_matrix
    topics: csr_matrix
    mentions: Sequence[LongFact] = ()

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
        cells = [(rows[said[i][0]], column[name]) for name, ids in facts.cells.items() for i in ids]
        above = [
            (rows[node_id], column[name])
            for name, ids in topics.cells.items()
            for topic_id in ids
            for node_id in nodes_of_topic[topic_id]
        ]
        mentions = []
        for node_id, topic, text in sorted({fact for fact in said.values() if len(fact[2]) > LONG}):
            found = topics.names_in(text, but=name_of(topic))
            if found:
                mentions.append(LongFact(rows[node_id], text, name_of(topic), tuple(column[name] for name in found)))
        return cls.joining(names, len(rows), cells, above, mentions)

    @classmethod
    def joining(
        cls,
        names: Sequence[str],
        nodes: int,
        said: Iterable[Place],
        topics: Iterable[Place],
        mentions: Sequence[LongFact] = (),
    ) -> "NameLinks":
        """The links of so many nodes, by the rows and columns that are joined."""
        shape = nodes, len(names)
        return cls(names, _marked(said, shape), _marked(topics, shape), mentions)

    @cached_property
    def known(self) -> KnownNames:
        """The names, to find them in a question."""
        return KnownNames(self.names)

    @cached_property
    def weights(self) -> csr_matrix:
        """The weights of the links of all nodes, shape (nodes, names)."""
        return _weights(self.said, self.topics, [(m.row, column) for m in self.mentions for column in m.columns])

    @cached_property
    def _all(self) -> "LinkedNodes":
        return _linked(self.weights)

    @cached_property
    def _parts(self) -> dict[bytes, "LinkedNodes"]:
        return {}

    def part(self, allowed: NDArray[np.bool_] | None) -> "LinkedNodes":
        """The links of the nodes that a filter lets pass, as if there were no others; None for all."""
        return self._all if allowed is None else recent(self._parts, allowed, self._part)

    def _part(self, allowed: NDArray[np.bool_]) -> "LinkedNodes":
        chosen = diags(allowed.astype(np.float64))
        said, topics = (chosen @ self.said).tocsr(), (chosen @ self.topics).tocsr()
        is_topic = np.zeros(len(self.names), np.bool_)
        is_topic[topics.indices] = True
        mentioned: list[Place] = []
        cells: CellNames | None = None
        for mention in self.mentions:
            if not allowed[mention.row]:
                continue
            columns: Iterable[int] = mention.columns
            if not is_topic[list(mention.columns)].all():
                # A topic of other nodes may also have hidden a shorter one of these.
                cells = cells or CellNames({self.names[i]: frozenset() for i in np.flatnonzero(is_topic).tolist()})
                columns = [bisect_left(self.names, name) for name in cells.names_in(mention.text, but=mention.topic)]
            mentioned += [(mention.row, column) for column in columns]
        return _linked(_weights(said, topics, mentioned))


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


def _marked(places: Iterable[Place], shape: tuple[int, int]) -> csr_matrix:
    """1 at some places, each perhaps given several times."""
    at = np.array(sorted(set(places)), np.int64).reshape(-1, 2)
    return csr_matrix((np.ones(len(at)), (at[:, 0], at[:, 1])), shape=shape)


def _weights(said: csr_matrix, topics: csr_matrix, mentioned: Iterable[Place]) -> csr_matrix:
    named: csr_matrix = (said + _marked(mentioned, said.shape)).sign()
    return (named + TOPIC_WEIGHT * topics).tocsr()


def _linked(weights: csr_matrix) -> LinkedNodes:
    weights.eliminate_zeros()
    of_node, of_name = (np.maximum(np.asarray(weights.sum(axis=axis)).ravel(), 1e-12) for axis in (1, 0))
    frequency = np.bincount(weights.indices, minlength=weights.shape[1]).astype(np.float64)
    return LinkedNodes((diags(1 / of_node) @ weights).T.tocsr(), (weights @ diags(1 / of_name)).tocsr(), frequency)
