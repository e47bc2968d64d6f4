"""`DocumentRows` and `CorpusRows`: the documents of an index, and how often they have each term, as records."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from llama_index.ragkit import SpaceRows, Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.salient_terms import CorpusTerms
from llama_index.sprag.descriptions import CONTEXTS, document_of
from llama_index.sprag.documents import DocumentEntry

__all__ = ["CorpusRows", "DocumentRows", "brought_forward"]

_DOCUMENTS, _CHUNKS, _FAILED = "sprag_documents", "sprag_chunks", "sprag_failed"
_FIELDS = ("chunks", "goes_on", "tokens", "characters")  # of a row, as in `DocumentEntry.as_json`
_TERMS = "sprag_terms"
_TOTAL = "all terms"  # the key of their number; a term has no space


class DocumentRows:
    """Documents as sequences of chunks, and the headers of chunks.

    The row of a document holds its chunks in reading order, whether each continues the one before, and their lengths.
    The row of a chunk holds its document and its header; it exists while the chunk has a vector. Another collection
    holds the documents that were not described.
    """

    def __init__(self, storage: IndexStorage) -> None:
        self._records = storage.records

    def of(self, keys: Iterable[str]) -> Steps[dict[str, DocumentEntry]]:
        """The documents that exist, with their descriptions."""
        rows = yield from self._records.get_many(_DOCUMENTS, keys)
        described = yield from self._records.get_many(CONTEXTS, rows)
        return {key: _entry(key, row, described.get(key, {})) for key, row in rows.items()}

    def keys(self) -> Steps[list[str]]:
        """All documents, sorted."""
        return sorted((yield from self._records.get_all(_DOCUMENTS)))

    def chunks(self, ids: Iterable[str]) -> Steps[dict[str, Record]]:
        """`"document"` and `"header"` of the chunks that have a vector."""
        return (yield from self._records.get_many(_CHUNKS, ids))

    def all_chunks(self) -> Steps[dict[str, Record]]:
        """As :meth:`chunks`, of all chunks; the header is None if the vector may be that of another header."""
        return (yield from self._records.get_all(_CHUNKS))

    def failed(self) -> Steps[dict[str, Record]]:
        """Why documents were not described, and which class described them instead, by key in sorted order."""
        return dict(sorted((yield from self._records.get_all(_FAILED)).items()))

    def put_all(self, documents: Mapping[str, DocumentEntry], chunks: Mapping[str, Record]) -> Steps[None]:
        """Store all documents and chunks in place of what is stored."""
        failed = {key: _failure(document.error, document.by) for key, document in documents.items() if document.error}
        wanted = {_DOCUMENTS: {key: _row(document) for key, document in documents.items()}, _FAILED: failed}
        for collection, rows in {**wanted, _CHUNKS: chunks}.items():
            yield from self._records.replace(collection, rows)

    def put(self, documents: Iterable[DocumentEntry]) -> Steps[None]:
        """Store documents, without their descriptions."""
        yield from self._records.put(_DOCUMENTS, [(document.key, _row(document)) for document in documents])

    def delete(self, keys: Sequence[str]) -> Steps[None]:
        """Delete documents."""
        yield from self._records.delete(_DOCUMENTS, keys)
        yield from self._records.delete(_FAILED, keys)

    def put_failed(self, failed: Mapping[str, tuple[str, str]]) -> Steps[None]:
        """Store why documents were not described, `""` for others, and which class described them instead."""
        rows = {key: _failure(error, by) if error else None for key, (error, by) in failed.items()}
        yield from self._records.update(_FAILED, rows)

    def put_chunks(self, headers: Mapping[str, str], document_of: Mapping[str, str]) -> Steps[None]:
        """Store the headers of chunks, `""` for those without one."""
        rows = [(i, {"document": document_of[i], "header": header}) for i, header in headers.items()]
        yield from self._records.put(_CHUNKS, rows)

    def delete_chunks(self, ids: Iterable[str]) -> Steps[None]:
        """Delete the headers of chunks."""
        yield from self._records.delete(_CHUNKS, ids)


class CorpusRows:
    """A row for each term, so that a write reads and changes only those of its documents."""

    def __init__(self, storage: IndexStorage) -> None:
        self._records = storage.records

    def of(self, terms: Iterable[str], more: Mapping[str, int]) -> Steps[CorpusTerms]:
        """The counts of some terms, and of all together, after a change that adds `more` of each, or removes some."""
        counts = yield from self._counts([*terms, _TOTAL])
        total = counts.pop(_TOTAL, 0) + sum(more.values())
        return CorpusTerms({term: counts.get(term, 0) + more.get(term, 0) for term in terms}, total)

    def change(self, more: Mapping[str, int]) -> Steps[None]:
        """Add to the counts of terms; see :meth:`of`."""
        if not more:
            return
        counts = yield from self._counts([*more, _TOTAL])
        new = {term: counts.get(term, 0) + count for term, count in more.items() if count}
        new[_TOTAL] = counts.get(_TOTAL, 0) + sum(more.values())
        yield from self._records.update(_TERMS, {term: {"count": n} if n > 0 else None for term, n in new.items()})

    def put_all(self, terms: Mapping[str, int]) -> Steps[None]:
        """Store the terms of all documents in place of the stored counts."""
        wanted = {**terms, _TOTAL: sum(terms.values())}
        yield from self._records.replace(_TERMS, {term: {"count": n} for term, n in wanted.items() if n > 0})

    def _counts(self, terms: Iterable[str]) -> Steps[dict[str, int]]:
        rows = yield from self._records.get_many(_TERMS, terms)
        return {term: row["count"] for term, row in rows.items()}


def _failure(error: str, by: str) -> Record:
    return {"error": error, **({"by": by} if by else {})}


def _row(document: DocumentEntry) -> Record:
    return dict(zip(_FIELDS, map(list, document.as_json()), strict=False))


def _entry(key: str, row: Record, description: Record) -> DocumentEntry:
    return DocumentEntry.of_json(key, [*(row[name] for name in _FIELDS), description])


def brought_forward(storage: IndexStorage, entries: Mapping[str, Any]) -> Steps[dict[str, Record]]:
    """Convert an index in memory of an earlier version: replace the vectors of chunks without headers by those with
    headers, and return the rows of the chunks.

    In earlier versions the space "chunks" had the vectors without header, or zeros, and "contexts" those with a header.
    From now on "contexts" has the vectors without header. `entries` are those of the manifest.
    """
    chunks, contexts = storage.snapshot(), storage.snapshot(CONTEXTS)
    ids = [i for i in contexts.ids if i in chunks and chunks.record_of(i).key == contexts.record_of(i).key]
    headers = {i: contexts.metadata_of(i).get("header", "") for i in ids}
    alone, together = (each.vectors_of(ids) if ids else np.zeros((0, 0), np.float32) for each in (chunks, contexts))
    rows: dict[str, Record] = {}
    for i, vector in zip(chunks.ids, chunks.matrix, strict=True):
        if i in entries and (i in headers or vector.any() or entries[i].done):
            header = headers.get(i, "" if vector.any() else None)  # None: embedded by the next write to the document
            rows[i] = {"document": document_of(i, entries[i].record or {}), "header": header}
    is_plain = alone.any(axis=1) & (alone != together).any(axis=1)
    plain = [i for i, found in zip(ids, is_plain, strict=True) if found]
    keys = [chunks.record_of(i).key for i in ids]
    documents, metadatas = [chunks.record_of(i).ref_doc_id for i in ids], [chunks.metadata_of(i) for i in ids]
    yield from storage.space().put(SpaceRows(ids, together, keys, documents, metadatas))
    yield from storage.space(CONTEXTS).remove(contexts.ids)
    plain_keys = [key for key, found in zip(keys, is_plain, strict=True) if found]
    yield from storage.space(CONTEXTS).put(SpaceRows(plain, alone[is_plain], plain_keys, plain))
    return rows
