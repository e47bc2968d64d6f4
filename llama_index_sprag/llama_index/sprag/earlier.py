"""Converts an index in memory that an earlier version stored, when it is loaded."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from llama_index.ragkit import SpaceRows, Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.sprag.descriptions import CONTEXTS, document_of

__all__ = ["brought_forward"]


def brought_forward(storage: IndexStorage, entries: Mapping[str, Any]) -> Steps[dict[str, Record]]:
    """Replace the vectors of chunks without headers by those with headers, and return the rows of the chunks.

    In earlier versions the space "chunks" had the vectors without header, or zeros, and "contexts" those with a header.
    From now on "contexts" has the vectors without header. `entries` are those of the manifest.
    """
    chunks, contexts = storage.snapshot(), storage.snapshot(CONTEXTS)
    ids = [i for i in contexts.ids if i in chunks and chunks.record_of(i).key == contexts.record_of(i).key]
    headers = {i: contexts.metadata_of(i).get("header", "") for i in ids}
    alone, together = (each.vectors_of(ids) if ids else np.zeros((0, 0), np.float32) for each in (chunks, contexts))
    rows: dict[str, Record] = {}
    for i, vector in zip(chunks.ids, chunks.matrix, strict=True):
        if i in entries and (i in headers or vector.any() or entries[i].done):
            header = headers.get(i, "" if vector.any() else None)  # None: embedded by the next write to the document
            rows[i] = {"document": document_of(i, entries[i].record or {}), "header": header}
    is_plain = alone.any(axis=1) & (alone != together).any(axis=1)
    plain = [i for i, found in zip(ids, is_plain, strict=True) if found]
    keys = [chunks.record_of(i).key for i in ids]
    documents, metadatas = [chunks.record_of(i).ref_doc_id for i in ids], [chunks.metadata_of(i) for i in ids]
    yield from storage.space().put(SpaceRows(ids, together, keys, documents, metadatas))
    yield from storage.space(CONTEXTS).remove(contexts.ids)
    plain_keys = [key for key, found in zip(keys, is_plain, strict=True) if found]
    yield from storage.space(CONTEXTS).put(SpaceRows(plain, alone[is_plain], plain_keys, plain))
    return rows
