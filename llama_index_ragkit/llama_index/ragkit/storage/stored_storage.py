"""`StoredIndexStorage`: the storage of an index in a database and vector stores, that many processes share."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from llama_index.core.schema import BaseNode
from llama_index.core.storage.storage_context import StorageContext

from llama_index.ragkit.errors import ConcurrentWriteError
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.interface import Stores
from llama_index.ragkit.storage.manifest import NodeEntry
from llama_index.ragkit.storage.opening import CHUNKS
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["StoredIndexStorage"]

_HASHES = "hashes"


class StoredIndexStorage(IndexStorage):
    """The storage of an index that is served from stores, new or not; nothing is read or written at first.

    Vector stores take no part in transactions: what a write adds there is deleted if it ends before its commit, and
    what it removes is deleted after that.

    Copies of chunks are found by the hash of their text and metadata. There is a record for each hash, with the ids of
    the chunks that have it; none for chunks that earlier versions stored.
    """

    def __init__(
        self,
        context: StorageContext,
        struct: DerivedStruct,
        records: Records,
        stores: Stores,
        opened: Callable[[Iterable[str]], Mapping[str, StoredSpace]],
    ) -> None:
        super().__init__(context, struct, records, stores, is_shared=True)
        self._opened = opened
        self._spaces = dict(opened(struct.spaces))

    def space(self, name: str = CHUNKS) -> StoredSpace:
        """A vector space, which another process may have added."""
        if name not in self._spaces:
            self._spaces.update(self._opened((name,)))
        return self._spaces[name]

    def add_space(self, name: str) -> None:
        """See :class:`IndexStorage`."""
        self.space(name)
        self.struct.spaces.setdefault(name, name)

    @property
    def is_empty(self) -> bool:
        """Whether the index has no chunks, as far as this process knows."""
        return not self.struct.counters.get(CHUNKS, 0)

    def rows_matching(self, nodes: Sequence[BaseNode]) -> Steps[Snapshot]:
        """See :class:`IndexStorage`."""
        found = yield from self.space().described(node.node_id for node in nodes)
        unknown = dict.fromkeys(node.hash for node in nodes if node.node_id not in found)
        if not unknown:
            return found
        stored = yield from self.records.get_many(_HASHES, unknown)
        copied = [node_id for record in stored.values() for node_id in record["nodes"] if node_id not in found]
        return found.joined((yield from self.space().described(copied)))

    def begin(self, documents: Collection[str] = (), nodes: Collection[str] = ()) -> Steps[None]:
        """Also name the write in each space, and delete what writes have left that ended early."""
        yield from super().begin(documents, nodes)
        left = yield from self.commits.left()
        for name in self.struct.spaces:
            yield from self.space(name).begin(self.commits.token, left, self.struct.embedding.get("dimension"))

    def commit(self, documents: Collection[str] = (), nodes: Collection[str] = ()) -> Steps[None]:
        """Also delete what the write has added if another process has written: that has deleted what it could see."""
        try:
            yield from super().commit(documents, nodes)
        except ConcurrentWriteError:
            for space in self._spaces.values():
                yield from space.delete_writes([self.commits.token])
            raise

    def catch_up(self, *, abandoned: bool) -> Steps[None]:
        """See :class:`IndexStorage`."""
        stored = yield from self.commits.wait()
        yield from self.commits.refresh(stored, abandoned=abandoned)
        yield from self._settle((yield from self.commits.left(stored)))

    def settle(self) -> Steps[None]:
        """Delete the vectors of rows that committed writes have removed, and all that others have left.

        Writers take turns: one that deletes what another has already deleted would take away the vectors of rows that
        were written again meanwhile.
        """
        yield from self._settle((yield from self.commits.left()))

    def _settle(self, left: Sequence[str]) -> Steps[None]:
        unsettled = bool(left)
        for space in self._spaces.values():
            unsettled = unsettled or (yield from space.is_unsettled())
        if not unsettled:
            return
        with (yield from self.stores.transaction()):
            yield from self.commits.settle(left)
            for space in self._spaces.values():
                yield from space.settle(left)

    def _put_chunks(self, rows: SpaceRows) -> Steps[None]:
        yield from super()._put_chunks(rows)
        yield from self._change_hashes(dict(zip(rows.ids, rows.keys, strict=True)), set.add)

    def remove_chunks(self, entries: Mapping[str, NodeEntry]) -> Steps[None]:
        """Delete rows of chunks, and what is known of their hashes."""
        yield from self.space().remove(entries)
        yield from self._change_hashes({node_id: entry.key for node_id, entry in entries.items()}, set.discard)

    def _change_hashes(self, keys: Mapping[str, str], change: Callable[[set[str], str], None]) -> Steps[None]:
        """Add chunks to the records of their hashes, or discard them, by their sort keys, which begin with the hash."""
        of = {node_id: key.split("|", 1)[0] for node_id, key in keys.items()}
        stored = yield from self.records.get_many(_HASHES, dict.fromkeys(of.values()))
        changed = {node_hash: set(stored.get(node_hash, {}).get("nodes", ())) for node_hash in of.values()}
        for node_id, node_hash in of.items():
            change(changed[node_hash], node_id)
        new = {node_hash: {"nodes": sorted(ids)} if ids else None for node_hash, ids in changed.items()}
        yield from self.records.update(_HASHES, {one: row for one, row in new.items() if stored.get(one) != row})
