"""`TreeView`: the part of a tree that one question needs, read from its rows unless the tree is in memory."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from llama_index.core.schema import NodeWithScore
from numpy.typing import NDArray

from llama_index.ragkit import Selection, Snapshot, Steps
from llama_index.ragkit.index.contents import IndexContents, ViewContents
from llama_index.ragkit.index.matching import matched_in
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.stored_chunks import ChunkView, StoredChunks
from llama_index.ragkit.vectors.question_scores import best_rows, question_cosines
from llama_index.raptor.search.node_scores import SPEAKERS
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree import Tree
from llama_index.raptor.tree_rows import SUMMARIES, Rows, TreeRows, closed_tree

__all__ = ["Covering", "RaptorContents", "TreeView"]

RaptorContents = IndexContents[RaptorState] | ViewContents[RaptorState]
"""The whole index, or the part that is read for a question."""

_FEWEST = 80  # least number of summaries near to a question to search for
_MOST_CHECKED = 500  # most chunks below a summary whose metadata are read to see whether all pass a filter
_SOFT = 4  # how often one chunk may count below a summary, once for each child above it
_MOST_READ = 200  # most chunks below a summary that are read for its score


class Covering(NamedTuple):
    """The parts of a tree that :func:`~llama_index.raptor.postprocessor.condense` needs."""

    matched: Sequence[str | None]  # for each node of a result, its id in the tree; None if it is not there
    tree: Tree  # the whole tree, or the part around these nodes
    written: Mapping[str, Record]  # the summaries that the nodes may cover and that pass the filter, with their records
    hidden: Collection[str]  # summaries that do not pass the filter, at least those among the nodes


class TreeView:
    """Reads the states of questions."""

    def __init__(self, storage: IndexStorage, rows: TreeRows) -> None:
        self._storage = storage
        self._rows = rows
        self._summaries = storage.space(SUMMARIES)

    def search(
        self,
        chunks: StoredChunks,
        question: str,
        vector: NDArray[np.float32],
        wanted: int,
        near: ChunkView,
        selection: Selection,
    ) -> Steps[tuple[RaptorState, ChunkView]]:
        """The state for a question, and its chunks.

        A summary is scored by its two best chunks among those near to the question. If one of the nearest summaries has
        fewer, all its chunks are read if there are at most 200. Parameters as of
        :meth:`~llama_index.ragkit.Builder.state_for`; `chunks` are those of the index.
        """
        found = Snapshot.empty()
        if selection.only is None:
            found = yield from self._summaries.near(vector[None], max(wanted, _FEWEST))
        rows = yield from self._rows.above([*near.rows.ids, *found.ids])
        if not selection.is_whole:
            rows = yield from self._passing(rows, near.rows.ids, selection)
            found = yield from self._summaries.fetch([node for node, row in rows.items() if row["level"]])
        if selection.only is None:  # otherwise all chunks that count have been read
            best = [found.ids[row] for row in best_rows(question_cosines(found, vector), wanted, found)]
            rows |= yield from self._below(best, near, rows)
            near = yield from chunks.including(near, question, _leaves(rows), selection)
        return self._state(near, found, rows, (yield from self._rows.texts(found.ids))), near

    def above(self, near: ChunkView, selection: Selection) -> Steps[RaptorState]:
        """The state of some chunks and the summaries above them."""
        rows = yield from self._rows.above(near.rows.ids)
        if not selection.is_whole:
            rows = yield from self._passing(rows, near.rows.ids, selection)
        found = yield from self._summaries.fetch([node for node, row in rows.items() if row["level"]])
        return self._state(near, found, rows, (yield from self._rows.texts(found.ids)))

    def around(self, contents: RaptorContents, nodes: Sequence[str]) -> Steps[RaptorState]:
        """The state of a question, with all summaries above and all nodes below some of its nodes."""
        state = contents.state
        if not isinstance(contents, ViewContents):
            return state
        above = yield from self._rows.above(nodes)
        rows = {**(state.rows or {}), **above, **(yield from self._rows.below(nodes))}
        return (yield from self._over(state, state.chunks, _shown(contents, rows)))

    def drawn(self, contents: ViewContents[RaptorState], nodes: Sequence[str]) -> Steps[RaptorState]:
        """The state of some nodes, all summaries above them, and the children of all these."""
        rows = _shown(contents, (yield from self._rows.above(nodes)))
        rows |= yield from self._rows.of(sorted({child for row in rows.values() for child in row["children"]}))
        shown = _shown(contents, rows)
        chunks = yield from self._storage.space().described(_leaves(shown))
        return (yield from self._over(contents.state, chunks, shown))

    def covering(
        self, state: RaptorState, nodes: Sequence[NodeWithScore], min_coverage: float, selection: Selection
    ) -> Steps[Covering]:
        """The summaries that some nodes, chunks and summaries, may cover; the nodes need not be in the tree.

        Only summaries with few enough chunks for the nodes to cover are read down to their chunks. `min_coverage`, in
        (0, 1], is the share of the chunks below a summary that must be among the nodes.
        """
        chunks = yield from matched_in(self._storage, nodes, state.tree.summaries)
        given = [chunk or each.node.node_id for chunk, each in zip(chunks, nodes, strict=True)]
        if self._storage.is_whole:
            mask = state.summary_mask(selection.allowed(state.chunks))
            hidden = {name for i, name in enumerate(state.summaries.ids) if mask is not None and not mask[i]}
            written = {name: state.written[name] for name in state.summaries.ids if name not in hidden}
            known = [node if node in state.chunks or node in state.tree.summaries else None for node in given]
            return Covering(known, state.tree, written, hidden)
        rows = yield from self._rows.above(given)
        matched = [node if node in rows else None for node in given]
        most = _SOFT * sum(node is not None and not rows[node]["level"] for node in matched) / min_coverage
        few = {node: row for node, row in rows.items() if row["level"] and row["chunks"] <= most}
        rows |= yield from self._rows.below(few)
        summaries = {node: rows[node] for node in matched if node is not None and rows[node]["level"]}
        passing = few | summaries if selection.is_whole else (yield from self._passing(few | summaries, (), selection))
        written = yield from self._rows.texts([node for node in few if node in passing])
        return Covering(matched, closed_tree(rows), written, summaries.keys() - passing.keys())

    # -- a traversal --------------------------------------------------------------------------------

    def start(self, contents: RaptorContents, level: int | None) -> Steps[list[str]]:
        """The nodes where a traversal starts: the roots, or those of the layer of a level."""
        if not isinstance(contents, ViewContents):
            return contents.state.roots if level is None else contents.state.layer(level)
        if contents.selection.only is not None:
            return (yield from self._highest(contents.near, level))
        roots = yield from self._rows.roots()
        if level is None:
            return sorted(roots)
        rows: Rows = {}
        frontier = list(roots)
        while frontier:
            found = yield from self._rows.of(frontier)
            rows |= found
            higher = {child for row in found.values() if row["level"] > level for child in row["children"]}
            frontier = sorted(higher - rows.keys())
        above = {node for node, row in rows.items() if row["level"] > level}
        return sorted(node for node in rows if node not in above and above.issuperset(rows[node]["parents"]))

    def _highest(self, near: ChunkView, level: int | None) -> Steps[list[str]]:
        """Like :meth:`start` if `near` has all chunks that count: the search goes up from these."""
        rows = yield from self._rows.within(near.rows.ids)
        others = {parent for row in rows.values() for parent in row["parents"]} - rows.keys()
        levels = {node: row["level"] for node, row in (yield from self._rows.of(sorted(others))).items()}
        levels |= {node: row["level"] for node, row in rows.items()}
        most = max(levels.values(), default=0) if level is None else level

        def begins(parents: Sequence[str]) -> bool:
            """Whether no summary that may be shown leads a traversal to a node with these parents."""
            inner = [parent for parent in parents if levels[parent] <= most]
            return not inner or any(parent in others for parent in inner)

        return sorted(node for node, row in rows.items() if row["level"] <= most and begins(row["parents"]))

    def reaching(self, contents: RaptorContents, nodes: Sequence[str], words: bool) -> Steps[RaptorContents]:
        """The contents for a question, extended by some nodes; hidden nodes are replaced by the nodes below them.

        `words` says whether the chunks of a summary count for its score.
        """
        if not isinstance(contents, ViewContents):
            return contents
        state, near, selection = contents.state, contents.near, contents.selection
        rows, texts = dict(state.rows or {}), dict(state.written)
        excluded: Rows = {}
        visited: set[str] = set()
        shown: list[str] = []
        frontier = list(nodes)
        while frontier:
            visited.update(frontier)
            rows |= yield from self._rows.of([node for node in frontier if node not in rows])
            summaries = {node: rows[node] for node in frontier if rows[node]["level"]}
            texts |= yield from self._rows.texts([node for node in summaries if node not in texts])
            passing: Collection[str] = summaries
            if not selection.is_whole:
                passing = yield from self._passing(summaries, near.rows.ids, selection)
            excluded |= {node: rows.pop(node) for node in summaries if node not in passing}
            here = [node for node in summaries if node in texts and node in passing]
            shown += here
            hidden = [row for node, row in summaries.items() if node not in here]
            frontier = sorted({child for row in hidden for child in row["children"]} - visited)
        if words and selection.only is None:
            rows |= yield from self._below(shown, near, rows)
        near = yield from contents.stored.including(near, contents.question, _leaves(rows), selection)
        further = yield from self._summaries.fetch([node for node in shown if node not in state.summaries])
        found = state.summaries.joined(further)
        state = self._state(near, found, rows, texts)
        return replace(contents, state=replace(state, tree=closed_tree({**rows, **excluded})), near=near)

    # -- states -------------------------------------------------------------------------------------

    def _state(self, near: ChunkView, found: Snapshot, rows: Rows, texts: Rows) -> RaptorState:
        written = {name: texts[name] for name in found.ids if name in texts}
        has_more = self._storage.struct.counters.get("summaries", 0) > 0
        return RaptorState(near.rows, found, closed_tree(rows), written, rows, has_more)

    def _over(self, state: RaptorState, chunks: Snapshot, rows: Rows) -> Steps[RaptorState]:
        names = [node for node, row in rows.items() if row["level"] and node not in state.written]
        written = {**state.written, **(yield from self._rows.texts(names))}
        further = yield from self._summaries.fetch([name for name in names if name in written])
        summaries = state.summaries.joined(further)
        summaries = summaries.only(np.array([name in rows for name in summaries.ids], np.bool_))
        texts: Mapping[str, Record] = {name: written[name] for name in summaries.ids}
        return replace(state, chunks=chunks, summaries=summaries, tree=closed_tree(rows), written=texts, rows=rows)

    def _passing(self, rows: Rows, near: Sequence[str], selection: Selection) -> Steps[Rows]:
        """The rows that pass the filter: of chunks that pass, such as `near`, and of summaries all of whose chunks do.

        With a metadata filter, a summary of more than 500 chunks passes only if all of them were read for others.
        """
        if selection.only is not None:
            return (yield from self._rows.within(near))
        passing, failing = dict.fromkeys(near), set[str]()
        few = [node for node, row in rows.items() if row["level"] and row["chunks"] <= _MOST_CHECKED]
        # From the ground up: below a summary above a chunk that fails, nothing more is read.
        for level in sorted({rows[node]["level"] for node in few}):
            here = [node for node in few if rows[node]["level"] == level and node not in failing]
            below = yield from self._rows.below(here)
            new = [leaf for leaf in _leaves(below) if leaf not in passing and leaf not in failing]
            found = yield from self._storage.space().described(new, selection)
            passing |= dict.fromkeys(found.ids)
            failing |= set(new) - passing.keys()
            for node, row in sorted({**rows, **below}.items(), key=lambda item: item[1]["level"]):
                if not failing.isdisjoint(row["children"]):
                    failing.add(node)
        return (yield from self._rows.within(passing))

    def _below(self, summaries: Iterable[str], near: ChunkView, rows: Rows) -> Steps[Rows]:
        """The rows below summaries that have too few chunks near to the question."""
        tree = closed_tree(rows)
        lacking = [
            name
            for name in summaries
            if rows[name]["chunks"] <= _MOST_READ and sum(leaf in near.rows for leaf in tree.leaves(name)) < SPEAKERS
        ]
        return (yield from self._rows.below(lacking)) if lacking else {}


def _leaves(rows: Rows) -> list[str]:
    return [node for node, row in rows.items() if not row["level"]]


def _shown(contents: ViewContents[RaptorState], rows: Rows) -> Rows:
    """Rows without summaries that are not known to pass the filter."""
    if contents.selection.is_whole:
        return rows
    return {node: row for node, row in rows.items() if not row["level"] or node in (contents.state.rows or {})}
