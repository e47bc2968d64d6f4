"""`GraphRAGQueryEngine`: answers from reports on the whole corpus by map and reduce."""

from llama_index.core.llms import LLM
from llama_index.core.query_engine import RetrieverQueryEngine
from typing_extensions import Self, Unpack

from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.keywords import GraphRAGRetrieverKeywords
from llama_index.graphrag.map_reduce import BATCH_TOKENS, REDUCE_TOKENS, ReportMapReduce
from llama_index.graphrag.retriever import GraphRAGRetriever
from llama_index.graphrag.state import GraphRAGState
from llama_index.ragkit import DerivedIndex
from llama_index.ragkit.short_repr import ShortRepr

__all__ = ["GraphRAGQueryEngine"]


class GraphRAGQueryEngine(ShortRepr, RetrieverQueryEngine):
    """A :class:`GraphRAGRetriever` with :class:`ReportMapReduce`.

    It is a `RetrieverQueryEngine`; :meth:`over` makes one for an index.
    """

    @classmethod
    def over(
        cls,
        index: DerivedIndex[GraphRAGConfig, GraphRAGState],
        *,
        answer_llm: LLM | None = None,
        batch_tokens: int = BATCH_TOKENS,
        reduce_tokens: int = REDUCE_TOKENS,
        **kwargs: Unpack[GraphRAGRetrieverKeywords],
    ) -> Self:
        """An engine over an index.

        Parameters
        ----------
        answer_llm : reads the batches and answers; default the LLM of the index
        batch_tokens, reduce_tokens : see :class:`ReportMapReduce`
        kwargs : keywords of the retriever; the default of `mode` is "global"

        Raises
        ------
        ConfigurationError
            If a parameter is invalid.
        """
        keywords: GraphRAGRetrieverKeywords = {"mode": "global", **kwargs}
        synthesizer = ReportMapReduce(
            answer_llm or index.llm,
            batch_tokens=batch_tokens,
            reduce_tokens=reduce_tokens,
            num_workers=keywords.get("num_workers", 4),
        )
        return cls(GraphRAGRetriever(index, **keywords), synthesizer)
