"""Vectors of chunks that another index of the storage context has embedded, with the same model."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.index.serving import stored_chunks
from llama_index.ragkit.llm.embeddings import same_vectors
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import embed_text, sort_key
from llama_index.ragkit.storage.struct import DerivedStruct

__all__ = ["shared_vectors"]

logger = logging.getLogger(__name__)


def shared_vectors(storage: IndexStorage, nodes: Sequence[BaseNode]) -> Steps[dict[str, NDArray[np.float32]]]:
    """The vectors that other indexes of the storage context have of these chunks, by node id.

    An index whose vectors are of other texts, such as chunks with headers, or in another data type, has none. A chunk
    whose embedded text differs from that of the docstore, for example without a key of its metadata, has none either.

    Parameters
    ----------
    storage : of the index that needs them
    """
    found: dict[str, NDArray[np.float32]] = {}
    store = storage.context.index_store
    try:
        structs = (yield from call(store.index_structs, store.async_index_structs)) if nodes else []
    except (LookupError, TypeError, ValueError, RagKitError) as error:  # one is damaged, or its package not imported
        logger.debug("No vectors of other indexes: %s", error)
        return found
    others = [each for each in structs if isinstance(each, DerivedStruct) and _is_alike(each, storage.struct)]
    if not others:
        return found
    known = yield from storage.get_nodes([node.node_id for node in nodes])
    keys = {node.node_id: sort_key(node) for node in nodes if _is_same(node, known)}
    for other in others:
        missing = [node_id for node_id in keys if node_id not in found]
        try:
            rows = yield from stored_chunks(storage.context, _class_of(other).method, other, missing)
        except RagKitError as error:  # it is damaged, or another process is changing it
            logger.debug("No vectors of index %s: %s", other.index_id, error)
            continue
        same = [i for i in missing if i in rows and rows.record_of(i).key == keys[i]]
        found.update(zip(same, rows.vectors_of(same), strict=True) if same else ())
    return found


def _is_alike(other: DerivedStruct, struct: DerivedStruct) -> bool:
    """Whether the chunks of another index have the vectors that an index needs."""
    if other.index_id == struct.index_id or not other.embedding or _class_of(other) is None:
        return False
    same = other.embedding["name"] == struct.embedding["name"] and same_vectors(other.embedding, struct.embedding)
    return (
        same and other.params.get("dtype") == struct.params.get("dtype") and _class_of(other).builder_cls.embeds_chunks
    )


def _class_of(struct: DerivedStruct) -> Any:
    """The class of an index; None if it is registered nowhere."""
    return INDEX_STRUCT_TYPE_TO_INDEX_CLASS.get(struct.get_type())  # type: ignore[call-overload]


def _is_same(node: BaseNode, known: Mapping[str, BaseNode]) -> bool:
    """Whether the text of a node that is embedded is that of the docstore's; its hash says nothing of templates."""
    return node.node_id in known and embed_text(known[node.node_id]) == embed_text(node)
