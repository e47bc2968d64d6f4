"""`GraphRAGPostprocessor`: reranks the nodes of any retriever by the statements that connect them, and adds others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore, QueryBundle
from typing_extensions import Unpack

from llama_index.graphrag.builder import GraphRAGBuilder
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.keywords import GraphRAGPostprocessorKeywords
from llama_index.graphrag.state import GraphRAGState
from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, Steps
from llama_index.ragkit.index.results import fresh
from llama_index.ragkit.validation import count

__all__ = ["GraphRAGPostprocessor"]

_RANK_OFFSET = 60  # of reciprocal rank fusion (Cormack, Clarke and Buettcher, SIGIR 2009)


class GraphRAGPostprocessor(DerivedPostprocessor):
    """Reranks the nodes of any retriever by the entities that they share, and adds chunks about these.

    1. The entities of the question and of the nodes are active, more so for better ranked nodes. Neighbours in the
       graph get a share.
    2. Nodes are ranked by reciprocal rank fusion of the given ranks and the ranks by active entities.
    3. At most `max_added` other chunks of the index are added, at their rank.

    Nodes that the index does not contain keep the given rank. Scores are those of the fusion, in (0, 1/30).

    Parameters
    ----------
    index : the :class:`GraphRAGIndex` whose graph is used
    max_added : the largest number of chunks to add, at least 0 [3]
    filters : metadata filters; chunks that do not pass are dropped; the graph has only those that pass, and only these
        are added [None]
    top_n, token_budget : see :class:`~llama_index.ragkit.index.postprocessor.DerivedPostprocessor`

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or invalid.
    """

    method: ClassVar[str] = "graphrag"
    keywords: ClassVar[type] = GraphRAGPostprocessorKeywords

    max_added: Annotated[int, count(0)] = Field(default=3, description="The largest number of chunks to add.")

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self, index: DerivedIndex[GraphRAGConfig, GraphRAGState], **kwargs: Unpack[GraphRAGPostprocessorKeywords]
        ) -> None: ...

    def _results(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, vectors: Any
    ) -> Steps[list[NodeWithScore]]:
        index: DerivedIndex[GraphRAGConfig, GraphRAGState] = self._index
        builder: GraphRAGBuilder = self._index.builder
        state = (yield from index.writer.recovered()).state
        question = "" if bundle is None else bundle.query_str
        matched, ranked, known = yield from builder.parts.ranked(state, nodes, question, self._selection)
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


def _fused(*ranks: int) -> float:
    return sum(1 / (_RANK_OFFSET + rank) for rank in ranks)
