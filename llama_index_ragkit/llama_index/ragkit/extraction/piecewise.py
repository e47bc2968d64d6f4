"""Splits a node that is longer than a model can read at once, and merges the records of the pieces."""

from collections.abc import Iterable, Mapping
from typing import Any

from llama_index.core.schema import BaseNode, TextNode

from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.pieces import pieces_of
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["merged_records", "node_pieces"]


def node_pieces(node: BaseNode, room: int) -> list[BaseNode]:
    """The node itself, or, if it has more than `room` tokens, pieces of whole sentences with its id and metadata."""
    text = plain_text(node)
    if len(text.encode(errors="replace")) <= room or count_tokens(text) <= room:
        return [node]
    kept = {"id_": node.node_id, "metadata": node.metadata, "relationships": node.relationships}
    return [TextNode(text=piece, **kept) for piece in pieces_of(text, room, count_tokens)]


def merged_records(records: Iterable[Record]) -> Record:
    """One record: lists are joined, each item once; counts are added; of other values the first is kept.

    >>> merged_records([{"names": ["a", "b"], "dropped": {"names": 1}}, {"names": ["b", "c"], "dropped": {"names": 2}}])
    {'names': ['a', 'b', 'c'], 'dropped': {'names': 3}}
    """
    merged: dict[str, Any] = {}
    for record in records:
        for name, value in record.items():
            known = merged.setdefault(
                name, [] if isinstance(value, list) else {} if isinstance(value, Mapping) else value
            )
            if isinstance(value, list) and isinstance(known, list):
                known += [item for item in value if item not in known]
            elif isinstance(value, Mapping) and isinstance(known, dict):
                for key, count in value.items():
                    known[key] = known.get(key, 0) + count if isinstance(count, int) else known.get(key, count)
    return merged
