"""`ExtractionCache`: replies of a language model, kept as long as an index uses them."""

import hashlib
import json
import time
import weakref
from collections.abc import Iterable, Mapping, Set
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from llama_index.core.storage.kvstore.types import BaseKVStore

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.llm.bulk_kvstore import BulkKVStore, CacheEntry, EntryChange
from llama_index.ragkit.llm.sqlite_kvstore import SQLiteKVStore
from llama_index.ragkit.lock import WriterLock
from llama_index.ragkit.processes import is_running, this_process
from llama_index.ragkit.short_repr import ShortRepr
from llama_index.ragkit.steps import Steps, call

__all__ = ["Claims", "ExtractionCache", "SQLiteKVStore", "cache_key"]

_locks: "weakref.WeakKeyDictionary[BaseKVStore, WriterLock]" = weakref.WeakKeyDictionary()
_locks_guard = ProcessLock()

_IDENTITY = "identity"
_LONGEST_SECONDS = 24 * 60 * 60.0  # a write of which it is not known whether its process runs
_claiming: set[str] = set()  # tokens of the writes of this process that have not ended


def cache_key(*parts: str) -> str:
    """The key of an entry: SHA-256 over its parts (prompt, model, text), with separators between them.

    Parts must hold no secret: keys are stored.
    """
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class ExtractionCache(ShortRepr):
    """A cache whose entries record their users and are deleted with the last user.

    A user is any string, such as an index with one of its nodes. The same text in two documents, or in two indexes
    with one cache, costs one LLM call, and its entry is kept until both have released it. A write claims the entries
    that it uses until it has ended (:class:`Claims`). If it never ends, :meth:`sweep` releases them.

    Every method returns steps (:mod:`llama_index.ragkit.steps`). Changes of one entry never overlap: with a
    `BulkKVStore` (SQLite, an SQL database) they are transactions, also across processes; with other stores they are
    serialised within this process.

    Parameters
    ----------
    store : a path (one SQLite file), any LlamaIndex key-value store, or None (in memory). Values are stored as JSON
        text, so that the store's own rules for keys or types cannot change them
    collection : the collection of the store that the entries are in
    """

    def __init__(self, store: BaseKVStore | str | Path | None = None, collection: str = "ragkit_extractions") -> None:
        if store is not None and not isinstance(store, BaseKVStore | str | Path):
            raise ConfigurationError(
                f"A cache is a path, a LlamaIndex key-value store or None (in memory), not a {type(store).__name__}."
            )
        self._store = store if isinstance(store, BaseKVStore) else SQLiteKVStore(":memory:" if store is None else store)
        self._collection = collection
        self._writes = f"{collection}_writes"
        self._tokens: dict[str, str] = {}  # of the writes of this object, by prefix of their users
        self._unfinished: set[str] = set()  # tokens of writes that have not ended, as of the last one that began

    def identity(self) -> Steps[str]:
        """A random string that distinguishes this cache from others; stored in it when first asked for."""
        after = yield from self._update({_IDENTITY: _identified}, self._writes)
        return str((after[_IDENTITY] or {})["id"])

    def get(self, key: str, user: str) -> Steps[Any | None]:
        """The value of a key, with `user` recorded as a user; None if there is no entry."""
        after = yield from self._update({key: partial(_join, user, self._token_of(user), self._unfinished)})
        entry = after[key]
        return None if entry is None else json.loads(entry["value"])

    def put(self, key: str, value: Any, user: str) -> Steps[None]:
        """Store a value of JSON types for `user` and for the existing users of the key."""
        write = partial(_write, json.dumps(value), user, self._token_of(user), self._unfinished)
        yield from self._update({key: write})

    def release(self, user: str, keys: Iterable[str] | None = None) -> Steps[None]:
        """Remove `user` from the entries, and delete those without a user.

        Parameters
        ----------
        keys : None for all entries of the user, which requires a scan of the whole cache
        """
        if keys is None:
            store = self._store
            entries = yield from call(store.get_all, store.aget_all, collection=self._collection)
            keys = [key for key, entry in entries.items() if user in entry["users"]]
        yield from self.release_many({user: keys})

    def release_many(self, uses: Mapping[str, Iterable[str]]) -> Steps[None]:
        """As :meth:`release` for many users, keys by user: one transaction, much faster, with a `BulkKVStore`."""
        leaving: dict[str, set[str]] = {}
        for user, keys in uses.items():
            for key in keys:
                leaving.setdefault(key, set()).add(user)
        if leaving:
            yield from self._update({key: partial(_leave, users) for key, users in leaving.items()})

    # -- claims of writes -------------------------------------------------------------------------------

    def sweep(self) -> Steps[None]:
        """Release the claims of writes that ended without keeping their entries, such as builds that were killed.

        A write of another machine counts as ended after a day.
        """
        writes = yield from self._stored_writes()
        ended = {token for token, write in writes.items() if not _goes_on(token, write)}
        if not ended:
            return
        store = self._store
        entries = yield from call(store.get_all, store.aget_all, collection=self._collection)
        claimed = [key for key, entry in entries.items() if not ended.isdisjoint(entry.get("claims", {}).values())]
        yield from self._update({key: partial(_abandon, ended) for key in claimed})
        yield from self._update(dict.fromkeys(ended, _removed), self._writes)

    def _stored_writes(self) -> Steps[dict[str, CacheEntry]]:
        store = self._store
        found = yield from call(store.get_all, store.aget_all, collection=self._writes)
        return {token: write for token, write in found.items() if token != _IDENTITY}

    def _token_of(self, user: str) -> str | None:
        return next((token for prefix, token in self._tokens.items() if user.startswith(prefix)), None)

    # -- changing entries -------------------------------------------------------------------------------

    def _update(
        self, changes: Mapping[str, EntryChange], collection: str | None = None
    ) -> Steps[dict[str, CacheEntry | None]]:
        store, collection = self._store, collection or self._collection
        if isinstance(store, BulkKVStore):
            return (yield from call(store.update, store.aupdate, changes, collection=collection))
        after: dict[str, CacheEntry | None] = {}
        for key, change in changes.items():
            with (yield from _lock_of(store).acquire()):
                old = yield from call(store.get, store.aget, key, collection=collection)
                new = after[key] = change(old)
                if new is None and old is not None:
                    yield from call(store.delete, store.adelete, key, collection=collection)
                elif new is not None and new is not old:
                    yield from call(store.put, store.aput, key, new, collection=collection)
        return after


def _lock_of(store: BaseKVStore) -> WriterLock:
    """One lock per store, since the caches of several indexes may share it."""
    with _locks_guard:
        return _locks.setdefault(store, WriterLock())


class Claims:
    """What one write of an index uses in a cache, until it has ended: a context manager around the write.

    The write is registered in the cache before it asks for anything, and everything that its users get or put is
    claimed in its name. If the block ends without :meth:`keep`, or the process dies in it, the claims remain and are
    released by the next :meth:`ExtractionCache.sweep`.

    Parameters
    ----------
    cache : None for a write without a cache, which claims nothing
    prefix : the users of the write are those that start with it
    """

    def __init__(self, cache: ExtractionCache | None, prefix: str) -> None:
        self._cache = cache
        self._prefix = prefix
        self._token = uuid4().hex[:12]

    def __enter__(self) -> "Claims":
        _claiming.add(self._token)
        return self

    def __exit__(self, *exc_info: object) -> None:
        _claiming.discard(self._token)
        if self._cache is not None:
            self._cache._tokens.pop(self._prefix, None)

    def begin(self) -> Steps[None]:
        """Register the write."""
        cache, token = self._cache, self._token
        if cache is not None:
            cache._unfinished = {*(yield from cache._stored_writes()), token}
            write = {"process": this_process(), "began": time.time()}
            yield from cache._update({token: lambda _: write}, cache._writes)
            cache._tokens[self._prefix] = token

    def keep(self) -> Steps[None]:
        """The write has ended: its users are users from now on."""
        if self._cache is not None:
            yield from self._cache._update({self._token: _removed}, self._cache._writes)


def _goes_on(token: str, write: CacheEntry) -> bool:
    if write["process"] == this_process():
        return token in _claiming
    running = is_running(write["process"])
    return time.time() - write["began"] < _LONGEST_SECONDS if running is None else running


def _identified(entry: CacheEntry | None) -> CacheEntry:
    return {"id": uuid4().hex} if entry is None else entry


def _removed(entry: CacheEntry | None) -> None:
    return None


def _join(user: str, token: str | None, unfinished: Set[str], entry: CacheEntry | None) -> CacheEntry | None:
    if entry is None or (user in entry["users"] and not _is_claimed(entry, user, unfinished, token)):
        return entry
    return _claimed(entry, user, token, unfinished)


def _write(value: str, user: str, token: str | None, unfinished: Set[str], entry: CacheEntry | None) -> CacheEntry:
    old = {"users": []} if entry is None else entry
    kept = user in old["users"] and not _is_claimed(old, user, unfinished, token)
    return {**(old if kept else _claimed(old, user, token, unfinished)), "value": value}


def _is_claimed(entry: CacheEntry, user: str, unfinished: Set[str], token: str | None) -> bool:
    """Whether a user is one only until some other write has ended."""
    claim = entry.get("claims", {}).get(user)
    return claim != token and claim in unfinished


def _claimed(entry: CacheEntry, user: str, token: str | None, unfinished: Set[str]) -> CacheEntry:
    users = entry["users"] if user in entry["users"] else [*entry["users"], user]
    claims = {name: claim for name, claim in entry.get("claims", {}).items() if claim in unfinished and name != user}
    return {**entry, "users": users, "claims": claims if token is None else {**claims, user: token}}


def _abandon(ended: Set[str], entry: CacheEntry | None) -> CacheEntry | None:
    if entry is None:
        return None
    return _leave({user for user, claim in entry.get("claims", {}).items() if claim in ended}, entry)


def _leave(users: set[str], entry: CacheEntry | None) -> CacheEntry | None:
    if entry is None or users.isdisjoint(entry["users"]):
        return entry
    left = [user for user in entry["users"] if user not in users]
    claims = {user: claim for user, claim in entry.get("claims", {}).items() if user not in users}
    return {**entry, "users": left, "claims": claims} if left else None
