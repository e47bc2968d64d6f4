"""The records of an index in the key-value store of the user's document store.

They have collections of their own beside the docstore's: they are persisted and loaded with it, but do not appear in
`docstore.docs`, which other retrievers read (BM25, keyword index). Beside them is what core's document and key-value
stores do not do themselves: many keys at once, and complete deletes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index.ragkit.core_internals import docstore_tables
from llama_index.ragkit.llm.bulk_kvstore import BulkKVStore
from llama_index.ragkit.steps import Steps, call, gather, run_steps
from llama_index.ragkit.storage.file_kvstore import FileKVStore
from llama_index.ragkit.vectors.array_file import ArrayFile

__all__ = ["Record", "Records", "delete_from_docstore", "delete_keys", "describe_documents", "get_keys"]

T = TypeVar("T")
Record = dict[str, Any]
Collections = Mapping[str, Mapping[str, Record]]

_AT_ONCE = 8  # reads of a store that reads one key at a time


class Records:
    """Named collections of JSON records, `<namespace>/<collection>` in the docstore's key-value store.

    Attributes
    ----------
    paused : whether changes are not written, as in an index that was opened while another process writes to it
    repairs : collections that :meth:`repair` replaces, with the records that they should hold
    """

    def __init__(self, docstore: BaseDocumentStore, namespace: str) -> None:
        tables = docstore_tables(docstore)
        self._kv = tables.kvstore
        self._batch_size = tables.batch_size
        self._namespace = namespace
        self.paused = False
        self.repairs: dict[str, Mapping[str, Record]] = {}
        self._cleaned_later = False

    @property
    def outlives_the_process(self) -> bool:
        """Whether the key-value store is a server or a file to which every write goes immediately."""
        return _outlives(self._kv)

    @property
    def arrays(self) -> ArrayFile | None:
        """The arrays that lay beside the records when their file was opened; see :meth:`offer_arrays`."""
        return self._kv.arrays_of(self._namespace) if isinstance(self._kv, FileKVStore) else None

    def offer_arrays(self, made: Callable[[], ArrayFile | None]) -> None:
        """Have arrays written beside the records, if these are written to a file.

        Parameters
        ----------
        made : a method that is asked when they are written, as long as its object lives; None for no arrays
        """
        if isinstance(self._kv, FileKVStore):
            self._kv.offer(self._namespace, made)

    def drop_arrays(self) -> None:
        """Forget :attr:`arrays`: the records are about to change."""
        if isinstance(self._kv, FileKVStore):
            self._kv.drop_arrays(self._namespace)

    def _name(self, collection: str) -> str:
        return f"{self._namespace}/{collection}"

    def put(self, collection: str, pairs: Sequence[tuple[str, Record]]) -> Steps[None]:
        """Write records, replacing those of the same key."""
        if pairs and not self.paused:
            kv = self._kv
            yield from call(
                kv.put_all, kv.aput_all, list(pairs), collection=self._name(collection), batch_size=self._batch_size
            )

    def get(self, collection: str, key: str) -> Steps[Record | None]:
        """One record, or None."""
        return (yield from call(self._kv.get, self._kv.aget, key, collection=self._name(collection)))

    def get_many(self, collection: str, keys: Iterable[str]) -> Steps[dict[str, Record]]:
        """The records of those keys that exist, in the order of `keys`; in one call where the store can."""
        return (yield from get_keys(self._kv, keys, self._name(collection)))

    def get_all(self, collection: str) -> Steps[dict[str, Record]]:
        """All records of a collection by key."""
        return (yield from call(self._kv.get_all, self._kv.aget_all, collection=self._name(collection)))

    def change(self, collection: str, key: str, new: Callable[[Record | None], Record]) -> Steps[None]:
        """Replace a record by one that is computed from it; in one transaction, where the store has transactions.

        Parameters
        ----------
        new : the stored record, or None -> the one to store; whatever it raises leaves the record as it is
        """
        if isinstance(self._kv, BulkKVStore):
            yield from call(self._kv.update, self._kv.aupdate, {key: new}, collection=self._name(collection))
        else:
            yield from self.put(collection, [(key, new((yield from self.get(collection, key))))])

    def delete(self, collection: str, keys: Iterable[str]) -> Steps[None]:
        """Delete records; unknown keys are ignored."""
        keys = list(keys)
        if keys and not self.paused:
            yield from delete_keys(self._kv, {self._name(collection): keys})
            if not self._cleaned_later:
                yield from _clean(self._kv)

    def update(self, collection: str, rows: Mapping[str, Record | None]) -> Steps[None]:
        """Write records, replacing those of the same key, and delete those that are None."""
        yield from self.put(collection, [(key, row) for key, row in rows.items() if row is not None])
        yield from self.delete(collection, [key for key, row in rows.items() if row is None])

    def replace(self, collection: str, rows: Mapping[str, Record]) -> Steps[None]:
        """Make these all records of a collection; only differences are written."""
        stored = yield from self.get_all(collection)
        changed: dict[str, Record | None] = {key: row for key, row in rows.items() if stored.get(key) != row}
        changed.update((key, None) for key in stored if key not in rows)
        yield from self.update(collection, changed)

    def note_repairs(self, wanted: Collections, known: Collections = MappingProxyType({})) -> Steps[bool]:
        """Note which collections do not hold all that they should, and only that; returns whether any does not.

        Nothing is written. `known` is what was already read of some collections.
        """
        differing = {}
        for collection, rows in wanted.items():
            stored = known[collection] if collection in known else (yield from self.get_all(collection))
            if stored != rows:
                differing[collection] = rows
        self.repairs.update(differing)
        return bool(differing)

    def repair(self) -> Steps[None]:
        """Store what :meth:`note_repairs` has noted."""
        for collection, rows in self.repairs.items():
            yield from self.replace(collection, rows)
        self.repairs = {}

    def check_writable(self) -> Steps[None]:
        """Raise a `ReadOnlyError` if records may not be written, where the store can tell without writing any."""
        if isinstance(self._kv, BulkKVStore):
            yield from call(self._kv.check_writable, self._kv.acheck_writable)

    def cleaned_once(self, work: Steps[T]) -> Steps[T]:
        """Run the steps of one write; a `BulkKVStore` removes the bytes of what they delete once, after the last.

        That also happens when the steps fail or are cancelled. Without this, it happens after each delete.
        """
        self._cleaned_later = True
        finished = False
        try:
            result = yield from work
            yield from _clean(self._kv)
            finished = True
            return result
        finally:
            self._cleaned_later = False
            if not finished:
                run_steps(_clean(self._kv))  # steps that are being closed cannot yield requests


def _outlives(kv: BaseKVStore) -> bool:
    """Whether a key-value store is a server or a file to which every write goes immediately."""
    # In-memory stores have a persist method, whatever class they derive from in this version of core.
    return not callable(getattr(kv, "persist", None))


def get_keys(kv: BaseKVStore, keys: Iterable[str], collection: str) -> Steps[dict[str, dict[str, Any]]]:
    """The values of those keys that exist, in the order of `keys`.

    A `BulkKVStore` reads them in one call. Of another store on a server, several are read at once. Core's own lies in
    this process, where there is nothing to wait for.
    """
    wanted = list(dict.fromkeys(keys))
    if not wanted:
        return {}
    if isinstance(kv, SimpleKVStore):
        found = ((key, kv.get(key, collection)) for key in wanted)
        return {key: value for key, value in found if value is not None}
    if isinstance(kv, BulkKVStore):
        return (yield from call(kv.get_many, kv.aget_many, wanted, collection=collection))
    jobs: list[Callable[[], Steps[dict[str, Any] | None]]] = [
        partial(call, kv.get, kv.aget, key, collection=collection) for key in wanted
    ]
    at_once = min(_AT_ONCE, len(jobs)) if _outlives(kv) else 1
    values = [outcome.unwrap() for outcome in (yield from gather(jobs, num_workers=at_once))]
    return {key: value for key, value in zip(wanted, values, strict=True) if value is not None}


def delete_keys(kv: BaseKVStore, keys: Mapping[str, Sequence[str]]) -> Steps[None]:
    """Delete keys, collection after collection; unknown ones are ignored.

    A `BulkKVStore` deletes those of a collection in one transaction, but their bytes may remain in its files until it
    is cleaned.
    """
    for collection, of_collection in keys.items():
        if isinstance(kv, BulkKVStore) and of_collection:
            yield from call(kv.delete_all, kv.adelete_all, of_collection, collection=collection, clean=False)
        elif isinstance(kv, SimpleKVStore):
            for key in of_collection:
                kv.delete(key, collection)
        else:
            for key in of_collection:
                yield from call(kv.delete, kv.adelete, key, collection=collection)


def _clean(kv: BaseKVStore) -> Steps[None]:
    """Remove the bytes of deleted and replaced values from the files of a `BulkKVStore`."""
    if isinstance(kv, BulkKVStore):
        yield from call(kv.clean, kv.aclean)


def delete_from_docstore(
    docstore: BaseDocumentStore, node_ids: Iterable[str], ref_doc_ids: Iterable[str]
) -> Steps[None]:
    """Delete nodes from a docstore, and the bookkeeping of whole documents.

    Core's own deletes are not used, for the reasons that :func:`~llama_index.ragkit.core_internals.docstore_tables`
    gives.
    """
    tables = docstore_tables(docstore)
    kv = tables.kvstore
    doomed = dict.fromkeys(node_ids)
    whole = list(dict.fromkeys(ref_doc_ids))
    touched: dict[str, set[str]] = defaultdict(set)
    for node_id, entry in (yield from get_keys(kv, doomed, tables.metadata)).items():
        if entry.get("ref_doc_id"):
            touched[entry["ref_doc_id"]].add(node_id)
    left: dict[str, dict[str, Any]] = {}
    documents = []
    entries = yield from get_keys(kv, [*touched, *whole], tables.ref_docs)
    named = [i for ref_doc_id in whole for i in entries.get(ref_doc_id, {}).get("node_ids", ()) if i not in doomed]
    # Core leaves a node that has moved to another document among those of the old one.
    document_of = {i: entry.get("ref_doc_id") for i, entry in (yield from get_keys(kv, named, tables.metadata)).items()}
    for ref_doc_id in dict.fromkeys([*touched, *whole]):
        entry = entries.get(ref_doc_id, {})
        of_document = list(entry.get("node_ids", []))
        others = [] if ref_doc_id in whole else [i for i in of_document if i not in touched[ref_doc_id]]
        if others and entry:
            left[ref_doc_id] = {**entry, "node_ids": others}
        else:
            own = [i for i in of_document if (document_of.get(i) or ref_doc_id) == ref_doc_id]
            doomed.update(dict.fromkeys([*own, ref_doc_id]))
            documents.append(ref_doc_id)
    # The entry of a document, which names its nodes, goes after them, and what names the document of a node goes last,
    # so that a delete that was killed can be repeated.
    yield from delete_keys(kv, {tables.nodes: list(doomed), tables.ref_docs: documents})
    for ref_doc_id, entry in left.items():
        yield from call(kv.put, kv.aput, ref_doc_id, entry, collection=tables.ref_docs)
    yield from delete_keys(kv, {tables.metadata: list(doomed)})
    yield from _clean(kv)


def describe_documents(docstore: BaseDocumentStore, metadata: Mapping[str, dict[str, Any]]) -> Steps[None]:
    """Set the metadata of documents, which core sets with their first nodes and then only adds to."""
    tables = docstore_tables(docstore)
    kv = tables.kvstore
    entries = yield from get_keys(kv, metadata, tables.ref_docs)
    for ref_doc_id, entry in entries.items():
        if entry.get("metadata") != metadata[ref_doc_id]:
            changed = {**entry, "metadata": metadata[ref_doc_id]}
            yield from call(kv.put, kv.aput, ref_doc_id, changed, collection=tables.ref_docs)
