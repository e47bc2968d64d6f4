"""`Change`: the input of a builder for one write."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["Change"]


@dataclass(frozen=True)
class Change:
    """The nodes that were added, changed or removed in one write.

    Attributes
    ----------
    added : nodes with text to derive from, in canonical order; their rows are in the space "chunks"
    vectors : one row for each of `added`
    records : results of the extractor by node id; nodes that it failed at, or found nothing in, are missing
    removed : ids of nodes whose rows were deleted from the space "chunks"; a node that changed is in both
    before : a snapshot that has these rows, and perhaps others
    repeated : ids of `added` that did not change: an earlier, incomplete write may have derived something from them
        already
    more : whether more nodes that were given together with these follow in later writes
    """

    added: Sequence[BaseNode] = ()
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    records: dict[str, Record] = field(default_factory=dict)
    removed: Sequence[str] = ()
    before: Snapshot = field(default_factory=Snapshot.empty)
    repeated: Collection[str] = ()
    more: bool = False
