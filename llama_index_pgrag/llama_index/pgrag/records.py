"""Mind maps in the records of nodes, and the facts of nodes after a write."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.maps.node_maps import TOPIC, NodeMap
from llama_index.pgrag.maps.verification import Check
from llama_index.pgrag.state import FactPath, fact_paths
from llama_index.ragkit import Change, Steps
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.storage.index_storage import IndexStorage

__all__ = [
    "facts_after", "facts_of", "from_record", "is_unverified", "other_sources", "read_together", "report_unverified",
    "to_record",
]  # fmt: skip

logger = logging.getLogger(__name__)


def to_record(
    topic: str, paths: Iterable[Path], checks: Sequence[Check] = (), attempts: int = 0, dropped: int = 0
) -> dict[str, Any]:
    """The record of a node, with one check for each part of the text; the text does not hold the `dropped` facts."""
    record: dict[str, Any] = {"topic": topic, "paths": [list(path[1:]) for path in paths]}
    if checks:
        record["verified"] = all(check.passed for check in checks)
        record["checks"] = [{"rouge_l": check.rouge_l, "semantic": check.semantic} for check in checks]
        record["attempts"] = attempts
    if dropped:
        record["dropped"] = {"facts": dropped}
    return record


def from_record(record: dict[str, Any]) -> tuple[str, list[Path]]:
    """Topic and fact paths of a record; ("", []) for a node without text."""
    topic = record.get("topic", "")
    return topic, [(topic, *cells) for cells in record.get("paths", ())]


def read_together(records: Sequence[dict[str, Any]], maps: Sequence[NodeMap], texts: Sequence[str]) -> None:
    """Note in the records of nodes that were read together which of their cells need which other text.

    A text is named by its hash: `"text"` is the hash of the node's text, `"read_with"` that of all the texts, and
    `"needs"` lists (path, cell, text).
    """
    names = [content_id("text", text) for text in texts]
    together = content_id("read together", *names)
    for record, found, name in zip(records, maps, names, strict=True):
        record.update(text=name, read_with=together)
        if found.needs:
            record["needs"] = [[row, cell, names[other]] for row, cell, other in found.needs]
        if found.own_topic:
            record["own_topic"] = found.own_topic


def other_sources(records: Mapping[str, dict[str, Any]]) -> dict[str, dict[int, list[str]]]:
    """The nodes of a document whose texts cells of others need: node -> path, or `TOPIC` for all its paths -> nodes."""
    holder = {(record.get("read_with"), record.get("text")): node_id for node_id, record in sorted(records.items())}
    found: dict[str, dict[int, list[str]]] = {}
    for node_id, record in records.items():
        for row, _, text in record.get("needs", ()):
            other = holder.get((record["read_with"], text), node_id)
            of_row = found.setdefault(node_id, {}).setdefault(row, [])
            if other != node_id and other not in of_row:
                of_row.append(other)
    return found


def lost_texts(records: Mapping[str, dict[str, Any]]) -> dict[str, set[str]]:
    """For each node of a document, the texts that its cells need and that no node read with it still has."""
    there = {(record.get("read_with"), record.get("text")) for record in records.values()}
    lost = {}
    for node_id, record in records.items():
        gone = {text for _, _, text in record.get("needs", ()) if (record["read_with"], text) not in there}
        if gone:
            lost[node_id] = gone
    return lost


def without_texts(record: dict[str, Any], gone: Collection[str]) -> dict[str, Any]:
    """The record of a node without the cells that need texts that are gone; a path is removed with its fact."""
    needs = [(row, cell) for row, cell, text in record["needs"] if text in gone]
    paths: list[list[str]] = []
    rows: dict[int, int] = {}
    cells: dict[tuple[int, int], int] = {}
    for row, path in enumerate(record["paths"]):
        dropped = {cell for at, cell in needs if at == row}
        if len(path) - 1 in dropped:
            continue
        rows[row] = len(paths)
        kept = [cell for cell in range(len(path)) if cell not in dropped]
        cells.update({(row, cell): place for place, cell in enumerate(kept)})
        paths.append([path[cell] for cell in kept])
    left = [[rows[row], cells[row, cell], text] for row, cell, text in record["needs"] if (row, cell) in cells]
    changed = {**record, "paths": paths, "needs": left}
    if any(row == TOPIC for row, _ in needs):
        changed["topic"] = changed.pop("own_topic")
    else:
        changed["needs"] = [[r, c, text] for r, c, text in record["needs"] if r == TOPIC] + left
    return changed


def is_unverified(record: dict[str, Any]) -> bool:
    """Whether the statements of a node failed verification in every attempt."""
    return record.get("verified") is False


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
    node_ids = yield from storage.manifest.nodes_of_documents(sorted(read_together))
    around = yield from storage.manifest.entries_of(i for i in node_ids if i not in entries)
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
