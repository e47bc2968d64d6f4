"""How an index is served, from memory or from stores, and its storage."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.index.builder import Builder
from llama_index.ragkit.sql.context import SQLStorageContext
from llama_index.ragkit.sql.stores import find_stores
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.local_storage import LocalIndexStorage
from llama_index.ragkit.storage.opening import CHUNKS, check_commit, find_external_store, new_uid, open_records
from llama_index.ragkit.storage.stored_storage import StoredIndexStorage
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import stored_matrix
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["check_place", "new_storage", "open_storage", "stored_chunks"]


def check_place(
    owner: str,
    given: Mapping[str, Any],
    context: StorageContext,
    stored: DerivedStruct | None,
    builder: type[Builder[Any, Any]],
) -> bool:
    """Whether an index is in stores rather than in memory: as it was built, or as its storage context says.

    Parameters
    ----------
    owner : name of the index class
    given : its keywords
    context : its storage context
    stored : the struct of a stored index
    builder : of the method

    Raises
    ------
    ConfigurationError
    """
    says = isinstance(context, SQLStorageContext) and context.in_stores
    in_stores = says if stored is None else stored.in_stores
    if in_stores and builder.state_of is Builder.state_of:
        raise ConfigurationError(f"{owner} is served only from memory: make its storage context without vectors=.")
    if in_stores and given.get("vector_store") is not None:
        raise ConfigurationError(
            "The vectors of this index are in the stores of the storage context: pass vectors= to "
            "llama_index.ragkit.sql.storage_context in place of vector_store=."
        )
    return in_stores


def new_storage(
    context: StorageContext,
    method: str,
    space_names: Sequence[str],
    struct: DerivedStruct,
    chunk_store: BasePydanticVectorStore | None,
    *,
    in_stores: bool,
) -> IndexStorage:
    """The storage of a new index.

    Parameters
    ----------
    chunk_store : the user's store for chunks of an index in memory
    in_stores : whether it is served from stores
    """
    if not in_stores:
        external, mirrored = find_external_store(context, method, chunk_store)
        struct.params["mirrored"] = mirrored
        return LocalIndexStorage.create(context, method, space_names, struct, external)
    struct.uid = new_uid()
    struct.params["serve_from"] = "stores"
    struct.spaces = {name: name for name in space_names}
    return _in_stores(context, method, struct)


def open_storage(
    context: StorageContext, method: str, struct: DerivedStruct, chunk_store: BasePydanticVectorStore | None
) -> Steps[IndexStorage]:
    """The storage of a stored index."""
    if struct.in_stores:
        yield from check_commit(struct, open_records(context, method, struct))
        return _in_stores(context, method, struct)
    external, _ = find_external_store(context, method, chunk_store, struct)
    return (yield from LocalIndexStorage.open(context, method, struct, external))


def stored_chunks(
    context: StorageContext, method: str, struct: DerivedStruct, node_ids: Sequence[str]
) -> Steps[Snapshot]:
    """The rows of those chunks that an index of the context has, and perhaps others; the index is not opened."""
    if struct.in_stores:
        return (yield from _in_stores(context, method, struct).space().fetch(node_ids))
    stored = stored_matrix(context, struct.spaces.get(CHUNKS, ""))
    return Snapshot.empty() if stored is None or stored.tag.get("uid") != struct.uid else stored.snapshot()


def _in_stores(context: StorageContext, method: str, struct: DerivedStruct) -> StoredIndexStorage:
    stores = find_stores(context, method, struct.uid)
    records = open_records(context, method, struct)
    return StoredIndexStorage(context, struct, records, stores, partial(stores.spaces, records=records))
