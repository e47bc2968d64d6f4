"""`Commits`: the beginning and the end of each write, by which incomplete and concurrent writes are detected."""

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import uuid4

from llama_index.core.storage.storage_context import StorageContext
from pydantic import TypeAdapter, ValidationError
from typing_extensions import NotRequired, TypedDict

from llama_index.ragkit.errors import ConcurrentWriteError
from llama_index.ragkit.processes import is_running, this_process
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.manifest import Manifest
from llama_index.ragkit.storage.records import Record, Records
from llama_index.ragkit.storage.struct import DerivedStruct, damaged

__all__ = ["REMOVALS", "Commits", "Unfinished", "all_left", "may_be_writing", "read_commit", "read_unfinished"]

_NOTHING: Record = {"generation": 0}
_META = "meta"
_COMMIT = "state"
_UNFINISHED = "unfinished"
_LEFT = "left"  # the tokens of writes that others have replaced before their commit
_DESCRIPTION = (  # of the struct
    "cached", "cache_id", "params", "components", "embedding", "spaces", "counters", "advantage", "measured"
)  # fmt: skip

REMOVALS = "removals"  # the parameter that counts the writes that have removed something
_PATIENCE, _PAUSE = 30.0, 0.02  # seconds that a writer waits for another, and between two looks

_writing: set[str] = set()  # the writes of this process that are neither committed nor ended by an error


@dataclass(frozen=True)
class Unfinished:
    """What incomplete writes left, until it is written again or deleted: documents, and nodes without their own."""

    documents: Sequence[str] = ()
    nodes: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.documents or self.nodes)

    def including(self, documents: Collection[str], nodes: Collection[str]) -> "Unfinished":
        """With more of both."""
        return Unfinished(
            list(dict.fromkeys([*self.documents, *documents])), list(dict.fromkeys([*self.nodes, *nodes]))
        )

    def without(self, documents: Collection[str], nodes: Collection[str]) -> "Unfinished":
        """Without those that were finished."""
        done, written = set(documents), set(nodes)
        return Unfinished([i for i in self.documents if i not in done], [i for i in self.nodes if i not in written])


class _Process(TypedDict):
    machine: str
    pid: str
    started: str


class _Writer(TypedDict):
    token: str
    process: _Process


class _Parameters(TypedDict, total=False):
    removals: int


class _Described(TypedDict, total=False):
    params: _Parameters


class _Commit(TypedDict):
    """What is read of the record of a commit before its struct is checked."""

    generation: int
    token: NotRequired[str]
    writer: NotRequired[_Writer | None]
    left: NotRequired[list[str]]
    struct: NotRequired[_Described]


_COMMITS: TypeAdapter[_Commit] = TypeAdapter(_Commit)


def read_commit(records: Records) -> Steps[Record]:
    """Generation and token of the last commit, and the write in progress ("writer"), if any."""
    stored = (yield from records.get(_META, _COMMIT)) or _NOTHING
    try:
        _COMMITS.validate_python(stored, strict=True)
    except ValidationError as error:
        raise damaged("the last write to an index", error) from None
    return stored


def all_left(records: Records) -> Steps[list[str]]:
    """The tokens of all writes that may have left rows in vector stores, a write in progress among them."""
    stored = yield from read_commit(records)
    return _replaced(stored)


def _replaced(stored: Record) -> list[str]:
    """What is left when another write takes the place of the writer."""
    writer = stored.get("writer")
    return [*stored.get(_LEFT, ()), *([] if writer is None else [writer["token"]])]


def read_unfinished(records: Records, manifest: Manifest) -> Steps[Unfinished]:
    """What incomplete writes left: what the manifest does not know, a write has not begun to store."""
    stored = yield from _begun(records)
    known = {}
    for ref_doc_id in stored.documents:
        known[ref_doc_id] = yield from manifest.nodes_of(ref_doc_id)
    documents = [ref_doc_id for ref_doc_id, node_ids in known.items() if node_ids is not None]
    return Unfinished(documents, list((yield from manifest.entries_of(stored.nodes))))


def _begun(records: Records) -> Steps[Unfinished]:
    record = yield from records.get(_META, _UNFINISHED)
    return Unfinished() if record is None else Unfinished(**record)


class Commits:
    """The generations of one index.

    Each write has a random token. It is stored when the write begins, and becomes the token of the index when the write
    is committed. If the token of a writer's index is not the stored one, the writer is behind, and is rejected before
    it changes anything. If a writer finds another token than its own at the end, another process has written too.

    Vector stores take no part in transactions. A stored token that can no longer become the token of the index names
    what its write has left there: :meth:`left`.

    Parameters
    ----------
    is_shared : whether several processes write and read the index; the tokens of writes that ended before their commit
        are then kept until :meth:`settle`
    """

    def __init__(
        self,
        context: StorageContext,
        records: Records,
        manifest: Manifest,
        struct: DerivedStruct,
        *,
        is_shared: bool = False,
    ) -> None:
        self._context = context
        self._records = records
        self._manifest = manifest
        self._struct = struct
        self.is_shared = is_shared
        self.token = ""  # of the last write that began here

    def check(self) -> Steps[None]:
        """Check that the index is as it was last written or opened here, and that no other process is writing to it."""
        self._check((yield from read_commit(self._records)))

    def _check(self, stored: Record) -> None:
        if stored.get("token", "") not in (self._struct.token, self.token):
            raise ConcurrentWriteError(
                f"Index {self._struct.index_id!r} has been written to since it was opened here: it is at generation "
                f"{stored['generation']}, this object at {self._struct.generation}. Open it again with "
                "load_index_from_storage() and repeat the write. Nothing was changed.",
                begun=False,
            )
        writer = stored.get("writer")
        if writer is not None and _is_writing(writer):
            raise ConcurrentWriteError(
                f"Index {self._struct.index_id!r} is being written to by process {writer['process']['pid']}. Wait "
                "until that write has ended, open the index again with load_index_from_storage(), and repeat yours. "
                "Nothing was changed.",
                begun=False,
            )

    def begin(self, documents: Collection[str], nodes: Collection[str]) -> Steps[None]:
        """Store that a write of documents and nodes begins; until it is finished they count as unfinished."""
        yield from self.check()
        left = yield from self.unfinished()
        self.token = uuid4().hex[:8]
        _writing.add(self.token)
        writer = {"token": self.token, "process": this_process()}

        def taken(stored: Record | None) -> Record:
            stored = stored or _NOTHING
            self._check(stored)
            left = _replaced(stored) if self.is_shared else ()
            return self._commit_record(self._struct.generation, self._struct.token, writer, left)

        yield from self._records.change(_META, _COMMIT, taken)
        yield from self._put_unfinished(left.including(documents, nodes))
        yield from self._check_own(
            "Another process began to write to index {index} at the same moment. Wait until that write has ended, "
            "open the index again with load_index_from_storage(), and repeat yours. Nothing was changed.",
            begun=False,
        )
        self._struct.building = True
        yield from self._store_struct()

    def commit(self, documents: Collection[str], nodes: Collection[str]) -> Steps[None]:
        """Store that the write has ended, and which documents and nodes are finished; :meth:`publish` comes last."""
        stored = yield from self._check_own(
            "Another process has written to index {index} at the same time, and one may have overwritten what the "
            "other wrote. Open the index again with load_index_from_storage(), and refresh the documents of both."
        )
        left = (yield from _begun(self._records)).without(documents, nodes)
        generation = self._struct.generation + 1
        yield from self._put_unfinished(left)
        committed = self._commit_record(generation, self.token, None, stored.get(_LEFT, ()))
        yield from self._records.put(_META, [(_COMMIT, committed)])
        self._take_up(generation, self.token, left)

    def publish(self) -> Steps[None]:
        """Store the struct: readers then expect all parts to be of the new generation."""
        yield from self._store_struct()

    def end(self) -> None:
        """The write has ended, committed or not: others may follow."""
        _writing.discard(self.token)

    def refresh(self, stored: Record | None = None, *, abandoned: bool = False) -> Steps[int]:
        """Take up what other processes have committed, if several write the index, and what was stored before a write
        of this object that was `abandoned`. `stored` is the record of the last commit, if it was just read.

        Returns
        -------
        The number of writes that have removed something.
        """
        if not self.is_shared:
            return 0
        stored = stored or (yield from read_commit(self._records))
        if abandoned or stored["generation"] > self._struct.generation:
            vars(self._struct).update(stored.get("struct", {}))
            self._struct.check()
            self._take_up(stored["generation"], stored.get("token", ""), (yield from _begun(self._records)))
        removals: int = stored.get("struct", {}).get("params", {}).get(REMOVALS, 0)
        return removals

    def note_removal(self) -> None:
        """Count a write that removes vectors: a question that began before it may have missed them."""
        if self.is_shared:
            self._struct.params[REMOVALS] = self._struct.params.get(REMOVALS, 0) + 1

    def wait(self) -> Steps[Record]:
        """Wait until no other process writes, for half a minute at most; :meth:`begin` then refuses.

        Returns the record of the last commit.
        """
        stored = yield from read_commit(self._records)
        for _ in range(int(_PATIENCE / _PAUSE)):
            writer = stored.get("writer")
            if writer is None or not _is_writing(writer):
                break
            yield from call(time.sleep, _asleep, _PAUSE)
            stored = yield from read_commit(self._records)
        return stored

    def left(self, stored: Record | None = None) -> Steps[list[str]]:
        """The tokens of writes that ended before their commit: what these have put into vector stores is to be deleted.

        Such a write cannot be committed any more, so that this may be done at any time. The token of a process on
        another machine is among them when another write has taken its place. `stored` is the record of the last commit,
        if it was just read.
        """
        stored = stored or (yield from read_commit(self._records))
        writer = stored.get("writer")
        return _replaced(stored) if writer is not None and _is_writing(writer) is False else stored.get(_LEFT, [])

    def settle(self, left: Collection[str]) -> Steps[None]:
        """Note that what writes have left is deleted, in the transaction that this is within.

        Until that ends, no other process does the same or begins a write: writers take turns. The token of the writer
        itself stays until another write takes its place.
        """

        def without(stored: Record | None) -> Record:
            stored = stored or _NOTHING
            kept = [token for token in stored.get(_LEFT, ()) if token not in left]
            return {**stored, _LEFT: kept} if left else stored

        yield from self._records.change(_META, _COMMIT, without)

    def recover(self) -> Steps[None]:
        """Take up the stored commit after a write that was abandoned, perhaps while it was committed."""
        stored = yield from read_commit(self._records)
        left = yield from self.unfinished()
        if stored.get("token", "") in (self._struct.token, self.token):
            self._take_up(stored["generation"], stored.get("token", ""), left)

    def unfinished(self) -> Steps[Unfinished]:
        """What incomplete writes left."""
        return (yield from read_unfinished(self._records, self._manifest))

    def _check_own(self, message: str, *, begun: bool = True) -> Steps[Record]:
        stored = yield from read_commit(self._records)
        if (stored.get("writer") or {}).get("token") != self.token:
            raise ConcurrentWriteError(message.format(index=repr(self._struct.index_id)), begun=begun)
        return stored

    def _take_up(self, generation: int, token: str, left: Unfinished) -> None:
        self._struct.generation, self._struct.token, self._struct.building = generation, token, bool(left)

    def _commit_record(self, generation: int, token: str, writer: Record | None, left: Collection[str]) -> Record:
        struct = {name: getattr(self._struct, name) for name in _DESCRIPTION}
        return {"generation": generation, "token": token, "writer": writer, "struct": struct, _LEFT: list(left)}

    def _put_unfinished(self, left: Unfinished) -> Steps[None]:
        record = {"documents": list(left.documents), "nodes": list(left.nodes)}
        yield from self._records.put(_META, [(_UNFINISHED, record)])

    def _store_struct(self) -> Steps[None]:
        store = self._context.index_store
        yield from call(store.add_index_struct, store.async_add_index_struct, self._struct)


async def _asleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


def may_be_writing(records: Records) -> Steps[bool]:
    """Whether another writer is, or may be, in the midst of a write."""
    writer = (yield from read_commit(records)).get("writer")
    return writer is not None and _is_writing(writer) is not False


def _is_writing(writer: Record) -> bool | None:
    """Whether a write goes on; None if its process is on another machine."""
    if writer["process"] == this_process():
        return writer["token"] in _writing
    return is_running(writer["process"])
