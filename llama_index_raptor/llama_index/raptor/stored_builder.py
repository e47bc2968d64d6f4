"""`StoredTreeBuilder`: keeps the tree of an index that is served from stores, and reads of it what a question needs."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import (
    Change,
    ChunkView,
    Failure,
    IndexStorage,
    Record,
    Resources,
    Selection,
    Snapshot,
    Steps,
    StoredBuilder,
    SummaryBuilder,
    run_steps,
)
from llama_index.raptor.clustering.base import Clustering
from llama_index.raptor.config import TreeConfig
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree.insertion import NEIGHBOURS, clusters_again, nearest_parents
from llama_index.raptor.tree.tree import Tree
from llama_index.raptor.tree_part import CHUNKS, TreePart
from llama_index.raptor.tree_records import SUMMARIES
from llama_index.raptor.tree_rows import TreeRows
from llama_index.raptor.tree_tools import TreeTools
from llama_index.raptor.tree_view import Covering, TreeView
from llama_index.raptor.tree_writer import TreeWriter

__all__ = ["StoredTreeBuilder"]

_AT_ONCE = 200  # new chunks whose neighbours are looked for together
_MORE = 4  # times as many neighbours are asked for while too few of them are in the tree


class StoredTreeBuilder(StoredBuilder[TreeConfig, RaptorState], SummaryBuilder[TreeConfig, RaptorState]):
    """Keeps the tree as rows, which a write changes along the ways from its chunks to the roots.

    Where everything is clustered (a first build, an insert of more than a quarter of the chunks,
    :meth:`~llama_index.ragkit.SummaryMethods.rebuild`) all vectors and the structure of the tree are in memory. What is
    given together is written in parts, and clustered with the last one.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.index.stored_builder.StoredBuilder`
    clustering : groups the nodes of a layer; default :class:`~llama_index.raptor.GraphClustering`
    """

    spaces: ClassVar[tuple[str, ...]] = (CHUNKS, SUMMARIES)
    waits_for_all: ClassVar[bool] = True

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        config: TreeConfig,
        clustering: Clustering | None = None,
    ) -> None:
        super().__init__(storage, resources, config)
        self._tools = TreeTools(storage, resources, config, clustering)
        self._rows = TreeRows(storage)

    @property
    def fingerprints(self) -> Mapping[str, dict[str, str]]:
        """The fingerprint of the clustering."""
        return self._tools.fingerprints

    # -- writing ------------------------------------------------------------------------------------

    def load(self) -> Steps[RaptorState]:
        """Nothing: the tree stays in its stores."""
        return RaptorState()
        yield

    def apply(self, state: RaptorState, change: Change) -> Steps[RaptorState]:
        """Bring the tree up to date, as :class:`~llama_index.raptor.builder.TreeBuilder` does in memory."""
        if change.removed:
            yield from self._remove(change.removed)
        if change.added:
            yield from self._add(change)
        elif self.config.summaries == "eager":
            yield from self._write_around((yield from self._rows.unwritten()))
        return state

    def _remove(self, chunks: Sequence[str]) -> Steps[None]:
        tree = TreePart(self.storage, self._rows)
        yield from tree.read_around(chunks)
        changes: dict[str, tuple[str, ...]] = {chunk: () for chunk in chunks if chunk in tree.tree.parents}
        yield from self._writer(tree).save(tree.tree.replace(changes))
        yield from self._rows.forget(chunks)

    def _add(self, change: Change) -> Steps[None]:
        known = yield from self._rows.of([node.node_id for node in change.added])
        rows = [i for i, n in enumerate(change.added) if not known.get(n.node_id, {}).get("parents")]
        new, vectors = [change.added[i].node_id for i in rows], change.vectors[rows]
        yield from self._rows.put_alone(new)
        if not self.config.max_layers:
            return
        if change.more:
            yield from self._rows.put_waiting(new)
        else:
            yield from self._place(new, vectors, change)

    def _place(self, new: Sequence[str], vectors: NDArray[np.float32], change: Change | None = None) -> Steps[None]:
        """Give parents to new chunks, and to those that have waited for them."""
        waiting = yield from self._rows.waiting()
        earlier = sorted(set(waiting).difference(new))
        count = len(new) + len(earlier)
        has_tree = any((yield from self._rows.roots()).values())
        if not has_tree or (count and clusters_again(count, (yield from self.terms.count()))):
            yield from self._cluster(change)
        else:
            joining = yield from self._joining(new, vectors, earlier)
            yield from self._join(joining, [*new, *earlier], change)
        yield from self._rows.delete_waiting(waiting)

    def _join(self, joining: Mapping[str, Sequence[str]], new: Sequence[str], change: Change | None) -> Steps[None]:
        """Put new chunks into the tree as it is."""
        if self.config.summaries == "on_request":
            tree = TreePart(self.storage, self._rows, change)
            yield from tree.read_around(joining, new)
            yield from self._writer(tree).save(tree.tree.replace({}, joining))
        else:
            touched = [*joining, *(yield from self._rows.unwritten())]
            yield from self._write_around(touched, joining, new, change)

    def _joining(
        self, new: Sequence[str], vectors: NDArray[np.float32], earlier: Sequence[str] = ()
    ) -> Steps[Mapping[str, Sequence[str]]]:
        """The summary that each new chunk joins: :func:`~llama_index.raptor.tree.insertion.nearest_parents`.

        Parameters
        ----------
        vectors : of `new`, shape (len(new), d)
        earlier : other chunks without a parent, whose vectors are in the store
        """
        joining: dict[str, list[str]] = {}

        def join(some: Sequence[str], rows: NDArray[np.float32]) -> Steps[None]:
            near, parents = yield from self._near_in_tree(rows, len(new) + len(earlier))
            if parents:
                for parent, joined in nearest_parents(parents, near, some, rows).items():
                    joining.setdefault(parent, []).extend(joined)

        for start in range(0, len(new), _AT_ONCE):
            yield from join(new[start : start + _AT_ONCE], vectors[start : start + _AT_ONCE])
        for start in range(0, len(earlier), _AT_ONCE):
            rows = yield from self.chunks.space.fetch(earlier[start : start + _AT_ONCE])
            yield from join(rows.ids, rows.matrix)
        return joining

    def _near_in_tree(
        self, vectors: NDArray[np.float32], new: int
    ) -> Steps[tuple[Snapshot, Mapping[str, Sequence[str]]]]:
        """The chunks near to some of so many new ones that are in the tree, and their parents."""
        space, wanted, looking = self.chunks.space, NEIGHBOURS, list(range(len(vectors)))
        near: dict[int, Mapping[str, Record]] = {i: {} for i in looking}
        rows: dict[str, Record] = {}
        while looking:
            found = yield from space.records_near_each([vectors[i] for i in looking], wanted, least=wanted)
            ids = {record["id"] for records in found for record in records.values()}
            rows.update((yield from self._rows.of(ids - rows.keys())))
            further = []
            for i, records in zip(looking, found, strict=True):
                in_tree = sum(bool(rows.get(record["id"], {}).get("parents")) for record in records.values())
                if in_tree < NEIGHBOURS and len(near[i]) < len(records) < NEIGHBOURS + new:
                    further.append(i)  # the nearest ones may all be new
                near[i] = records
            looking, wanted = further, _MORE * wanted
        parents = {name: row["parents"] for name, row in rows.items() if row["parents"]}
        known = {key: each for records in near.values() for key, each in records.items() if each["id"] in parents}
        return (yield from space.rows(known)), parents

    def _write_around(
        self,
        touched: Sequence[str],
        joining: Mapping[str, Sequence[str]] | None = None,
        new: Sequence[str] = (),
        change: Change | None = None,
    ) -> Steps[None]:
        """Write all missing summaries, after new chunks have joined."""
        tree = TreePart(self.storage, self._rows, change)
        yield from tree.read_around(touched, new, self.config.max_layers)
        yield from self._write(self._writer(tree), tree.tree.replace({}, joining))

    def _cluster(self, change: Change | None = None) -> Steps[None]:
        """Cluster all chunks; summaries of unchanged clusters are kept."""
        tree = TreePart(self.storage, self._rows, change)
        yield from tree.read_all()
        yield from self._write(self._writer(tree), Tree())

    def _writer(self, tree: TreePart) -> TreeWriter:
        return self._tools.writer(tree, tree.tree, tree.written)

    def _write(self, writer: TreeWriter, tree: Tree) -> Steps[None]:
        tree = yield from self._tools.write(writer, tree)
        self._tools.summaries.report(writer.failed, tree.summaries)

    # -- summaries ----------------------------------------------------------------------------------

    def write_missing(self, state: RaptorState) -> Steps[RaptorState]:
        """Write the missing summaries, and rewrite those above them, which were written without them."""
        yield from self.derive_waiting(state)
        unwritten = yield from self._rows.unwritten()
        tree = TreePart(self.storage, self._rows)
        yield from tree.read_around(unwritten, max_layers=self.config.max_layers)
        writer = self._writer(tree)
        yield from writer.delete_texts(sorted(tree.tree.ancestors(unwritten)))
        yield from self._write(writer, tree.tree)
        return state

    def rebuild(self, state: RaptorState) -> Steps[RaptorState]:
        """Cluster all chunks again; summaries of unchanged clusters are kept."""
        yield from self._cluster()
        yield from self._rows.delete_waiting((yield from self._rows.waiting()))
        return state

    def derive_waiting(self, state: RaptorState) -> Steps[RaptorState]:
        """Give parents to the chunks that wait for others."""
        if (yield from self._rows.waiting()):
            yield from self._place([], np.zeros((0, 0), np.float32))
        return state

    def retry(self, state: RaptorState) -> Steps[RaptorState]:
        """As :meth:`write_missing`."""
        return (yield from self.write_missing(state))

    def failures(self, state: RaptorState) -> list[Failure]:
        """The summaries that are missing."""
        return self._tools.summaries.failures(run_steps(self._rows.unwritten()))

    def missing(self, state: RaptorState) -> int:
        """How many summaries are missing."""
        return len(run_steps(self._rows.unwritten()))

    # -- reading ------------------------------------------------------------------------------------

    def state_for(
        self, question: str, vector: NDArray[np.float32], wanted: int, near: ChunkView, selection: Selection
    ) -> Steps[tuple[RaptorState, ChunkView]]:
        """The chunks and the summaries near to a question, and the tree above these."""
        return (yield from self._search(selection).search(question, vector, wanted, near))

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[RaptorState]:
        """Some chunks, and the tree above them."""
        return (yield from self._search(selection).above(near))

    def covering(self, nodes: Sequence[str], min_coverage: float, selection: Selection) -> Steps[Covering]:
        """What is known of the summaries that some nodes may cover, see
        :meth:`~llama_index.raptor.tree_view.TreeView.covering`.
        """
        return (yield from self._search(selection).covering(nodes, min_coverage))

    def _search(self, selection: Selection) -> TreeView:
        return TreeView(self.storage, self._rows, self.chunks, selection)
