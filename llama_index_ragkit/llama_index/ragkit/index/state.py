"""What every method's state has, and the type variables of a method."""

from typing import Protocol, TypeVar

from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["Config", "IndexState", "State"]


class IndexState(Protocol):
    """The interface of every method's state: the chunks that it was built from.

    A state is immutable. A write builds a new one, and a query uses one throughout.
    """

    @property
    def chunks(self) -> Snapshot:
        """The rows of the space "chunks" that the state was built from."""


Config = TypeVar("Config")
State = TypeVar("State", bound=IndexState)
