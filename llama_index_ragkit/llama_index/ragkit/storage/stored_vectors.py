"""`StoredVectors`: the vectors of an index in vector stores of the user, which many processes write and read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from llama_index.core.schema import BaseNode

from llama_index.ragkit.steps import Steps, immediate
from llama_index.ragkit.storage.commits import Commits
from llama_index.ragkit.storage.interface import OtherNodes
from llama_index.ragkit.storage.manifest import NodeEntry
from llama_index.ragkit.storage.node_hashes import NodeHashes
from llama_index.ragkit.storage.opening import CHUNKS
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import SpaceRows

__all__ = ["StoredVectors"]


class StoredVectors:
    """The :class:`~llama_index.ragkit.storage.interface.Vectors` of an index that is served from stores.

    Vector stores take no part in transactions: what a write adds there is deleted if it ends before its commit, and
    what it removes is deleted after that.

    Parameters
    ----------
    struct, records, commits : of the index
    opened : names -> the spaces
    transaction : begins a transaction of the database
    """

    external = None

    def __init__(
        self,
        struct: DerivedStruct,
        records: Records,
        commits: Commits,
        opened: Callable[[Iterable[str]], Mapping[str, StoredSpace]],
        transaction: Callable[[], Steps[AbstractContextManager[None]]],
    ) -> None:
        self._struct = struct
        self._commits = commits
        self._opened = opened
        self._transaction = transaction
        self._spaces = dict(opened(struct.spaces))
        self._hashes = NodeHashes(records)

    @property
    def is_empty(self) -> bool:
        """Whether there are no chunks, as far as this process knows."""
        return not self._struct.counters.get(CHUNKS, 0)

    def space(self, name: str) -> StoredSpace:
        """A vector space, which another process may have added."""
        if name not in self._spaces:
            self._spaces.update(self._opened((name,)))
        return self._spaces[name]

    def add_space(self, name: str) -> None:
        """Keep vectors of a further kind from the next commit on."""
        self.space(name)
        self._struct.spaces.setdefault(name, name)

    def begin(self) -> Steps[None]:
        """Name the write in each space, and delete what writes have left that ended early."""
        left = yield from self._commits.left()
        for name in self._struct.spaces:
            yield from self.space(name).begin(self._commits.token, left, self._struct.embedding.get("dimension"))

    def abandon(self) -> Steps[None]:
        """Delete what the write has added: another writer has deleted what it could see of it."""
        for space in self._spaces.values():
            yield from space.delete_writes([self._commits.token])

    def settle(self) -> Steps[None]:
        """Delete the vectors of rows that committed writes have removed, and all that others have left.

        Writers take turns: one that deletes what another has already deleted would take away the vectors of rows that
        were written again meanwhile.
        """
        left = yield from self._commits.left()
        unsettled = bool(left)
        for space in self._spaces.values():
            unsettled = unsettled or (yield from space.is_unsettled())
        if not unsettled:
            return
        with (yield from self._transaction()):
            yield from self._commits.settle(left)
            for space in self._spaces.values():
                yield from space.settle(left)

    @immediate
    def reload(self) -> None:
        """Nothing: rows are read when a question needs them."""

    def tag(self) -> None:
        """Nothing: records and commit are in one database."""

    def put_chunks(self, rows: SpaceRows, nodes: Sequence[BaseNode]) -> Steps[None]:
        """Add rows of chunks, and the hashes by which copies of them are recognised."""
        yield from self._spaces[CHUNKS].put(rows)
        yield from self._hashes.add(dict(zip(rows.ids, rows.keys, strict=True)))

    def remove_chunks(self, entries: Mapping[str, NodeEntry], others: OtherNodes) -> Steps[None]:
        """Delete rows of chunks."""
        yield from self._spaces[CHUNKS].remove(entries)
        yield from self._hashes.remove({node_id: entry.key for node_id, entry in entries.items()})
