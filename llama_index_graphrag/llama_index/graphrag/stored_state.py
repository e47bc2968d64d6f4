"""`StoredGraphRAGState`: what one question to an index that is served from stores is answered from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.state import GraphRAGState, GraphView
from llama_index.graphrag.statement_rows import StatementRows, graph_of
from llama_index.graphrag.stored_graph.known_part import KnownPart
from llama_index.graphrag.stored_graph.statement_edges import chunk_number
from llama_index.ragkit import ChunkView, Query, Selection, Snapshot, Steps, StoredChunks, run_steps
from llama_index.ragkit.index.contents import ViewContents
from llama_index.ragkit.sql.graph_rows import GraphReader
from llama_index.ragkit.storage.stored_space import StoredSpace

__all__ = ["StoredGraphRAGState", "StoredView"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StoredView(GraphView):
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
    entity_space : the vectors of names
    """

    rows: StatementRows = field(kw_only=True)
    stored: StoredChunks = field(kw_only=True)
    near: ChunkView = field(kw_only=True)
    selection: Selection = field(kw_only=True)
    entity_space: StoredSpace = field(kw_only=True)

    def near_to(self, query: Query[Any], vector: NDArray[np.float32]) -> Steps[Query[Any]]:
        """A question with the chunks near to another vector than its own."""
        if vector is (yield from query.vector()):
            return query
        near = yield from self.stored.view(query.text, vector, query.wanted, self.selection)
        return self.over(query, near)

    def over(self, query: Query[Any], near: ChunkView, entities: Snapshot | None = None) -> Query[Any]:
        """The question over other chunks.

        Parameters
        ----------
        entities : vectors of names; None for those of this state
        """
        state = replace(self, chunks=near.rows, near=near, entities=self.entities if entities is None else entities)
        contents = replace(cast(ViewContents[Any], query.contents), state=state, near=near)
        return replace(query, contents=contents, _lexical=None)

    def name_mask(self, view: GraphView) -> NDArray[np.bool_] | None:
        """All names count: with a filter, none are searched by their vectors."""
        return None

    def allowed(self, reader: GraphReader, numbers: Ints) -> NDArray[np.bool_]:
        """Which chunks may be returned, by the numbers of their nodes."""
        ids = reader.fetch(numbers).labels
        described = run_steps(self.stored.space.described(filter(None, ids)))
        shown = {described.ids[row] for row in np.flatnonzero(self.selection.mask(described))} if len(described) else ()
        numbered = np.array([chunk_number(node_id) for node_id in shown], np.int64)
        found: NDArray[np.bool_] = np.isin(numbers, numbered)
        return found
