"""`SQLDocumentStore`: a docstore that writes many nodes in a few statements."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.docstore.types import RefDocInfo

from llama_index.ragkit.core_internals import docstore_tables
from llama_index.ragkit.sql.kv_store import SQLKVStore

__all__ = ["SQLDocumentStore"]

_read: ContextVar[Mapping[str, Any] | None] = ContextVar("ragkit_read_documents", default=None)


class SQLDocumentStore(KVDocumentStore):
    """A `KVDocumentStore` in an SQL database.

    Before core stores a node, it reads the entry of the node's document: one round trip a node, which takes most of a
    write if nodes are documents of their own. Here one statement reads all of these entries.

    Parameters
    ----------
    records : the key-value store in the database
    """

    def __init__(self, records: SQLKVStore) -> None:
        super().__init__(records)
        self._records = records

    def add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,
        batch_size: int | None = None,
        store_text: bool = True,
    ) -> None:
        """As in `KVDocumentStore`."""
        with _having(self._records.get_many(_documents_of(docs), docstore_tables(self).ref_docs)):
            super().add_documents(docs, allow_update, batch_size, store_text)

    async def async_add_documents(
        self,
        docs: Sequence[BaseNode],
        allow_update: bool = True,
        batch_size: int | None = None,
        store_text: bool = True,
    ) -> None:
        """As in `KVDocumentStore`."""
        with _having(await self._records.aget_many(_documents_of(docs), docstore_tables(self).ref_docs)):
            await super().async_add_documents(docs, allow_update, batch_size, store_text)

    def get_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """As in `KVDocumentStore`."""
        entries = _read.get()
        return super().get_ref_doc_info(ref_doc_id) if entries is None else _info(entries.get(ref_doc_id))

    async def aget_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """As in `KVDocumentStore`."""
        entries = _read.get()
        return await super().aget_ref_doc_info(ref_doc_id) if entries is None else _info(entries.get(ref_doc_id))


@contextmanager
def _having(entries: Mapping[str, Any]) -> Iterator[None]:
    before = _read.set(entries)
    try:
        yield
    finally:
        _read.reset(before)


def _info(entry: Mapping[str, Any] | None) -> RefDocInfo | None:
    # Core adds to the list of nodes.
    return RefDocInfo(list(entry["node_ids"]), entry["metadata"]) if entry else None


def _documents_of(nodes: Sequence[BaseNode]) -> list[str]:
    return list(dict.fromkeys(node.source_node.node_id for node in nodes if node.source_node is not None))
