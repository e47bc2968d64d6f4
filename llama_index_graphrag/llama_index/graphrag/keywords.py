"""The keywords of Graph RAG's index, retriever and postprocessor, for editors and type checkers."""

from llama_index.graphrag.clustering.hierarchy import Clustering
from llama_index.graphrag.config import Context, PublishedOptions, ReportTime, SearchMode
from llama_index.graphrag.resolvers import EntityResolver
from llama_index.ragkit import IndexKeywords, LLMRetrieverKeywords, PostprocessorKeywords, Summarizer

__all__ = ["GraphRAGKeywords", "GraphRAGPostprocessorKeywords", "GraphRAGRetrieverKeywords"]


class GraphRAGKeywords(IndexKeywords, total=False):
    """Keywords of :class:`~llama_index.graphrag.GraphRAGIndex`."""

    summarizer: Summarizer | None
    clustering: Clustering | None
    resolver: EntityResolver | None
    reports: ReportTime
    report_tokens: int
    verbatim: bool
    context_tokens: int
    partition_by: str | None
    entity_vectors: bool


class GraphRAGRetrieverKeywords(LLMRetrieverKeywords, total=False):
    """Keywords of :class:`~llama_index.graphrag.GraphRAGRetriever`."""

    mode: SearchMode
    lexical_weight: float
    context: Context
    entities_top_k: int
    link_threshold: float
    seed_chunks: int
    seed_weight: float
    structure_weight: float
    level: int | None
    rating_threshold: float | None
    max_reports: int | None
    max_calls: int
    rounds: int
    follow_ups: int
    published: PublishedOptions
    num_workers: int


class GraphRAGPostprocessorKeywords(PostprocessorKeywords, total=False):
    """Keywords of :class:`~llama_index.graphrag.GraphRAGPostprocessor`."""

    max_added: int
