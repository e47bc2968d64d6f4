"""`HippoRAGPostprocessor`: reranks the nodes of any retriever by a walk in the graph."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore, QueryBundle

from llama_index.hipporag.config import GraphConfig, SearchConfig
from llama_index.hipporag.keywords import HippoRAGPostprocessorKeywords
from llama_index.hipporag.query_linking import Linker
from llama_index.hipporag.search.passage_scores import rescored
from llama_index.hipporag.search.query_seeds import QuerySeeds
from llama_index.hipporag.state import HippoRAGState
from llama_index.hipporag.stored_builder import StoredGraphBuilder
from llama_index.hipporag.stored_graph.stored_reranking import rescored_in_store
from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, Selection, Steps, fresh, match_nodes, offload
from llama_index.ragkit.validation import number

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["HippoRAGPostprocessor"]


class HippoRAGPostprocessor(DerivedPostprocessor):
    """Reranks the nodes of any retriever by a walk that starts from the question's phrases and from these nodes.

    Nodes that share phrases with others or are connected to the question by facts move up; nodes that only resemble
    the question move down. Nodes that the index does not contain keep their positions. Without a question the walk
    starts from the nodes alone.

    Scores are in [0, 1], the best node 1: those of the walk for nodes of the index; another node has the score of the
    node before it. An index that is served from stores knows nodes by their ids alone.

    Parameters
    ----------
    index : the :class:`HippoRAGIndex` whose graph is walked
    node_weight : share of the reset distribution for the nodes, by their ranks, in (0, 1]; the rest is for the phrases
        [0.3]
    filters : the walk uses only passages that pass them [None]
    top_n, token_budget : see :class:`~llama_index.ragkit.index.postprocessor.DerivedPostprocessor`

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or invalid.
    """

    method: ClassVar[str] = "hipporag"
    keywords: ClassVar[type] = HippoRAGPostprocessorKeywords

    node_weight: Annotated[float, number(0, 1, above=True)] = Field(
        default=0.3, description="Share of the reset distribution for the nodes."
    )

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[GraphConfig, HippoRAGState], **kwargs: Unpack[HippoRAGPostprocessorKeywords]
        ) -> None: ...

    def _postprocess_steps(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Steps[list[NodeWithScore]]:
        index: DerivedIndex[GraphConfig, HippoRAGState] = self._index
        if isinstance(index.builder, StoredGraphBuilder):
            rescore = partial(self._rescored_in_stores, index.builder, nodes, query_bundle)
            return (yield from index.writer.in_one_generation(rescore))
        state = index.state
        matched = match_nodes(nodes, state.chunks)
        graph = yield from offload(state.visible, self._allowed(state.chunks))
        rows = state.chunks.rows_of([node_id or "" for node_id in matched]).astype(np.int64)
        defaults = SearchConfig()
        seeds = QuerySeeds()
        if query_bundle is not None and len(state.phrases):
            linker = Linker(defaults, index.config.normalizer, index.resources.embed)
            seeds = yield from linker.link(state, graph, query_bundle.query_str)
        scores = yield from offload(rescored, graph, rows, seeds.weights, self.node_weight, defaults.subject_weight)
        return [fresh(nodes[place].node, score) for place, score in scores]

    def _rescored_in_stores(
        self, builder: StoredGraphBuilder, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle | None
    ) -> Steps[list[NodeWithScore]]:
        given = [each.node.node_id for each in nodes]
        stored = yield from builder.chunks.space.records_of(given)
        known = {record["id"] for record in stored.values()}
        state = builder.graph_state(Selection(self.filters))

        def rescored() -> list[tuple[int, float]]:
            with state.question_graph(SearchConfig().subject_weight) as graph:
                return rescored_in_store(
                    graph,
                    "" if query_bundle is None else query_bundle.query_str,
                    [node_id if node_id in known else None for node_id in given],
                    self.node_weight,
                    self._index.config.normalizer,
                    by_terms=state.has_terms,
                )

        scores = yield from offload(rescored)
        return [fresh(nodes[place].node, score) for place, score in scores]
