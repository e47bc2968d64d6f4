"""The immutable state that a query reads: chunks, summaries and the tree over them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.masks import shown
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot
from llama_index.raptor.tree import Tree

__all__ = ["RaptorState", "ScoredNode"]

ScoredNode = tuple[str, float]
"""A node id and a score."""


@dataclass(frozen=True)
class RaptorState:
    """Chunks, summaries and the tree over them: the whole index, or the part that a question needs.

    The tree may have summaries that are not written yet (after a delete or a failure). A query that started before a
    write finds the texts that it ranked in `written`. The `rows` of a part are those of
    :class:`~llama_index.raptor.tree_rows.TreeRows`, under a filter only of summaries all of whose chunks pass.
    """

    chunks: Snapshot = field(default_factory=Snapshot.empty)  # vectors of the leaves
    summaries: Snapshot = field(default_factory=Snapshot.empty)  # vectors of the written summaries
    tree: Tree = field(default_factory=Tree)
    written: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # the records of the written summaries by id
    rows: Mapping[str, dict[str, Any]] | None = None  # of the tree, by node; None for the whole index
    has_more: bool = False  # for a part, whether the index has written summaries, in the part or not

    @cached_property
    def leaf_rows(self) -> dict[str, NDArray[np.intp]]:
        """For each summary of the tree, the sorted rows of its leaves in `chunks`."""
        rows: dict[str, NDArray[np.intp]] = {}
        summaries = self.tree.summaries
        leaves = [child for each in summaries.values() for child in each.children if child not in summaries]
        place = dict(zip(leaves, self.chunks.rows_of(leaves).tolist(), strict=True))  # one look-up for all
        for name, summary in sorted(summaries.items(), key=lambda item: item[1].level):
            own = [row for child in summary.children if (row := place.get(child, -1)) >= 0]
            below = [rows[child] for child in summary.children if child in rows]
            rows[name] = np.unique(np.concatenate([np.array(own, np.intp), *below]))
        return rows

    @property
    def has_summaries(self) -> bool:
        """Whether the index has any written summary."""
        return self.has_more or len(self.summaries) > 0

    @cached_property
    def roots(self) -> list[str]:
        """Nodes without a parent."""
        return self.tree.roots(self.chunks.ids)

    def layer(self, level: int) -> list[str]:
        """The nodes of a level, and lower nodes without a parent at this level or below; sorted."""
        tree = self.tree
        return sorted(
            node
            for node in {*tree.summaries, *self.chunks.ids}
            if tree.level(node) <= level and all(tree.level(parent) > level for parent in tree.parents.get(node, ()))
        )

    @cached_property
    def unwritten(self) -> list[str]:
        """Summaries of the tree that have no text yet, sorted."""
        return sorted(name for name in self.tree.summaries if name not in self.written)

    def summary_mask(self, allowed: Mask | None) -> Mask | None:
        """A mask of the summaries all of whose leaves pass the filter."""
        return shown((self.leaf_rows[name] for name in self.summaries.ids), allowed)

    def only(self, allowed: Mask | None) -> "RaptorState":
        """Only the chunks that pass a filter, and the summaries all of whose leaves do, with or without a text."""
        if allowed is None:
            return self
        tree = Tree.of({name: s for name, s in self.tree.summaries.items() if allowed[self.leaf_rows[name]].all()})
        return RaptorState(
            chunks=self.chunks.only(allowed),
            summaries=self.summaries.only(np.array([name in tree.summaries for name in self.summaries.ids], np.bool_)),
            tree=tree,
            written={name: record for name, record in self.written.items() if name in tree.summaries},
        )

    def key(self, node: str) -> tuple[str, str]:
        """The sort key of nodes with equal scores."""
        part = self.summaries if node in self.summaries else self.chunks
        return part.record_of(node).key, node
