"""The ground floor of the corpus-level retrieval packages for LlamaIndex.

An index of these packages derives from :class:`DerivedIndex` and keeps its vectors in
:class:`MatrixVectorStore`. LLM work goes through :class:`NodeExtractor` and :class:`Summarizer`, paid for
once through :class:`ExtractionCache`. `llama_index.ragkit.evaluation` measures any retriever,
`llama_index.ragkit.html` draws the pages, and :func:`persist` saves a storage context so that a killed
process leaves the old state.
"""

from llama_index.ragkit.cache import ExtractionCache, SQLiteKVStore
from llama_index.ragkit.errors import RagKitError
from llama_index.ragkit.extraction import Estimate, Extraction, NodeExtractor
from llama_index.ragkit.extractive import ExtractiveSummarizer
from llama_index.ragkit.index import DerivedIndex
from llama_index.ragkit.persistence import persist
from llama_index.ragkit.postprocessor import DerivedPostprocessor
from llama_index.ragkit.retriever import DerivedRetriever
from llama_index.ragkit.struct import DerivedStruct, register_index
from llama_index.ragkit.summarizers import LLMSummarizer, Summarizer
from llama_index.ragkit.vector_store import MatrixVectorStore

__all__ = [
    "DerivedIndex",
    "DerivedPostprocessor",
    "DerivedRetriever",
    "DerivedStruct",
    "Estimate",
    "Extraction",
    "ExtractionCache",
    "ExtractiveSummarizer",
    "LLMSummarizer",
    "MatrixVectorStore",
    "NodeExtractor",
    "RagKitError",
    "SQLiteKVStore",
    "Summarizer",
    "persist",
    "register_index",
]
