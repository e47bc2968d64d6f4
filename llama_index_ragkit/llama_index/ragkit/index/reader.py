"""How a question reaches what it reads: all of an index in memory, or a part that is read for it."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from llama_index.core.schema import NodeWithScore, QueryBundle
from numpy.typing import NDArray

from llama_index.ragkit.errors import HalfWrittenError
from llama_index.ragkit.index.builder import Builder
from llama_index.ragkit.index.contents import State
from llama_index.ragkit.index.matching import match_nodes, matched_in
from llama_index.ragkit.index.query import Query
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.writer import IndexWriter
from llama_index.ragkit.steps import Steps, immediate
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.selection import Selection

__all__ = ["PartReader", "QueryReader", "ReadRequest"]

T = TypeVar("T")
Vector = NDArray[np.float32]
Bundles = Sequence[QueryBundle]
Among = tuple[Query[State] | None, list[str | None]]
"""A question about given nodes, None without any, and for each node its id in the index, None for others."""

_TRIES = 25  # of a query beside which writes remove rows


class ReadRequest(NamedTuple):
    """A question, and how much it needs."""

    bundle: QueryBundle
    vector: Vector | None  # of `QueryReader.vector`
    selection: Selection  # which chunks may be shown
    wanted: int = 0  # how many top nodes must be in the right order
    candidates: int = 0  # how many of the nearest chunks the search needs
    select: Callable[[], Steps[Selection]] | None = None  # where a part is read; default `Builder.select`


class QueryReader(Generic[State]):
    """Reads what questions are answered from.

    For an index in memory: questions read its state, and a mask says which chunks count.
    """

    def __init__(self, writer: IndexWriter[State], resources: Resources) -> None:
        self._writer = writer
        self._resources = resources

    @immediate
    def vector(self, bundle: QueryBundle) -> Vector | None:
        """The vector of a question, where it decides what is read; None elsewhere, and where there is nothing to read.

        It is computed before :meth:`query`, which reads one generation of the index.
        """
        return None

    def query(self, asked: ReadRequest) -> Steps[Query[State] | None]:
        """A question to the current state; None where there is nothing to search."""
        queries = yield from self.queries([asked.bundle], asked.selection, asked.wanted)
        return queries[0] if queries else None

    def queries(self, bundles: Bundles, selection: Selection, wanted: int) -> Steps[list[Query[State]] | None]:
        """Several questions to one state; none where there is nothing to search, None where each reads its own."""
        contents = yield from self._writer.recovered()
        chunks = contents.state.chunks
        if not len(chunks):
            return []
        if not self._writer.checks.model_checked:
            yield from self._writer.checks.embed_model()
        allowed = selection.allowed(chunks)
        return [Query(bundle, contents, allowed, wanted, self._resources) for bundle in bundles]

    def among(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle, vector: Vector | None, selection: Selection
    ) -> Steps[Among[State]]:
        """A question about those of some nodes that the index contains and that may be shown."""
        contents = yield from self._writer.recovered()
        chunks = contents.state.chunks
        matched = match_nodes(nodes, chunks)
        allowed = selection.allowed(chunks)
        if allowed is not None:
            matched = [m if m is not None and allowed[chunks.row_of(m)] else None for m in matched]
        known = sorted({name for name in matched if name is not None})
        if not known:
            return None, matched
        yield from self._writer.checks.embed_model()
        among = np.zeros(len(chunks), np.bool_)
        among[chunks.rows_of(known)] = True
        return Query(bundle, contents, among, len(known), self._resources), matched

    def in_one_generation(self, work: Callable[[], Steps[T]]) -> Steps[T]:
        """The steps of a query, which read one generation of the index: in memory there is one at a time."""
        yield from self._writer.recovered()
        return (yield from work())

    def is_current(self, query: Query[State]) -> bool:
        """Whether what a question has read is still what the index holds, as far as this process can know."""
        return self._writer.is_current(query.state)


class PartReader(QueryReader[State]):
    """A :class:`QueryReader` of an index in stores: the builder reads for each question what may answer it."""

    def __init__(
        self, writer: IndexWriter[State], resources: Resources, storage: IndexStorage, builder: Builder[Any, State]
    ) -> None:
        super().__init__(writer, resources)
        self._storage = storage
        self._builder = builder

    def vector(self, bundle: QueryBundle) -> Steps[Vector | None]:
        """The vector of a question; None for an empty index."""
        yield from self._storage.commits.refresh()
        if self._storage.is_empty:
            return None
        yield from self._writer.checks.embed_model()
        return (yield from self._resources.embed_query(bundle, self._storage.struct.embedding.get("dimension")))

    def query(self, asked: ReadRequest) -> Steps[Query[State] | None]:
        """See :class:`QueryReader`."""
        if self._storage.is_empty or asked.vector is None:
            return None
        select = asked.select
        selection = yield from self._builder.select(asked.selection) if select is None else select()
        contents = yield from self._builder.view(asked.bundle.query_str, asked.vector, asked.candidates, selection)
        found = len(contents.state.chunks)
        if not found:
            return None
        return Query(asked.bundle, contents, None, asked.wanted or found, self._resources, asked.vector)

    @immediate
    def queries(self, bundles: Bundles, selection: Selection, wanted: int) -> None:
        """None: each question reads a part of its own."""

    def among(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle, vector: Vector | None, selection: Selection
    ) -> Steps[Among[State]]:
        """See :class:`QueryReader`."""
        unknown: Among[State] = None, [None] * len(nodes)
        if vector is None:
            return unknown
        matched = yield from matched_in(self._storage, nodes)
        known = list(dict.fromkeys(name for name in matched if name is not None))
        selection = Selection(selection.filters, known)
        query = yield from self.query(ReadRequest(bundle, vector, selection, candidates=max(1, len(known))))
        if query is None:
            return unknown
        chunks = query.state.chunks
        return query, [name if name is not None and name in chunks else None for name in matched]

    def in_one_generation(self, work: Callable[[], Steps[T]]) -> Steps[T]:
        """See :class:`QueryReader`.

        A database has one state for each query. Vector stores have no such states: the query is repeated, a few times
        at most, if a write has removed rows meanwhile, whose vectors may be gone there.
        """
        yield from self._writer.recovered()
        commits = self._storage.commits
        for tries_left in reversed(range(_TRIES)):
            try:
                with (yield from self._storage.stores.snapshot()):
                    before = yield from commits.refresh()
                    found = yield from work()
            except HalfWrittenError:
                if not tries_left:
                    raise
            else:
                if not tries_left or (yield from commits.refresh()) == before:
                    break
        return found

    def is_current(self, query: Query[State]) -> bool:
        """True: the question has read one generation of the stores."""
        return True
