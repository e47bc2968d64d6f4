"""The facts of nodes after a write."""

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from llama_index.pgrag.records import from_record, is_unverified, lost_texts, other_sources, without_texts
from llama_index.pgrag.state import FactPath, fact_paths
from llama_index.ragkit import Change, Steps
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.storage.index_storage import IndexStorage

__all__ = ["facts_after", "facts_of", "report_unverified"]

logger = logging.getLogger(__name__)


def report_unverified(change: Change) -> None:
    """Warn about new nodes whose statements failed verification."""
    unverified = [node_id for node_id, record in change.records.items() if is_unverified(record)]
    if unverified:
        logger.warning(
            "Nodes whose statements failed verification against the text in every attempt: %d, for example %s. The "
            "best attempts were kept; index.unverified() lists the nodes.",
            len(unverified), unverified[0],
        )  # fmt: skip


def facts_after(change: Change, storage: IndexStorage, resources: Resources) -> Steps[dict[str, tuple[FactPath, ...]]]:
    """The facts of new nodes, and of other nodes that lose facts because nodes were removed."""
    entries = yield from storage.manifest.entries_of(node.node_id for node in change.added)
    entries = {i: replace(entry, record=change.records.get(i, {})) for i, entry in entries.items()}
    entries.update((yield from _reduced(change, storage, resources)))
    read_together = {e.ref_doc_id for e in entries.values() if e.ref_doc_id and (e.record or {}).get("needs")}
    around: dict[str, Any] = {}
    for document in sorted(read_together):
        node_ids = (yield from storage.manifest.nodes_of(document)) or []
        around |= yield from storage.manifest.entries_of(i for i in node_ids if i not in entries)
    return facts_of(entries, {**around, **entries})


def facts_of(entries: Mapping[str, Any], around: Mapping[str, Any]) -> dict[str, tuple[FactPath, ...]]:
    """The facts of nodes from their entries in the manifest.

    `around` has the entries of all nodes that may have been read together with these, and of these.
    """
    by_document: defaultdict[str | None, dict[str, Any]] = defaultdict(dict)
    for node_id, entry in around.items():
        by_document[entry.ref_doc_id][node_id] = entry.record or {}
    others = {i: rows for records in by_document.values() for i, rows in other_sources(records).items()}
    return {
        i: fact_paths(i, entry.ref_doc_id, entry.key, from_record(entry.record or {})[1], others.get(i, {}))
        for i, entry in entries.items()
    }


def _reduced(change: Change, storage: IndexStorage, resources: Resources) -> Steps[dict[str, Any]]:
    """Remove the words of removed nodes from the facts of other nodes, also in the stored entries.

    Nodes of a document are read together, so a cell can hold words of another node's text. Cached replies about both
    are released.
    """
    manifest = storage.manifest
    gone = set(change.removed) - {node.node_id for node in change.added}
    touched = yield from manifest.entries_of([*change.removed, *change.repeated])
    found: dict[str, Any] = {}  # manifest entries
    unused: dict[str, list[str]] = {}
    for document in sorted({entry.ref_doc_id for entry in touched.values() if entry.ref_doc_id}):
        node_ids = (yield from manifest.nodes_of(document)) or []
        entries = yield from manifest.entries_of(i for i in node_ids if i not in gone)
        records = {i: entry.record for i, entry in entries.items() if entry.record}
        for node_id, texts in lost_texts(records).items():
            entry = entries[node_id]
            unused[storage.cache_user(node_id)] = entry.cache_keys
            found[node_id] = replace(entry, record=without_texts(records[node_id], texts), cache_keys=[])
    if found:
        yield from manifest.add(found, {})
        yield from resources.release(unused)
    return found
