"""The builder of RAPTOR: keeps the tree and its summaries, and reads what questions need."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit import Change, Failure, Selection, Snapshot, Steps
from llama_index.ragkit.index.builder import SummaryBuilder
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.summaries import SummaryWriter
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.stored_chunks import ChunkView
from llama_index.ragkit.text.layered_mapping import with_changes
from llama_index.ragkit.text.packed_words import PackedMapping
from llama_index.ragkit.validation import check_component
from llama_index.raptor.clustering.base import Clustering
from llama_index.raptor.clustering.graph import GraphClustering
from llama_index.raptor.config import TreeConfig
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree import Summary, Tree
from llama_index.raptor.tree_rows import SUMMARIES, Rows, TreeRows, marks_of
from llama_index.raptor.tree_view import TreeView
from llama_index.raptor.tree_writer import TreeWriter

__all__ = ["TreeBuilder", "nearest_parents"]

_NEIGHBOURS = 10  # chunks whose parents a new chunk may join
_REBUILD_SHARE = 0.25  # new chunks as a share of the old ones, above which everything is clustered again
_AT_ONCE = 200  # new chunks whose neighbours are searched for together
_MORE = 4  # factor by which more neighbours are requested while too few of them are in the tree


class TreeBuilder(SummaryBuilder[TreeConfig, RaptorState]):
    """Keeps the tree as rows; a write changes those on the paths from its chunks to the roots.

    When everything is clustered (a first build, an insert of more than a quarter of the chunks,
    `SummaryMethods.rebuild`), all vectors and the structure of the tree are in memory. Documents that are given in
    parts are clustered with the last part.

    Parameters
    ----------
    clustering : groups the nodes of a layer; default :class:`~llama_index.raptor.GraphClustering`

    Attributes
    ----------
    tree : reads the parts of the tree that questions need
    """

    spaces: ClassVar[tuple[str, ...]] = ("chunks", SUMMARIES)
    waits_for_all: ClassVar[bool] = True

    def __init__(
        self, storage: IndexStorage, resources: Resources, config: TreeConfig, clustering: Clustering | None = None
    ) -> None:
        super().__init__(storage, resources, config)
        wanted = "a clustering of RAPTOR, such as GraphClustering() or UMAPGMMClustering()"
        chosen = GraphClustering() if clustering is None else clustering
        self._clustering: Clustering = check_component(
            "clustering", chosen, ("cluster", "fingerprint"), wanted, "raptor"
        )
        self._summaries = SummaryWriter(storage, resources, config.summary_tokens)
        self._rows = TreeRows(storage)
        self.tree = TreeView(storage, self._rows)

    @property
    def fingerprints(self) -> Mapping[str, dict[str, str]]:
        """The fingerprint of the clustering."""
        return {"clustering": self._clustering.fingerprint}

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[RaptorState]:
        """The whole index if it is in memory, else an empty state.

        Remains of deleted chunks that a write left when it ended early are removed. Rows that it left half-written are
        stored again with the next write.
        """
        if not self.storage.is_whole:
            return RaptorState()
        (chunks, vectors), space = self._vectors(), self.storage.space(SUMMARIES)
        rows, records = (yield from self._rows.all()), (yield from self._rows.all_texts())
        tree = Tree.of({n: Summary(row["level"], tuple(row["children"])) for n, row in rows.items() if row["level"]})
        gone = [node for node in tree.parents if node not in tree.summaries and node not in chunks]
        tree = tree.replace(dict.fromkeys(gone, ()))
        written = {name: records[name] for name in vectors.ids if name in records and name in tree.summaries}
        yield from space.remove([name for name in vectors.ids if name not in written])
        yield from self._rows.delete_texts([name for name in records if name not in written])
        yield from self._rows.note_repairs(tree, chunks.ids, written, rows)
        if gone:
            yield from self.storage.records.repair()
        self.storage.struct.counters["summaries"] = len(written)
        return RaptorState(*self._vectors(), tree, written)

    def arrays_of(self, state: RaptorState) -> Arrays:
        """The tree and the records of its summaries."""
        return nested({**state.tree.packed(), "written": PackedMapping.to_arrays(state.written)})

    def load_arrays(self, arrays: Arrays) -> RaptorState:
        """The state of :meth:`arrays_of`, made into objects when a search needs them."""
        written: PackedMapping[Record] = PackedMapping.of_arrays(part_of(arrays, "written"))
        self.storage.struct.counters["summaries"] = len(written)
        return RaptorState(*self._vectors(), Tree.of_packed(arrays), written)

    def _vectors(self) -> tuple[Snapshot, Snapshot]:
        """The vectors of all chunks and summaries of an index in memory."""
        return self.storage.snapshot(), self.storage.snapshot(SUMMARIES)

    def _writer(self, change: Change | None = None) -> TreeWriter:
        given = self.storage, self._rows, self.resources, self.config, self._clustering, self._summaries
        return TreeWriter(*given, change)

    def _changed(self, state: RaptorState, writer: TreeWriter) -> RaptorState:
        """The state after a write if the whole index is in memory, else the given one."""
        if not self.storage.is_whole:
            return state
        tree = state.tree.changed(writer.nodes)
        return RaptorState(*self._vectors(), tree, with_changes(state.written, writer.texts))

    # -- nodes --------------------------------------------------------------------------------------

    def apply(self, state: RaptorState, change: Change) -> Steps[RaptorState]:
        """Bring the tree up to date.

        New chunks are added to the tree, and every missing summary is written. A delete without inserts removes the
        summaries above the deleted chunks, and rewrites them at once only with `summaries="eager"`. With "on_request",
        an insert into an existing tree leaves the summaries above the new chunks unwritten.
        """
        writer = self._writer(change)
        if change.removed:  # delete everything derived from a deleted chunk first
            yield from self._remove(writer, change.removed)
        if change.added:
            yield from self._add(writer, change)
        elif self.config.summaries == "eager":
            yield from self._write_around(writer, (yield from self._rows.unwritten()))
        return self._changed(state, writer)

    def _remove(self, writer: TreeWriter, chunks: Sequence[str]) -> Steps[None]:
        yield from writer.read_around(chunks)
        changes: dict[str, tuple[str, ...]] = {chunk: () for chunk in chunks if chunk in writer.tree.parents}
        yield from self._rows.forget(chunks)
        yield from writer.save(writer.tree.replace(changes))

    def _add(self, writer: TreeWriter, change: Change) -> Steps[None]:
        known = yield from self._rows.of([node.node_id for node in change.added])
        rows = [i for i, n in enumerate(change.added) if not known.get(n.node_id, {}).get("parents")]
        new, vectors = [change.added[i].node_id for i in rows], change.vectors[rows]
        yield from self._rows.put_alone(new)
        if not self.config.max_layers:
            return
        if change.more:
            yield from self._rows.put_waiting(new)
        else:
            yield from self._place(writer, new, vectors)

    def _place(self, writer: TreeWriter, new: Sequence[str], vectors: NDArray[np.float32]) -> Steps[None]:
        """Give parents to new chunks and to waiting chunks."""
        waiting = yield from self._rows.waiting()
        earlier = sorted(set(waiting).difference(new))
        count = len(new) + len(earlier)
        has_tree = any((yield from self._rows.roots()).values())
        if not has_tree or (count and count > _REBUILD_SHARE * ((yield from self.terms.count()) - count)):
            yield from self._cluster(writer)
        else:
            joining = yield from self._joining(new, vectors, earlier)
            yield from self._join(writer, joining, [*new, *earlier])
        yield from self._rows.delete_waiting(waiting)

    def _join(self, writer: TreeWriter, joining: Mapping[str, Sequence[str]], new: Sequence[str]) -> Steps[None]:
        """Put new chunks into the existing tree."""
        if self.config.summaries == "on_request":
            yield from writer.read_around(joining)
            yield from writer.save(writer.tree.replace({}, joining))
        else:
            touched = [*joining, *(yield from self._rows.unwritten())]
            yield from self._write_around(writer, touched, joining, new)

    def _joining(
        self, new: Sequence[str], vectors: NDArray[np.float32], earlier: Sequence[str]
    ) -> Steps[Mapping[str, Sequence[str]]]:
        """The summary that each chunk joins, by :func:`nearest_parents`; the vectors of `earlier` chunks are stored."""
        joining: dict[str, list[str]] = {}

        def join(some: Sequence[str], rows: NDArray[np.float32]) -> Steps[None]:
            near, parents = yield from self._near_in_tree(rows, len(new) + len(earlier))
            if parents:
                for parent, joined in nearest_parents(parents, near, some, rows).items():
                    joining.setdefault(parent, []).extend(joined)

        for start in range(0, len(new), _AT_ONCE):
            yield from join(new[start : start + _AT_ONCE], vectors[start : start + _AT_ONCE])
        for start in range(0, len(earlier), _AT_ONCE):
            rows = yield from self.storage.space().fetch(earlier[start : start + _AT_ONCE])
            yield from join(rows.ids, rows.matrix)
        return joining

    def _near_in_tree(
        self, vectors: NDArray[np.float32], new: int
    ) -> Steps[tuple[Snapshot, Mapping[str, Sequence[str]]]]:
        """The chunks near to some new chunks, and the parents of those in the tree; `new` counts all new chunks."""
        wanted, near, looking = _NEIGHBOURS, Snapshot.empty(), vectors
        parents: dict[str, Sequence[str]] = {}
        while len(looking):
            found = yield from self.storage.space().near(looking, wanted)
            near = near.joined(found.only(np.array([row_id not in near for row_id in found.ids], np.bool_)))
            rows = yield from self._rows.of([row_id for row_id in near.ids if row_id not in parents])
            parents.update((name, row["parents"]) for name, row in rows.items())
            in_tree = [sum(bool(parents.get(i)) for i in hits.ids) for hits in found.search(looking, wanted)]
            if len(found) < wanted or wanted >= _NEIGHBOURS + new:
                break
            looking = looking[np.array(in_tree) < _NEIGHBOURS]  # the nearest ones may all be new
            wanted *= _MORE
        return near, {name: above for name, above in parents.items() if above}

    # -- summaries ----------------------------------------------------------------------------------

    def _write_around(
        self,
        writer: TreeWriter,
        touched: Sequence[str],
        joining: Mapping[str, Sequence[str]] | None = None,
        new: Sequence[str] = (),
    ) -> Steps[None]:
        """Write all missing summaries, after new chunks have joined."""
        yield from writer.read_around(touched, new, self.config.max_layers)
        yield from self._write(writer, writer.tree.replace({}, joining))

    def _cluster(self, writer: TreeWriter) -> Steps[None]:
        """Cluster all chunks; summaries of unchanged clusters are kept."""
        yield from writer.read_all()
        yield from self._write(writer, Tree())

    def _write(self, writer: TreeWriter, tree: Tree) -> Steps[None]:
        """Write a tree with all its summaries; failures are counted."""
        tree = yield from writer.write(tree)
        self.storage.struct.counters["failed"] = len(writer.failed)
        self._summaries.report(writer.failed, tree.summaries)

    def write_missing(self, state: RaptorState) -> Steps[RaptorState]:
        """Write the missing summaries, and rewrite the summaries above them, which were written without them."""
        writer = self._writer()
        yield from self._place_waiting(writer)
        unwritten = yield from self._rows.unwritten()
        yield from writer.read_around(unwritten, (), self.config.max_layers)
        yield from writer.delete_texts(sorted(writer.tree.ancestors(unwritten)))
        yield from self._write(writer, writer.tree)
        return self._changed(state, writer)

    def rebuild(self, state: RaptorState) -> Steps[RaptorState]:
        """Cluster all chunks again; summaries of unchanged clusters are kept."""
        writer = self._writer()
        yield from self._cluster(writer)
        yield from self._rows.delete_waiting((yield from self._rows.waiting()))
        return self._changed(state, writer)

    def derive_waiting(self, state: RaptorState) -> Steps[RaptorState]:
        """Give parents to the chunks that wait for the last part of a write."""
        writer = self._writer()
        yield from self._place_waiting(writer)
        return self._changed(state, writer)

    def _place_waiting(self, writer: TreeWriter) -> Steps[None]:
        if (yield from self._rows.waiting()):
            yield from self._place(writer, [], np.zeros((0, 0), np.float32))

    def retry(self, state: RaptorState) -> Steps[RaptorState]:
        """Like :meth:`write_missing`, then have the summaries that rules wrote written again."""
        state = yield from self.write_missing(state)
        writer = self._writer()
        by_rules = yield from self._by_rules(state)
        if by_rules:
            yield from writer.read_around(list(by_rules), (), self.config.max_layers)
            yield from writer.write_again(writer.tree)
        return self._changed(state, writer)

    def failures(self, state: RaptorState) -> list[Failure]:
        """The missing summaries, and those that rules wrote."""
        return self._summaries.failures(self._unwritten(state), run_steps(self._by_rules(state)))

    def _by_rules(self, state: RaptorState) -> Steps[Rows]:
        return marks_of(state.written) if self.storage.is_whole else (yield from self._rows.by_rules())

    def missing(self, state: RaptorState) -> int:
        """The number of missing summaries."""
        return len(self._unwritten(state))

    def _unwritten(self, state: RaptorState) -> Sequence[str]:
        return state.unwritten if self.storage.is_whole else run_steps(self._rows.unwritten())

    # -- questions to an index served from stores ---------------------------------------------------

    def state_for(
        self, question: str, vector: NDArray[np.float32], wanted: int, near: ChunkView, selection: Selection
    ) -> Steps[tuple[RaptorState, ChunkView]]:
        """The chunks and the summaries near to a question, and the tree above these."""
        return (yield from self.tree.search(self.chunks, question, vector, wanted, near, selection))

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[RaptorState]:
        """Some chunks, and the tree above them."""
        return (yield from self.tree.above(near, selection))


def nearest_parents(
    parents: Mapping[str, Sequence[str]], chunks: Snapshot, new: Sequence[str], vectors: NDArray[np.float32]
) -> dict[str, list[str]]:
    """The summary that each new chunk joins, as summary -> new chunks (not in the paper, which never inserts).

    Each of the ten nearest chunks in the tree votes for its parents with its cosine; the new chunk joins the parent
    with the highest sum; the greater id decides ties. Only that summary and those above it change.

    Parameters
    ----------
    parents : the parents of chunks that are in the tree; at least one of `chunks` must be among these
    chunks : vectors of all chunks, or of those near to the new ones
    new, vectors : ids of the new chunks and their vectors, shape (len(new), d)
    """
    rows = chunks.rows_of(list(parents))
    settled = np.zeros(len(chunks), dtype=np.bool_)
    settled[rows[rows >= 0]] = True
    joining: dict[str, list[str]] = defaultdict(list)
    for node, hits in zip(new, chunks.search(vectors, _NEIGHBOURS, settled), strict=True):
        votes: dict[str, float] = defaultdict(float)
        for neighbour, cosine in zip(hits.ids, hits.scores, strict=True):
            for parent in parents[neighbour]:
                votes[parent] += max(cosine, 1e-9)  # neighbours with a negative cosine still count
        joining[max(votes, key=lambda parent: (votes[parent], parent))].append(node)
    return joining
