"""Deleting many keys of a key-value store at once, where the store can."""

from collections.abc import Mapping, Sequence

from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index.ragkit.llm.sqlite_kvstore import SQLiteKVStore
from llama_index.ragkit.steps import Steps, call

__all__ = ["clean", "delete_keys"]


def delete_keys(kv: BaseKVStore, keys: Mapping[str, Sequence[str]]) -> Steps[None]:
    """Delete keys, collection after collection; unknown ones are ignored.

    A `SQLiteKVStore` deletes those of a collection in one transaction, but their bytes remain in its log until
    :func:`clean`.

    Parameters
    ----------
    keys : by collection
    """
    for collection, of_collection in keys.items():
        if isinstance(kv, SQLiteKVStore) and of_collection:
            yield from call(kv.delete_all, kv.adelete_all, of_collection, collection=collection, clean=False)
        else:
            for key in of_collection:
                yield from call(kv.delete, kv.adelete, key, collection=collection)


def clean(kv: BaseKVStore) -> Steps[None]:
    """Remove the bytes of deleted and replaced values from the files of a `SQLiteKVStore`."""
    if isinstance(kv, SQLiteKVStore):
        yield from call(kv.clean, kv.aclean)
