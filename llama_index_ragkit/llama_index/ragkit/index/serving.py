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
from llama_index.ragkit.storage.opening import check_commit, find_external_store, new_uid, open_records
from llama_index.ragkit.storage.struct import DerivedStruct

__all__ = ["check_place", "new_storage", "open_in_stores", "open_storage"]


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
        return IndexStorage.create(context, method, space_names, struct, external)
    struct.uid = new_uid()
    struct.params["serve_from"] = "stores"
    struct.spaces = {name: name for name in space_names}
    return open_in_stores(context, method, struct)


def open_storage(
    context: StorageContext, method: str, struct: DerivedStruct, chunk_store: BasePydanticVectorStore | None
) -> Steps[IndexStorage]:
    """The storage of a stored index."""
    if struct.in_stores:
        yield from check_commit(struct, open_records(context, method, struct))
        return open_in_stores(context, method, struct)
    external, _ = find_external_store(context, method, chunk_store, struct)
    return (yield from IndexStorage.open(context, method, struct, external))


def open_in_stores(context: StorageContext, method: str, struct: DerivedStruct) -> IndexStorage:
    """The storage of an index that is served from stores; nothing is read yet."""
    stores = find_stores(context, method, struct.uid)
    records = open_records(context, method, struct)
    return IndexStorage.in_stores(context, struct, records, partial(stores.spaces, records=records), stores)
