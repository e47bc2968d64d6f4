"""`IndexWriter`: the writes of an index as steps, in an order that survives whatever ends them.

A write computes embeddings and extractions before it changes anything. Then it begins (whatever it is about to write is
stored as unfinished), stores, derives, deletes, and commits. Names of things are stored before the things and deleted
after them. So a write, or a delete, can be repeated from wherever a killed process, an error of a store, an interrupt
or a cancelled task ended it. In a process that lives on, the next operation first reads the stored state again.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from llama_index.core.schema import BaseNode, Document
from numpy.typing import NDArray

from llama_index.ragkit.errors import ConcurrentWriteError
from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.forks import renew_in_children
from llama_index.ragkit.index.build_report import BuildReport
from llama_index.ragkit.index.builder import Builder, Change, Failure
from llama_index.ragkit.index.contents import IndexContents, State
from llama_index.ragkit.index.preparation import Preparation, Vectors
from llama_index.ragkit.index.query import LastQuery
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.write_checks import WriteChecks
from llama_index.ragkit.index.write_plan import WritePlan, plan_write
from llama_index.ragkit.llm.usage import counted
from llama_index.ragkit.lock import WriterLock
from llama_index.ragkit.nested_arrays import nested, part_of
from llama_index.ragkit.steps import Steps, call, offload, run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.manifest import NodeEntry
from llama_index.ragkit.storage.nodes import embed_text, refuse_unstorable, sort_key
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.lexical_index import LexicalIndex
from llama_index.ragkit.validation import check_component
from llama_index.ragkit.vectors.array_file import ArrayFile
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["IndexWriter"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_STATE, _WORDS = "state", "words"  # the arrays of the method, and those of the words of chunks
_TRIES = 5  # of a write beside which other processes write


@dataclass
class _Ready:
    """What was computed for a write that is planned again, since another process was first."""

    planned: bool = False
    nodes: Sequence[BaseNode] = ()
    vectors: Vectors = field(default_factory=dict)
    extracted: dict[str, NodeEntry] = field(default_factory=dict)


@dataclass(frozen=True)
class _Work:
    """A write or a delete, as it is carried out."""

    plan: WritePlan
    names: Sequence[str]  # ids of the nodes that are written or deleted
    documents: Sequence[Document] = ()
    nodes: Sequence[BaseNode] = ()
    entries: Mapping[str, NodeEntry] = field(default_factory=dict)
    vectors: Vectors = field(default_factory=dict)
    more: bool = False  # see `Change`
    whole: Sequence[str] = ()  # documents to remove, whatever nodes they have
    from_docstore: Sequence[str] | None = None  # nodes to delete there too; None leaves the docstore unchanged


class IndexWriter(Generic[State]):
    """Performs the writes of one index, one at a time, and holds the state that queries read.

    Parameters
    ----------
    parameters : the parameters of the method, which each write stores
    llm_work : what a write of nodes is expected to ask of the language model

    Attributes
    ----------
    checks : what is refused before a write or a search
    more_follows : whether this write is a part of data that belong together, and more parts follow. Work that depends
        on all parts is left to a later write
    last_query : the last query of a retriever; dropped when nodes are removed, since its page would show them
    """

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        builder: Builder[Any, State],
        parameters: Mapping[str, Any],
        method: str,
        llm_work: Callable[[Sequence[BaseNode]], Estimate],
    ) -> None:
        self._storage = storage
        self._resources = resources
        self._builder = builder
        self._llm_work = llm_work
        self.checks = WriteChecks(storage, resources, builder, parameters, method)
        self._preparation = Preparation(storage, resources, builder, method, self.checks)
        self._lock = WriterLock()
        self._terms = builder.terms
        self._contents: IndexContents[State] = run_steps(self._stored())
        self._interrupted = False  # whether a write began and was not committed
        self._is_committing = False
        renew_in_children(self, IndexWriter._abandon)
        storage.records.offer_arrays(self._arrays)
        self._method = method
        self.more_follows = False
        self.last_query: LastQuery | None = None

    # -- the state --------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        """The state of the last write, immutable; replaced as a whole."""
        return run_steps(self.recovered()).state

    def is_current(self, state: State) -> bool:
        """Whether a state is that of the last write."""
        return state is self._contents.state and not self._interrupted

    def recovered(self) -> Steps[IndexContents[State]]:
        """What queries read, read from the stores again if a write ended without a commit."""
        if self._interrupted:
            with (yield from self._lock.acquire()):
                yield from self._recover()
        return self._contents

    @property
    def lock(self) -> WriterLock:
        """What is held during a write."""
        return self._lock

    def _stored(self) -> Steps[IndexContents[State]]:
        builder = self._builder
        self._storage.records.repairs = {}
        found = yield from self._storage.arrays(builder.lexical_source)
        parts = part_of(found, _STATE)
        state = (yield from offload(builder.load_arrays, parts)) if parts else None
        if state is None:
            state = yield from builder.load()
        if builder.keeps_terms:
            yield from self._terms.load(part_of(found, _WORDS))
        return self._contents_of(state)

    def _arrays(self) -> ArrayFile | None:
        """What the last commit left, as arrays to be written with the records; None during a write."""
        contents = self._contents
        if self._interrupted or self._is_committing:
            return None
        about = run_steps(self._storage.about_arrays(self._builder.lexical_source))
        if about is None or self._is_committing or contents is not self._contents:
            return None
        state = {} if self._storage.records.repairs else self._builder.arrays_of(contents.state)
        return ArrayFile(about, nested({_STATE: state, _WORDS: contents.lexical.arrays}))

    def _contents_of(self, state: State) -> IndexContents[State]:
        words = self._terms.words.whole() if self._builder.keeps_terms else None
        return IndexContents(state, words or LexicalIndex(), self._storage.struct.advantage)

    def _recover(self) -> Steps[None]:
        yield from self._storage.catch_up(abandoned=self._interrupted)
        if self._interrupted or self._storage.records.paused:
            yield from self._storage.recover()
            self._contents = yield from self._stored()
            self.last_query = None
            self._interrupted = False

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """Anything that ends the block early, such as an interrupt, makes the next operation recover."""
        self._is_committing = True
        self._storage.records.drop_arrays()
        try:
            yield
        except BaseException:
            self._interrupted = True
            raise
        finally:
            self._is_committing = False
            self._storage.commits.end()

    def _abandon(self) -> None:
        """In a forked process, the write that a thread of its parent was making has ended early."""
        self._interrupted = self._interrupted or self._is_committing
        self._is_committing = False

    # -- writes -----------------------------------------------------------------------------------------

    def write(
        self,
        nodes: Sequence[BaseNode],
        documents: Sequence[Document] = (),
        *,
        replace: bool = False,
        again: Collection[str] = (),
        more: bool = False,
    ) -> Steps[None]:
        """Store nodes.

        Parameters
        ----------
        documents : the documents of which the nodes are a complete set; their hashes are stored at the end
        replace : whether other nodes of `documents` are removed
        again : ids to process again although they did not change
        more : whether other nodes that were given together with these follow
        """
        with (yield from self._lock.acquire()):
            refuse_unstorable(nodes)
            yield from self._repeated(self._check_write)
            nodes, given = self._preparation.without_records(nodes)
            with self._resources.claims(self._storage.cache_user("")) as claims, counted() as usage:
                ready = _Ready()
                report = BuildReport(usage, lambda: self._llm_work(ready.nodes), self._resources.prices)
                yield from claims.begin()
                attempt = partial(
                    self._write_once, nodes, given, documents, ready, replace=replace, again=again, more=more
                )
                is_build = yield from self._repeated(attempt)
                yield from claims.keep()
                report.tell(self._method, len(ready.nodes))
            if is_build:
                yield from self._sweep()

    def _check_write(self) -> Steps[None]:
        yield from self._storage.records.check_writable()  # before anything is paid for
        yield from self._recover()
        yield from self.checks.write()

    def _repeated(self, attempt: Callable[[], Steps[T]]) -> Steps[T]:
        """A write. Where several processes write, it is planned again, a few times at most, if another was first."""
        tries = _TRIES if self._storage.commits.is_shared else 1
        while True:
            tries -= 1
            try:
                return (yield from attempt())
            except ConcurrentWriteError as error:
                if error.begun or not tries:
                    raise

    def _write_once(
        self,
        nodes: Sequence[BaseNode],
        given: Mapping[str, Record],
        documents: Sequence[Document],
        ready: _Ready,
        *,
        replace: bool,
        again: Collection[str],
        more: bool,
    ) -> Steps[bool]:
        """Plan a write and carry it out; returns whether it was, or ended, a build. `given` are extractions that nodes
        have brought along.
        """
        storage = self._storage
        if ready.planned:
            yield from self._check_write()
        ready.planned = True
        known = yield from storage.manifest.entries_of(node.node_id for node in nodes)
        stored = (yield from storage.manifest.entries_of_documents(documents)) if replace else None
        rows = yield from storage.rows_of([node.node_id for node in nodes])
        keys = {node.node_id: sort_key(node) for node in nodes}
        bare = {node.node_id for node in nodes if not embed_text(node)}
        plan = plan_write(keys, bare, known, rows, stored=stored, again=again)
        whole = self._preparation.read_with(nodes, plan, given)
        if whole:
            plan = plan_write(keys, bare, known, rows, stored=stored, again={*again, *whole})
        yield from self.checks.delete(plan.removed)
        is_build = not storage.struct.generation or storage.struct.building
        node_of = {node.node_id: node for node in nodes}
        todo = ready.nodes = [node_of[node_id] for node_id in plan.write]
        self._preparation.announce(plan, len(nodes))
        if any(node_id not in given for node_id in plan.read):
            self._resources.check_llms(summarizer=self._builder.summarizes)  # before anything is embedded
        vectors = ready.vectors = yield from self._preparation.embed(todo, rows, plan.repeated, ready.vectors)
        # Extractions of an incomplete write are reused.
        unread = [node_of[i] for i in plan.read if i not in ready.extracted]
        ready.extracted.update((yield from self._preparation.extract(unread, given, nodes, again)))
        entries = {**{i: ready.extracted[i] for i in plan.read}, **plan.reused}
        gone = list(plan.obsolete)
        more = more or self.more_follows
        work = _Work(plan, list(node_of), documents, nodes, entries, vectors, more, from_docstore=gone)
        yield from storage.records.cleaned_once(self._carry_out(work))
        return is_build

    def _carry_out(self, work: _Work) -> Steps[None]:
        """A write or a delete, from begin to commit."""
        storage, plan, vectors = self._storage, work.plan, work.vectors
        node_of = {node.node_id: node for node in work.nodes}
        todo = [node_of[node_id] for node_id in plan.write]
        added = sorted((node for node in todo if node.node_id in vectors), key=sort_key)
        new = [node for node in added if node.node_id not in plan.repeated]
        removed = plan.removed
        change = Change(
            added=added,
            vectors=_stacked(added, vectors),
            records={node_id: entry.record for node_id, entry in work.entries.items() if entry.record},
            removed=list(removed),
            before=(yield from storage.rows_of(list(removed))) if removed else Snapshot.empty(),
            repeated=plan.repeated,
            more=work.more,
        )
        yield from self._builder.prepare(change)
        measured = yield from self._preparation.advantage(change, work.documents, work.nodes)
        # Until the old entries of the cache are released, the manifest names them beside the new ones.
        both = {node_id: _with_keys(entry, plan.replaced.get(node_id)) for node_id, entry in work.entries.items()}
        documents = [*(document.id_ for document in work.documents), *work.whole]
        with self._committing():
            storage.struct.advantage, storage.struct.measured = measured
            yield from storage.begin(documents, () if documents else work.names)
            yield from storage.manifest.begin(work.documents)
            metadata = {node.node_id: node.metadata for node in todo}
            if storage.commits.is_shared:  # what was extracted outlives a transaction that is rolled back
                known = {node_id: entry for node_id, entry in both.items() if node_id not in plan.changed}
                yield from storage.manifest.add(known, metadata)
            with (yield from storage.stores.transaction()):
                yield from storage.remove_chunks(removed)
                yield from storage.manifest.add(both, metadata, plan.changed)
                yield from storage.add_to_docstore(work.nodes)
                if new and (self._builder.embeds_chunks or storage.external is not None):
                    yield from storage.put_chunks(new, _stacked(new, vectors))
                yield from self._finish(work, change)
            yield from storage.settle()

    def delete(self, node_ids: Sequence[str], *, from_docstore: bool, ref_doc_ids: Sequence[str] = ()) -> Steps[None]:
        """Delete nodes, and whole documents, with everything derived from them."""
        with (yield from self._lock.acquire()):
            attempt = partial(self._delete_once, node_ids, ref_doc_ids, from_docstore)
            yield from self._repeated(attempt)
            yield from self._sweep()

    def _delete_once(self, node_ids: Sequence[str], ref_doc_ids: Sequence[str], from_docstore: bool) -> Steps[None]:
        yield from self._storage.records.check_writable()
        yield from self._recover()
        entries = yield from self._storage.manifest.entries_of(node_ids)
        yield from self.checks.delete(entries)
        plan = WritePlan([], [], obsolete=entries)
        gone = node_ids if from_docstore else None
        work = _Work(plan, node_ids, whole=ref_doc_ids, from_docstore=gone)
        yield from self._storage.records.cleaned_once(self._carry_out(work))

    def delete_document(self, ref_doc_id: str, *, from_docstore: bool) -> Steps[None]:
        """Delete a document, by the manifest: another index may have deleted it from the docstore before."""
        check_component("ref_doc_id", ref_doc_id, str, "the id of a document")
        node_ids = yield from self._storage.manifest.nodes_of(ref_doc_id)
        own = (yield from self._storage.manifest.entries_of([ref_doc_id])).get(ref_doc_id)
        if own is not None and own.ref_doc_id is None:  # a document that no transformation has split is a node itself
            node_ids = [*(node_ids or []), ref_doc_id]
        docstore = self._storage.context.docstore
        shared = yield from call(docstore.get_ref_doc_info, docstore.aget_ref_doc_info, ref_doc_id)
        unfinished = yield from self._storage.commits.unfinished()
        if node_ids is None and (shared is None or not from_docstore) and ref_doc_id not in unfinished.documents:
            logger.warning("ref_doc_id %s not found, nothing deleted.", ref_doc_id)
        else:
            yield from self.delete(node_ids or [], from_docstore=from_docstore, ref_doc_ids=[ref_doc_id])

    def revise(self, work: Callable[[State], Steps[State]]) -> Steps[None]:
        """Change derived data while the nodes stay the same; if that fails, the stored state is loaded."""
        with (yield from self._lock.acquire()):
            yield from self._check_write()
            yield from self.checks.embed_model()
            with self._resources.claims(self._storage.cache_user("")) as claims, counted() as usage:
                report = BuildReport(usage, Estimate, self._resources.prices)
                yield from claims.begin()
                yield from self._storage.records.cleaned_once(self._revise(work))
                yield from claims.keep()
                report.tell(self._method, 0)

    def _revise(self, work: Callable[[State], Steps[State]]) -> Steps[None]:
        failure: Exception | None = None
        with self._committing():
            yield from self._storage.begin()
            with (yield from self._storage.stores.transaction()):
                try:
                    yield from self._storage.records.repair()
                    self._contents = self._contents_of((yield from work(self._contents.state)))
                except Exception as error:
                    failure = error
                    self._contents = yield from self._stored()
                yield from self._storage.commit()
            yield from self._storage.settle()
        if failure is not None:
            raise failure

    def forget_cache(self) -> Steps[None]:
        """Store that the cache of the build no longer exists, so that deletes do not ask for it."""
        with (yield from self._lock.acquire()):
            yield from self._recover()
            yield from self._storage.commits.check()
            with self._committing():
                yield from self._storage.begin()
                self._storage.struct.cached, self._storage.struct.cache_id = False, ""
                yield from self._storage.commit()

    def retry_failed(self) -> Steps[int]:
        """Retry failed nodes, then other failures; returns the number of remaining failures."""
        manifest = self._storage.manifest
        failed = [node_id for node_id, entry in (yield from manifest.entries()).items() if entry.error is not None]
        nodes = list((yield from self._storage.get_nodes(failed)).values())
        if nodes:
            yield from self.write(nodes, again=set(failed))
        if self._builder.failures(self._contents.state):
            yield from self.revise(self._builder.retry)
        return len((yield from self.failures()))

    def failures(self) -> Steps[list[Failure]]:
        """What failed and was not retried with success: nodes, then other steps."""
        state = (yield from self.recovered()).state
        kind = type(self._resources.extractor).__name__
        entries = yield from self._storage.manifest.entries()
        failed = {i: entry for i, entry in entries.items() if entry.error is not None}
        nodes = [Failure(i, entry.step or kind, entry.error or "", entry.by) for i, entry in failed.items()]
        return [*nodes, *self._builder.failures(state)]

    def _finish(self, work: _Work, change: Change) -> Steps[None]:
        """Derive, delete, and commit.

        The manifest entries are deleted last, so that a delete that was killed can be repeated. When the derivation
        fails, the stored data are kept and committed as an incomplete write: documents get no hash, so that
        `refresh_ref_docs` writes them again.
        """
        storage = self._storage
        struct = storage.struct
        failure: Exception | None = None
        try:
            if self._builder.keeps_terms:  # before the builder, which may call models
                yield from self._terms.changed(change.removed, change.added, change.records)
            yield from storage.records.repair()
            self._contents = self._contents_of((yield from self._builder.apply(self._contents.state, change)))
        except Exception as error:
            failure = error
            self._contents = yield from self._stored()
        if change.removed:
            self.last_query = None
            storage.commits.note_removal()
        removed, whole, entries = work.plan.obsolete, work.whole, work.entries
        unused = {}
        for node_id, entry in {**removed, **work.plan.replaced}.items():
            used = entries[node_id].cache_keys if node_id in entries else []
            unused[storage.cache_user(node_id)] = [key for key in entry.cache_keys if key not in used]
        yield from self._resources.release(unused)
        if work.from_docstore is not None:
            yield from storage.delete_from_docstore(work.from_docstore, whole)
        yield from storage.manifest.remove(removed, whole)
        if failure is None:
            yield from storage.manifest.complete(entries)
            yield from storage.finish(work.documents, work.nodes)
        struct.counters["chunks"] = yield from self._terms.count()
        done = [] if failure else [document.id_ for document in work.documents]
        yield from storage.commit([*done, *whole], [*([] if failure else work.names), *removed])
        if failure is not None:
            raise failure

    def _sweep(self) -> Steps[None]:
        """Release what builds that ended early have claimed in the cache."""
        if self._resources.cache_given:
            yield from self._resources.cache.sweep()


def _with_keys(entry: NodeEntry, old: NodeEntry | None) -> NodeEntry:
    """An entry with the cache keys of an older one beside its own."""
    if old is None:
        return entry
    return replace_fields(entry, cache_keys=list(dict.fromkeys([*old.cache_keys, *entry.cache_keys])))


def _stacked(nodes: Sequence[BaseNode], vectors: Vectors) -> NDArray[np.float32]:
    return np.stack([vectors[node.node_id] for node in nodes]) if nodes else np.empty((0, 0), np.float32)
