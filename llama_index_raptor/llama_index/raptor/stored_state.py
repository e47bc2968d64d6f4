"""`StoredTreeState`: what one question to a tree in stores is answered from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from llama_index.ragkit import IndexStorage, Record, Selection, Snapshot, Steps
from llama_index.ragkit.errors import ConfigurationError
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree.tree import Tree
from llama_index.raptor.tree_part import CHUNKS
from llama_index.raptor.tree_records import SUMMARIES
from llama_index.raptor.tree_rows import Rows, TreeRows, tree_of

__all__ = ["StoredTreeState", "closed_tree"]


@dataclass(frozen=True)
class StoredTreeState(RaptorState):
    """The chunks and summaries near to a question, and the tree above them.

    Of a question with a filter, only summaries all of whose chunks pass are in it.

    Attributes
    ----------
    storage, tree_rows : where the rest is
    rows : what is known of the tree
    selection : which chunks count
    """

    storage: IndexStorage = field(kw_only=True)
    tree_rows: TreeRows = field(kw_only=True)
    rows: Rows = field(kw_only=True)
    selection: Selection = field(kw_only=True)

    @property
    def has_summaries(self) -> bool:
        """Whether any summary is written, near to the question or not."""
        return self.storage.struct.counters.get("summaries", 0) > 0

    def from_roots(self) -> list[str]:
        """Refuse.

        Raises
        ------
        ConfigurationError
        """
        raise _NO_TRAVERSAL

    def layer(self, level: int) -> list[str]:
        """Refuse.

        Raises
        ------
        ConfigurationError
        """
        raise _NO_TRAVERSAL

    def around(self, nodes: Sequence[str]) -> Steps[RaptorState]:
        """With all summaries above some of its nodes, and all nodes below them."""
        above = yield from self.tree_rows.above(nodes)
        rows = self.rows | above | (yield from self.tree_rows.below(nodes))
        return (yield from self._over(self.chunks, self._shown(rows)))

    def drawn(self, nodes: Sequence[str]) -> Steps[RaptorState]:
        """Some of its nodes, all summaries above them, and the children of these."""
        rows = self._shown((yield from self.tree_rows.above(nodes)))
        rows |= yield from self.tree_rows.of(sorted({child for row in rows.values() for child in row["children"]}))
        shown = self._shown(rows)
        leaves = [node for node, row in shown.items() if not row["level"]]
        return (yield from self._over((yield from self.storage.stored[CHUNKS].described(leaves)), shown))

    def _shown(self, rows: Rows) -> Rows:
        """Rows without summaries that are not known to pass the filter."""
        if self.selection.is_whole:
            return rows
        return {node: row for node, row in rows.items() if not row["level"] or node in self.rows}

    def _over(self, chunks: Snapshot, rows: Rows) -> Steps[RaptorState]:
        names = [node for node, row in rows.items() if row["level"] and node not in self.written]
        written = {**self.written, **(yield from self.tree_rows.texts(names))}
        further = yield from self.storage.stored[SUMMARIES].fetch([name for name in names if name in written])
        summaries = self.summaries.joined(further)
        summaries = summaries.only(np.array([name in rows for name in summaries.ids], np.bool_))
        texts: Mapping[str, Record] = {name: written[name] for name in summaries.ids}
        return replace(self, chunks=chunks, summaries=summaries, tree=closed_tree(rows), written=texts, rows=rows)


def closed_tree(rows: Rows) -> Tree:
    """The tree of rows, without parents that are not among them."""
    tree = tree_of(rows)
    parents = {node: tuple(name for name in above if name in rows) for node, above in tree.parents.items()}
    return Tree(tree.summaries, {node: above for node, above in parents.items() if above})


_NO_TRAVERSAL = ConfigurationError(
    'mode="tree_traversal" visits the tree from its roots or from a whole layer, which an index that is served from '
    'stores does not read for a question: use mode="collapsed", or build the index with serve_from="memory".'
)
