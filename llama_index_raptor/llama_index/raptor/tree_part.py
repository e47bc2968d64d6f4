"""`TreePart`: the part of a stored tree that one write reads and changes."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import Change, Snapshot, SpaceRows, Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.raptor.tree.tree import Summary, Tree
from llama_index.raptor.tree_rows import SUMMARIES, Rows, TreeRows, tree_of

__all__ = ["TreePart"]

_AT_ONCE = 1_000  # vectors in one request


class TreePart:
    """A part of the tree, or the whole tree, and the changes of a write.

    Parameters
    ----------
    storage, rows : those of the index
    change : the write, whose vectors need not be read

    Attributes
    ----------
    leaves : records of the chunks of the part; its vectors are placeholders
    tree, written : the part, and the records of its summaries, as they were read
    nodes : the summaries stored since then, and None for deleted ones
    texts : the records of texts stored since then, and None for deleted ones
    """

    def __init__(self, storage: IndexStorage, rows: TreeRows, change: Change | None = None) -> None:
        self._storage = storage
        self._rows = rows
        self._chunks = storage.space()
        self._summaries = storage.space(SUMMARIES)
        self._at_hand: Mapping[str, NDArray[np.float32]] = {}
        if change is not None:
            self._at_hand = {node.node_id: row for node, row in zip(change.added, change.vectors, strict=True)}
        self.leaves = Snapshot.empty()
        self.tree = Tree()
        self.written: Rows = {}
        self.nodes: dict[str, Summary | None] = {}
        self.texts: dict[str, Record | None] = {}

    # -- reading ------------------------------------------------------------------------------------

    def read_around(self, nodes: Collection[str], new: Sequence[str] | None = None, max_layers: int = 0) -> Steps[None]:
        """Read the rows and records that a change of the children of nodes needs.

        Parameters
        ----------
        new : chunks that will join them; None if no summary is written, which needs no records of chunks
        max_layers : the largest number of layers, if some may be added above the roots; all roots are then read
        """
        rows = yield from self._rows.around(nodes)
        roots = yield from self._rows.roots() if max_layers else ()
        if roots:
            highest = max(sorted(roots), key=roots.__getitem__)
            grows = len(roots) > 1 and roots[highest] < max_layers
            rows |= yield from self._rows.of([node for node in (roots if grows else [highest]) if node not in rows])
        leaves = [] if new is None else [*(node for node, row in rows.items() if not row["level"]), *new]
        yield from self._take(rows, leaves)

    def read_all(self) -> Steps[None]:
        """Read the whole tree and all chunks, except for vectors."""
        yield from self._take((yield from self._rows.all()), None)

    def _take(self, rows: Rows, leaves: Iterable[str] | None) -> Steps[None]:
        self.leaves = yield from self._chunks.described(None if leaves is None else dict.fromkeys(leaves))
        self.tree = tree_of(rows)
        self.written = yield from self._rows.texts(self.tree.summaries)

    def vectors(self, nodes: Collection[str]) -> Steps[Mapping[str, NDArray[np.float32]]]:
        """The vectors of chunks and of summaries that have a text."""
        found = {node: self._at_hand[node] for node in nodes if node in self._at_hand}
        for space, belongs in ((self._chunks, True), (self._summaries, False)):
            wanted = [node for node in nodes if node not in found and (node in self.leaves) == belongs]
            for start in range(0, len(wanted), _AT_ONCE):
                rows = yield from space.fetch(wanted[start : start + _AT_ONCE])
                found.update(zip(rows.ids, rows.matrix, strict=True))
        return found

    # -- writing ------------------------------------------------------------------------------------

    def change(self, new: Mapping[str, Summary], removed: Mapping[str, Summary]) -> Steps[None]:
        """Store summaries that have no text yet, and delete others, whose texts are already deleted."""
        if new or removed:
            yield from self._rows.change(new, removed)
            self.nodes |= {**dict.fromkeys(removed), **new}

    def put_texts(self, records: Mapping[str, Record], rows: SpaceRows) -> Steps[None]:
        """Store the texts and vectors of summaries."""
        known = yield from self._rows.texts(records)
        yield from self._rows.put_texts(records)
        yield from self._summaries.put(rows)
        self.texts.update(records)
        self._count(len(records.keys() - known.keys()))

    def delete_texts(self, names: Sequence[str]) -> Steps[None]:
        """Delete the texts and vectors of summaries."""
        stored = yield from self._rows.texts(names)
        if not stored:
            return
        yield from self._summaries.remove(stored)
        yield from self._rows.delete_texts(list(stored))
        self.texts.update(dict.fromkeys(stored))
        self._count(-len(stored))
        self._storage.commits.note_removal()  # a question that has begun may miss the vectors

    def _count(self, more: int) -> None:
        counters = self._storage.struct.counters
        counters["summaries"] = counters.get("summaries", 0) + more
