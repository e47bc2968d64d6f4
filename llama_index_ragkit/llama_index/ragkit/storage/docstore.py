"""What core's document stores do not do themselves: deletes of nodes and documents, and new metadata of a document."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.storage.docstore.types import BaseDocumentStore

from llama_index.ragkit.core_internals import docstore_tables
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.many_keys import clean, delete_keys, get_keys

__all__ = ["delete_from_docstore", "describe_documents"]


def delete_from_docstore(
    docstore: BaseDocumentStore, node_ids: Iterable[str], ref_doc_ids: Iterable[str]
) -> Steps[None]:
    """Delete nodes from a docstore, and the bookkeeping of whole documents.

    Core's own deletes are not used, for the reasons that :func:`~llama_index.ragkit.core_internals.docstore_tables`
    gives.

    Parameters
    ----------
    node_ids : nodes to delete; unknown ones are ignored
    ref_doc_ids : documents to delete with all their nodes and the stored hash
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
    for ref_doc_id in dict.fromkeys([*touched, *whole]):
        entry = entries.get(ref_doc_id, {})
        of_document = list(entry.get("node_ids", []))
        others = [] if ref_doc_id in whole else [i for i in of_document if i not in touched[ref_doc_id]]
        if others and entry:
            left[ref_doc_id] = {**entry, "node_ids": others}
        else:
            doomed.update(dict.fromkeys([*of_document, ref_doc_id]))
            documents.append(ref_doc_id)
    # The entry of a document, which names its nodes, goes after them, and what names the document of a node goes last,
    # so that a delete that was killed can be repeated.
    yield from delete_keys(kv, {tables.nodes: list(doomed), tables.ref_docs: documents})
    for ref_doc_id, entry in left.items():
        yield from call(kv.put, kv.aput, ref_doc_id, entry, collection=tables.ref_docs)
    yield from delete_keys(kv, {tables.metadata: list(doomed)})
    yield from clean(kv)


def describe_documents(docstore: BaseDocumentStore, metadata: Mapping[str, dict[str, Any]]) -> Steps[None]:
    """Set the metadata of documents, which core sets with their first nodes and then only adds to."""
    tables = docstore_tables(docstore)
    kv = tables.kvstore
    entries = yield from get_keys(kv, metadata, tables.ref_docs)
    for ref_doc_id, entry in entries.items():
        if entry.get("metadata") != metadata[ref_doc_id]:
            changed = {**entry, "metadata": metadata[ref_doc_id]}
            yield from call(kv.put, kv.aput, ref_doc_id, changed, collection=tables.ref_docs)
