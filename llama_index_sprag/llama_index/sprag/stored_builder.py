"""`StoredContextBuilder`: keeps documents and headers in stores, and reads of them what one question needs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from llama_index.core.schema import BaseNode
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
    StoredChunks,
    check_model,
    offload,
    run_steps,
    sort_key,
)
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.lexical_terms import lexical_terms
from llama_index.sprag.config import SpRAGConfig
from llama_index.sprag.context.headers import contextualised
from llama_index.sprag.descriptions import Descriptions, as_record, document_of, shown_text
from llama_index.sprag.document_rows import DocumentRows
from llama_index.sprag.documents.entry import DocumentEntry, entry_of
from llama_index.sprag.documents.order import ChunkPlace
from llama_index.sprag.extraction.context_extractor import Described, DocumentChunks
from llama_index.sprag.state import SpRAGState
from llama_index.sprag.stored_state import StoredSpRAGState

__all__ = ["StoredContextBuilder"]

_CHUNKS = "chunks"
_AT_ONCE = 100  # documents that are described again together


class StoredContextBuilder(StoredBuilder[SpRAGConfig, SpRAGState]):
    """Keeps documents and headers as rows, and in the space "chunks" the vector of each chunk with its header.

    A write reads and changes the rows of its documents. A chunk has one vector: with its header, or of its text alone
    where it has none. A delete calls no LLM; chunks that lose their header by it are embedded without one at once,
    where an index in memory waits for the next question.

    Raises
    ------
    ConfigurationError
        If descriptions depend on the terms of all documents (`RuleContext(salient_terms=...)`).
    """

    keeps_terms: ClassVar[bool] = False  # the words of a chunk are searched with those of its header
    embeds_chunks: ClassVar[bool] = False

    def __init__(self, storage: IndexStorage, resources: Resources, config: SpRAGConfig) -> None:
        super().__init__(storage, resources, config)
        self._descriptions = Descriptions(storage, resources, config)
        if self._descriptions.extractor.needs_corpus:
            raise ConfigurationError(
                "salient_terms depend on the words of all documents, which an index that is served from stores does "
                'not read for a write: leave salient_terms at 0, or build the index with serve_from="memory".'
            )
        self._rows = DocumentRows(storage)
        self._ready = _Plan()  # of the write that is about to begin

    @property
    def chunks(self) -> StoredChunks:
        """The chunks with their headers, by their vectors and by their words."""
        return StoredChunks(self.storage.stored[_CHUNKS], self.terms.words)

    # -- writing ------------------------------------------------------------------------------------

    def load(self) -> Steps[SpRAGState]:
        """Nothing: the documents stay in their stores."""
        return SpRAGState()
        yield

    def prepare(self, change: Change) -> Steps[None]:
        """Describe the documents of a change, and embed its chunks and those whose headers change."""
        placed = yield from self._rows.chunks(change.removed)
        touched = {row["document"] for row in placed.values()}
        touched |= {document_of(node.node_id, change.records.get(node.node_id, {})) for node in change.added}
        self._ready = yield from self._plan(touched, change, may_call=bool(change.added))

    def apply(self, state: SpRAGState, change: Change) -> Steps[SpRAGState]:
        """Store what was prepared."""
        ready, self._ready = self._ready, _Plan()
        yield from self._carry_out(ready)
        return state

    def rebuild(self, state: SpRAGState) -> Steps[SpRAGState]:
        """Describe all documents again; those whose text is the same cost no LLM call."""
        yield from self._write_again((yield from self._rows.keys()))
        return state

    def retry(self, state: SpRAGState) -> Steps[SpRAGState]:
        """Describe the documents that were not."""
        yield from self._write_again(list((yield from self._rows.failed())))
        return state

    def failures(self, state: SpRAGState) -> list[Failure]:
        """The documents that were not described."""
        return [Failure(key, "context", error) for key, error in run_steps(self._rows.failed()).items()]

    def _write_again(self, keys: Sequence[str]) -> Steps[None]:
        for start in range(0, len(keys), _AT_ONCE):
            plan = yield from self._plan(set(keys[start : start + _AT_ONCE]), Change(), may_call=True)
            yield from self._carry_out(plan)

    def _plan(self, touched: set[str], change: Change, *, may_call: bool) -> Steps["_Plan"]:
        """What a change makes of documents; nothing is stored."""
        removed, new = set(change.removed), {node.node_id: node for node in change.added}
        before = yield from self._rows.of(sorted(touched))
        members: dict[str, dict[str, None]] = {key: {} for key in sorted(touched)}
        for key, entry in before.items():
            members[key].update(dict.fromkeys(i for i in entry.chunks if i not in removed))
        for node_id in new:
            members[document_of(node_id, change.records.get(node_id, {}))][node_id] = None
        after = yield from self._documents(members, change)
        read = yield from self._read(after, new)
        ready = self._ready
        described = yield from self._descriptions.describe(read, may_call=False, ready=ready.described)
        unknown = {key: read[key] for key, found in described.items() if found.description is None}
        if may_call and unknown:
            described |= yield from self._descriptions.describe(unknown, may_call=True)
        headers: dict[str, str] = {}
        for key, document in read.items():
            headers |= self._descriptions.headers(document, described[key])
        placed = yield from self._rows.chunks(i for i in headers if i not in removed)
        other = [i for i, header in headers.items() if i not in placed or placed[i]["header"] != header]
        nodes = {node.node_id: node for document in read.values() for node in document.nodes}
        texts = {i: contextualised(headers[i], shown_text(nodes[i])) for i in other}
        vectors = {text: ready.vectors[text] for text in texts.values() if text in ready.vectors}
        bare = list(dict.fromkeys(text for text in texts.values() if text not in vectors))
        if bare:
            if not new:  # a write has checked the model for its nodes
                yield from check_model(self.resources.embed_model, self.storage.struct.embedding)
            vectors.update(zip(bare, (yield from self.resources.embed(bare, "chunks with headers")), strict=True))
        return _Plan(
            removed=list(removed),
            before=before,
            after=after,
            described=described,
            stale=[i for i in other if i in placed],
            chunks={i: (nodes[i], headers[i], texts[i]) for i in other},
            vectors=vectors,
        )

    def _carry_out(self, plan: "_Plan") -> Steps[None]:
        """Store documents and chunks as planned."""
        yield from self._remove([*plan.removed, *plan.stale])
        yield from self.storage.stored[_CHUNKS].remove(plan.stale)
        if plan.stale:
            self.storage.note_removal()  # a question that has begun may miss the vectors
        gone = [key for key in plan.before if key not in plan.after]
        changed = [key for key, found in plan.described.items() if not _is_same(found, plan.before.get(key))]
        yield from self._descriptions.forget([*gone, *changed], plan.described)
        yield from self._rows.delete(gone)
        yield from self._rows.put(plan.after.values())
        yield from self._descriptions.store(plan.described)
        yield from self._rows.put_failed({key: found.error for key, found in plan.described.items()})
        yield from self._put(plan)
        counters = self.storage.struct.counters
        counters["documents"] = counters.get("documents", 0) + len(plan.after) - len(plan.before)
        counters["failed"] = len((yield from self._rows.failed()))

    def _documents(self, members: Mapping[str, Iterable[str]], change: Change) -> Steps[dict[str, DocumentEntry]]:
        """The documents that have chunks, by their chunks in any order, old ones and those of the change."""
        new = {node.node_id: node for node in change.added}
        old = yield from self.storage.manifest.entries_of(i for ids in members.values() for i in ids if i not in new)
        records: dict[str, Record] = {i: entry.record or {} for i, entry in old.items()}
        records |= {i: change.records.get(i, {}) for i in new}
        stands = {i: (entry.ref_doc_id, entry.key) for i, entry in old.items()}
        stands |= {i: (node.ref_doc_id, sort_key(node)) for i, node in new.items()}
        places = {
            i: ChunkPlace(i, document or "", str(records[i].get("page", "")), key)
            for i, (document, key) in stands.items()
        }
        known = {key: [places[i] for i in ids if i in places] for key, ids in members.items()}
        return {key: entry_of(key, of_document, records, {}) for key, of_document in known.items() if of_document}

    def _read(
        self, entries: Mapping[str, DocumentEntry], new: Mapping[str, BaseNode]
    ) -> Steps[dict[str, DocumentChunks]]:
        """The chunks of documents, without those that another index has deleted from the docstore."""
        old = [i for entry in entries.values() for i in entry.chunks if i not in new]
        nodes = {**(yield from self.storage.get_nodes(old)), **new}
        read = {}
        for key, entry in entries.items():
            pairs = [(nodes[i], on) for i, on in zip(entry.chunks, entry.goes_on, strict=True) if i in nodes]
            read[key] = DocumentChunks(key, [node for node, _ in pairs], [on for _, on in pairs])
        return read

    def _remove(self, chunks: Sequence[str]) -> Steps[None]:
        """Delete the headers and words of chunks."""
        rows = yield from self._rows.chunks(chunks)
        yield from self._rows.delete_chunks(chunks)
        self._count_headers(-sum(bool(row["header"]) for row in rows.values()))
        if chunks:
            yield from offload(self.terms.words.changed, chunks, {})

    def _put(self, plan: "_Plan") -> Steps[None]:
        """Store chunks with their headers."""
        if not plan.chunks:
            return
        nodes = [node for node, _, _ in plan.chunks.values()]
        yield from self.storage.put_chunks(nodes, np.stack([plan.vectors[text] for _, _, text in plan.chunks.values()]))
        headers = {i: header for i, (_, header, _) in plan.chunks.items()}
        document = {chunk: key for key, entry in plan.after.items() for chunk in entry.chunks}
        yield from self._rows.put_chunks(headers, document)
        self._count_headers(sum(map(bool, headers.values())))
        yield from offload(self.terms.words.changed, (), (yield from offload(self._terms_with_headers, plan.chunks)))

    def _terms_with_headers(self, chunks: Mapping[str, tuple[BaseNode, str, str]]) -> dict[str, Mapping[str, int]]:
        """The terms of chunks and their headers, by the id of the chunk."""
        terms = {i: lexical_terms(header) + lexical_terms(shown_text(node)) for i, (node, header, _) in chunks.items()}
        return {i: self.terms.labelled(chunks[i][0], of_chunk) for i, of_chunk in terms.items()}

    def _count_headers(self, more: int) -> None:
        counters = self.storage.struct.counters
        counters["contexts"] = counters.get("contexts", 0) + more

    # -- reading ------------------------------------------------------------------------------------

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[SpRAGState]:
        """The chunks near to a question."""
        return (yield from self._state(near.rows, selection))

    def state_around(self, chunks: Sequence[str], selection: Selection) -> Steps[SpRAGState]:
        """Those of some chunks that there are, without their vectors."""
        return (yield from self._state((yield from self.storage.stored[_CHUNKS].described(chunks)), selection))

    def _state(self, chunks: Snapshot, selection: Selection) -> Steps[SpRAGState]:
        return StoredSpRAGState(
            chunks=chunks,
            storage=self.storage,
            document_rows=self._rows,
            selection=selection,
            placed=(yield from self._rows.chunks(chunks.ids)),
        )

    def header(self, chunk: str) -> Steps[str]:
        """The header before a chunk, "" if it has none."""
        rows = yield from self._rows.chunks([chunk])
        return str(rows[chunk]["header"]) if chunk in rows else ""


@dataclass(frozen=True)
class _Plan:
    """What a write makes of some documents.

    Attributes
    ----------
    removed : ids of chunks that go
    before, after : the documents by key; those without chunks are not in `after`
    described : what is said about those in `after`
    stale : ids of stored chunks whose header is another now
    chunks : the chunks to store: id -> node, header, and the text that is embedded
    vectors : by text
    """

    removed: Sequence[str] = ()
    before: Mapping[str, DocumentEntry] = field(default_factory=dict)
    after: Mapping[str, DocumentEntry] = field(default_factory=dict)
    described: Mapping[str, Described] = field(default_factory=dict)
    stale: Sequence[str] = ()
    chunks: Mapping[str, tuple[BaseNode, str, str]] = field(default_factory=dict)
    vectors: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)


def _is_same(found: Described, before: DocumentEntry | None) -> bool:
    """Whether a description is that which is stored."""
    return before is not None and before.description == as_record(found)
