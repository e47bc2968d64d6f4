"""`StoredGraphRAGState`: what one question to an index that is served from stores is answered from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.community_rows import CommunityRows
from llama_index.graphrag.community_view import CommunityView
from llama_index.graphrag.graph.entity_graph import EntityGraph, entity_graph
from llama_index.graphrag.rows.known_part import KnownPart, PartialEntityGraph, read_around_entities
from llama_index.graphrag.rows.question_graph import QuestionGraph
from llama_index.graphrag.rows.statement_edges import chunk_number
from llama_index.graphrag.state import NEAREST, GraphRAGState, GraphView
from llama_index.graphrag.statement_rows import StatementRows, graph_of
from llama_index.ragkit import (
    ChunkView,
    IndexStorage,
    Query,
    Selection,
    Snapshot,
    Steps,
    StoredChunks,
    offload,
    run_steps,
)
from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.storage.graph.interface import GraphReader

__all__ = ["CommunitiesGoneError", "PartView", "StoredGraphRAGState"]

Ints = NDArray[np.int64]


class CommunitiesGoneError(StorageError):
    """Another process deleted something between the step that finds communities and the question that reads them."""


@dataclass(frozen=True, eq=False)
class PartView(GraphView):
    """The part of the graph that was read for a question.

    Attributes
    ----------
    part : entities and chunks, without what is stated
    rows : where the statements are
    """

    part: KnownPart = field(kw_only=True)
    rows: StatementRows = field(kw_only=True)

    @cached_property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """The normalised names of the question with the entities that they may stand for."""
        return self.part.names

    @cached_property
    def entities(self) -> EntityGraph:
        """The linked entities and their neighbours."""
        return self.part.entities

    @cached_property
    def entities_of(self) -> Mapping[str, tuple[str, ...]]:
        """Chunk -> those of its entities that are known, sorted."""
        return self.part.entities_of

    def shares(self, active: Mapping[str, float]) -> dict[str, float]:
        """The share of each chunk that is known in the activations of entities."""
        return self.part.shares(active)

    def stating(self, chunks: Iterable[str]) -> Steps[GraphView]:
        """With the statements of some chunks."""
        return replace(self, graph=graph_of((yield from self.rows.of(chunks)).values()))


@dataclass(frozen=True)
class StoredGraphRAGState(GraphRAGState):
    """The chunks near to a question, as `chunks`, and where the others and the graph are.

    Attributes
    ----------
    rows : the statements in the database
    stored : all chunks
    near : those near to the question
    selection : which chunks count
    storage : of the index
    communities : the communities in the database
    """

    rows: StatementRows = field(kw_only=True)
    stored: StoredChunks = field(kw_only=True)
    near: ChunkView = field(kw_only=True)
    selection: Selection = field(kw_only=True)
    storage: IndexStorage = field(kw_only=True)
    communities: CommunityRows = field(kw_only=True)

    def metadata(self, node_ids: Iterable[str]) -> Steps[Mapping[str, Mapping[str, Any]]]:
        """The metadata of chunks, by id."""
        rows = yield from self.stored.space.described(node_ids)
        return {node_id: rows.metadata_of(node_id) for node_id in rows.ids}

    def community_view(self, allowed: NDArray[np.bool_] | None) -> Steps[CommunityView]:
        """The communities, as they were last found.

        Raises
        ------
        CommunitiesGoneError
            If something was deleted since then.
        """
        current = yield from self.communities.current()
        if current is None or current["gone"]:
            raise CommunitiesGoneError("Something was deleted since the communities were found.")
        everything = self.everything
        return CommunityView(
            everything.graph,
            everything.clustering,
            everything.config,
            everything.maker,
            current["by_model"],
            table=(yield from self.communities.table(current)),
            communities=self.communities,
            rows=self.rows,
            identity=current["id"],
            sizes=(yield from self.communities.sizes()),
        )

    def context_view(self, view: GraphView, keys: Sequence[str]) -> Steps[GraphView]:
        """Everything that is stated about some entities, and the communities.

        Raises
        ------
        CommunitiesGoneError
            See :meth:`community_view`.
        """
        communities = yield from self.community_view(None)
        chunks, degrees = yield from offload(self._around_entities, keys)
        graph = graph_of((yield from self.rows.of(chunks)).values())
        found = entity_graph(graph)
        entities = PartialEntityGraph(
            **{name: getattr(found, name) for name in ("names", "indptr", "indices", "weights", "tokens")},
            node_tokens=found.node_tokens,
            sums=found.strengths,
            ends=np.array([degrees.get(name, 0) for name in found.names], np.int64),
        )
        return replace(communities, graph=graph, known_entities=entities)

    def _around_entities(self, keys: Sequence[str]) -> tuple[list[str], dict[str, int]]:
        with self.rows.reader() as reader:
            return read_around_entities(QuestionGraph(reader), keys)

    def near_to(self, query: Query[Any], vector: NDArray[np.float32]) -> Steps[Query[Any]]:
        """A question with the chunks near to another vector than its own."""
        if vector is (yield from query.vector()):
            return query
        near = yield from self.stored.view(query.text, vector, max(NEAREST, query.wanted), self.selection)
        return self.over(query, near)

    def over(self, query: Query[Any], near: ChunkView, entities: Snapshot | None = None) -> Query[Any]:
        """The question over other chunks.

        Parameters
        ----------
        entities : vectors of names; None for those of this state
        """
        state = replace(self, chunks=near.rows, near=near, entities=self.entities if entities is None else entities)
        contents: Any = query.contents  # a view over stores
        return replace(query, contents=replace(contents, state=state, near=near), _lexical=None)

    def name_mask(self, view: GraphView) -> NDArray[np.bool_] | None:
        """All names count: with a filter, none are searched by their vectors."""
        return None

    def question_graph(self, reader: GraphReader) -> QuestionGraph:
        """The part of the graph that one question reads."""
        return QuestionGraph(reader, None if self.selection.is_whole else partial(self.allowed, reader))

    def allowed(self, reader: GraphReader, numbers: Ints) -> NDArray[np.bool_]:
        """Which chunks may be returned, by the numbers of their nodes."""
        ids = reader.fetch(numbers).labels
        described = run_steps(self.stored.space.described(filter(None, ids)))
        shown = {described.ids[row] for row in np.flatnonzero(self.selection.mask(described))} if len(described) else ()
        numbered = np.array([chunk_number(node_id) for node_id in shown], np.int64)
        found: NDArray[np.bool_] = np.isin(numbers, numbered)
        return found
