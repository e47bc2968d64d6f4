"""Vectors of chunks that another index of the storage context has embedded, with the same model."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS
from llama_index.core.storage.storage_context import StorageContext
from numpy.typing import NDArray

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.index.serving import open_in_stores
from llama_index.ragkit.llm.embeddings import same_vectors
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.opening import CHUNKS
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import stored_matrix
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["shared_vectors"]

logger = logging.getLogger(__name__)


def shared_vectors(
    context: StorageContext, struct: DerivedStruct, keys: Mapping[str, str]
) -> Steps[dict[str, NDArray[np.float32]]]:
    """The vectors that other indexes of the context have of these chunks, by node id.

    An index whose vectors are of other texts, such as chunks with headers, or in another data type, has none.

    Parameters
    ----------
    struct : of the index that needs them
    keys : node id -> the sort key of the chunk, which changes with its text and metadata
    """
    found: dict[str, NDArray[np.float32]] = {}
    store = context.index_store
    structs = yield from call(store.index_structs, store.async_index_structs)
    for other in structs:
        missing = [node_id for node_id in keys if node_id not in found]
        if not missing:
            break
        if not isinstance(other, DerivedStruct) or other.index_id == struct.index_id or not _alike(other, struct):
            continue
        try:
            rows = yield from _rows(context, other, missing)
        except RagKitError as error:  # it is damaged, or another process is changing it
            logger.debug("No vectors of index %s: %s", other.index_id, error)
            continue
        same = [i for i in missing if i in rows and rows.record_of(i).key == keys[i]]
        found.update(zip(same, rows.vectors_of(same), strict=True) if same else ())
    return found


def _alike(other: DerivedStruct, struct: DerivedStruct) -> bool:
    index_class: Any = INDEX_STRUCT_TYPE_TO_INDEX_CLASS.get(other.get_type())  # type: ignore[call-overload]
    if index_class is None or not index_class.builder_cls.embeds_chunks or not other.embedding:
        return False
    same = other.embedding["name"] == struct.embedding["name"] and same_vectors(other.embedding, struct.embedding)
    return same and other.params.get("dtype") == struct.params.get("dtype")


def _rows(context: StorageContext, other: DerivedStruct, node_ids: Sequence[str]) -> Steps[Snapshot]:
    if other.in_stores:
        index_class: Any = INDEX_STRUCT_TYPE_TO_INDEX_CLASS[other.get_type()]  # type: ignore[index]
        return (yield from open_in_stores(context, index_class.method, other).space(CHUNKS).fetch(node_ids))
    stored = stored_matrix(context, other.spaces.get(CHUNKS, ""))
    return Snapshot.empty() if stored is None or stored.tag.get("uid") != other.uid else stored.snapshot()
