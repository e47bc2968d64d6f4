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
from llama_index.ragkit.validation import ServeFrom, check_choice

__all__ = ["check_serving", "new_storage", "open_storage", "serves_from"]

_STORES: ServeFrom = "stores"


def serves_from(struct: DerivedStruct) -> ServeFrom:
    """What an index is served from."""
    return _STORES if struct.params.get("serve_from") == _STORES else "memory"


def check_serving(
    owner: str,
    given: Mapping[str, Any],
    context: StorageContext,
    stored: DerivedStruct | None,
    builder: type[Builder[Any, Any]],
) -> ServeFrom:
    """What an index is to be served from: as it was built, as its keywords say, or as its storage context does.

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
    in_stores = isinstance(context, SQLStorageContext) and context.in_stores
    default = _STORES if in_stores else "memory"
    chosen = check_choice("serve_from", given.get("serve_from") or default, ("memory", _STORES))
    if stored is not None:
        built = serves_from(stored)
        if given.get("serve_from") not in (None, built):
            raise ConfigurationError(
                f"The index was built with serve_from={built!r}. Leave it out, or build a new one."
            )
        chosen = built
    if chosen == "memory" and in_stores and stored is None:
        raise ConfigurationError(
            'serve_from="memory" contradicts the storage context, whose vectors are in vector stores. Leave it out, or '
            "make the context without vectors=."
        )
    if chosen == _STORES and builder.state_of is Builder.state_of:
        raise ConfigurationError(f'{owner} is served from memory alone: leave out serve_from="stores".')
    if chosen == _STORES and given.get("vector_store") is not None:
        raise ConfigurationError(
            "The vectors of this index are in the stores of the storage context: pass vectors= to "
            "llama_index.ragkit.sql.storage_context in place of vector_store=."
        )
    return chosen


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
    struct.params["serve_from"] = _STORES
    struct.spaces = {name: name for name in space_names}
    return _in_stores(context, method, struct)


def open_storage(
    context: StorageContext, method: str, struct: DerivedStruct, chunk_store: BasePydanticVectorStore | None
) -> Steps[IndexStorage]:
    """The storage of a stored index."""
    if serves_from(struct) == _STORES:
        yield from check_commit(struct, open_records(context, method, struct))
        return _in_stores(context, method, struct)
    external, _ = find_external_store(context, method, chunk_store, struct)
    return (yield from IndexStorage.open(context, method, struct, external))


def _in_stores(context: StorageContext, method: str, struct: DerivedStruct) -> IndexStorage:
    stores = find_stores(context, method, struct.uid)
    records = open_records(context, method, struct)
    return IndexStorage.in_stores(context, struct, records, partial(stores.spaces, records=records), stores)
