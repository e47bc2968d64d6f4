"""A vector space of an index: exact vectors in memory, and the places where they are stored."""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.simple import SimpleVectorStore
from numpy.typing import NDArray

from llama_index.ragkit.errors import HalfWrittenError, MissingSpaceError
from llama_index.ragkit.steps import Steps, immediate, offload
from llama_index.ragkit.storage.records import Record, Records
from llama_index.ragkit.storage.selection import EVERYTHING, Selection
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.row_buffer import Storage
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["VECTOR", "SpaceRows", "VectorSpace", "open_space", "stored_matrix", "vector_in"]

VECTOR = "v"
"""The key of a record's vector."""


@dataclass(frozen=True)
class SpaceRows:
    """Rows of a space, all lists of one length.

    Attributes
    ----------
    ids : UUIDs for derived rows, node ids for chunks
    vectors : shape (n, dimension), float32
    keys : sort keys of the canonical order among equal scores
    ref_doc_ids : the document of a chunk; for a derived row its own id
    metadatas : the metadata that filters are applied to
    """

    ids: Sequence[str]
    vectors: NDArray[np.float32]
    keys: Sequence[str]
    ref_doc_ids: Sequence[str | None]
    metadatas: Sequence[dict[str, Any]] = field(default_factory=list)

    def records(self, *, with_vectors: bool = True) -> Iterator[Record]:
        """The record of each row."""
        metadatas = self.metadatas or [{}] * len(self.ids)
        columns = zip(self.vectors, self.keys, self.ref_doc_ids, metadatas, strict=True)
        for vector, key, ref, metadata in columns:
            record: Record = {"key": key, "ref": ref, "meta": dict(metadata)}
            if with_vectors:
                data = np.ascontiguousarray(vector, dtype="<f4").tobytes()
                record[VECTOR] = base64.b64encode(data).decode("ascii")
            yield record


def vector_in(record: Record) -> NDArray[np.float32]:
    """The vector of a row in its record."""
    return np.frombuffer(base64.b64decode(record[VECTOR]), dtype="<f4").astype(np.float32)


class VectorSpace:
    """Rows in a :class:`MatrixVectorStore`.

    A document store on a server keeps the rows too (`records`), so that an index whose stores are all remote can be
    opened without a local folder.
    """

    def __init__(self, name: str, store: MatrixVectorStore, records: Records) -> None:
        self.name = name
        self.store = store
        self._records = records if records.outlives_the_process else None

    def put(self, rows: SpaceRows) -> Steps[None]:
        """Add rows, replacing those of the same id."""
        if not len(rows.ids):
            return
        if self._records is not None:
            yield from self._records.put(self._collection, list(zip(rows.ids, rows.records(), strict=True)))
        yield from offload(
            self.store.put,
            list(rows.ids),
            rows.vectors,
            ref_doc_ids=list(rows.ref_doc_ids),
            metadatas=list(rows.metadatas) if rows.metadatas else None,
            keys=list(rows.keys),
        )

    def remove(self, ids: Iterable[str]) -> Steps[None]:
        """Delete rows; unknown ids are ignored."""
        ids = list(ids)
        if not ids:
            return
        if self._records is not None:
            yield from self._records.delete(self._collection, ids)
        yield from offload(self.store.delete_nodes, ids)

    def reload(self) -> Steps[None]:
        """Read the rows again from the document store on a server, after a write that did not end there."""
        if self._records is None:
            return
        stored = yield from self._records.get_all(self._collection)
        self.store.delete_nodes([row_id for row_id in self.store.snapshot().ids if row_id not in stored])
        _from_records(self.store, stored)

    # -- reading: see :class:`~llama_index.ragkit.storage.interface.Space` ---------------------------------

    @immediate
    def fetch(self, ids: Iterable[str], selection: Selection = EVERYTHING) -> Snapshot:
        """The rows of those ids that exist and count."""
        rows = self.store.snapshot()
        places = rows.rows_of(list(dict.fromkeys(ids)))
        return _counted(rows.part(places[places >= 0]), selection)

    @immediate
    def vectors_of(self, ids: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of rows that exist, by id in the given order."""
        rows = self.store.snapshot()
        known = [row_id for row_id in dict.fromkeys(ids) if row_id in rows]
        return dict(zip(known, rows.vectors_of(known), strict=True)) if known else {}

    def described(self, ids: Iterable[str] | None = None, selection: Selection = EVERYTHING) -> Steps[Snapshot]:
        """As :meth:`fetch`; of all rows if `ids` is None."""
        if ids is None:
            return _counted(self.store.snapshot(), selection)
        return (yield from self.fetch(ids, selection))

    def near(self, vectors: NDArray[np.float32], wanted: int, selection: Selection = EVERYTHING) -> Steps[Snapshot]:
        """The `wanted` rows nearest to each of some vectors, of those that count; all of these if they are named."""
        if selection.only is not None:
            return (yield from self.fetch(selection.only, selection))
        return (yield from offload(self._near, vectors, wanted, selection))

    def _near(self, vectors: NDArray[np.float32], wanted: int, selection: Selection) -> Snapshot:
        rows = self.store.snapshot()
        mask = None if selection.is_whole else selection.mask(rows)
        hits = rows.search(vectors, wanted, mask) if len(vectors) else []
        return rows.part(np.unique(np.concatenate([np.empty(0, np.intp), *(hit.rows for hit in hits)])))

    def whole(self) -> Snapshot:
        """All rows."""
        return self.store.snapshot()

    @property
    def _collection(self) -> str:
        return f"space/{self.name}"


def _counted(rows: Snapshot, selection: Selection) -> Snapshot:
    return rows if selection.is_whole else rows.part(np.flatnonzero(selection.mask(rows)))


def _from_records(store: MatrixVectorStore, records: dict[str, Record]) -> None:
    if not records:
        return
    ids = sorted(records)
    store.put(
        ids,
        np.stack([vector_in(records[i]) for i in ids]),
        ref_doc_ids=[records[i]["ref"] for i in ids],
        metadatas=[records[i]["meta"] for i in ids],
        keys=[records[i]["key"] for i in ids],
    )


def stored_matrix(context: StorageContext, namespace: str) -> MatrixVectorStore | None:
    """The vectors of a namespace of a storage context, if they are in this process.

    `StorageContext.from_defaults(persist_dir=...)` reads every vector store file as a `SimpleVectorStore`; here it is
    replaced in the context by a `MatrixVectorStore`.
    """
    found = context.vector_stores.get(namespace)
    if isinstance(found, SimpleVectorStore) and MatrixVectorStore.is_persisted_matrix(found):
        found = context.vector_stores[namespace] = MatrixVectorStore.from_simple(found)
    return found if isinstance(found, MatrixVectorStore) else None


def open_space(
    name: str,
    namespace: str,
    context: StorageContext,
    records: Records,
    tag: dict[str, Any],
    *,
    dtype: Storage = "float32",
    trusted: bool,
) -> Steps[VectorSpace]:
    """Open a space of a stored index.

    A store of another generation is an error if the index is `trusted`; after an interrupted write the records on the
    server are used.
    """
    found = stored_matrix(context, namespace)
    if found is not None and found.tag.get("uid") == tag["uid"]:
        if found.tag == tag or not (records.outlives_the_process or trusted):
            return VectorSpace(name, found, records)
        if not records.outlives_the_process:
            raise HalfWrittenError(
                f"The vector space {namespace!r} is of generation {found.tag.get('generation')}, the index of "
                f"{tag['generation']}: the storage context was persisted only in part. Load an older copy, or "
                "build the index again; llama_index.ragkit.persist() never leaves such a state."
            )
    if not records.outlives_the_process:
        raise MissingSpaceError(
            f"The storage context has no vector space {namespace!r}, which the index needs; it has "
            f"{sorted(context.vector_stores)}. Where it is read from a folder, write "
            "llama_index.ragkit.load_storage_context(folder) with the same keywords: StorageContext.from_defaults "
            "leaves spaces out if it is given vector_store=, vector_stores= or fs=, or if a file is damaged."
        )
    store = MatrixVectorStore(stores_text=False, dtype=dtype)
    _from_records(store, (yield from records.get_all(f"space/{name}")))
    store.tag = tag
    context.vector_stores[namespace] = store
    return VectorSpace(name, store, records)
