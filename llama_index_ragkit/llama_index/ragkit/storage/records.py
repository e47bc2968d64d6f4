"""The records of an index in the key-value store of the user's document store.

They have collections of their own beside the docstore's: they are persisted and loaded with it, but do not appear in
`docstore.docs`, which other retrievers read (BM25, keyword index).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from llama_index.core.storage.docstore.types import BaseDocumentStore

from llama_index.ragkit.core_internals import docstore_tables
from llama_index.ragkit.llm.bulk_kvstore import BulkKVStore
from llama_index.ragkit.steps import Steps, call, run_steps
from llama_index.ragkit.storage.docstore import clean, delete_keys, get_keys, outlives_the_process
from llama_index.ragkit.storage.file_kvstore import FileKVStore
from llama_index.ragkit.vectors.array_file import ArrayFile

__all__ = ["Record", "Records"]

T = TypeVar("T")
Record = dict[str, Any]


class Records:
    """Named collections of JSON records, `<namespace>/<collection>` in the docstore's key-value store.

    Attributes
    ----------
    paused : whether changes are not written, as in an index that was opened while another process writes to it
    """

    def __init__(self, docstore: BaseDocumentStore, namespace: str) -> None:
        tables = docstore_tables(docstore)
        self._kv = tables.kvstore
        self._batch_size = tables.batch_size
        self._namespace = namespace
        self.paused = False
        self._cleaned_later = False

    @property
    def outlives_the_process(self) -> bool:
        """Whether the key-value store is a server or a file to which every write goes immediately."""
        return outlives_the_process(self._kv)

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
                yield from clean(self._kv)

    def check_writable(self) -> Steps[None]:
        """Check that records may be written, where the store can tell without writing any.

        Raises
        ------
        ReadOnlyError
        """
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
            yield from clean(self._kv)
            finished = True
            return result
        finally:
            self._cleaned_later = False
            if not finished:
                run_steps(clean(self._kv))  # steps that are being closed cannot yield requests
