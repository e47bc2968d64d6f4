"""`StatementRows`: what the chunks of an index state, as rows in a database; each write changes what it touches."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from llama_index.graphrag.graph.changes import changed, resolved_graph, statement_graph
from llama_index.graphrag.graph.statement import ChunkStatements
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.rows.statement_edges import Resolved, stated_number, statement_edges
from llama_index.ragkit import Record, Records, Steps, offload
from llama_index.ragkit.storage.graph.edges import EdgeChange
from llama_index.ragkit.storage.graph.interface import GraphReader, GraphRows

__all__ = ["StatementRows", "graph_of"]

_STATEMENTS = "statements"
_DOCUMENTS = "statement_documents"


class StatementRows:
    """Reads and writes the statements of one index.

    A record for each chunk holds what it states and for which longer names its names stand; one for each document, its
    chunks. The graph has what follows from these, as sums
    (:mod:`llama_index.graphrag.rows.statement_edges`).

    Parameters
    ----------
    rows : the graph
    records : of the index, in the same database
    stated : whether the graph keeps track of names that are embedded
    """

    def __init__(self, rows: GraphRows, records: Records, stated: bool) -> None:
        self._rows = rows
        self._records = records
        self._stated = stated

    @contextmanager
    def reader(self) -> Iterator[GraphReader]:
        """A reader that sees one state of the graph."""
        with self._rows.reader() as reader:
            yield reader

    # -- reading ------------------------------------------------------------------------------------

    def of(self, node_ids: Iterable[str]) -> Steps[dict[str, Resolved]]:
        """What those chunks that are stored state, with their names resolved."""
        stored = yield from self._records.get_many(_STATEMENTS, node_ids)
        return {node_id: _resolved(node_id, record) for node_id, record in stored.items()}

    def everything(self) -> Steps[StatementGraph]:
        """The statements of all chunks, in memory."""
        stored = yield from self._records.get_all(_STATEMENTS)
        return (yield from offload(lambda: graph_of(_resolved(i, record) for i, record in stored.items())))

    def still_stated(self, names: Collection[str]) -> Steps[set[str]]:
        """Those of some names within their scopes that a chunk states."""
        return (yield from offload(self._still_stated, sorted(names)))

    def _still_stated(self, names: Sequence[str]) -> set[str]:
        with self.reader() as reader:
            rows = reader.fetch(np.array([stated_number(name) for name in names], np.int64))
        return {name for name, records in zip(names, np.diff(rows.indptr).tolist(), strict=True) if records}

    # -- writing ------------------------------------------------------------------------------------

    def replace(
        self, removed: Collection[str], added: Sequence[ChunkStatements], tokens: Mapping[str, int]
    ) -> Steps[tuple[dict[str, ChunkStatements], tuple[ChunkStatements, ...], int]]:
        """Take the statements of chunks away and store those of others; to be called within a transaction.

        The documents that the write touches are read, since a name in one chunk may stand for a longer one in another.
        What a chunk that was stored before had added is subtracted.

        Parameters
        ----------
        removed : ids; unknown ones are ignored
        tokens : of the text of each added chunk

        Returns
        -------
        What the chunks that are no more as they were had stated; chunks that were not given and lost a description that
        was merged from a removed one; by how many tokens the corpus has grown.
        """
        stored = yield from self._around([*removed, *(chunk.chunk_id for chunk in added)], added)
        before = yield from offload(lambda: statement_graph(_chunk(i, record) for i, record in stored.items()))
        change = yield from offload(changed, before, list(removed), added)
        after = change.graph
        was, now = ({i: _relevant(graph, i) for i in graph.chunks} for graph in (before, after))
        differing = [i for i in was.keys() | now.keys() if was.get(i) != now.get(i)]
        gone = [was[i] for i in sorted(differing) if i in was]
        new = [now[i] for i in sorted(differing) if i in now]
        yield from offload(self._change, gone, new)
        counts = {i: int(record["tokens"]) for i, record in stored.items()} | dict(tokens)
        yield from self._records.delete(_STATEMENTS, [i for i in differing if i not in now])
        yield from self._records.put(_STATEMENTS, [(each[0].chunk_id, _record(each, counts)) for each in new])
        kept = {document: {"chunks": sorted(ids)} for document, ids in after.documents.items()}
        yield from self._records.delete(_DOCUMENTS, [name for name in before.documents if name not in kept])
        yield from self._records.put(_DOCUMENTS, list(kept.items()))
        grown = sum(counts[i] for i in now) - sum(int(record["tokens"]) for record in stored.values())
        out = set(removed) | {chunk.chunk_id for chunk in added}
        return {i: before.chunks[i] for i in out & before.chunks.keys()}, change.rewritten, grown

    def _around(self, touched: Sequence[str], added: Iterable[ChunkStatements]) -> Steps[dict[str, Record]]:
        """The records of chunks that a write replaces or removes, of those that descriptions were merged from
        together with theirs, and of all chunks of the documents of these and of new ones.
        """
        known = yield from self._records.get_many(_STATEMENTS, touched)
        chunks = [_chunk(node_id, record) for node_id, record in known.items()]
        merged = {i for chunk in chunks for statement in chunk.all_statements for i in statement.merged_from}
        partners = yield from self._records.get_many(_STATEMENTS, sorted(merged - known.keys()))
        chunks += [_chunk(node_id, record) for node_id, record in partners.items()]
        documents = yield from self._records.get_many(
            _DOCUMENTS, sorted({chunk.document for chunk in (*chunks, *added)})
        )
        members = {node_id for record in documents.values() for node_id in record["chunks"]}
        known |= partners
        return known | (yield from self._records.get_many(_STATEMENTS, sorted(members - known.keys())))

    def _change(self, gone: Sequence[Resolved], new: Sequence[Resolved]) -> None:
        less, more = statement_edges(gone, -1, stated=self._stated), statement_edges(new, 1, stated=self._stated)
        self._rows.change(EdgeChange.together([less.change, more.change]), {**less.labels, **more.labels})


def graph_of(chunks: Iterable[Resolved]) -> StatementGraph:
    """The graph of some chunks, with their names as the whole corpus has them."""
    given = list(chunks)
    short: dict[str, dict[str, str]] = {}
    for chunk, names in given:
        if names:
            short.setdefault(chunk.document, {}).update(names)
    return resolved_graph([chunk for chunk, _ in given], short)


def _relevant(graph: StatementGraph, node_id: str) -> Resolved:
    """A chunk with those of its names that stand for others."""
    chunk = graph.chunks[node_id]
    short = graph.short.get(chunk.document, {})
    return chunk, {name: short[name] for name, _ in chunk.typed_names if name in short}


def _record(each: Resolved, tokens: Mapping[str, int]) -> dict[str, Any]:
    chunk, short = each
    return {
        "statements": chunk.record(),
        "hash": chunk.text_hash,
        "document": chunk.document_id,
        "position": chunk.position,
        "scope": chunk.scope,
        "short": dict(short),
        "tokens": tokens[chunk.chunk_id],
    }


def _chunk(node_id: str, record: Record) -> ChunkStatements:
    return ChunkStatements.from_record(
        record["statements"],
        node_id,
        record["hash"],
        record["document"],
        record["position"],
        record["scope"],
    )


def _resolved(node_id: str, record: Record) -> Resolved:
    return _chunk(node_id, record), record["short"]
