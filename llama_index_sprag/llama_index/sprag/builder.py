"""`ContextBuilder`: describes the documents that a write changes, and embeds their chunks with headers."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, NamedTuple

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.ragkit import Builder, Change, Failure, Selection, Snapshot, SpaceRows, Steps, offload
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.llm.embeddings import check_model
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.interface import Space
from llama_index.ragkit.storage.nodes import sort_key
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.stored_chunks import ChunkView, StoredChunks
from llama_index.ragkit.text.lexical_index import LexicalIndex, lexical_terms
from llama_index.ragkit.text.salient_terms import CorpusTerms, telling_terms
from llama_index.sprag.config import SpRAGConfig
from llama_index.sprag.context.headers import contextualised
from llama_index.sprag.descriptions import CONTEXTS, Descriptions, as_record, document_of, shown_text
from llama_index.sprag.document_rows import CorpusRows, DocumentRows, brought_forward
from llama_index.sprag.documents import ChunkPlace, DocumentEntry, entry_of
from llama_index.sprag.extraction.context_extractor import Described, DocumentChunks
from llama_index.sprag.state import SpRAGState

__all__ = ["PLAIN", "ContextBuilder"]

PLAIN = "plain"
"""The space for the vectors, without header, of chunks that have a header."""

_AT_ONCE = 100  # documents that are described again together


class ContextBuilder(Builder[SpRAGConfig, SpRAGState]):
    """Keeps documents and headers as rows, and in the space "chunks" the vector of each chunk with its header.

    A write reads and changes the rows of its documents. A chunk has one vector: of its header and text, or only of its
    text if it has no header. An index in memory has a second space with vectors, without header, of chunks that have
    one: vectors that nodes brought, that the user's vector store has, or that a search needed (:meth:`embed_plain`).

    A delete calls no LLM. Parts of a description or header that come from a deleted chunk are deleted with it. Chunks
    whose header changes by that are embedded again. A description that needs an LLM is written by the next write to the
    document or by `retry_failed()`.
    """

    keeps_terms: ClassVar[bool] = False  # the words of a chunk are searched with those of its header
    embeds_chunks: ClassVar[bool] = False

    def __init__(self, storage: IndexStorage, resources: Resources, config: SpRAGConfig) -> None:
        super().__init__(storage, resources, config)
        self._descriptions = Descriptions(storage, resources, config)
        self._rows = DocumentRows(storage)
        self._corpus = CorpusRows(storage)
        self._words = storage.stores.words()
        self._ready = _Plan()  # of the write that is about to begin
        self._unfinished: set[str] = set()  # chunks of a write that ended early: nobody sees them yet
        if storage.external is not None:
            storage.external.vectors_of = self._plain_vectors

    @property
    def chunks(self) -> StoredChunks:
        """The chunks with their headers, by their vectors and by their words."""
        return replace(super().chunks, terms=self._words)

    @property
    def _plain(self) -> Space | None:
        """The space of chunks without their headers, if any; in an index of an earlier version, its second space."""
        name = next((name for name in (PLAIN, CONTEXTS) if name in self.storage.struct.spaces), None)
        return None if name is None else self.storage.space(name)

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[SpRAGState]:
        """The whole index if it is in memory, else an empty state.

        Repairs what an interrupted write has left: chunks without a row get one without a header, so that the next
        write to their document embeds them again.
        """
        if not self.storage.is_whole:
            return SpRAGState()
        entries = yield from self.storage.manifest.entries()
        rows = dict((yield from self._rows.all_chunks()))
        if not rows and CONTEXTS in self.storage.struct.spaces:
            rows = yield from brought_forward(self.storage, entries)
        chunks = self.storage.snapshot()
        for i in chunks.ids:
            if i not in rows and i in entries and entries[i].done:
                rows[i] = {"document": document_of(i, entries[i].record or {}), "header": None}
        rows = {i: row for i, row in rows.items() if i in entries and i in chunks}
        self._unfinished = {i for i in chunks.ids if i not in rows}
        described = yield from self.storage.records.get_all(CONTEXTS)
        groups: dict[str, list[str]] = {}
        for i, row in rows.items():
            groups.setdefault(row["document"], []).append(i)
        yield from self._descriptions.forget([key for key in described if key not in groups])
        records = {i: entries[i].record or {} for i in rows}
        stands = {i: (entries[i].ref_doc_id, entries[i].key) for i in rows}
        documents = _documents(groups, stands, records, described)
        yield from self._rows.put_all(documents, rows)
        headers = {i: row["header"] for i, row in rows.items() if row["header"]}
        if self._descriptions.extractor.needs_corpus:
            yield from self._corpus.put_all(_telling(records))
        old = self._words.whole()
        gone = [i for ids in old.ids for i in ids] if old is not None else []
        yield from offload(self._words.changed, gone, (yield from offload(_with_headers, records, headers)))
        counted = {"documents": len(documents), "contexts": len(headers)}
        self.storage.struct.counters.update(counted, failed=sum(bool(each.error) for each in documents.values()))
        state = SpRAGState(documents=documents, document_of={i: row["document"] for i, row in rows.items()})
        return replace(
            state, headers=headers, chunks=self._seen(), plain=self._all_plain(), lexical=self._words.whole()
        )

    def arrays_of(self, state: SpRAGState) -> Arrays:
        """Documents, headers and words; nothing while there are chunks of an interrupted write."""
        return state.arrays() if state.is_whole and not self._unfinished else {}

    def load_arrays(self, arrays: Arrays) -> SpRAGState | None:
        """The state of :meth:`arrays_of`, made into objects when a search needs them."""
        state = SpRAGState.of_arrays(arrays, self.storage.snapshot(), self._all_plain())
        self._words.load(state.lexical or LexicalIndex())
        self._unfinished = set()
        return state

    def _seen(self) -> Snapshot:
        """The rows of the chunks, without those of an interrupted write."""
        rows = self.storage.snapshot()
        hidden = [i for i in self._unfinished if i in rows]
        if not hidden:
            return rows
        own = rows.compacted()  # a copy: nothing is hidden from the store itself
        return own.without(own.rows_of(hidden))

    def _all_plain(self) -> Snapshot:
        found = None if self._plain is None else self._plain.whole()
        return Snapshot.empty() if found is None else found

    # -- writing ------------------------------------------------------------------------------------

    def prepare(self, change: Change) -> Steps[None]:
        """Describe the documents of a change, and embed its chunks and those whose headers change."""
        gone = yield from self.storage.manifest.entries_of(change.removed)
        records = {i: entry.record or {} for i, entry in gone.items()}
        touched = {document_of(i, record) for i, record in records.items()}
        touched |= {document_of(node.node_id, change.records.get(node.node_id, {})) for node in change.added}
        self._ready = yield from self._plan(touched, change, records, may_call=bool(change.added))

    def searched(self, change: Change) -> tuple[Sequence[BaseNode], Sequence[str], NDArray[np.float32]]:
        """See :meth:`Builder.searched`; the texts have their headers."""
        ready = self._ready
        nodes = [node for node in change.added if node.node_id in ready.chunks]
        texts = [ready.chunks[node.node_id].text for node in nodes]
        return nodes, texts, np.stack([ready.vectors[text] for text in texts]) if texts else change.vectors

    def apply(self, state: SpRAGState, change: Change) -> Steps[SpRAGState]:
        """Store what was prepared."""
        ready, self._ready = self._ready, _Plan()
        return (yield from self._carry_out(state, ready))

    def rebuild(self, state: SpRAGState) -> Steps[SpRAGState]:
        """Describe all documents again; unchanged texts cost no LLM call."""
        return (yield from self._write_again(state, (yield from self._rows.keys())))

    def retry(self, state: SpRAGState) -> Steps[SpRAGState]:
        """Describe the documents that have no description."""
        return (yield from self._write_again(state, list((yield from self._rows.failed()))))

    def failures(self, state: SpRAGState) -> list[Failure]:
        """The documents that were not described, or only by rules."""
        failed = run_steps(self._rows.failed())
        return [Failure(key, "context", row["error"], row.get("by", "")) for key, row in failed.items()]

    def _write_again(self, state: SpRAGState, keys: Sequence[str]) -> Steps[SpRAGState]:
        for start in range(0, len(keys), _AT_ONCE):
            plan = yield from self._plan(set(keys[start : start + _AT_ONCE]), Change(), {}, may_call=True)
            state = yield from self._carry_out(state, plan)
        return state

    def _plan(self, touched: set[str], change: Change, gone: Mapping[str, Record], *, may_call: bool) -> Steps["_Plan"]:
        """Plan what a change does to documents; stores nothing. `gone` has the records of the removed chunks."""
        removed, new = set(change.removed), {node.node_id: node for node in change.added}
        before = yield from self._rows.of(sorted(touched))
        members: dict[str, dict[str, None]] = {key: {} for key in sorted(touched)}
        for key, entry in before.items():
            members[key].update(dict.fromkeys(i for i in entry.chunks if i not in removed))
        for node_id in new:
            members[document_of(node_id, change.records.get(node_id, {}))][node_id] = None
        old = yield from self.storage.manifest.entries_of(i for ids in members.values() for i in ids if i not in new)
        records: dict[str, Record] = {i: entry.record or {} for i, entry in old.items()}
        records |= {i: change.records.get(i, {}) for i in new}
        stands = {i: (entry.ref_doc_id, entry.key) for i, entry in old.items()}
        stands |= {i: (node.ref_doc_id, sort_key(node)) for i, node in new.items()}
        after = _documents(members, stands, records)
        read = yield from self._read(after, new)
        placed = yield from self._rows.chunks([*gone, *records])
        counted = {i for i in records if i in placed and i not in removed}
        corpus, terms = yield from self._corpus_after(records, gone, placed, counted)
        ready = self._ready
        described = yield from self._descriptions.describe(read, corpus, may_call=False, ready=ready.described)
        unknown = {key: read[key] for key, found in described.items() if found.description is None}
        if may_call and unknown:
            described |= yield from self._descriptions.describe(unknown, corpus, may_call=True)
        described |= yield from self._descriptions.by_rules(read, described, corpus, may_call=may_call)
        headers: dict[str, str] = {}
        for key, document in read.items():
            headers |= self._descriptions.headers(document, described[key])
        other = [i for i, header in headers.items() if i not in counted or placed[i]["header"] != header]
        stale = [i for i in other if i in counted]
        nodes = {node.node_id: node for document in read.values() for node in document.nodes}
        texts = {i: contextualised(headers[i], shown_text(nodes[i])) for i in other}
        vectors, plain = yield from self._vectors(change, texts, headers, placed, stale)
        return _Plan(
            removed=list(removed),
            before=before,
            after=after,
            described=described,
            stale=stale,
            lost=sum(bool(placed[i]["header"]) for i in [*gone, *stale] if i in placed),
            chunks={i: _Chunk(nodes[i], headers[i], texts[i], records[i].get("terms", {})) for i in other},
            vectors=vectors,
            plain=plain,
            terms=terms,
        )

    def _corpus_after(
        self,
        records: Mapping[str, Record],
        gone: Mapping[str, Record],
        placed: Collection[str],
        counted: Collection[str],
    ) -> Steps[tuple[CorpusTerms | None, Counter[str]]]:
        """The terms of all documents after a change, if descriptions depend on them, and the terms that it adds."""
        terms = Counter[str]()
        if not self._descriptions.extractor.needs_corpus:
            return None, terms
        terms.update(_telling({i: record for i, record in records.items() if i not in counted}))
        terms.subtract(_telling({i: record for i, record in gone.items() if i in placed}))
        return (yield from self._corpus.of(_telling(records), terms)), terms

    def _vectors(
        self,
        change: Change,
        texts: Mapping[str, str],
        headers: Mapping[str, str],
        placed: Mapping[str, Record],
        stale: Sequence[str],
    ) -> Steps[tuple[dict[str, NDArray[np.float32]], dict[str, NDArray[np.float32]]]]:
        """The vectors of chunks by their `texts`, and the vectors, without header, of chunks that have one."""
        pairs = zip(change.added, change.vectors, strict=True)
        given = {n.node_id: row for n, row in pairs if n.node_id not in change.repeated and row.any()}
        plain = given | (yield from self._stored_plain(stale, placed, headers))
        ready = self._ready.vectors
        vectors = {text: ready[text] for text in texts.values() if text in ready}
        vectors |= {text: plain[i] for i, text in texts.items() if not headers[i] and i in plain}
        bare = list(dict.fromkeys(text for text in texts.values() if text not in vectors))
        if bare:
            if not change.added:  # a write has checked the model for its nodes
                yield from check_model(self.resources.embed_model, self.storage.struct.embedding)
            vectors.update(zip(bare, (yield from self.resources.embed(bare, "chunks with headers")), strict=True))
        return vectors, {i: plain[i] for i in texts if headers[i] and i in plain}

    def _stored_plain(
        self, chunks: Sequence[str], placed: Mapping[str, Record], headers: Mapping[str, str]
    ) -> Steps[dict[str, NDArray[np.float32]]]:
        """The known vectors, without header, of stored chunks that lose or get a header."""
        if self._plain is None:
            return {}
        lose = yield from self._plain.fetch([i for i in chunks if not headers[i]])
        get = yield from self.storage.space().fetch([i for i in chunks if headers[i] and placed[i]["header"] == ""])
        return {i: row for rows in (lose, get) for i, row in zip(rows.ids, rows.matrix, strict=True)}

    def _carry_out(self, state: SpRAGState, plan: "_Plan") -> Steps[SpRAGState]:
        """Store documents and chunks as planned."""
        yield from self._remove(plan)
        gone = [key for key in plan.before if key not in plan.after]
        known = {key: entry.description for key, entry in plan.before.items()}
        changed = [key for key, found in plan.described.items() if as_record(found) != known.get(key)]
        yield from self._descriptions.forget([*gone, *changed], plan.described)
        yield from self._rows.delete(gone)
        yield from self._rows.put(plan.after.values())
        yield from self._corpus.change(plan.terms)
        yield from self._descriptions.store(plan.described)
        yield from self._rows.put_failed({key: (found.error, found.by) for key, found in plan.described.items()})
        yield from self._put(plan)
        self.storage.struct.count(documents=len(plan.after) - len(plan.before))
        self.storage.struct.counters["failed"] = len((yield from self._rows.failed()))
        lexical = self._words.whole()
        if lexical is None:
            return state
        documents: dict[str, DocumentEntry | None] = dict.fromkeys(gone)
        for key, entry in plan.after.items():
            documents[key] = replace(entry, description=as_record(plan.described[key]))
        headers = {i: chunk.header for i, chunk in plan.chunks.items()}
        return state.changed(self._seen(), self._all_plain(), lexical, plan.removed, documents, headers)

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

    def _remove(self, plan: "_Plan") -> Steps[None]:
        """Delete headers and words of chunks that are removed or changed, and vectors of those that are removed."""
        chunks = [*plan.removed, *plan.stale]
        yield from self._rows.delete_chunks(chunks)
        self.storage.struct.count(contexts=-plan.lost)
        self._unfinished.difference_update(plan.removed)
        if self._plain is not None:
            yield from self._plain.remove(plan.removed)
        if chunks:
            yield from offload(self._words.changed, chunks, {})
        if plan.stale:
            self.storage.commits.note_removal()  # a question that has begun may miss the vectors

    def _put(self, plan: "_Plan") -> Steps[None]:
        """Store chunks with their headers."""
        if not plan.chunks:
            return
        nodes = [chunk.node for chunk in plan.chunks.values()]
        if self._plain is not None and plan.plain:
            yield from self._plain.put(_plain_rows([n for n in nodes if n.node_id in plan.plain], plan.plain))
        vectors = np.stack([plan.vectors[chunk.text] for chunk in plan.chunks.values()])
        yield from self.storage.put_chunks(nodes, vectors, mirrored=False)
        headers = {i: chunk.header for i, chunk in plan.chunks.items()}
        document = {i: key for key, entry in plan.after.items() for i in entry.chunks}
        yield from self._rows.put_chunks(headers, document)
        self._unfinished.difference_update(headers)
        self.storage.struct.count(contexts=sum(map(bool, headers.values())))
        terms = yield from offload(_with_headers, {i: {"terms": c.terms} for i, c in plan.chunks.items()}, headers)
        labelled = {node.node_id: self.terms.labelled(node, terms[node.node_id]) for node in nodes}
        yield from offload(self._words.changed, (), labelled)

    # -- chunks without their headers ---------------------------------------------------------------

    def without_plain(self, state: SpRAGState, context_weight: float) -> list[str]:
        """Chunks with a header whose vectors without it a search with this weight needs, and that have none."""
        if context_weight == 1:
            return []
        if self._plain is None:
            raise ConfigurationError(
                f"context_weight={context_weight:g} also compares a question with chunks without their headers. An "
                "index that is served from stores does not have their vectors: leave it at 1, or build it in memory."
            )
        return state.without_plain

    def embed_plain(self, state: SpRAGState, chunks: Sequence[str]) -> Steps[SpRAGState]:
        """Embed chunks without their headers, except those that another index has deleted from the docstore."""
        nodes = yield from self.storage.get_nodes([i for i in chunks if i in state.headers])
        if self._plain is None or not nodes:
            return state
        vectors = yield from self.resources.embed([shown_text(n) for n in nodes.values()], "chunks without headers")
        yield from self._plain.put(_plain_rows(list(nodes.values()), dict(zip(nodes, vectors, strict=True))))
        return replace(state, plain=self._all_plain())

    def _plain_vectors(self, chunks: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of chunks without their headers."""
        vectors, plain = self.storage.snapshot().vectors_of(chunks), self._all_plain()
        known = [row for row, i in enumerate(chunks) if i in plain]
        if known:
            vectors[known] = plain.vectors_of([chunks[row] for row in known])
        return vectors

    # -- reading ------------------------------------------------------------------------------------

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[SpRAGState]:
        """The chunks near to a question."""
        return (yield from self._state(near.rows))

    def state_around(self, state: SpRAGState, nodes: Sequence[BaseNode]) -> Steps[SpRAGState]:
        """A state with the chunks of some nodes, or of their originals; the vectors may be meaningless."""
        return state if state.is_whole else (yield from self._state((yield from self.storage.rows_matching(nodes))))

    def _state(self, chunks: Snapshot) -> Steps[SpRAGState]:
        rows = yield from self._rows.chunks(chunks.ids)
        document_of = {i: row["document"] for i, row in rows.items()}
        return SpRAGState(chunks, {}, document_of, {i: row["header"] for i, row in rows.items() if row["header"]})

    def with_documents(self, state: SpRAGState, keys: Iterable[str], selection: Selection) -> Steps[SpRAGState]:
        """A state with some documents, and with the set of their chunks that may be shown."""
        wanted = dict.fromkeys(keys)
        if not state.is_whole:
            further = yield from self._rows.of([key for key in wanted if key not in state.documents])
            document_of = {i: key for key, document in further.items() for i in document.chunks}
            documents = {**state.documents, **further}
            state = replace(state, documents=documents, document_of={**state.document_of, **document_of})
        if selection.is_whole:
            return state
        chunks = [i for key in wanted if key in state.documents for i in state.documents[key].chunks]
        if state.is_whole:
            places = state.chunks.rows_of(chunks)
            rows = state.chunks.part(places[places >= 0])
        else:
            rows = yield from self.storage.space().described(chunks)
        passed = [rows.ids[row] for row in np.flatnonzero(selection.mask(rows))] if len(rows) else []
        return replace(state, passing=frozenset(passed) | (state.passing or frozenset()))

    def with_headers(self, state: SpRAGState, chunks: Iterable[str]) -> Steps[SpRAGState]:
        """A state with the headers of some chunks."""
        if state.is_whole:
            return state
        rows = yield from self._rows.chunks([i for i in chunks if i not in state.chunks])
        further = {i: row["header"] for i, row in rows.items() if row["header"]}
        return replace(state, headers={**state.headers, **further})


class _Chunk(NamedTuple):
    """A chunk to be stored: its node, its header, the text that is embedded, and the terms of the node."""

    node: BaseNode
    header: str
    text: str
    terms: Mapping[str, int]


@dataclass(frozen=True)
class _Plan:
    """The changes that a write makes to some documents, and to their chunks, by id."""

    removed: Sequence[str] = ()
    before: Mapping[str, DocumentEntry] = field(default_factory=dict)
    after: Mapping[str, DocumentEntry] = field(default_factory=dict)  # only documents that have chunks
    described: Mapping[str, Described] = field(default_factory=dict)  # the documents in `after`
    stale: Sequence[str] = ()  # stored chunks whose header changes
    lost: int = 0  # how many removed or stale chunks have a header
    chunks: Mapping[str, _Chunk] = field(default_factory=dict)  # to be stored
    vectors: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # by text
    plain: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # known ones, without header
    terms: Mapping[str, int] = field(default_factory=dict)  # added to the corpus


def _documents(
    members: Mapping[str, Iterable[str]],
    stands: Mapping[str, tuple[str | None, str]],
    records: Mapping[str, Record],
    described: Mapping[str, Record] = MappingProxyType({}),
) -> dict[str, DocumentEntry]:
    """The documents that have chunks, from the LlamaIndex document and the sort key of each chunk."""
    places = {
        i: ChunkPlace(i, document or "", str(records[i].get("page", "")), key) for i, (document, key) in stands.items()
    }
    known = {key: [places[i] for i in ids if i in places] for key, ids in members.items()}
    return {key: entry_of(key, found, records, described.get(key, {})) for key, found in known.items() if found}


def _with_headers(records: Mapping[str, Record], headers: Mapping[str, str]) -> dict[str, Mapping[str, int]]:
    """The terms of chunks and their headers, by the id of the chunk."""
    of_headers = {header: lexical_terms(header) for header in dict.fromkeys(headers.values())}
    terms: dict[str, Mapping[str, int]] = {}
    for i, record in records.items():
        found = dict(record.get("terms", {}))
        for term, count in of_headers.get(headers.get(i, ""), {}).items():
            found[term] = found.get(term, 0) + count
        terms[i] = found
    return terms


def _telling(records: Mapping[str, Record]) -> Counter[str]:
    """The terms of all chunks together that may tell documents apart."""
    terms = Counter[str]()
    for record in records.values():
        terms.update(telling_terms(record.get("terms", {})))
    return terms


def _plain_rows(nodes: Sequence[BaseNode], vectors: Mapping[str, NDArray[np.float32]]) -> SpaceRows:
    ids = [node.node_id for node in nodes]
    return SpaceRows(ids, np.stack([vectors[i] for i in ids]), [sort_key(node) for node in nodes], ids)
