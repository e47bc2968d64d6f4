"""`GraphRAGPostprocessor`: reranks the nodes of any retriever by the statements that connect them, and adds others."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index.graphrag.config import GraphRAGConfig, SearchConfig
from llama_index.graphrag.keywords import GraphRAGPostprocessorKeywords
from llama_index.graphrag.search.chunk_scores import activations
from llama_index.graphrag.search.linking import Link, linked_entities
from llama_index.graphrag.state import GraphRAGState, GraphView
from llama_index.graphrag.stored_builder import StoredGraphRAGBuilder
from llama_index.graphrag.stored_local import part_around
from llama_index.graphrag.stored_state import StoredGraphRAGState
from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, Selection, Steps, fresh, match_nodes, offload
from llama_index.ragkit.validation import count

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["GraphRAGPostprocessor"]

Matched = list[str | None]
Scored = tuple[Sequence[str], Collection[str]]  # chunks by their shares; those of the nodes that may be used
Names = Mapping[str, Sequence[str]]

_RANKED = 1000  # chunks of an index in stores among which the nodes are ranked; a later rank has next to no weight
_RANK_OFFSET = 60  # of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)


class GraphRAGPostprocessor(DerivedPostprocessor):
    """Reranks the nodes of any retriever by the entities that they share, and adds chunks about these.

    1. The entities of the question and of the nodes are active, those of better ranked nodes more; neighbours in the
       graph get a share.
    2. Nodes are ranked by reciprocal rank fusion of the ranks given and of the ranks by active entities.
    3. At most `max_added` chunks of the index that were not among the nodes are added, at their rank.

    Nodes that the index does not contain keep the rank given. Scores are those of the fusion, in (0, 1/30).

    Parameters
    ----------
    index : the :class:`GraphRAGIndex` whose graph is used
    max_added : chunks that may be added, at least 0 [3]
    filters : the graph is that of the chunks that pass them, and no other chunk is added [None]
    top_n, token_budget : see :class:`~llama_index.ragkit.index.postprocessor.DerivedPostprocessor`

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or invalid.
    """

    method: ClassVar[str] = "graphrag"
    keywords: ClassVar[type] = GraphRAGPostprocessorKeywords

    max_added: Annotated[int, count(0)] = Field(default=3, description="Chunks that may be added.")

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[GraphRAGConfig, GraphRAGState], **kwargs: Unpack[GraphRAGPostprocessorKeywords]
        ) -> None: ...

    def _postprocess_steps(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Steps[list[NodeWithScore]]:
        index: DerivedIndex[GraphRAGConfig, GraphRAGState] = self._index
        question = "" if query_bundle is None else query_bundle.query_str
        if index.storage.stored:
            given = partial(self._scored_in_stores, nodes, question)
            matched, scored = yield from index.writer.in_one_generation(given)
        else:
            matched, scored = yield from self._scored(nodes, question)
        ranked, known = scored
        place = {node_id: rank for rank, node_id in enumerate(ranked, start=1)}

        results = []
        for rank, (result, node_id) in enumerate(zip(nodes, matched, strict=True), start=1):
            by_graph = place.get(node_id or "", len(place) + 1 if node_id in known else rank)
            results.append(fresh(result.node, _fused(rank, by_graph)))
        given_ids = {node_id for node_id in matched if node_id is not None}
        new = [node_id for node_id in ranked if node_id not in given_ids]
        for node_id in new[: self.max_added]:
            node = yield from index.storage.get_node(node_id)
            if node is not None:
                results.append(fresh(node, _fused(len(nodes) + 1, place[node_id])))
        return sorted(results, key=lambda result: -result.get_score())

    def _scored(self, nodes: Sequence[NodeWithScore], question: str) -> Steps[tuple[Matched, Scored]]:
        state: GraphRAGState = self._index.state
        matched = match_nodes(nodes, state.chunks)
        view = yield from offload(state.view, self._allowed(state.chunks))
        among = [m for m in matched if m is not None and m in view.graph.chunks]
        shares = yield from offload(_shares, view, among, question)
        ranked = sorted(shares, key=lambda node_id: (-shares[node_id], state.chunks.record_of(node_id).key, node_id))
        return matched, (ranked, view.graph.chunks.keys())

    def _scored_in_stores(self, nodes: Sequence[NodeWithScore], question: str) -> Steps[tuple[Matched, Scored]]:
        """As :meth:`_scored`; of the chunks that are not among the nodes, those with the largest shares."""
        index = self._index
        yield from index.writer.recovered()
        builder: StoredGraphRAGBuilder = index.builder
        selection = Selection(self.filters)
        state = builder.whole(selection)
        space = state.stored.space
        rows = yield from space.described(node.node.node_id for node in nodes)
        passing = {rows.ids[row] for row in np.flatnonzero(selection.mask(rows))} if len(rows) else set()
        matched = [node.node.node_id if node.node.node_id in rows else None for node in nodes]
        among = [name for name in matched if name in passing]
        shares = yield from offload(_stored_shares, state, among, question)
        found = yield from space.described(shares)
        ranked = sorted(found.ids, key=lambda node_id: (-shares[node_id], found.record_of(node_id).key, node_id))
        return matched, (ranked, passing)


def _links(ids: Sequence[str], names: Names, entities_of: Mapping[str, Sequence[str]], question: str) -> list[Link]:
    """The entities of ranked chunks, and those of a question."""
    weights: dict[str, float] = defaultdict(float)
    for rank, node_id in enumerate(dict.fromkeys(ids), start=1):
        keys = entities_of.get(node_id, ())
        for key in keys:
            weights[key] += 1 / (rank * len(keys))
    for link in linked_entities(question, names):
        weights[link.entity] += link.weight
    return [Link(key, "chunk", "", weights[key]) for key in sorted(weights)]


def _shares(view: GraphView, ids: Sequence[str], question: str) -> dict[str, float]:
    """The share of each chunk in the activations that a question and ranked chunks give."""
    links = _links(ids, view.names, view.entities_of, question)
    return view.shares(activations(view.entities, links, SearchConfig().spread))


def _stored_shares(state: StoredGraphRAGState, ids: Sequence[str], question: str) -> dict[str, float]:
    """As :func:`_shares`: those of the given chunks, and of the best others."""
    spread = SearchConfig().spread
    with state.rows.reader() as reader:
        graph = state.question_graph(reader)
        names = graph.read_names(question, ids)
        links = _links(ids, names, graph.read_entities_of(ids), question)
        part = part_around(graph, names, links, ids, spread, _RANKED)
    return part.shares(activations(part.entities, links, spread))


def _fused(*ranks: int) -> float:
    return sum(1 / (_RANK_OFFSET + rank) for rank in ranks)
