"""`StoredGraphBuilder`: keeps the knowledge graph of an index in a database up to date."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.graph.passage import Passage
from llama_index.hipporag.graph.record_reader import RecordReader
from llama_index.hipporag.passage_graph import PassageGraph
from llama_index.hipporag.state import HippoRAGState, extracts_terms
from llama_index.hipporag.stored_state import StoredGraphState
from llama_index.ragkit import Change, ChunkView, IndexStorage, Resources, Selection, Steps, StoredBuilder
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["StoredGraphBuilder"]

_AT_ONCE = 2_000  # passages in one statement


class StoredGraphBuilder(StoredBuilder[GraphConfig, HippoRAGState]):
    """Writes the phrases and facts of passages to a graph in a database; what one passage adds depends on no other.

    Raises
    ------
    ConfigurationError
        If phrases or facts are to be embedded: a graph in a database has no vectors.
    """

    def __init__(self, storage: IndexStorage, resources: Resources, config: GraphConfig) -> None:
        super().__init__(storage, resources, config)
        if config.phrase_vectors or config.fact_vectors:
            raise ConfigurationError(
                'With serve_from="stores" phrases and facts are not embedded: leave out phrase_vectors= and '
                "fact_vectors=."
            )
        self._reader = RecordReader(config)
        self._graph = PassageGraph(storage.stores.graph(), storage.records)

    def load(self) -> Steps[HippoRAGState]:
        """Nothing: the graph stays in the database."""
        return HippoRAGState()
        yield

    def apply(self, state: HippoRAGState, change: Change) -> Steps[HippoRAGState]:
        """Store what passages add to the graph, and take away what removed ones had added."""
        passages: dict[str, Passage | None] = dict.fromkeys(change.removed)
        passages |= {node.node_id: self._reader.read(change.records.get(node.node_id)) for node in change.added}
        ids = list(passages)
        for start in range(0, len(ids), _AT_ONCE):
            some: Mapping[str, Passage | None] = {i: passages[i] for i in ids[start : start + _AT_ONCE]}
            yield from self._graph.replace(some)
        return state

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[HippoRAGState]:
        """The passages near to a question, and where the graph is."""
        return self._state(near, selection)
        yield

    def graph_state(self, selection: Selection) -> StoredGraphState:
        """Where the graph is, without passages."""
        return self._state(ChunkView(Snapshot.empty(), np.zeros(0)), selection)

    def _state(self, near: ChunkView, selection: Selection) -> StoredGraphState:
        parts: dict[str, Any] = {"passage_graph": self._graph, "stored": self.chunks, "near": near}
        terms = extracts_terms(self.storage.struct.components)
        passages = self.storage.struct.counters.get("chunks", 0)
        return StoredGraphState(chunks=near.rows, has_terms=terms, selection=selection, passages=passages, **parts)
