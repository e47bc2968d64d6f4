"""`TreeStore`: where a tree of summaries is stored, as its writer needs it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import Record, Snapshot, SpaceRows, Steps
from llama_index.raptor.tree.tree import Summary

__all__ = ["TreeStore"]


class TreeStore(Protocol):
    """A stored tree.

    Attributes
    ----------
    leaves : records of the chunks that the writer may meet
    """

    @property
    def leaves(self) -> Snapshot:
        """See the class."""

    def put(self, summaries: Mapping[str, Summary]) -> Steps[None]:
        """Store summaries without text."""

    def delete(self, summaries: Mapping[str, Summary]) -> Steps[None]:
        """Delete summaries that have no text."""

    def put_texts(self, records: Mapping[str, Record], rows: SpaceRows) -> Steps[None]:
        """Store the texts and vectors of summaries."""

    def delete_texts(self, names: Sequence[str]) -> Steps[None]:
        """Delete the texts and vectors of summaries."""

    def vectors(self, nodes: Collection[str]) -> Steps[Mapping[str, NDArray[np.float32]]]:
        """The vectors of chunks and of summaries that have a text."""
