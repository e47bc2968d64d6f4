"""The statements of a chunk from what an index has stored of it, and back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from llama_index.graphrag.graph.statement import ChunkStatements
from llama_index.ragkit import Change, IndexStorage, Steps, sort_key

__all__ = ["added_statements", "chunk_statements", "store_rewritten"]


def chunk_statements(
    node_id: str, key: str, record: Mapping[str, Any] | None, metadata: Mapping[str, Any], partition_by: str | None
) -> ChunkStatements:
    """What a chunk states, read from its record; a chunk without one states nothing.

    Parameters
    ----------
    key : its canonical sort key
    partition_by : name of the metadata value whose entities are kept apart; None for none
    """
    text_hash, rest = key.split("|", 1)
    document, _, place = rest.removesuffix(f"|{node_id}").rpartition("|")
    scope = "" if partition_by is None else json.dumps(metadata.get(partition_by), sort_keys=True, default=str)
    plain = record or {"entities": [], "relations": []}
    return ChunkStatements.from_record(plain, node_id, text_hash, document, int(place), scope)


def added_statements(change: Change, partition_by: str | None) -> list[ChunkStatements]:
    """What the new chunks of a change state; see :func:`chunk_statements`."""
    return [
        chunk_statements(node.node_id, sort_key(node), change.records.get(node.node_id), node.metadata, partition_by)
        for node in change.added
    ]


def store_rewritten(storage: IndexStorage, chunks: Sequence[ChunkStatements]) -> Steps[None]:
    """Store the records of chunks that lost a description which was merged from a removed chunk too."""
    entries = yield from storage.manifest.entries_of(chunk.chunk_id for chunk in chunks)
    records = {chunk.chunk_id: chunk.record() for chunk in chunks}
    new = {
        node_id: replace(entry, record={**(entry.record or {}), **records[node_id]})
        for node_id, entry in entries.items()
    }
    yield from storage.manifest.add(new, {node_id: {} for node_id in new})
