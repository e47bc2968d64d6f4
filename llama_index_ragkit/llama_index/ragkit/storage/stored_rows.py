"""The rows of a space in stores as JSON records: id, sort key, document and metadata, and the vector where the store
does not return it as it was written."""

import base64
import json
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.vectors.row_buffer import Record as RowRecord
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["VECTOR", "counted", "described", "joined", "recorded"]

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
