"""The builder of RAPTOR: updates the tree and its summaries at each write."""

from collections.abc import Iterable, Mapping

from llama_index.ragkit import Change, Failure, IndexStorage, Record, Resources, Steps, SummaryBuilder
from llama_index.raptor.clustering.base import Clustering
from llama_index.raptor.config import TreeConfig
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree.insertion import insert_chunks
from llama_index.raptor.tree.tree import Tree
from llama_index.raptor.tree_records import SUMMARIES, TreeRecords, load_tree
from llama_index.raptor.tree_tools import TreeTools
from llama_index.raptor.tree_writer import TreeWriter

__all__ = ["TreeBuilder"]


class TreeBuilder(SummaryBuilder[TreeConfig, RaptorState]):
    """Keeps the stored tree consistent with the chunks.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.Builder`
    clustering : groups the nodes of a layer; default :class:`~llama_index.raptor.GraphClustering`
    """

    def __init__(
        self, storage: IndexStorage, resources: Resources, config: TreeConfig, clustering: Clustering | None = None
    ) -> None:
        super().__init__(storage, resources, config)
        self._tools = TreeTools(storage, resources, config, clustering)

    @property
    def fingerprints(self) -> Mapping[str, dict[str, str]]:
        """The fingerprint of the clustering."""
        return self._tools.fingerprints

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[RaptorState]:
        """Load the state from storage; an interrupted write is repaired."""
        return self._state(*(yield from load_tree(self.storage)))

    def apply(self, state: RaptorState, change: Change) -> Steps[RaptorState]:
        """Return the state after a write.

        New chunks are added to the tree, and every missing summary is written. After a delete without inserts the
        summaries above the deleted chunks are removed, and are only rewritten at once with `summaries="eager"`. With
        "on_request" an insert into a tree leaves the summaries above the new chunks unwritten.
        """
        tree = state.tree.replace({leaf: () for leaf in change.removed if leaf in state.tree.parents})
        writer = self._writer(state)
        yield from writer.save(tree)  # delete everything derived from a deleted chunk first
        if change.added and self.config.max_layers:
            rows = [i for i, node in enumerate(change.added) if node.node_id not in tree.parents]
            ids = [change.added[i].node_id for i in rows]
            tree = insert_chunks(tree, self.storage.snapshot(), ids, change.vectors[rows])
        # A tree without summaries is a new one, or one to be clustered again.
        waits = self.config.summaries == "on_request" and tree.summaries
        if (change.added and not waits) or self.config.summaries == "eager":
            tree = yield from self._write(writer, tree)
        elif change.added:
            yield from writer.save(tree)
        return self._state(tree, writer.written)

    def _state(self, tree: Tree, written: Mapping[str, Record]) -> RaptorState:
        return RaptorState(self.storage.snapshot(), self.storage.snapshot(SUMMARIES), tree, written)

    # -- summaries ----------------------------------------------------------------------------------

    def write_missing(self, state: RaptorState) -> Steps[RaptorState]:
        """Write the missing summaries, and rewrite those above them, which were written without them."""
        return (yield from self._update(state, state.tree, state.tree.ancestors(state.unwritten)))

    def rebuild(self, state: RaptorState) -> Steps[RaptorState]:
        """Cluster all chunks again; summaries of unchanged clusters are kept."""
        return (yield from self._update(state, Tree(), ()))

    def retry(self, state: RaptorState) -> Steps[RaptorState]:
        """As :meth:`write_missing`."""
        return (yield from self.write_missing(state))

    def failures(self, state: RaptorState) -> list[Failure]:
        """The summaries that are missing."""
        return self._tools.summaries.failures(state.unwritten)

    def missing(self, state: RaptorState) -> int:
        """How many summaries are missing."""
        return len(state.unwritten)

    def _update(self, state: RaptorState, wanted: Tree, outdated: Iterable[str]) -> Steps[RaptorState]:
        """Write the target tree, and rewrite the texts of outdated summaries."""
        writer = self._writer(state)
        yield from writer.delete_texts(sorted(outdated))
        tree = yield from self._write(writer, wanted)
        return self._state(tree, writer.written)

    def _writer(self, state: RaptorState) -> TreeWriter:
        return self._tools.writer(TreeRecords(self.storage), state.tree, state.written)

    def _write(self, writer: TreeWriter, tree: Tree) -> Steps[Tree]:
        tree = yield from self._tools.write(writer, tree)
        self.storage.struct.counters["summaries"] = len(writer.written)
        self._tools.summaries.report(writer.failed, tree.summaries)
        return tree
