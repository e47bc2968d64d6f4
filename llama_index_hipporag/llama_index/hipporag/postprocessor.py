"""`HippoRAGPostprocessor`: reranks the nodes of any retriever by a walk in the graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import Unpack

from llama_index.hipporag.builder import GraphBuilder
from llama_index.hipporag.config import GraphConfig, SearchConfig
from llama_index.hipporag.keywords import HippoRAGPostprocessorKeywords
from llama_index.hipporag.query_linking import Linker
from llama_index.hipporag.search.query_seeds import QuerySeeds
from llama_index.hipporag.search.reranking import rescored
from llama_index.hipporag.state import HippoRAGState
from llama_index.hipporag.text.normalization import normal_form
from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, Steps, offload
from llama_index.ragkit.index.matching import matched_in
from llama_index.ragkit.index.results import fresh
from llama_index.ragkit.validation import number

__all__ = ["HippoRAGPostprocessor"]


class HippoRAGPostprocessor(DerivedPostprocessor):
    """Reranks the nodes of any retriever by a walk that starts from the question's phrases and from these nodes.

    Nodes that share phrases with others or are connected to the question by facts move up; nodes that only resemble
    the question move down. Nodes that the index does not contain keep their positions. Without a question the walk
    starts only from the nodes.

    Scores are in [0, 1], 1 for the best node. Nodes of the index have scores of the walk; another node has the score of
    the node before it.

    Parameters
    ----------
    index : the :class:`HippoRAGIndex` whose graph is walked
    node_weight : share of the reset distribution for the nodes, split by their ranks, in (0, 1]; the rest is for the
        phrases [0.3]
    filters : metadata filters; passages that do not pass are dropped, and the walk uses only those that do [None]
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

    def _results(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, vectors: Any
    ) -> Steps[list[NodeWithScore]]:
        index: DerivedIndex[GraphConfig, HippoRAGState] = self._index
        builder: GraphBuilder = self._index.builder
        state = (yield from index.writer.recovered()).state
        defaults = SearchConfig(max_phrase_share=1.0)
        selection = self._selection
        graph = yield from builder.graph.asked(state, selection.allowed(state.chunks), selection, defaults)
        seeds = QuerySeeds()
        if bundle is not None and bundle.query_str:
            linker = Linker(defaults, normal_form(index.config.normalizer), index.resources.embed)
            seeds = yield from linker.link(graph, bundle.query_str)
        matched = yield from matched_in(index.storage, nodes)
        walkable, rows, seeds = yield from graph.around(matched, seeds, self.node_weight)
        weights, subject = seeds.weights, defaults.subject_weight
        scores = yield from offload(rescored, walkable, rows, weights, self.node_weight, subject)
        return [fresh(nodes[place].node, score) for place, score in scores]
