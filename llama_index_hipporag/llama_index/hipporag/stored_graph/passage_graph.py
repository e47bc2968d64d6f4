"""`PassageGraph`: the passages of an index as a graph in a database; each passage adds its part and takes it away."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.graph.passage import Passage
from llama_index.hipporag.stored_graph.passage_edges import passage_number, passage_rows
from llama_index.ragkit.sql.engine import writing
from llama_index.ragkit.sql.graph_records import EdgeChange
from llama_index.ragkit.sql.graph_rows import GraphReader
from llama_index.ragkit.sql.stores import Stores

__all__ = ["PassageGraph"]


class PassageGraph:
    """Reads and writes the graph of one index.

    Parameters
    ----------
    stores : of the index
    """

    def __init__(self, stores: Stores) -> None:
        self._engine = stores.engine
        self._rows = stores.graph()
        self._sources = stores.sources()

    def replace(self, passages: Mapping[str, Passage | None]) -> None:
        """Store what passages consist of now, in one transaction; None for one that is removed.

        The graph changes by the difference to what the passages had added before, so that a write that was killed may
        be repeated.
        """
        self._rows.create()
        self._sources.create()
        number_of = {node_id: passage_number(node_id) for node_id in passages}
        with writing(self._engine) as connection:
            stored = self._sources.read_in(connection, number_of.values())
            before = {i: _passage(stored[number]) for i, number in number_of.items() if number in stored}
            changed = {i: passage for i, passage in passages.items() if before.get(i) != passage}
            gone = passage_rows({i: before[i] for i in changed if i in before}, -1)
            new = passage_rows({i: passage for i, passage in changed.items() if passage is not None})
            both = EdgeChange.together([gone.change, new.change])
            self._rows.change_in(connection, both, {**gone.labels, **new.labels})
            self._sources.replace_in(
                connection,
                {number_of[i]: (i, None if passage is None else _content(passage)) for i, passage in changed.items()},
            )

    def passages(self, node_ids: Collection[str]) -> dict[str, Passage]:
        """What those passages that are stored consist of."""
        stored = self._sources.read([passage_number(node_id) for node_id in node_ids])
        return {i: _passage(stored[number]) for i in node_ids if (number := passage_number(i)) in stored}

    def node_ids(self, numbers: NDArray[np.int64]) -> dict[int, str]:
        """The ids of passages by the numbers of their nodes."""
        return self._sources.names(numbers.tolist())

    @contextmanager
    def reader(self) -> Iterator[GraphReader]:
        """A reader that sees one state of the graph."""
        self._rows.create()
        with self._rows.reader() as reader:
            yield reader


def _content(passage: Passage) -> dict[str, Any]:
    return {
        "named": dict(passage.named),
        "statements": [[*fact, times] for fact, times in passage.statements.items()],
        "subjects": list(passage.subjects),
    }


def _passage(content: Mapping[str, Any]) -> Passage:
    statements = {(head, relation, tail): times for head, relation, tail, times in content["statements"]}
    return Passage(content["named"], statements, content["subjects"])
