"""`StoredSpace`: a vector space in a vector store of the user, not in memory.

A question materialises a small part of it. The rows near the question become an ordinary
:class:`~llama_index.ragkit.vectors.snapshot.Snapshot`, over which the same search runs as over a whole space in memory.
Nearness is standardised by the hundred nearest rows, so candidates are enough.

The store chooses candidates, by whatever approximation it uses. The cosines that count are computed from the vectors as
they were written. So an approximate or quantised index of the store costs recall, but never gives a wrong score.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import BasePydanticVectorStore, FilterOperator, MetadataFilter
from numpy.typing import NDArray

from llama_index.ragkit.errors import HalfWrittenError, StorageError
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.external_store import AT_ONCE, ExternalVectorStore, search_at_once
from llama_index.ragkit.storage.records import Record, Records
from llama_index.ragkit.storage.selection import EVERYTHING, Selection
from llama_index.ragkit.storage.vector_spaces import VECTOR, SpaceRows, vector_in
from llama_index.ragkit.vectors.filters import is_comparable
from llama_index.ragkit.vectors.row_buffer import Record as RowRecord
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["SPACE", "StoredSpace", "label_of"]

SPACE = "ragkit_space"
"""The key of a row's metadata that names its space."""

_KINDS, _IN_STORE = "stored_spaces", "store"
_FEWEST = 100  # rows that are asked for at least
_SPARE = 1.25  # rows that are asked for, times those that are wanted
_MORE = 4  # rows that are asked for then, times those before, while too few are left
_MOST = 16_000  # rows that a store is asked for; some have such a limit
_ALONE = 0.75  # share of the rows found that are of this space, from which on a store counts as its own
_NO_QUOTING = re.compile(r"[A-Za-z0-9_/.-]*")


class StoredSpace:
    """Rows in a vector store of the user, with a record of each in the index.

    Several spaces, of several indexes and tenants, may share a store. The id of a row there is derived from the index,
    the space and the row. Rows have the name of their space, and rows of other spaces are left out. The store is asked
    to filter by that name once a search has found many rows of others: a store that holds one space alone would check
    each row for nothing, and planners of databases that know nothing of such a filter read the whole table instead of
    the index of its vectors.

    A record holds the id of the row, its sort key, document and metadata. Filters are checked by these, whatever the
    store makes of the filters. A record also holds the vector, unless the store returns vectors by id exactly as they
    were written; the first write tries that.

    Records are written in the transaction of a write, and decide which rows there are: a vector without a record is in
    no answer. Vectors are added to the store before that transaction is committed, and deleted after it
    (:meth:`settle`). So a row that replaces another gets an id of its own in the store, where the old one stays until
    then: whoever reads the records as they were before finds its vector.

    In the store, everything that a write adds is one document, named by the token of the write. The token is stored
    before the first vector. If the write ends before its commit, that name is enough to delete all of its rows, and no
    row of another write (:meth:`delete_writes`).

    `uid` is that of the index, and `store` follows the documented contract of the base class.

    Raises
    ------
    UnsupportedStoreError
        If the store cannot delete.
    """

    def __init__(self, name: str, uid: str, store: BasePydanticVectorStore, records: Records) -> None:
        self.name = name
        self._uid = uid
        self._label = label_of(uid, name)
        # Rows of the first release have the second label.
        labels = [one for one in (self._label, f"{uid}/{name}") if _NO_QUOTING.fullmatch(one)]
        self._own = MetadataFilter(key=SPACE, value=labels, operator=FilterOperator.IN)
        self._is_shared = False
        self._external = ExternalVectorStore(store)
        self._records = records
        self._collection = f"space/{name}"
        self._replacing = f"versions/{name}"  # keys of rows, by the ids in the store that are not their keys
        self._doomed = f"doomed/{name}"  # ids that are to be deleted in the store
        self._write = ""  # the token of the write that adds rows
        self._returns_vectors: bool | None = None

    def key(self, row_id: str) -> str:
        """The id of a row in the database, a UUID."""
        return content_id("row", self._uid, self.name, row_id)

    # -- writing ------------------------------------------------------------------------------------------

    def begin(self, write: str, left: Sequence[str], dimension: int | None) -> Steps[None]:
        """Begin a write, outside of its transaction, after its token was stored; delete what others have `left`."""
        self._write = write
        if dimension and self._returns_vectors is None:
            yield from self._learn(dimension)
        yield from self.delete_writes(left)

    def delete_writes(self, writes: Sequence[str]) -> Steps[None]:
        """Delete all that writes have added to the store, by the tokens of writes that ended before their commit."""
        for write in writes:
            try:
                yield from self._external.delete_document(self._document(write))
            except StorageError:  # a store may refuse before its first row
                if (yield from self._records.get(_KINDS, self.name)) is not None:
                    raise

    def _document(self, write: str) -> str:
        return content_id("write", self._uid, self.name, write)

    def put(self, rows: SpaceRows) -> Steps[None]:
        """Add rows, replacing those of the same id."""
        if not len(rows.ids):
            return
        if self._returns_vectors is None:
            yield from self._learn(rows.vectors.shape[1])
        keys = [self.key(row_id) for row_id in rows.ids]
        known = yield from self._records.get_many(self._collection, keys)
        yield from self._forget(known)
        of_rows = zip(rows.ids, rows.records(with_vectors=not self._returns_vectors), strict=True)
        unversioned = ({"id": row_id, **record} for row_id, record in of_rows)
        records = yield from self._versioned(dict(zip(keys, unversioned, strict=True)))
        yield from self._records.put(self._collection, list(records.items()))
        metadatas = list(self._metadatas(rows))
        yield from self._external.add_vectors(
            list(_in_store(records)), rows.vectors, metadatas, self._document(self._write)
        )

    def remove(self, ids: Iterable[str]) -> Steps[None]:
        """Delete rows; unknown ids are ignored. Their vectors stay in the store until :meth:`settle`."""
        keys = [self.key(row_id) for row_id in ids]
        known = yield from self._records.get_many(self._collection, keys)
        yield from self._forget(known)
        yield from self._records.delete(self._collection, known)

    def _forget(self, records: Mapping[str, Record]) -> Steps[None]:
        """Note that the vectors of rows are to be deleted, by their records by key."""
        ids = _in_store(records)
        yield from self._records.put(self._doomed, [(one, {}) for one in ids])
        yield from self._records.delete(self._replacing, [one for one in ids if one not in records])

    def _versioned(self, records: dict[str, Record]) -> Steps[dict[str, Record]]:
        """Records with the first versions whose ids in the store are not those of rows to be deleted there, by key.

        A node that changed is removed and put by the same write: its old row is still in the store.
        """
        while True:
            ids = _in_store(records)
            doomed = yield from self._records.get_many(self._doomed, ids)
            if not doomed:
                break
            for key in (ids[one] for one in doomed):
                records[key] = {**records[key], "version": records[key].get("version", 0) + 1}
        yield from self._records.put(self._replacing, [(one, {"key": key}) for one, key in ids.items() if one != key])
        return records

    def is_unsettled(self) -> Steps[bool]:
        """Whether the store may hold vectors of rows that were removed."""
        return bool((yield from self._records.get_all(self._doomed)))

    def settle(self, left: Sequence[str] = ()) -> Steps[None]:
        """Delete the vectors of rows that were removed or replaced by writes that are committed.

        One process at a time may do so: see :meth:`~llama_index.ragkit.storage.index_storage.IndexStorage.settle`.
        """
        yield from self.delete_writes(left)
        doomed = list((yield from self._records.get_all(self._doomed)))
        if doomed:
            yield from self._external.delete_vectors(doomed)
            yield from self._records.delete(self._doomed, doomed)

    def clear(self, left: Sequence[str] = ()) -> Steps[None]:
        """Delete all rows of the space, and no other: by their records, by the tokens of writes that have left some,
        and by their label, where the store can.
        """
        stored = yield from self._records.get_all(self._collection)
        yield from self.remove([record["id"] for record in stored.values()])
        yield from self.settle(left)
        yield from self._external.delete_where(SPACE, self._label)
        yield from self._records.delete(_KINDS, [self.name])

    def _metadatas(self, rows: SpaceRows) -> Iterator[dict[str, Any]]:
        """The metadata of rows in the store: what it can filter by, and the label of the space.

        Stores of flat metadata often fix the keys by the first row.
        """
        for metadata in rows.metadatas or [{}] * len(rows.ids):
            kept = {} if self._external.is_flat else metadata
            yield {**{k: v for k, v in kept.items() if is_comparable(k) and is_comparable(v)}, SPACE: self._label}

    def _learn(self, dimension: int) -> Steps[None]:
        """Find out, once an index, whether the store returns vectors as they were written, from one made up here."""
        kind = yield from self._records.get(_KINDS, self.name)
        if kind is None:
            key = content_id("probe", self._uid, self.name)
            probe = np.random.default_rng(0).normal(size=(1, dimension)).astype(np.float32)
            yield from self._external.add_vectors([key], probe, [{SPACE: self._label}], self._document(self._write))
            try:
                found = yield from self._external.fetch_vectors([key])
            except StorageError:  # some adapters have `get_nodes` and fail when it is called
                found = {}
            yield from self._external.delete_vectors([key])
            kind = {"vectors": _IN_STORE if key in found and np.array_equal(found[key], probe[0]) else "records"}
            yield from self._records.put(_KINDS, [(self.name, kind)])
        yield from self._external.check_deletes()
        self._returns_vectors = kind["vectors"] == _IN_STORE

    # -- reading ------------------------------------------------------------------------------------------

    def fetch(self, ids: Iterable[str], selection: Selection = EVERYTHING) -> Steps[Snapshot]:
        """The rows of those ids that exist and count.

        Raises
        ------
        HalfWrittenError
            If the store lacks the vector of a row that has a record.
        """
        # Rows that do not count are left out before their vectors are read: a write may have begun to delete them.
        return (yield from self.rows((yield from self.records_of(ids, selection))))

    def records_of(self, ids: Iterable[str], selection: Selection = EVERYTHING) -> Steps[Mapping[str, Record]]:
        """The records of those rows that exist and count, for :meth:`rows`."""
        return (yield from self.records_keyed([self.key(row_id) for row_id in ids], selection))

    def records_keyed(self, keys: Sequence[str], selection: Selection = EVERYTHING) -> Steps[Mapping[str, Record]]:
        """As :meth:`records_of`, by the keys of rows."""
        return _counted((yield from self._records.get_many(self._collection, keys)), selection)

    def rows(self, records: Mapping[str, Record]) -> Steps[Snapshot]:
        """The rows of records, by one read of the store."""
        if not records:
            return Snapshot.empty()
        bare = _in_store({key: record for key, record in records.items() if VECTOR not in record})
        found = (yield from self._external.fetch_vectors(list(bare))) if bare else {}
        missing = [records[key]["id"] for one, key in bare.items() if one not in found]
        if missing:
            raise HalfWrittenError(
                f"The vector store of the space {self.name!r} lacks {len(missing)} rows that the index has, such as "
                f"{missing[0]!r}: a write ended early, or the store was changed. Write their documents again."
            )
        vectors = {key: found[one] for one, key in bare.items()}
        own = [vectors[key] if key in vectors else vector_in(record) for key, record in records.items()]
        return _snapshot(records, np.stack(own))

    def vectors_of(self, ids: Iterable[str]) -> Steps[dict[str, NDArray[np.float32]]]:
        """The vectors of rows that exist, by id in the given order, where the id of a row says what its vector is.

        They are read without the records, which name the row that has replaced another: its vector is the same.
        """
        id_of = {self.key(row_id): row_id for row_id in ids}
        if self._returns_vectors is None:
            kind = yield from self._records.get(_KINDS, self.name)
            self._returns_vectors = None if kind is None else kind["vectors"] == _IN_STORE
        found = (yield from self._external.fetch_vectors(list(id_of))) if id_of and self._returns_vectors else {}
        others = yield from self.fetch(row_id for key, row_id in id_of.items() if key not in found)
        read = dict(zip(others.ids, others.matrix, strict=True))
        vectors = {row_id: found[key] if key in found else read.get(row_id) for key, row_id in id_of.items()}
        return {row_id: vector for row_id, vector in vectors.items() if vector is not None}

    def described(self, ids: Iterable[str] | None = None, selection: Selection = EVERYTHING) -> Steps[Snapshot]:
        """As :meth:`fetch`, with zeros for the vectors; of all rows if `ids` is None."""
        if ids is None:
            found = yield from self._records.get_all(self._collection)
        else:
            found = yield from self._records.get_many(self._collection, map(self.key, ids))
        return _described(_counted(found, selection))

    def near(self, vectors: NDArray[np.float32], wanted: int, selection: Selection = EVERYTHING) -> Steps[Snapshot]:
        """The rows of :meth:`records_near_each` for all vectors, shape (q, dimension), together."""
        found = yield from self.records_near_each(list(vectors), wanted, selection, wanted)
        return (yield from self.rows({key: record for records in found for key, record in records.items()}))

    def whole(self) -> Snapshot | None:
        """None: the vectors stay in the store."""
        return None

    def records_near(
        self, vector: NDArray[np.float32], wanted: int, selection: Selection = EVERYTHING, least: int = _FEWEST
    ) -> Steps[Mapping[str, Record]]:
        """The records of rows near a vector that count: of at least `wanted`, if the store finds as many.

        A quarter more are asked for, and four times as many again while too few are left, up to 16,000 rows.
        The store gets what it can check of the filters; all are checked again here.

        Parameters
        ----------
        selection : which rows count; if it names the only ones, those are the candidates
        """
        if selection.only is not None:
            return (yield from self.records_of(selection.only, selection))
        count = _asked_for(wanted, least)
        while True:
            (found,) = yield from self._search(vector[None], count, selection)
            known = yield from self._known(found)
            if not self._is_shared and len(known) < _ALONE * len(found):
                self._is_shared = True
                continue
            records = _counted(known, selection)
            if len(records) >= wanted or len(found) < count or count >= _MOST:
                return records
            count = min(_MORE * count, _MOST)

    def records_near_each(
        self,
        vectors: Sequence[NDArray[np.float32]],
        wanted: int,
        selection: Selection = EVERYTHING,
        least: int = _FEWEST,
    ) -> Steps[list[Mapping[str, Record]]]:
        """As :meth:`records_near` for each of several vectors: some searches run at once, and records are read once."""
        if selection.only is not None:
            return [(yield from self.records_of(selection.only, selection))] * len(vectors)
        count = _asked_for(wanted, least)
        parts = np.array_split(np.stack(vectors), min(AT_ONCE, len(vectors))) if vectors else []
        searches = [partial(self._search, part, count, selection) for part in parts]
        found = yield from search_at_once(searches)
        known = yield from self._known(list(dict.fromkeys(chain.from_iterable(found))))
        rows = _counted(known, selection)
        key_of = _in_store(rows)
        near: list[Mapping[str, Record]] = []
        for vector, in_store in zip(vectors, found, strict=True):
            records = {key_of[one]: rows[key_of[one]] for one in in_store if one in key_of}
            if len(records) < wanted and len(in_store) >= count:  # others share the store, or filters leave out many
                records = dict((yield from self.records_near(vector, wanted, selection, least)))
            near.append(records)
        return near

    def _search(self, vectors: NDArray[np.float32], count: int, selection: Selection) -> Steps[list[list[str]]]:
        """The ids in the store of the rows nearest to each vector, best first. Rows of other spaces may be among them,
        and rows that do not pass the filters.
        """
        own = self._own if self._is_shared else None
        return (yield from self._external.search(vectors, count, own, selection.filters))

    def _known(self, in_store: Sequence[str]) -> Steps[Mapping[str, Record]]:
        """The records of rows by their ids in the store; those of others are left out."""
        records = yield from self._records.get_many(self._collection, in_store)
        others = [one for one in in_store if one not in records]
        if not others:
            return records
        versions = yield from self._records.get_many(self._replacing, others)
        replaced = [version["key"] for version in versions.values() if version["key"] not in records]
        return {**records, **(yield from self._records.get_many(self._collection, replaced))}


def _asked_for(wanted: int, least: int) -> int:
    return max(int(_SPARE * wanted), least)


def label_of(uid: str, name: str) -> str:
    """What the rows of a space have for `SPACE`: letters and digits alone, since adapters put it into statements."""
    return f"s{sha256(f'{uid}/{name}'.encode(errors='surrogatepass')).hexdigest()[:32]}"


def _in_store(records: Mapping[str, Record]) -> dict[str, str]:
    """The ids in the store of rows -> their keys: these are the ids too, unless a row has replaced another."""
    versions = ((key, record.get("version", 0)) for key, record in records.items())
    return {content_id("version", key, str(version)) if version else key: key for key, version in versions}


def _snapshot(records: Mapping[str, Record], matrix: NDArray[np.float32]) -> Snapshot:
    rows = [RowRecord(each["id"], each["ref"], each["key"], json.dumps(each["meta"])) for each in records.values()]
    return Snapshot.of(matrix, rows)


def _described(records: Mapping[str, Record]) -> Snapshot:
    """Rows from their records, with zeros for their vectors: for filters, which need none."""
    return _snapshot(records, np.zeros((len(records), 1), np.float32)) if records else Snapshot.empty()


def _counted(records: Mapping[str, Record], selection: Selection) -> Mapping[str, Record]:
    """The records of rows that count."""
    if selection.is_whole or not records:
        return records
    mask = selection.mask(_described(records))
    return {key: record for (key, record), counts in zip(records.items(), mask.tolist(), strict=True) if counts}
