"""The shared base of the corpus-level retrieval packages for LlamaIndex, and the base classes of new methods.

A method derives its index from :class:`DerivedIndex`, its retriever from :class:`DerivedRetriever` and its
postprocessor from :class:`DerivedPostprocessor`, and supplies a :class:`Builder`. Vectors are kept in
:class:`MatrixVectorStore`. LLM work is done by :class:`NodeExtractor` and :class:`Summarizer`, whose replies
:class:`ExtractionCache` keeps. `llama_index.ragkit.evaluation` measures any retriever, `llama_index.ragkit.html`
renders the pages, and :func:`persist` saves a storage context so that a killed process leaves the old state.
"""

from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.extraction.context import Estimate, Extraction, ExtractionContext, passages_of
from llama_index.ragkit.extraction.extractive_summarizer import ExtractiveSummarizer
from llama_index.ragkit.extraction.failure_watch import FailureWatch, all_failed
from llama_index.ragkit.extraction.node_extractor import NodeExtractor
from llama_index.ragkit.extraction.structured import StructuredExtractor
from llama_index.ragkit.extraction.summarizers import LLMSummarizer, Summarizer
from llama_index.ragkit.ids import content_id
from llama_index.ragkit.index.builder import Builder, SummaryBuilder
from llama_index.ragkit.index.change import Change
from llama_index.ragkit.index.chunk_scores import ChunkScores, SharedQuestion, Structure
from llama_index.ragkit.index.combined_retriever import CombinedExplanation, CombinedRetriever
from llama_index.ragkit.index.contents import IndexContents, ViewContents
from llama_index.ragkit.index.derived_index import DerivedIndex, nodes_of
from llama_index.ragkit.index.engines import AutoRetriever
from llama_index.ragkit.index.failure import Failure
from llama_index.ragkit.index.hybrid_retriever import HybridRetriever
from llama_index.ragkit.index.keywords import (
    IndexKeywords,
    LLMRetrieverKeywords,
    PostprocessorKeywords,
    RetrieverKeywords,
)
from llama_index.ragkit.index.last_query import LastQuery
from llama_index.ragkit.index.matching import match_nodes
from llama_index.ragkit.index.pipeline_store import PipelineStore
from llama_index.ragkit.index.postprocessor import DerivedPostprocessor
from llama_index.ragkit.index.query import FallbackEvent, Found, Query, as_bundle, report_fallback
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.results import deepened, fit_tokens, fresh, take_nodes
from llama_index.ragkit.index.retriever import DerivedRetriever, Explanation
from llama_index.ragkit.index.summaries import SummaryMethods, SummaryWriter
from llama_index.ragkit.llm.announcements import plain_answer, plain_lines, whole_sentences, without_announcement
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.completion import Rejected, complete, find_llm, known_llm
from llama_index.ragkit.llm.context_window import PromptTexts
from llama_index.ragkit.llm.embeddings import as_matrix, check_model, embed_texts, query_matrix
from llama_index.ragkit.llm.json.output import find_values, parse_model, parse_pairs, to_plain
from llama_index.ragkit.llm.prices import Prices
from llama_index.ragkit.llm.prompts import PromptHolder, fence, with_example
from llama_index.ragkit.llm.reasoning import strip_reasoning
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.llm.sqlite_kvstore import SQLiteKVStore
from llama_index.ragkit.steps import Steps, arun_steps, call, gather, immediate, offload, run_steps
from llama_index.ragkit.storage.derived_nodes import (
    NodeFetch,
    derived_node,
    fetch_derived,
    node_from_record,
    node_to_record,
    texts_of,
)
from llama_index.ragkit.storage.external_store import ExternalVectorStore, search_at_once
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.interface import Space, Stores, Words
from llama_index.ragkit.storage.nodes import plain_text, sort_key, title_of
from llama_index.ragkit.storage.persist import load_storage_context, persist
from llama_index.ragkit.storage.records import Record, Records
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.stored_chunks import ChunkView, StoredChunks
from llama_index.ragkit.storage.struct import DerivedStruct, register_index
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = [
    "AutoRetriever",
    "Builder",
    "Change",
    "ChunkScores",
    "ChunkView",
    "CombinedExplanation",
    "CombinedRetriever",
    "DerivedIndex",
    "DerivedPostprocessor",
    "DerivedRetriever",
    "DerivedStruct",
    "Estimate",
    "Explanation",
    "ExternalVectorStore",
    "Extraction",
    "ExtractionCache",
    "ExtractionContext",
    "ExtractiveSummarizer",
    "Failure",
    "FailureWatch",
    "FallbackEvent",
    "Found",
    "HybridRetriever",
    "IndexContents",
    "IndexKeywords",
    "IndexStorage",
    "LLMRetrieverKeywords",
    "LLMSummarizer",
    "LastQuery",
    "MatrixVectorStore",
    "NodeExtractor",
    "NodeFetch",
    "PipelineStore",
    "PostprocessorKeywords",
    "Prices",
    "PromptHolder",
    "PromptTexts",
    "Query",
    "RagKitError",
    "Record",
    "Records",
    "Rejected",
    "Resources",
    "RetrieverKeywords",
    "RetryPolicy",
    "SQLiteKVStore",
    "Selection",
    "SharedQuestion",
    "Snapshot",
    "Space",
    "SpaceRows",
    "Steps",
    "StoredChunks",
    "Stores",
    "Structure",
    "StructuredExtractor",
    "Summarizer",
    "SummaryBuilder",
    "SummaryMethods",
    "SummaryWriter",
    "ViewContents",
    "Words",
    "all_failed",
    "arun_steps",
    "as_bundle",
    "as_matrix",
    "call",
    "check_model",
    "complete",
    "content_id",
    "count_tokens",
    "deepened",
    "derived_node",
    "embed_texts",
    "fence",
    "fetch_derived",
    "find_llm",
    "find_values",
    "fit_tokens",
    "fresh",
    "gather",
    "immediate",
    "known_llm",
    "load_storage_context",
    "match_nodes",
    "node_from_record",
    "node_to_record",
    "nodes_of",
    "offload",
    "parse_model",
    "parse_pairs",
    "passages_of",
    "persist",
    "plain_answer",
    "plain_lines",
    "plain_text",
    "query_matrix",
    "register_index",
    "report_fallback",
    "run_steps",
    "search_at_once",
    "sort_key",
    "strip_reasoning",
    "take_nodes",
    "texts_of",
    "title_of",
    "to_plain",
    "whole_sentences",
    "with_example",
    "without_announcement",
]

__version__ = "0.1.0"
