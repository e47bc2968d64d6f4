"""The shared base of the corpus-level retrieval packages for LlamaIndex, and the base classes of new methods.

A method derives its index from :class:`DerivedIndex`, its retriever from :class:`DerivedRetriever` and its
postprocessor from :class:`DerivedPostprocessor`, and supplies a :class:`Builder`. Vectors are kept in
:class:`MatrixVectorStore`. LLM work is done by :class:`NodeExtractor` and :class:`Summarizer`, whose replies
:class:`ExtractionCache` keeps. `llama_index.ragkit.evaluation` measures any retriever, `llama_index.ragkit.html`
renders the pages, and :func:`persist` saves a storage context so that a killed process leaves the old state.
"""

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.extraction.context import Estimate, Extraction, ExtractionContext
from llama_index.ragkit.extraction.extractive_summarizer import ExtractiveSummarizer
from llama_index.ragkit.extraction.node_extractor import NodeExtractor
from llama_index.ragkit.extraction.structured import StructuredExtractor
from llama_index.ragkit.extraction.summarizers import LLMSummarizer, Summarizer
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.index.builder import Builder, Change, Failure
from llama_index.ragkit.index.combined_retriever import CombinedExplanation, CombinedRetriever
from llama_index.ragkit.index.derived_index import DerivedIndex
from llama_index.ragkit.index.engines import AutoRetriever, PipelineStore
from llama_index.ragkit.index.hybrid_retriever import HybridRetriever
from llama_index.ragkit.index.keywords import (
    IndexKeywords,
    LLMRetrieverKeywords,
    PostprocessorKeywords,
    RetrieverKeywords,
)
from llama_index.ragkit.index.postprocessor import DerivedPostprocessor
from llama_index.ragkit.index.query import FallbackEvent, Found, LastQuery, Query
from llama_index.ragkit.index.retriever import DerivedRetriever, Explanation
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.prices import Prices
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.llm.sqlite_kvstore import SQLiteKVStore
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.persist import load_storage_context, persist
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.struct import DerivedStruct, register_index
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = [
    "AutoRetriever",
    "Builder",
    "Change",
    "CombinedExplanation",
    "CombinedRetriever",
    "DerivedIndex",
    "DerivedPostprocessor",
    "DerivedRetriever",
    "DerivedStruct",
    "Estimate",
    "Explanation",
    "Extraction",
    "ExtractionCache",
    "ExtractionContext",
    "ExtractiveSummarizer",
    "Failure",
    "FallbackEvent",
    "Found",
    "HybridRetriever",
    "IndexKeywords",
    "LLMRetrieverKeywords",
    "LLMSummarizer",
    "LastQuery",
    "MatrixVectorStore",
    "NodeExtractor",
    "PipelineStore",
    "PostprocessorKeywords",
    "Prices",
    "Query",
    "RagKitError",
    "Records",
    "RetrieverKeywords",
    "RetryPolicy",
    "SQLiteKVStore",
    "Selection",
    "Snapshot",
    "SpaceRows",
    "Steps",
    "StructuredExtractor",
    "Summarizer",
    "content_id",
    "load_storage_context",
    "offload",
    "persist",
    "register_index",
]

__version__ = "0.1.0"
