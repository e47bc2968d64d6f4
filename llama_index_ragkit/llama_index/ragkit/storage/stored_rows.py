"""The rows of a space in stores as JSON records, and how their vectors lie in a vector store of many spaces.

A record has id, sort key, document and metadata, and the vector where the store does not return it as it was written.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256

import numpy as np
from llama_index.core.vector_stores.types import FilterOperator, MetadataFilter, MetadataFilters
from numpy.typing import NDArray

from llama_index.ragkit.ids import content_id
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.records import Record, Records
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.vectors.row_buffer import Record as RowRecord
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = [
    "SPACE",
    "VECTOR",
    "RowVersions",
    "SharedStoreSearch",
    "counted",
    "described",
    "joined",
    "label_of",
    "recorded",
]

VECTOR = "v"
"""The key of a record's vector."""

SPACE = "ragkit_space"
"""The key of a row's metadata that names its space."""
_ALONE = 0.75  # share of the rows found that are of this space, from which on a store counts as its own
_NO_QUOTING = re.compile(r"[A-Za-z0-9_/.-]*")


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


def label_of(uid: str, name: str) -> str:
    """What the rows of a space have for `SPACE`: letters and digits alone, since adapters put it into statements."""
    return f"s{sha256(f'{uid}/{name}'.encode(errors='surrogatepass')).hexdigest()[:32]}"


class SharedStoreSearch:
    """Searches for the rows of one space.

    The store is asked to filter by the label of the space once a search has found many rows of others: a store that
    holds one space alone would check each row for nothing, and planners of databases that know nothing of such a filter
    read the whole table instead of the index of its vectors.

    Parameters
    ----------
    external : the store
    uid : of the index
    name : of the space
    """

    def __init__(self, external: ExternalVectorStore, uid: str, name: str) -> None:
        self._external = external
        # Rows of the first release have the second label.
        labels = [label_of(uid, name), f"{uid}/{name}"]
        self._own = MetadataFilter(
            key=SPACE, value=[one for one in labels if _NO_QUOTING.fullmatch(one)], operator=FilterOperator.IN
        )
        self._is_shared = False

    def learns_from(self, found: int, known: int) -> bool:
        """Whether a search, of whose rows so many are of the space, is better made again with a filter by the space."""
        if self._is_shared or known >= _ALONE * found:
            return False
        self._is_shared = True
        return True

    def search(
        self, vectors: NDArray[np.float32], count: int, filters: MetadataFilters | None
    ) -> Steps[list[list[str]]]:
        """The ids in the store of the rows nearest to each vector, best first; rows of other spaces may be among them.

        Parameters
        ----------
        vectors : shape (queries, dimension)
        filters : as far as the store can check them; rows that do not pass may be among those found
        """
        return (yield from self._external.search(vectors, count, self._own if self._is_shared else None, filters))
