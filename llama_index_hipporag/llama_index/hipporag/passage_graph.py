"""`PassageGraph`: the passages of an index as a graph in a database; each passage adds its part and takes it away."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.graph.passage import Passage
from llama_index.hipporag.graph.passage_edges import passage_number, passage_rows
from llama_index.ragkit import Records, Steps, offload
from llama_index.ragkit.storage.graph.edges import EdgeChange
from llama_index.ragkit.storage.graph.interface import GraphReader, GraphRows

__all__ = ["PassageGraph"]

_PASSAGES = "passages"
_NUMBERS = "passage_numbers"


class PassageGraph:
    """Reads and writes the graph of one index.

    Parameters
    ----------
    rows : the graph
    records : of the index, in the same database; they hold what each passage has added to the graph

    Attributes
    ----------
    common : phrases that were too common to join passages when a question last met them; the next one reads first
        whether they still are
    """

    def __init__(self, rows: GraphRows, records: Records) -> None:
        self._rows = rows
        self._records = records
        self.common: frozenset[int] = frozenset()

    def replace(self, passages: Mapping[str, Passage | None]) -> Steps[None]:
        """Store what passages consist of now; None for one that is removed. To be called within a transaction.

        The graph changes by the difference to what the passages had added before.
        """
        before = yield from self.passages(passages)
        changed = {i: passage for i, passage in passages.items() if before.get(i) != passage}
        gone = passage_rows({i: before[i] for i in changed if i in before}, -1)
        new = {i: passage for i, passage in changed.items() if passage is not None}
        added = passage_rows(new)
        both = EdgeChange.together([gone.change, added.change])
        yield from offload(self._rows.change, both, {**gone.labels, **added.labels})
        removed = [i for i, passage in changed.items() if passage is None]
        yield from self._records.delete(_PASSAGES, removed)
        yield from self._records.delete(_NUMBERS, [str(passage_number(i)) for i in removed])
        yield from self._records.put(_PASSAGES, [(i, _content(passage)) for i, passage in new.items()])
        yield from self._records.put(_NUMBERS, [(str(passage_number(i)), {"id": i}) for i in new])

    def passages(self, node_ids: Collection[str]) -> Steps[dict[str, Passage]]:
        """What those passages that are stored consist of."""
        stored = yield from self._records.get_many(_PASSAGES, node_ids)
        return {node_id: _passage(content) for node_id, content in stored.items()}

    def node_ids(self, numbers: NDArray[np.int64]) -> Steps[list[str]]:
        """The ids of those passages that are stored, by the numbers of their nodes."""
        stored = yield from self._records.get_many(_NUMBERS, map(str, numbers.tolist()))
        return [record["id"] for record in stored.values()]

    @contextmanager
    def reader(self) -> Iterator[GraphReader]:
        """A reader that sees one state of the graph."""
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
