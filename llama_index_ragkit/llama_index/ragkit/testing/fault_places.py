"""Where fault tests keep an index: stores that can be opened again, and that show every row."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from llama_index.core.storage.storage_context import StorageContext

from llama_index.ragkit.testing.faults import Fault, FaultyKVStore, faulty_context, faulty_requests
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

__all__ = ["FaultPlace", "MemoryPlace"]


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
