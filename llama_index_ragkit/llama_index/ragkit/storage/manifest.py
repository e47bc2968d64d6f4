"""The index's own map of documents and nodes, in the key-value store of the docstore.

It is not the docstore's `ref_doc_info`: that one is shared, and another index may delete the document there before it
is deleted from this one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from llama_index.core.schema import Document
from llama_index.core.storage.docstore.types import RefDocInfo

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.records import Record, Records

__all__ = ["Manifest", "NodeEntry"]

_DOCUMENTS = "documents"
_NODES = "nodes"


@dataclass(frozen=True)
class NodeEntry:
    """What the index stores about a node."""

    ref_doc_id: str | None  # its document, if it has one
    key: str  # canonical sort key, which changes with text and metadata
    record: Record | None = None  # what the extractor read from it; None without an extractor or after a failure
    error: str | None = None  # why the extractor failed
    cache_keys: list[str] = field(default_factory=list)  # entries of the extraction cache that the node uses
    done: bool = False  # whether the write that added the node is complete
    step: str = ""  # the prompt at which it failed
    by: str = ""  # the class of the extractor that made the record in place of the one that failed, if one did


class Manifest:
    """Documents -> nodes, node -> :class:`NodeEntry`."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def entries(self) -> Steps[dict[str, NodeEntry]]:
        """All nodes."""
        found = yield from self._records.get_all(_NODES)
        return {node_id: NodeEntry(**record) for node_id, record in found.items()}

    def entries_of(self, node_ids: Iterable[str]) -> Steps[dict[str, NodeEntry]]:
        """The nodes among `node_ids` that are known."""
        found = yield from self._records.get_many(_NODES, node_ids)
        return {node_id: NodeEntry(**record) for node_id, record in found.items()}

    def nodes_of(self, ref_doc_id: str) -> Steps[list[str] | None]:
        """The nodes of a document in its order, or None for an unknown document."""
        record = yield from self._records.get(_DOCUMENTS, ref_doc_id)
        return None if record is None else list(record["node_ids"])

    def nodes_of_documents(self, ref_doc_ids: Iterable[str]) -> Steps[list[str]]:
        """The nodes of those documents that are known."""
        found = yield from self._records.get_many(_DOCUMENTS, ref_doc_ids)
        return [node_id for record in found.values() for node_id in record["node_ids"]]

    def entries_of_documents(self, documents: Sequence[Document]) -> Steps[dict[str, NodeEntry]]:
        """All nodes of some documents."""
        node_ids = yield from self.nodes_of_documents(document.id_ for document in documents)
        return (yield from self.entries_of(node_ids))

    def documents(self) -> Steps[dict[str, RefDocInfo]]:
        """Documents that have nodes, with the metadata of the first."""
        found = yield from self._records.get_all(_DOCUMENTS)
        return {
            ref_doc_id: RefDocInfo(node_ids=list(record["node_ids"]), metadata=dict(record["metadata"]))
            for ref_doc_id, record in found.items()
            if record["node_ids"]
        }

    def hashes(self, ref_doc_ids: Iterable[str]) -> Steps[dict[str, str]]:
        """Hashes of those documents that are completely written."""
        found = yield from self._records.get_many(_DOCUMENTS, ref_doc_ids)
        return {ref_doc_id: record["hash"] for ref_doc_id, record in found.items() if record["hash"]}

    def add(
        self,
        entries: Mapping[str, NodeEntry],
        metadata: Mapping[str, dict[str, Any]],
        replaced: Mapping[str, NodeEntry] = MappingProxyType({}),
    ) -> Steps[None]:
        """Write nodes; `metadata` (by node) describes new documents.

        A document is written before its nodes, and :meth:`remove` removes it after them: what it names can be found
        and deleted whenever a write ends.

        Parameters
        ----------
        replaced : old entries of nodes that changed; one that has another document now is no longer a node of the old
        """
        by_document = _by_document(entries)
        moved = _by_document({i: old for i, old in replaced.items() if old.ref_doc_id != entries[i].ref_doc_id})
        documents = yield from self._records.get_many(_DOCUMENTS, [*by_document, *moved])
        for ref_doc_id, node_ids in by_document.items():
            old = documents.get(ref_doc_id) or {"hash": None, "node_ids": [], "metadata": metadata[node_ids[0]]}
            documents[ref_doc_id] = {**old, "node_ids": list(dict.fromkeys([*old["node_ids"], *node_ids]))}
        for ref_doc_id in moved.keys() & documents:
            old, gone = documents[ref_doc_id], set(moved[ref_doc_id])
            documents[ref_doc_id] = {**old, "node_ids": [i for i in old["node_ids"] if i not in gone]}
        yield from self._records.put(_DOCUMENTS, list(documents.items()))
        yield from self._records.put(_NODES, [(node_id, dict(vars(entry))) for node_id, entry in entries.items()])

    def complete(self, entries: Mapping[str, NodeEntry]) -> Steps[None]:
        """Mark nodes as completely written."""
        done = [(node_id, {**vars(entry), "done": True}) for node_id, entry in entries.items()]
        yield from self._records.put(_NODES, done)

    def remove(self, entries: Mapping[str, NodeEntry], whole: Sequence[str] = ()) -> Steps[None]:
        """Remove nodes; a document is removed with its last node, and those of `whole` in any case."""
        by_document = _by_document(entries)
        yield from self._records.delete(_NODES, entries)
        touched = list(dict.fromkeys([*by_document, *whole]))
        stored = yield from self._records.get_many(_DOCUMENTS, touched)
        kept: dict[str, Record | None] = dict.fromkeys(touched)
        for ref_doc_id, record in stored.items():
            gone = set(by_document[ref_doc_id])
            left = [i for i in record["node_ids"] if i not in gone]
            if left and ref_doc_id not in whole:
                kept[ref_doc_id] = {**record, "node_ids": left}
        yield from self._records.update(_DOCUMENTS, kept)

    def begin(self, documents: Sequence[Document]) -> Steps[None]:
        """Remove the hashes of documents that are about to be written: until `finish` they count as incomplete."""
        stored = yield from self._records.get_many(_DOCUMENTS, [document.id_ for document in documents])
        yield from self._records.put(_DOCUMENTS, [(key, {**record, "hash": None}) for key, record in stored.items()])

    def finish(self, documents: Sequence[Document], metadata: Mapping[str, dict[str, Any]]) -> Steps[None]:
        """Store the hashes of completely written documents, and their metadata by id."""
        stored = yield from self._records.get_many(_DOCUMENTS, [document.id_ for document in documents])
        finished = []
        for document in documents:
            record = {"node_ids": [], **stored.get(document.id_, {}), "metadata": metadata[document.id_]}
            finished.append((document.id_, {**record, "hash": document.hash}))
        yield from self._records.put(_DOCUMENTS, finished)


def _by_document(entries: Mapping[str, NodeEntry]) -> dict[str, list[str]]:
    """The nodes of each document."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for node_id, entry in entries.items():
        if entry.ref_doc_id is not None:
            nodes[entry.ref_doc_id].append(node_id)
    return nodes
