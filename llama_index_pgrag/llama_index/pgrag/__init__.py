"""PG-RAG for LlamaIndex: retrieval from mind maps of facts that are linked across documents.

See :class:`PGRAGIndex`.
"""

from llama_index.pgrag.config import Control
from llama_index.pgrag.explanation import CellSupport, PGRAGExplanation
from llama_index.pgrag.extraction.mind_map_extractor import MindMapExtractor, TwoStageMindMapExtractor
from llama_index.pgrag.extraction.outline_extractor import GivenMindMaps, OutlineExtractor
from llama_index.pgrag.index import PGRAGIndex
from llama_index.pgrag.postprocessor import PGRAGPostprocessor
from llama_index.pgrag.retriever import KeyPointsEvent, PGRAGRetriever

__all__ = [
    "CellSupport",
    "Control",
    "GivenMindMaps",
    "KeyPointsEvent",
    "MindMapExtractor",
    "OutlineExtractor",
    "PGRAGExplanation",
    "PGRAGIndex",
    "PGRAGPostprocessor",
    "PGRAGRetriever",
    "TwoStageMindMapExtractor",
]

__version__ = "0.1.0"
