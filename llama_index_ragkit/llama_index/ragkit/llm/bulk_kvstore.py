"""`BulkKVStore`: a LlamaIndex key-value store that reads, changes and deletes many keys at once."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from llama_index.core.storage.kvstore.types import DEFAULT_COLLECTION, BaseKVStore

__all__ = ["BulkKVStore", "CacheEntry", "EntryChange"]

P = ParamSpec("P")
T = TypeVar("T")
CacheEntry = dict[str, Any]
EntryChange = Callable[[CacheEntry | None], CacheEntry | None]


def _in_thread(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The method of this name, also where a subclass overrides it, in a thread."""

    @wraps(method, updated=())  # not that it is abstract
    async def run(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await asyncio.to_thread(getattr(self, method.__name__), *args, **kwargs)
        return result

    return run


class BulkKVStore(BaseKVStore):
    """What core's key-value stores do, and the same for many keys in one transaction.

    The records of an index and the extraction cache use these methods where a store has them. The asynchronous methods
    run the synchronous ones in threads.
    """

    @abstractmethod
    def get_many(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """The values of those keys that exist, in the order of `keys`."""

    @abstractmethod
    def delete_all(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION, *, clean: bool = True) -> int:
        """Delete many keys in one transaction; returns how many existed. Without `clean`, :meth:`clean` must follow."""

    @abstractmethod
    def update(
        self, changes: Mapping[str, EntryChange], collection: str = DEFAULT_COLLECTION
    ) -> dict[str, CacheEntry | None]:
        """Read, change and write entries in one transaction.

        Parameters
        ----------
        changes : for each key, a function from its value (None: there is none) to the new one (None: delete it); a
            value that is returned itself is not written

        Returns
        -------
        The values after the change.
        """

    @abstractmethod
    def check_writable(self) -> None:
        """Raise a `ReadOnlyError` if values may not be written."""

    @abstractmethod
    def clean(self) -> bool:
        """Remove the bytes of deleted and replaced values, if that is for the store to do; False if it comes later."""

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> CacheEntry | None:
        """The value of a key, or None."""
        return self.get_many([key], collection).get(key)

    def put(self, key: str, val: CacheEntry, collection: str = DEFAULT_COLLECTION) -> None:
        """Write the value of a key, a dictionary of JSON values."""
        self.put_all([(key, val)], collection)

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Delete a key; returns whether it existed."""
        return self.delete_all([key], collection) > 0

    aget, aget_many, aget_all = _in_thread(get), _in_thread(get_many), _in_thread(BaseKVStore.get_all)
    aput, aput_all = _in_thread(put), _in_thread(BaseKVStore.put_all)
    adelete, adelete_all = _in_thread(delete), _in_thread(delete_all)
    aupdate, acheck_writable, aclean = _in_thread(update), _in_thread(check_writable), _in_thread(clean)
