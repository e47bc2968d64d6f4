"""The rows of a space in stores as JSON records, and under which ids their vectors lie in the vector store.

A record has id, sort key, document and metadata, and the vector where the store does not return it as it was written.
"""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.ids import content_id
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.records import Record, Records
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.vectors.row_buffer import Record as RowRecord
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["VECTOR", "RowVersions", "counted", "described", "joined", "recorded"]


VECTOR = "v"
"""The key of a record's vector."""


def recorded(rows: SpaceRows, with_vectors: bool) -> Iterator[Record]:
    """The record of each row."""
    metadatas = rows.metadatas or [{}] * len(rows.ids)
    for row_id, vector, key, ref, metadata in zip(
        rows.ids, rows.vectors, rows.keys, rows.ref_doc_ids, metadatas, strict=True
    ):
        record = {"id": row_id, "key": key, "ref": ref, "meta": dict(metadata)}
        if with_vectors:
            data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
            record[VECTOR] = base64.b64encode(data).decode("ascii")
        yield record


def joined(records: Mapping[str, Record], vectors: Mapping[str, NDArray[np.float32]]) -> Snapshot:
    """Rows from their records, by the same keys with the vectors of those whose record has none."""
    matrix = np.stack([_vector(record) if VECTOR in record else vectors[key] for key, record in records.items()])
    return Snapshot.of(matrix, [_row(record) for record in records.values()])


def described(records: Mapping[str, Record]) -> Snapshot:
    """Rows from their records, with zeros for their vectors: for filters, which need none."""
    if not records:
        return Snapshot.empty()
    return Snapshot.of(np.zeros((len(records), 1), np.float32), [_row(record) for record in records.values()])


def counted(records: Mapping[str, Record], selection: Selection) -> Mapping[str, Record]:
    """The records of rows that count."""
    if selection.is_whole or not records:
        return records
    mask = selection.mask(described(records))
    return {key: record for (key, record), counts in zip(records.items(), mask.tolist(), strict=True) if counts}


def _vector(record: Record) -> NDArray[np.float32]:
    return np.frombuffer(base64.b64decode(record[VECTOR]), dtype="<f4").astype(np.float32)


def _row(record: Record) -> RowRecord:
    return RowRecord(record["id"], record["ref"], record["key"], json.dumps(record["meta"]))


class RowVersions:
    """Under which ids the rows of a space lie in a vector store, and which of them are to be deleted there.

    Vector stores take no part in transactions. So a row that replaces another gets an id of its own in the store, and
    the old one stays there until the write is committed: whoever reads the records as they were before finds its
    vector.

    Parameters
    ----------
    space : its name
    records : of the index
    """

    def __init__(self, space: str, records: Records) -> None:
        self._records = records
        self._replacing = f"versions/{space}"  # keys of rows, by the ids in the store that are not their keys
        self._doomed = f"doomed/{space}"

    @staticmethod
    def in_store(key: str, record: Record) -> str:
        """The id in the store of the row with this key: the key, or another id where it has replaced a row."""
        version = record.get("version", 0)
        return content_id("version", key, str(version)) if version else key

    def versioned(self, records: Mapping[str, Record]) -> Steps[dict[str, Record]]:
        """Records with the first versions whose ids in the store are not those of rows to be deleted there, by key.

        A node that changed is removed and put by the same write: its old row is still in the store.
        """
        found = dict(records)
        while True:
            ids = {key: self.in_store(key, record) for key, record in found.items()}
            doomed = yield from self._records.get_many(self._doomed, list(ids.values()))
            if not doomed:
                break
            for key, one in ids.items():
                if one in doomed:
                    found[key] = {**found[key], "version": found[key].get("version", 0) + 1}
        yield from self._records.put(self._replacing, [(one, {"key": key}) for key, one in ids.items() if one != key])
        return found

    def replaced(self, ids: Sequence[str]) -> Steps[list[str]]:
        """The keys of rows that lie under some of these ids in the store, which are not their keys."""
        found = yield from self._records.get_many(self._replacing, ids)
        return [version["key"] for version in found.values()]

    def forget(self, records: Mapping[str, Record]) -> Steps[None]:
        """Note that the vectors of rows are to be deleted, by their records by key."""
        ids = [self.in_store(key, record) for key, record in records.items()]
        yield from self._records.put(self._doomed, [(one, {}) for one in ids])
        yield from self._records.delete(self._replacing, [one for one in ids if one not in records])

    def doomed(self) -> Steps[list[str]]:
        """The ids that are to be deleted in the store."""
        return list((yield from self._records.get_all(self._doomed)))

    def settled(self, ids: Sequence[str]) -> Steps[None]:
        """Note that ids were deleted in the store."""
        yield from self._records.delete(self._doomed, ids)
