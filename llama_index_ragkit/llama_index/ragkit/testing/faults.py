"""Faults: stores that fail, die or are cancelled at their n-th call, and the places where fault tests keep an index."""

import asyncio
import copy
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal
from unittest.mock import patch

from llama_index.core.storage.docstore.keyval_docstore import KVDocumentStore
from llama_index.core.storage.index_store.keyval_index_store import KVIndexStore
from llama_index.core.storage.kvstore.types import DEFAULT_BATCH_SIZE, DEFAULT_COLLECTION, BaseKVStore
from llama_index.core.storage.storage_context import StorageContext

from llama_index.ragkit.steps import Call
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

__all__ = [
    "Fault",
    "FaultKind",
    "FaultPlace",
    "FaultyKVStore",
    "InjectedError",
    "Killed",
    "MemoryPlace",
    "faulty_context",
    "faulty_requests",
]

FaultKind = Literal["error", "kill", "interrupt", "cancel"]
Data = dict[str, dict[str, str]]


class InjectedError(OSError):
    """The error of a store that fails."""


class Killed(BaseException):
    """Ends a process, as far as a test can: every later call of its stores raises it too."""


class Fault:
    """Ends one of the calls that it counts.

    Parameters
    ----------
    kind : "error" raises :class:`InjectedError` once; "kill" raises :class:`Killed` from then on; "interrupt" raises
        `KeyboardInterrupt`; "cancel" cancels the running task
    at : the number of the call to end, from 1; None to count calls and end none
    """

    def __init__(self, kind: FaultKind = "error", at: int | None = None) -> None:
        self.kind: FaultKind = kind
        self.at = at
        self.calls = 0
        self.dead = False

    @property
    def happened(self) -> bool:
        """Whether the call was reached."""
        return self.at is not None and self.calls >= self.at

    def check(self) -> None:
        """End the call if the process was killed before."""
        if self.dead:
            raise Killed

    def step(self) -> None:
        """Count one call, and end it if it is the chosen one."""
        self.check()
        self.calls += 1
        if self.calls != self.at:
            return
        if self.kind == "error":
            raise InjectedError("no space left on device")
        if self.kind == "interrupt":
            raise KeyboardInterrupt
        if self.kind == "kill":
            self.dead = True
            raise Killed
        task = asyncio.current_task()
        if task is not None:
            task.cancel()

    async def astep(self) -> None:
        """As :meth:`step`; a cancelled task ends here."""
        self.step()
        await asyncio.sleep(0)


class FaultyKVStore(BaseKVStore):
    """A key-value store in memory that behaves like one on a server, and fails on demand.

    If a `put_all` is ended, half of its values are stored.

    Parameters
    ----------
    data : the stored values as JSON text, by collection and key; what "the server" still holds when a process has died
    fault : counts and ends calls
    persists : whether it has the `persist` method of stores that live and die with the process
    """

    def __init__(self, data: Data, fault: Fault, persists: bool = False) -> None:
        self.data = data
        self.fault = fault
        if persists:
            self.persist = lambda *args, **kwargs: None

    def put(self, key: str, val: dict[str, Any], collection: str = DEFAULT_COLLECTION) -> None:
        """Write one value."""
        self.fault.step()
        self.data.setdefault(collection, {})[key] = json.dumps(val)

    def put_all(
        self,
        kv_pairs: list[tuple[str, dict[str, Any]]],
        collection: str = DEFAULT_COLLECTION,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        """Write many values."""
        half = len(kv_pairs) // 2
        rows = {key: json.dumps(value) for key, value in kv_pairs}
        self.data.setdefault(collection, {}).update(list(rows.items())[:half])
        self.fault.step()
        self.data[collection].update(rows)

    def get(self, key: str, collection: str = DEFAULT_COLLECTION) -> dict[str, Any] | None:
        """One value, or None."""
        self.fault.step()
        found = self.data.get(collection, {}).get(key)
        return None if found is None else json.loads(found)

    def get_all(self, collection: str = DEFAULT_COLLECTION) -> dict[str, dict[str, Any]]:
        """All values of a collection."""
        self.fault.step()
        return {key: json.loads(value) for key, value in self.data.get(collection, {}).items()}

    def delete(self, key: str, collection: str = DEFAULT_COLLECTION) -> bool:
        """Delete a value; returns whether there was one."""
        self.fault.step()
        return self.data.get(collection, {}).pop(key, None) is not None

    async def aput(self, *args: Any, **kwargs: Any) -> None:
        """As :meth:`put`."""
        self.put(*args, **kwargs)

    async def aput_all(self, *args: Any, **kwargs: Any) -> None:
        """As :meth:`put_all`."""
        self.put_all(*args, **kwargs)

    async def aget(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """As :meth:`get`."""
        return self.get(*args, **kwargs)

    async def aget_all(self, *args: Any, **kwargs: Any) -> dict[str, dict[str, Any]]:
        """As :meth:`get_all`."""
        return self.get_all(*args, **kwargs)

    async def adelete(self, *args: Any, **kwargs: Any) -> bool:
        """As :meth:`delete`."""
        return self.delete(*args, **kwargs)


def faulty_context(store: FaultyKVStore) -> StorageContext:
    """A storage context whose document store and index store are over a faulty store."""
    return StorageContext.from_defaults(docstore=KVDocumentStore(store), index_store=KVIndexStore(store))


@contextmanager
def faulty_requests(fault: Fault) -> Iterator[None]:
    """Count every call and every await of an index, and end the write after one of them.

    These are the calls of stores, models and the cache, and computations in threads. They are counted where the steps
    of an index (:mod:`llama_index.ragkit.steps`) run. A call that is ended before it begins is ended after the one that
    precedes it. After a kill no further call is made.
    """
    run: Callable[[Any], Any] = Call.run
    arun: Callable[[Any], Any] = Call.arun

    def run_or_end(self: Any) -> Any:
        fault.check()
        result = run(self)
        fault.step()
        return result

    async def arun_or_end(self: Any) -> Any:
        fault.check()
        result = await arun(self)
        await fault.astep()
        return result

    with patch.object(Call, "run", run_or_end), patch.object(Call, "arun", arun_or_end):
        yield


class FaultPlace(ABC):
    """The stores of one index, empty when they are made; nothing else uses them."""

    @abstractmethod
    def open(self) -> StorageContext:
        """The storage context, as a new process opens it."""

    @abstractmethod
    def rows(self) -> Mapping[str, Sequence[str]]:
        """Every row of every table, collection and vector space, as text, by the name of its table or space."""

    def copy(self) -> "FaultPlace | None":
        """Another place that holds the same; None if copying takes longer than building the index again."""
        return None

    def close(self) -> None:  # noqa: B027
        """Called when the test no longer needs the place."""

    def faults(self, fault: Fault) -> AbstractContextManager[None]:
        """A block that counts calls and ends one of them; by default every call and every await counts."""
        return faulty_requests(fault)


class MemoryPlace(FaultPlace):
    """A key-value store that behaves like one on a server, and an index in memory over it.

    Errors and kills end calls of the store, half done. Interrupts and cancellations end any call or await.

    Parameters
    ----------
    persists : whether the store lives and dies with the process; if so, the vectors do too
    """

    def __init__(self, persists: bool = False) -> None:
        self._store = FaultyKVStore({}, Fault(), persists)
        self._context = faulty_context(self._store)
        self._persists = persists

    def open(self) -> StorageContext:
        """The storage context; that of the process, if its stores live and die with it."""
        if not self._persists:
            self._store = FaultyKVStore(self._store.data, Fault())
            self._context = faulty_context(self._store)
        return self._context

    def rows(self) -> Mapping[str, Sequence[str]]:
        """The values of each collection, and the rows of each vector store."""
        found = {name: [f"{key} {value}" for key, value in each.items()] for name, each in self._store.data.items()}
        for name, store in self._context.vector_stores.items() if self._persists else ():
            if isinstance(store, MatrixVectorStore):
                found[f"vectors {name}"] = [str(record) for record in store.snapshot().records]
        return found

    def copy(self) -> "MemoryPlace":
        """Another place that holds the same."""
        other = MemoryPlace(self._persists)
        other._store.data.update(copy.deepcopy(self._store.data))
        if self._persists:
            other._context.vector_stores.update(copy.deepcopy(self._context.vector_stores))
        return other

    @contextmanager
    def faults(self, fault: Fault) -> Iterator[None]:
        """Errors and kills end calls of the store, other faults any call."""
        if fault.kind in ("interrupt", "cancel"):
            with faulty_requests(fault):
                yield
            return
        store = self._store
        store.fault = fault
        try:
            yield
        finally:
            store.fault = Fault()
