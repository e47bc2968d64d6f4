"""`PassageGraph`: the passages of an index as rows of a graph, in which each adds and removes its own part."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.graph.passage import Passage, PassageRows, list_rows, passage_number, passage_rows
from llama_index.hipporag.state import phrase_id
from llama_index.ragkit import Records, Steps, offload
from llama_index.ragkit.storage.graph.edges import EdgeChange
from llama_index.ragkit.storage.graph.interface import GraphReader, GraphRows
from llama_index.ragkit.storage.records import Record

__all__ = ["SIMILAR", "PassageGraph", "read_lists"]

SIMILAR = "similar"
"""The collection of lists of similar phrases."""

_PASSAGES = "passages"
_NUMBERS = "passage_numbers"
_AT_ONCE = 2_000  # passages in one statement

Ints = NDArray[np.int64]
Lists = Mapping[str, Mapping[str, float]]


class PassageGraph:
    """Reads and writes the rows of one index; does nothing if the graph is in memory, where no rows are needed.

    Attributes
    ----------
    is_stored : whether the graph has rows
    common : phrases that were too common to join passages when a question last met them; the next question first
        checks whether they still are
    """

    def __init__(self, rows: GraphRows, records: Records) -> None:
        self._rows = rows
        self._records = records
        self.is_stored = rows.whole() is None
        self.common: frozenset[int] = frozenset()

    def replace(self, passages: Mapping[str, Passage | None]) -> Steps[Mapping[str, Passage]]:
        """Store new contents of passages, None for a removed one; returns the earlier contents.

        The graph changes by the difference.
        """
        before: dict[str, Passage] = {}
        ids = list(passages) if self.is_stored else []
        for start in range(0, len(ids), _AT_ONCE):
            before |= yield from self._replace({i: passages[i] for i in ids[start : start + _AT_ONCE]})
        return before

    def _replace(self, passages: Mapping[str, Passage | None]) -> Steps[Mapping[str, Passage]]:
        before = yield from self.passages(passages)
        changed = {i: passage for i, passage in passages.items() if before.get(i) != passage}
        gone = passage_rows({i: before[i] for i in changed if i in before}, -1)
        new = {i: passage for i, passage in changed.items() if passage is not None}
        yield from self._change(gone, passage_rows(new))
        yield from self._records.update(_PASSAGES, {i: _content(new[i]) if i in new else None for i in changed})
        numbers = {str(passage_number(i)): {"id": i} if i in new else None for i in changed}
        yield from self._records.update(_NUMBERS, numbers)
        return before

    def relist(self, before: Lists, after: Lists) -> Steps[None]:
        """Store lists of similar phrases, phrase -> phrases with their cosines, in place of others."""
        yield from self._change(list_rows(before, -1), list_rows(after))

    def _change(self, gone: PassageRows, new: PassageRows) -> Steps[None]:
        both = EdgeChange.together([gone.change, new.change])
        yield from offload(self._rows.change, both, {**gone.labels, **new.labels})

    def passages(self, node_ids: Collection[str]) -> Steps[dict[str, Passage]]:
        """The contents of the given passages, as far as they are stored."""
        stored = yield from self._records.get_many(_PASSAGES, node_ids)
        return {node_id: _passage(content) for node_id, content in stored.items()}

    def all_passages(self) -> Steps[list[Passage]]:
        """The contents of all passages."""
        return [_passage(content) for content in (yield from self._records.get_all(_PASSAGES)).values()]

    def lists(self, phrases: Sequence[str]) -> Steps[csr_matrix]:
        """The lists of similar phrases of some phrases, without phrases that are not among these."""
        ids = [phrase_id(phrase) for phrase in phrases]
        return read_lists((yield from self._records.get_many(SIMILAR, ids)), ids)[0]

    def node_ids(self, numbers: Ints) -> Steps[list[str]]:
        """The ids of the stored passages with these node numbers."""
        stored = yield from self._records.get_many(_NUMBERS, map(str, numbers.tolist()))
        return [record["id"] for record in stored.values()]

    def reader(self) -> AbstractContextManager[GraphReader]:
        """A reader that sees one state of the graph."""
        return self._rows.reader()


def _content(passage: Passage) -> dict[str, Any]:
    return {
        "named": dict(passage.named),
        "statements": [[*fact, times] for fact, times in passage.statements.items()],
        "subjects": list(passage.subjects),
    }


def _passage(content: Mapping[str, Any]) -> Passage:
    statements = {(head, relation, tail): times for head, relation, tail, times in content["statements"]}
    return Passage(content["named"], statements, content["subjects"])


def read_lists(stored: dict[str, Record], ids: Sequence[str]) -> tuple[csr_matrix, Ints]:
    """The lists of phrases from their records, without unknown phrases, and the rows of lists that had one."""
    place = {row_id: row for row, row_id in enumerate(ids)}
    rows, columns, cosines = [], [], []
    for row_id, record in stored.items():
        row = place.get(row_id)
        if row is not None:
            rows += [row] * len(record["ids"])
            columns += [place.get(i, -1) for i in record["ids"]]
            cosines += record["cosines"]
    owners, near = np.array(rows, np.int64), np.array(columns, np.int64)
    known = near >= 0
    lists = csr_matrix((np.array(cosines)[known], (owners[known], near[known])), shape=(len(ids), len(ids)))
    return lists, np.unique(owners[~known])
