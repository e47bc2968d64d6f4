"""The part of a tree in stores that one question needs: summaries near to it, and which chunks are below them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import ChunkView, IndexStorage, Selection, Snapshot, Steps, StoredChunks
from llama_index.ragkit.vectors.question_scores import best_rows, question_cosines
from llama_index.raptor.search.node_scores import SPEAKERS
from llama_index.raptor.stored_state import StoredTreeState, closed_tree
from llama_index.raptor.tree.tree import Tree
from llama_index.raptor.tree_part import CHUNKS
from llama_index.raptor.tree_records import SUMMARIES
from llama_index.raptor.tree_rows import Rows, TreeRows

__all__ = ["Covering", "TreeView"]

_MOST_CHECKED = 500  # chunks below a summary whose metadata are read to see whether all of them pass a filter
_SOFT = 4  # how often a chunk may count below a summary, over the children that it is below
_MOST_READ = 200  # chunks below a summary that are read for its score


class Covering(NamedTuple):
    """What :func:`~llama_index.raptor.tree.cover.condense` needs of a tree in stores.

    Attributes
    ----------
    known : the nodes that are in the tree
    tree : the part of it around them
    written : the summaries that they may cover, and that pass the filter, with their records
    """

    known: frozenset[str]
    tree: Tree
    written: Rows


class TreeView:
    """Finds the summaries near to a question.

    Parameters
    ----------
    storage, rows : of the index
    chunks : the chunks of the index
    selection : which of them count
    """

    def __init__(self, storage: IndexStorage, rows: TreeRows, chunks: StoredChunks, selection: Selection) -> None:
        self._storage = storage
        self._rows = rows
        self._chunks = chunks
        self._selection = selection

    def search(
        self, question: str, vector: NDArray[np.float32], wanted: int, near: ChunkView
    ) -> Steps[tuple[StoredTreeState, ChunkView]]:
        """The state for a question, and its chunks.

        A summary is scored by the two best of its chunks that are near to the question. Where a summary among the
        nearest has fewer of these, all its chunks are read, if they are 200 at most.

        Parameters
        ----------
        vector : of the question, shape (dimension,)
        wanted : how many nodes will be shown
        near : the chunks near to the question
        """
        selection, space = self._selection, self._storage.stored[SUMMARIES]
        found = Snapshot.empty() if selection.only is not None else (yield from space.candidates(vector, wanted))
        rows = yield from self._rows.above([*near.rows.ids, *found.ids])
        if not selection.is_whole:
            rows = yield from self._passing(rows, near.rows.ids)
            found = yield from space.fetch([node for node, row in rows.items() if row["level"]])
        if selection.only is None:  # otherwise all chunks that count are there
            best = [found.ids[row] for row in best_rows(question_cosines(found, vector), wanted, found)]
            rows |= yield from self._below(best, near, rows)
            leaves = [node for node, row in rows.items() if not row["level"]]
            near = yield from self._chunks.including(near, question, leaves, selection)
        return (yield from self._state(near, found, rows)), near

    def above(self, near: ChunkView) -> Steps[StoredTreeState]:
        """The state over some chunks, with the summaries above them."""
        rows = yield from self._rows.above(near.rows.ids)
        if not self._selection.is_whole:
            rows = yield from self._passing(rows, near.rows.ids)
        names = [node for node, row in rows.items() if row["level"]]
        return (yield from self._state(near, (yield from self._storage.stored[SUMMARIES].fetch(names)), rows))

    def covering(self, nodes: Sequence[str], min_coverage: float) -> Steps[Covering]:
        """The summaries that some nodes may cover.

        Of those above the nodes, the ones are read down to their chunks that have few enough of them.

        Parameters
        ----------
        nodes : chunks and summaries, also ones that are not in the tree
        min_coverage : share of the chunks below a summary that must be among the nodes, in (0, 1]
        """
        rows = yield from self._rows.above(nodes)
        known = frozenset(node for node in nodes if node in rows)
        most = _SOFT * sum(not rows[node]["level"] for node in known) / min_coverage
        few = {node: row for node, row in rows.items() if row["level"] and row["chunks"] <= most}
        rows |= yield from self._rows.below(few)
        passing = few if self._selection.is_whole else (yield from self._passing(few, ()))
        written = yield from self._rows.texts([node for node in few if node in passing])
        return Covering(known, closed_tree(rows), written)

    def _state(self, near: ChunkView, found: Snapshot, rows: Rows) -> Steps[StoredTreeState]:
        return StoredTreeState(
            chunks=near.rows,
            summaries=found,
            tree=closed_tree(rows),
            written=(yield from self._rows.texts(found.ids)),
            storage=self._storage,
            tree_rows=self._rows,
            rows=rows,
            selection=self._selection,
        )

    def _passing(self, rows: Rows, near: Iterable[str]) -> Steps[Rows]:
        """Those of some rows that pass the filter: summaries all of whose chunks do.

        With a metadata filter, a summary of more than 500 chunks passes only if all below it were read for others.
        """
        if self._selection.only is not None:
            return (yield from self._rows.within(near))
        few = [node for node, row in rows.items() if row["level"] and row["chunks"] <= _MOST_CHECKED]
        below = yield from self._rows.below(few)
        chunks = yield from self._storage.stored[CHUNKS].described(
            [node for node, row in below.items() if not row["level"]]
        )
        counts = np.flatnonzero(self._selection.mask(chunks)) if len(chunks) else ()
        return (yield from self._rows.within(dict.fromkeys([*near, *(chunks.ids[row] for row in counts)])))

    def _below(self, summaries: Iterable[str], near: ChunkView, rows: Rows) -> Steps[Rows]:
        """What is below those of some summaries that have too few chunks near to the question."""
        tree = closed_tree(rows)
        lacking = [
            name
            for name in summaries
            if rows[name]["chunks"] <= _MOST_READ and sum(leaf in near.rows for leaf in tree.leaves(name)) < SPEAKERS
        ]
        return (yield from self._rows.below(lacking)) if lacking else {}
