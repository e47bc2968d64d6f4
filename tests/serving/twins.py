"""`Twins`: an index in stores beside the same index in memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from llama_index.core import load_index_from_storage
from llama_index.core.schema import BaseNode
from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.ragkit import MatrixVectorStore
from llama_index.ragkit.sql import SQLStorageContext, storage_context

__all__ = ["Twins", "random_writes"]


class Twins(ABC):
    """An index in an SQLite file, with vectors in this process, and the same index in memory.

    Parameters
    ----------
    folder : of the file
    given : what both are built from
    options : parameters and components of both
    """

    cls: ClassVar[Any]

    def __init__(self, folder: Path, given: Sequence[Any], **options: Any) -> None:
        self.url = f"sqlite:///{folder / 'index.db'}"
        self.spaces: dict[str, BasePydanticVectorStore] = {}
        self.options = options
        where = {"storage_context": self.context()}
        self.stored, self.memory = (self.build(given, **self.components(), **place) for place in (where, {}))

    @abstractmethod
    def components(self) -> dict[str, Any]:
        """The options, and the components that take the place of models."""

    @abstractmethod
    def check(self) -> None:
        """What is stored is the state in memory."""

    def build(self, given: Sequence[Any], **kwargs: Any) -> Any:
        return self.cls(given, **kwargs)

    def context(self, tenant: str = "") -> SQLStorageContext:
        def factory(space: str, dimension: int) -> BasePydanticVectorStore:
            return self.spaces.setdefault(space, MatrixVectorStore())

        return storage_context(self.url, vectors=factory, tenant=tenant)

    def again(self) -> Any:
        return load_index_from_storage(self.context(), **self.components())

    def __iter__(self) -> Iterator[Any]:
        return iter((self.stored, self.memory))


def random_writes(
    twins: Twins, old: Sequence[BaseNode], new: Sequence[BaseNode], changed: Callable[[int], BaseNode], steps: int
) -> list[str]:
    """Inserts, deletes and changes of nodes in random order, the twins compared after each.

    Parameters
    ----------
    old : the nodes that they were built from
    new : nodes that are inserted, a few at a time
    changed : one of the old nodes with another text, by the number of the step

    Returns
    -------
    The ids of the nodes that are left.
    """
    random = np.random.default_rng(len(str(twins.options)))
    spare, held = list(new), [node.node_id for node in old]
    twins.check()
    for step in range(steps):
        kind = random.integers(4)
        if kind < 2:
            count = int(random.integers(1, 6))
            some, spare = spare[:count], spare[count:]
            for index in twins:
                index.insert_nodes(some)
            held += [node.node_id for node in some]
        elif kind == 2:
            gone = [str(i) for i in random.choice(held, size=int(random.integers(1, 6)), replace=False)]
            for index in twins:
                index.delete_nodes(gone)
            held = [i for i in held if i not in gone]
        else:
            node = changed(step)
            for index in twins:
                index.insert_nodes([node])
            held = list(dict.fromkeys([*held, node.node_id]))
        twins.check()
    return held
