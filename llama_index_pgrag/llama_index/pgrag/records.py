"""Conversion of mind maps to and from the JSON record of a node."""

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.pgrag.maps.mind_map import Path
from llama_index.pgrag.maps.verification import Check

__all__ = ["from_record", "is_unverified", "to_record"]


def to_record(
    topic: str, paths: Iterable[Path], checks: Sequence[Check] = (), attempts: int = 0, dropped: int = 0
) -> dict[str, Any]:
    """The record of a node.

    Parameters
    ----------
    paths : each begins with the topic
    checks : one for each part of the text whose statements were verified
    attempts : how often the model generated statements
    dropped : facts that the text does not hold
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


def is_unverified(record: dict[str, Any]) -> bool:
    """Whether the statements of a node failed verification in every attempt."""
    return record.get("verified") is False
