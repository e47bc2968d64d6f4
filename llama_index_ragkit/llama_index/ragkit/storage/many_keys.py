"""Reading and deleting many keys of a key-value store at once, where the store can."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from llama_index.core.storage.kvstore import SimpleKVStore
from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index.ragkit.llm.bulk_kvstore import BulkKVStore
from llama_index.ragkit.steps import Steps, call, gather

__all__ = ["clean", "delete_keys", "get_keys", "outlives_the_process"]

_AT_ONCE = 8  # reads of a store that reads one key at a time


def outlives_the_process(kv: BaseKVStore) -> bool:
    """Whether a key-value store is a server or a file to which every write goes immediately."""
    # In-memory stores have a persist method, whatever class they derive from in this version of core.
    return not callable(getattr(kv, "persist", None))


def get_keys(kv: BaseKVStore, keys: Iterable[str], collection: str) -> Steps[dict[str, dict[str, Any]]]:
    """The values of those keys that exist, in the order of `keys`.

    A `BulkKVStore` reads them in one call. Of another store on a server, several are read at once. Core's own lies in
    this process, where there is nothing to wait for.
    """
    wanted = list(dict.fromkeys(keys))
    if not wanted:
        return {}
    if isinstance(kv, SimpleKVStore):
        found = ((key, kv.get(key, collection)) for key in wanted)
        return {key: value for key, value in found if value is not None}
    if isinstance(kv, BulkKVStore):
        return (yield from call(kv.get_many, kv.aget_many, wanted, collection=collection))
    jobs: list[Callable[[], Steps[dict[str, Any] | None]]] = [
        partial(call, kv.get, kv.aget, key, collection=collection) for key in wanted
    ]
    at_once = min(_AT_ONCE, len(jobs)) if outlives_the_process(kv) else 1
    values = [outcome.unwrap() for outcome in (yield from gather(jobs, num_workers=at_once))]
    return {key: value for key, value in zip(wanted, values, strict=True) if value is not None}


def delete_keys(kv: BaseKVStore, keys: Mapping[str, Sequence[str]]) -> Steps[None]:
    """Delete keys, collection after collection; unknown ones are ignored.

    A `BulkKVStore` deletes those of a collection in one transaction, but their bytes may remain in its files until
    :func:`clean`.

    Parameters
    ----------
    keys : by collection
    """
    for collection, of_collection in keys.items():
        if isinstance(kv, BulkKVStore) and of_collection:
            yield from call(kv.delete_all, kv.adelete_all, of_collection, collection=collection, clean=False)
        elif isinstance(kv, SimpleKVStore):
            for key in of_collection:
                kv.delete(key, collection)
        else:
            for key in of_collection:
                yield from call(kv.delete, kv.adelete, key, collection=collection)


def clean(kv: BaseKVStore) -> Steps[None]:
    """Remove the bytes of deleted and replaced values from the files of a `BulkKVStore`."""
    if isinstance(kv, BulkKVStore):
        yield from call(kv.clean, kv.aclean)
