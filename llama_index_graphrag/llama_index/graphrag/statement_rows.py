"""`StatementRows`: the statements of an index's chunks, as rows; a write changes only the rows that it touches."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from llama_index.graphrag.graph.statement import ChunkStatements
from llama_index.graphrag.graph.statement_edges import Resolved, stated_number, statement_edges
from llama_index.graphrag.graph.statement_graph import StatementGraph, resolved_graph
from llama_index.ragkit import Records, Steps, offload
from llama_index.ragkit.storage.graph.edges import EdgeChange
from llama_index.ragkit.storage.graph.interface import GraphRows
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record

__all__ = ["StatementRows", "chunk_statements", "graph_of", "store_rewritten"]

_STATEMENTS = "statements"
_DOCUMENTS = "statement_documents"
_SCOPES = "statement_scopes"


class StatementRows:
    """Reads and writes the statements of one index.

    There is a record for each chunk, with its statements and the longer names for which its names stand; for each
    document, with its chunks; and for each scope, with its number of chunks. The graph, in the same database, has the
    sums that follow from these (:mod:`llama_index.graphrag.graph.statement_edges`), and, if `stated`, the names that
    are embedded.
    """

    def __init__(self, rows: GraphRows, records: Records, stated: bool) -> None:
        self.graph = rows
        self._records = records
        self._stated = stated

    # -- reading ------------------------------------------------------------------------------------

    def of(self, node_ids: Iterable[str]) -> Steps[dict[str, Resolved]]:
        """The stored chunks among these."""
        stored = yield from self._records.get_many(_STATEMENTS, node_ids)
        return {node_id: _resolved(node_id, record) for node_id, record in stored.items()}

    def are_all(self, chunks: Iterable[ChunkStatements]) -> Steps[bool]:
        """Whether these are all chunks of their scopes; False if an earlier version did not count these."""
        seen = Counter(map(_scope_key, chunks))
        sizes = yield from self._records.get_many(_SCOPES, sorted(seen))
        return all(sizes.get(scope) == {"chunks": number} for scope, number in seen.items())

    def everything(self) -> Steps[StatementGraph]:
        """The statements of all chunks, in memory."""
        stored = yield from self._records.get_all(_STATEMENTS)
        return (yield from offload(lambda: graph_of(_resolved(i, record) for i, record in stored.items())))

    def still_stated(self, names: Mapping[str, int]) -> Steps[set[str]]:
        """The names within their scopes, each with its number of chunks to be removed, that other chunks state, too."""
        return (yield from offload(self._still_stated, sorted(names.items()))) if names else set()

    def _still_stated(self, names: Sequence[tuple[str, int]]) -> set[str]:
        with self.graph.reader() as reader:
            rows = reader.fetch(np.array([stated_number(name) for name, _ in names], np.int64))
        counts = np.zeros(len(names), np.int64)
        counts[np.diff(rows.indptr) > 0] = rows.records["count"]  # one for each name
        return {name for (name, gone), count in zip(names, counts.tolist(), strict=True) if count > gone}

    # -- a write ------------------------------------------------------------------------------------

    def around(self, removed: Iterable[str], added: Iterable[ChunkStatements]) -> Steps[dict[str, Resolved]]:
        """The chunks that a write reads: those that it removes or replaces, those from which their descriptions were
        also merged, and all chunks of the documents of these and of new chunks, since a name in one chunk may stand for
        a longer name in another.
        """
        given = list(added)
        known = yield from self.of(sorted({*removed, *(chunk.chunk_id for chunk in given)}))
        merged = {
            i for each in known.values() for statement in each.chunk.all_statements for i in statement.merged_from
        }
        known |= yield from self.of(sorted(merged - known.keys()))
        documents = {chunk.document for chunk in (*(each.chunk for each in known.values()), *given)}
        members = yield from self.members(documents)
        return known | (yield from self.of(sorted({i for ids in members.values() for i in ids} - known.keys())))

    def of_documents(self, documents: Iterable[str]) -> Steps[dict[str, Resolved]]:
        """All chunks of documents."""
        members = yield from self.members(documents)
        return (yield from self.of(sorted({i for ids in members.values() for i in ids})))

    def members(self, documents: Iterable[str]) -> Steps[dict[str, list[str]]]:
        """The ids of the chunks of documents."""
        found = yield from self._records.get_many(_DOCUMENTS, sorted(set(documents)))
        return {document: record["chunks"] for document, record in found.items()}

    def change(
        self, before: StatementGraph, after: StatementGraph, was: Mapping[str, int], tokens: Mapping[str, int]
    ) -> Steps[int]:
        """Store the changes between two graphs, within a transaction; returns by how many tokens the corpus has grown.

        The counts of a chunk that was stored before are subtracted. `was` and `tokens` are the tokens of the text of
        each chunk before the write, and of each new chunk.
        """
        old, new = ({i: _relevant(graph, i) for i in graph.chunks} for graph in (before, after))
        differing = sorted(i for i in old.keys() | new.keys() if old.get(i) != new.get(i))
        gone, put = ([rows[i] for i in differing if i in rows] for rows in (old, new))
        yield from offload(self._change, gone, put)
        counts = {**was, **tokens}
        records = {i: _record(new[i], counts) if i in new else None for i in differing}
        yield from self._records.update(_STATEMENTS, records)
        yield from self._count_scopes(*([each.chunk for each in rows] for rows in (gone, put)))
        kept = {document: {"chunks": sorted(ids)} for document, ids in after.documents.items()}
        yield from self._records.update(_DOCUMENTS, {**dict.fromkeys(before.documents), **kept})
        return sum(counts[i] for i in new) - sum(was.values())

    def _count_scopes(self, gone: Iterable[ChunkStatements], new: Iterable[ChunkStatements]) -> Steps[None]:
        more = Counter(map(_scope_key, new))
        more.subtract(map(_scope_key, gone))
        known = yield from self._records.get_many(_SCOPES, sorted(more))
        sizes = {scope: known.get(scope, {"chunks": 0})["chunks"] + number for scope, number in more.items()}
        rows = {scope: {"chunks": size} if size > 0 else None for scope, size in sizes.items()}
        yield from self._records.update(_SCOPES, rows)

    def _change(self, gone: Sequence[Resolved], new: Sequence[Resolved]) -> None:
        less, more = statement_edges(gone, -1, stated=self._stated), statement_edges(new, 1, stated=self._stated)
        self.graph.change(EdgeChange.together([less.change, more.change]), {**less.labels, **more.labels})


def graph_of(chunks: Iterable[Resolved]) -> StatementGraph:
    """The graph of some chunks, with names resolved as in the whole corpus."""
    given = list(chunks)
    short: dict[str, dict[str, str]] = {}
    for each in given:
        if each.short:
            short.setdefault(each.chunk.document, {}).update(each.short)
    return resolved_graph([each.chunk for each in given], short)


def _scope_key(chunk: ChunkStatements) -> str:
    return f"scope {chunk.scope}"


def _relevant(graph: StatementGraph, node_id: str) -> Resolved:
    """A chunk, and its names that stand for others."""
    chunk = graph.chunks[node_id]
    short = graph.short.get(chunk.document, {})
    return Resolved(chunk, {name: short[name] for name, _ in chunk.typed_names if name in short})


def _record(each: Resolved, tokens: Mapping[str, int]) -> dict[str, Any]:
    chunk = each.chunk
    return {
        "statements": chunk.record(),
        "hash": chunk.text_hash,
        "document": chunk.document_id,
        "position": chunk.position,
        "scope": chunk.scope,
        "short": dict(each.short),
        "tokens": tokens[chunk.chunk_id],
    }


def _resolved(node_id: str, record: Record) -> Resolved:
    where = (record["hash"], record["document"], record["position"], record["scope"])
    return Resolved(
        ChunkStatements.from_record(record["statements"], node_id, *where), record["short"], int(record["tokens"])
    )


def chunk_statements(
    node_id: str, key: str, record: Mapping[str, Any] | None, metadata: Mapping[str, Any], partition_by: str | None
) -> ChunkStatements:
    """The statements of a chunk, read from its record; a chunk without a record states nothing.

    `key` is its canonical sort key. Entities of different values of the metadata `partition_by` are kept apart.
    """
    text_hash, rest = key.split("|", 1)
    document, _, place = rest.removesuffix(f"|{node_id}").rpartition("|")
    scope = "" if partition_by is None else json.dumps(metadata.get(partition_by), sort_keys=True, default=str)
    plain = record or {"entities": [], "relations": []}
    return ChunkStatements.from_record(plain, node_id, text_hash, document, int(place), scope)


def store_rewritten(storage: IndexStorage, chunks: Sequence[ChunkStatements]) -> Steps[None]:
    """Store the records of chunks that lost a description that was merged from a removed chunk, too."""
    entries = yield from storage.manifest.entries_of(chunk.chunk_id for chunk in chunks)
    records = {chunk.chunk_id: chunk.record() for chunk in chunks}
    new = {
        node_id: replace(entry, record={**(entry.record or {}), **records[node_id]})
        for node_id, entry in entries.items()
    }
    yield from storage.manifest.add(new, {node_id: {} for node_id in new})
