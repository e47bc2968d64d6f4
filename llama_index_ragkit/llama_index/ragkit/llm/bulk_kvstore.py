"""`BulkKVStore`: a LlamaIndex key-value store that reads, changes and deletes many keys at once."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE, DEFAULT_COLLECTION, BaseKVStore

__all__ = ["BulkKVStore", "CacheEntry", "EntryChange"]

CacheEntry = dict[str, Any]
EntryChange = Callable[[CacheEntry | None], CacheEntry | None]


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

    async def aget(self, key: str, collection: str = DEFAULT_COLLECTION) -> CacheEntry | None:
        """As :meth:`get`, in a thread."""
        return await asyncio.to_thread(self.get, key, collection)

    async def aget_many(self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """As :meth:`get_many`, in a thread."""
        return await asyncio.to_thread(self.get_many, keys, collection)

    async def aget_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, CacheEntry]:
        """As `get_all`, in a thread."""
        return await asyncio.to_thread(self.get_all, collection)

    async def aput(self, key: str, val: CacheEntry, collection: str = DEFAULT_COLLECTION) -> None:
        """As :meth:`put`, in a thread."""
        await asyncio.to_thread(self.put, key, val, collection)

    async def aput_all(
        self,
        kv_pairs: list[tuple[str, CacheEntry]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        """As `put_all`, in a thread."""
        await asyncio.to_thread(self.put_all, kv_pairs, collection, batch_size)

    async def adelete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """As :meth:`delete`, in a thread."""
        return await asyncio.to_thread(self.delete, key, collection)

    async def adelete_all(
        self, keys: Iterable[str], collection: str = DEFAULT_COLLECTION, *, clean: bool = True
    ) -> int:
        """As :meth:`delete_all`, in a thread."""
        return await asyncio.to_thread(self.delete_all, keys, collection, clean=clean)

    async def aupdate(
        self, changes: Mapping[str, EntryChange], collection: str = DEFAULT_COLLECTION
    ) -> dict[str, CacheEntry | None]:
        """As :meth:`update`, in a thread."""
        return await asyncio.to_thread(self.update, changes, collection)

    async def acheck_writable(self) -> None:
        """As :meth:`check_writable`, in a thread."""
        await asyncio.to_thread(self.check_writable)

    async def aclean(self) -> bool:
        """As :meth:`clean`, in a thread."""
        return await asyncio.to_thread(self.clean)
