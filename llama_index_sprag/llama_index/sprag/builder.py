"""The builder of spRAG: describes the documents that a write changes, and embeds their chunks with headers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.ragkit import (
    Builder,
    Change,
    Failure,
    IndexStorage,
    Record,
    Resources,
    SpaceRows,
    Steps,
    offload,
    sort_key,
)
from llama_index.ragkit.text.lexical_index import LexicalIndex
from llama_index.ragkit.text.lexical_terms import lexical_terms
from llama_index.ragkit.text.salient_terms import CorpusTerms, telling_terms
from llama_index.ragkit.vectors.snapshot import Snapshot
from llama_index.sprag.config import SpRAGConfig
from llama_index.sprag.context.headers import contextualised
from llama_index.sprag.descriptions import CONTEXTS, Descriptions, as_record, document_of, shown_text
from llama_index.sprag.documents.entry import DocumentEntry, entry_of
from llama_index.sprag.documents.order import ChunkPlace
from llama_index.sprag.extraction.context_extractor import Described, DocumentChunks
from llama_index.sprag.state import SpRAGState

__all__ = ["ContextBuilder"]

_HEADER = "header"


class ContextBuilder(Builder[SpRAGConfig, SpRAGState]):
    """Keeps the descriptions of documents and the vectors of chunks with their headers up to date.

    Descriptions are records, by document; each row of the space "contexts" keeps its header. A delete calls no model:
    what a description or header has from a deleted chunk is deleted with it, and written again by the next write to
    the document or by `retry_failed()`.

    A chunk is embedded once: with its header, or as it is where it has none. A search that needs the other vector too
    asks for it (:meth:`embed_without_header`).
    """

    keeps_terms = False  # the words of a chunk are searched with those of its header
    embeds_chunks = False

    def __init__(self, storage: IndexStorage, resources: Resources, config: SpRAGConfig) -> None:
        super().__init__(storage, resources, config)
        self._descriptions = Descriptions(storage, resources, config)
        self._zeros: set[str] = set()  # chunks whose own vector is zero
        self._unfinished: set[str] = set()  # chunks of a write that ended before it embedded them: nobody sees them yet

    # -- the stored state -------------------------------------------------------------------------------

    def load(self) -> Steps[SpRAGState]:
        """Load the state from storage; rows that an interrupted write left behind are removed."""
        space = self.storage.spaces[CONTEXTS]
        rows = self.storage.snapshot()
        yield from space.remove([row for row in self.storage.snapshot(CONTEXTS).ids if row not in rows])
        entries = yield from self.storage.manifest.entries()
        contexts = self.storage.snapshot(CONTEXTS)
        begun = [i for i in rows.ids if i in entries and not entries[i].done and i not in contexts]
        self._unfinished = {i for i in begun if self._needs_vector(i)}
        chunks = self._chunks()
        records = {node_id: (entries[node_id].record or {}) if node_id in entries else {} for node_id in chunks.ids}
        described = yield from self.storage.records.get_all(CONTEXTS)
        groups: dict[str, list[str]] = {}
        for node_id, record in records.items():
            groups.setdefault(document_of(node_id, record), []).append(node_id)
        left = [key for key in described if key not in groups]  # by a delete that failed
        if left:
            yield from self._descriptions.forget(left)
        documents = {key: self._entry(key, ids, records, described.get(key, {})) for key, ids in groups.items()}
        lexical = yield from offload(self._lexical, LexicalIndex(), (), records)
        return SpRAGState(chunks, self.storage.snapshot(CONTEXTS), documents, lexical)

    def _chunks(self) -> Snapshot:
        """The rows of the chunks, without those of a write that ended early."""
        rows = self.storage.snapshot()
        hidden = [i for i in sorted(self._unfinished) if i in rows]
        if not hidden:
            return rows
        own = rows.compacted()  # a copy: nothing is hidden from the store itself
        return own.without(own.rows_of(hidden))

    def _entry(
        self, key: str, ids: Iterable[str], records: Mapping[str, Record], described: Mapping[str, object]
    ) -> DocumentEntry:
        rows = self.storage.snapshot()
        places = [
            ChunkPlace(i, rows.record_of(i).ref_doc_id or "", str(records[i].get("page", "")), rows.record_of(i).key)
            for i in ids
        ]
        return entry_of(key, places, records, described)

    def _lexical(self, lexical: LexicalIndex, removed: Iterable[str], records: Mapping[str, Record]) -> LexicalIndex:
        """The lexical index without some chunks, and with others under their stored headers."""
        contexts = self.storage.snapshot(CONTEXTS)
        terms_of: dict[str, Counter[str]] = {"": Counter()}
        added: dict[str, Mapping[str, int]] = {}
        for node_id in sorted(records):
            header = contexts.metadata_of(node_id)[_HEADER] if node_id in contexts else ""
            if header not in terms_of:
                terms_of[header] = lexical_terms(header)
            terms = records[node_id].get("terms", {})
            added[node_id] = terms if not header else terms_of[header] + Counter(terms)
        return lexical.changed(set(removed), added)

    # -- a write ----------------------------------------------------------------------------------------

    def apply(self, state: SpRAGState, change: Change) -> Steps[SpRAGState]:
        """Describe the documents of the change, and embed the chunks whose headers changed."""
        yield from self.storage.spaces[CONTEXTS].remove(change.removed)
        stored = yield from self.storage.manifest.entries_of(change.removed)
        touched = {
            state.place_of[i][0] if i in state.place_of else document_of(i, stored[i].record or {})
            for i in change.removed
            if i in state.place_of or i in stored
        }
        touched |= {document_of(node.node_id, change.records.get(node.node_id, {})) for node in change.added}
        return (yield from self._write(state, touched, change, may_call=bool(change.added)))

    def rebuild(self, state: SpRAGState) -> Steps[SpRAGState]:
        """Describe all documents again; those whose text is the same cost no LLM call."""
        return (yield from self._write(state, set(state.documents), Change(), may_call=True))

    def retry(self, state: SpRAGState) -> Steps[SpRAGState]:
        """Describe the documents that were not."""
        return (yield from self._write(state, set(state.undescribed), Change(), may_call=True))

    def failures(self, state: SpRAGState) -> list[Failure]:
        """The documents that were not described."""
        return [Failure(key, "context", state.documents[key].error) for key in state.undescribed]

    def _write(self, state: SpRAGState, touched: set[str], change: Change, *, may_call: bool) -> Steps[SpRAGState]:
        removed = set(change.removed)
        self._unfinished -= removed | {node.node_id for node in change.added}
        new = {node.node_id: node for node in change.added}
        members: dict[str, dict[str, None]] = {key: {} for key in sorted(touched)}
        for key in members:
            old = state.documents[key].chunks if key in state.documents else ()
            members[key].update(dict.fromkeys(i for i in old if i not in removed))
        for node_id in new:
            members[document_of(node_id, change.records.get(node_id, {}))][node_id] = None
        records = yield from self._records([i for ids in members.values() for i in ids], change)
        documents = dict(state.documents)
        gone = [key for key, ids in members.items() if not ids]
        for key in gone:
            documents.pop(key, None)
        entries = {key: self._entry(key, ids, records, {}) for key, ids in members.items() if ids}
        read = {}
        for key, entry in entries.items():
            read[key] = yield from self._fetch(entry, new)
        headers_before = {i: state.header(i) for ids in members.values() for i in ids}

        corpus = yield from self._corpus()
        described = yield from self._descriptions.describe(read, corpus, may_call=False)
        yield from self._descriptions.forget(
            [*gone, *(key for key, found in described.items() if found.description is None)]
        )
        yield from self._remove_stale(read, described)
        if may_call:
            todo = {key: read[key] for key, found in described.items() if found.description is None}
            described.update((yield from self._descriptions.describe(todo, corpus, may_call=True)) if todo else {})
            yield from self._embed(read, described)
        yield from self._descriptions.store(described)

        for key, found in described.items():
            documents[key] = self._entry(key, members[key], records, as_record(found))
        contexts = self.storage.snapshot(CONTEXTS)
        again = [
            i
            for i, before in headers_before.items()
            if i in new or before != (contexts.metadata_of(i)[_HEADER] if i in contexts else "")
        ]
        lexical = yield from offload(self._lexical, state.lexical, removed, {i: records[i] for i in again})
        after = SpRAGState(self._chunks(), contexts, documents, lexical)
        self.storage.struct.counters.update(
            documents=len(documents), contexts=len(contexts), failed=len(after.undescribed)
        )
        return after

    def _records(self, node_ids: Sequence[str], change: Change) -> Steps[dict[str, Record]]:
        """What is stored about chunks, or was extracted in this write."""
        records = {i: change.records[i] for i in node_ids if i in change.records}
        stored = yield from self.storage.manifest.entries_of(i for i in node_ids if i not in records)
        records.update({i: entry.record or {} for i, entry in stored.items()})
        return {i: records.get(i, {}) for i in node_ids}

    def _fetch(self, entry: DocumentEntry, new: Mapping[str, BaseNode]) -> Steps[DocumentChunks]:
        """The chunks of a document, without those that another index has deleted from the docstore."""
        nodes, goes_on = [], []
        for node_id, follows in zip(entry.chunks, entry.goes_on, strict=True):
            node = new[node_id] if node_id in new else (yield from self.storage.get_node(node_id))
            if node is not None:
                nodes.append(node)
                goes_on.append(follows)
        return DocumentChunks(entry.key, nodes, goes_on)

    def _corpus(self) -> Steps[CorpusTerms | None]:
        """The terms of all documents, where descriptions depend on them."""
        if not self._descriptions.extractor.needs_corpus:
            return None
        corpus = CorpusTerms()
        for entry in (yield from self.storage.manifest.entries()).values():
            corpus.add(telling_terms((entry.record or {}).get("terms", {})))
        return corpus

    # -- headers ----------------------------------------------------------------------------------------

    def _with_headers(
        self, read: Mapping[str, DocumentChunks], described: Mapping[str, Described]
    ) -> list[tuple[BaseNode, str]]:
        """All chunks of documents, each with its header."""
        pairs = []
        for key, document in read.items():
            headers = self._descriptions.headers(document, described[key])
            pairs += [(node, headers[node.node_id]) for node in document.nodes]
        return pairs

    def _remove_stale(self, read: Mapping[str, DocumentChunks], described: Mapping[str, Described]) -> Steps[None]:
        """Delete the rows whose header or chunk is another now."""
        rows = self.storage.snapshot(CONTEXTS)
        stale = [
            node.node_id
            for node, header in self._with_headers(read, described)
            if node.node_id in rows and not self._is_current(node, header)
        ]
        yield from self.storage.spaces[CONTEXTS].remove(stale)

    def _embed(self, read: Mapping[str, DocumentChunks], described: Mapping[str, Described]) -> Steps[None]:
        """Embed the chunks whose header has no row, and those without a header that have no vector."""
        todo = [
            (node, header)
            for node, header in self._with_headers(read, described)
            if (not self._is_current(node, header) if header else self._needs_vector(node.node_id))
        ]
        chunks = self.storage.snapshot()
        todo = [(node, header) for node, header in todo if node.node_id in chunks]
        if not todo:
            return
        vectors = yield from self.resources.embed(
            [contextualised(header, shown_text(node)) for node, header in todo], "chunks with headers"
        )
        bare = [place for place, (_, header) in enumerate(todo) if not header]
        yield from self._put_without_header([todo[place][0] for place in bare], vectors[bare])
        with_header = [place for place, (_, header) in enumerate(todo) if header]
        ids = [todo[place][0].node_id for place in with_header]
        rows = SpaceRows(
            ids=ids,
            vectors=vectors[with_header],
            keys=[sort_key(todo[place][0]) for place in with_header],
            ref_doc_ids=ids,
            metadatas=[{_HEADER: todo[place][1]} for place in with_header],
        )
        yield from self.storage.spaces[CONTEXTS].put(rows)

    def embed_without_header(self, state: SpRAGState, node_ids: Sequence[str]) -> Steps[SpRAGState]:
        """Embed chunks as they are, without their headers, where that was not done yet.

        Chunks that another index has deleted from the docstore are left out.
        """
        nodes = []
        for node_id in node_ids:
            node = (yield from self.storage.get_node(node_id)) if node_id in state.chunks else None
            if node is not None and self._needs_vector(node_id):
                nodes.append(node)
        if nodes:
            vectors = yield from self.resources.embed([shown_text(node) for node in nodes], "chunks without headers")
            yield from self._put_without_header(nodes, vectors)
        return replace(state, chunks=self._chunks())

    def without_vector(self, state: SpRAGState, context_weight: float) -> list[str]:
        """See :meth:`SpRAGState.without_vector`; without texts that the model gives no vector but zeros."""
        return [node_id for node_id in state.without_vector(context_weight) if node_id not in self._zeros]

    def _put_without_header(self, nodes: Sequence[BaseNode], vectors: NDArray[np.float32]) -> Steps[None]:
        self._zeros.update(node.node_id for node, vector in zip(nodes, vectors, strict=True) if not vector.any())
        if nodes:
            yield from self.storage.put_chunks(nodes, vectors)

    def _needs_vector(self, node_id: str) -> bool:
        """Whether a chunk was not embedded without a header yet; with a store of the user's, all were."""
        if self.storage.external is not None:
            return False
        rows = self.storage.snapshot()
        return node_id in rows and not rows.vectors_of([node_id]).any()

    def _is_current(self, node: BaseNode, header: str) -> bool:
        rows = self.storage.snapshot(CONTEXTS)
        if node.node_id not in rows:
            return False
        record = rows.record_of(node.node_id)
        return record.key == sort_key(node) and rows.metadata_of(node.node_id)[_HEADER] == header
