"""Graph RAG for LlamaIndex: communities of a knowledge graph, and reports about them.

See :class:`GraphRAGIndex`.
"""

from llama_index.graphrag.clustering.agglomerative import AgglomerativeClustering
from llama_index.graphrag.clustering.hierarchy import Clustering
from llama_index.graphrag.clustering.leiden import LeidenClustering
from llama_index.graphrag.clustering.recorded import RecordedClustering
from llama_index.graphrag.config import PublishedOptions
from llama_index.graphrag.explanation import GraphRAGExplanation
from llama_index.graphrag.extraction.cooccurrence import CooccurrenceExtractor
from llama_index.graphrag.extraction.entity_extractor import EntityExtractor
from llama_index.graphrag.extraction.recorded_extractor import RecordedExtractor, published_nodes
from llama_index.graphrag.index import GraphRAGIndex
from llama_index.graphrag.map_reduce import GraphRAGQueryEngine, ReportAnswer, ReportMapReduce
from llama_index.graphrag.postprocessor import GraphRAGPostprocessor
from llama_index.graphrag.published.run import read_parquet
from llama_index.graphrag.published_reports import ImportedReports
from llama_index.graphrag.reporter import ReportWriter
from llama_index.graphrag.resolvers import CosineResolver, EntityResolver, LLMResolver
from llama_index.graphrag.retriever import GraphRAGRetriever
from llama_index.graphrag.search.linking import Link

__all__ = [
    "AgglomerativeClustering",
    "Clustering",
    "CooccurrenceExtractor",
    "CosineResolver",
    "EntityExtractor",
    "EntityResolver",
    "GraphRAGExplanation",
    "GraphRAGIndex",
    "GraphRAGPostprocessor",
    "GraphRAGQueryEngine",
    "GraphRAGRetriever",
    "ImportedReports",
    "LLMResolver",
    "LeidenClustering",
    "Link",
    "PublishedOptions",
    "RecordedClustering",
    "RecordedExtractor",
    "ReportAnswer",
    "ReportMapReduce",
    "ReportWriter",
    "published_nodes",
    "read_parquet",
]

__version__ = "0.1.0"
