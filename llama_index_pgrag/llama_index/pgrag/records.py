"""Converts mind maps to and from the JSON record of a node."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.maps.node_maps import TOPIC, NodeMap
from llama_index.pgrag.maps.verification import Check
from llama_index.ragkit.ids import content_id

__all__ = ["from_record", "is_unverified", "lost_texts", "other_sources", "read_together", "to_record", "without_texts"]


def to_record(
    topic: str, paths: Iterable[Path], checks: Sequence[Check] = (), attempts: int = 0, dropped: int = 0
) -> dict[str, Any]:
    """The record of a node.

    Parameters
    ----------
    paths : each begins with the topic
    checks : one for each part of the text whose statements were verified
    attempts : how often the model generated statements
    dropped : number of facts that the text does not hold
    """
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
