"""Storage of the tree: for each summary one record of its children, one of its text, and one vector row."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import IndexStorage, Record, Snapshot, SpaceRows, Steps
from llama_index.raptor.tree.tree import Summary, Tree

__all__ = ["SUMMARIES", "TREE", "TreeRecords", "load_tree"]

TREE = "tree"
SUMMARIES = "summaries"


def load_tree(storage: IndexStorage) -> Steps[tuple[Tree, dict[str, Record]]]:
    """Load the tree and the records of its written summaries.

    An interrupted write is repaired: children that no longer exist are removed from the tree, and rows and records of
    summaries that are not in the tree are deleted.
    """
    stored = yield from storage.records.get_all(TREE)
    tree = Tree.of({name: Summary(int(r["level"]), tuple(r["children"])) for name, r in stored.items()})
    chunks, space = storage.snapshot(), storage.spaces[SUMMARIES]
    removed = [child for child in tree.parents if child not in tree.summaries and child not in chunks]
    if removed:
        tree = tree.replace(dict.fromkeys(removed, ()))
        yield from TreeRecords(storage).put({name: s for name, s in tree.summaries.items() if name not in stored})
        yield from storage.records.delete(TREE, [name for name in stored if name not in tree.summaries])
    yield from space.remove([name for name in storage.snapshot(SUMMARIES).ids if name not in tree.summaries])
    records = yield from storage.records.get_all(SUMMARIES)
    rows = storage.snapshot(SUMMARIES)
    yield from storage.records.delete(SUMMARIES, [name for name in records if name not in rows])
    yield from space.remove([name for name in rows.ids if name not in records])
    return tree, {name: records[name] for name in rows.ids if name in records}


class TreeRecords:
    """The stored tree of an index in memory: see :class:`~llama_index.raptor.tree_store.TreeStore`."""

    def __init__(self, storage: IndexStorage) -> None:
        self._storage = storage
        self.leaves: Snapshot = storage.snapshot()

    def put(self, summaries: Mapping[str, Summary]) -> Steps[None]:
        """Store the children of summaries."""
        pairs = [(name, {"level": s.level, "children": list(s.children)}) for name, s in summaries.items()]
        yield from self._storage.records.put(TREE, pairs)

    def delete(self, summaries: Iterable[str]) -> Steps[None]:
        """Delete summaries."""
        yield from self._storage.records.delete(TREE, summaries)

    def put_texts(self, records: Mapping[str, Record], rows: SpaceRows) -> Steps[None]:
        """Store the texts and vectors of summaries."""
        yield from self._storage.records.put(SUMMARIES, list(records.items()))
        yield from self._storage.spaces[SUMMARIES].put(rows)

    def delete_texts(self, names: Sequence[str]) -> Steps[None]:
        """Delete the texts and vectors of summaries."""
        yield from self._storage.spaces[SUMMARIES].remove(names)
        yield from self._storage.records.delete(SUMMARIES, names)

    def vectors(self, nodes: Collection[str]) -> Steps[Mapping[str, NDArray[np.float32]]]:
        """The vectors of chunks and of summaries that have a text."""
        found: dict[str, NDArray[np.float32]] = {}
        for rows in (self.leaves, self._storage.snapshot(SUMMARIES)):
            here = [node for node in nodes if node in rows]
            found.update(zip(here, rows.vectors_of(here), strict=True))
        return found
        yield
