"""spRAG for LlamaIndex: context for every chunk, and relevant segments instead of chunks."""

from llama_index.sprag.config import PublishedSegments, SegmentConfig, published_config
from llama_index.sprag.explanation import ChunkInSegment, SpRAGExplanation
from llama_index.sprag.extraction.auto_context import AutoContext
from llama_index.sprag.extraction.first_generation import FirstGenerationContext
from llama_index.sprag.extraction.rule_context import RuleContext
from llama_index.sprag.index import SpRAGIndex
from llama_index.sprag.postprocessor import RelevantSegmentPostprocessor
from llama_index.sprag.relevance.calibration import (
    BetaCalibration,
    ConstantCalibration,
    MinMaxCalibration,
    NoCalibration,
    SigmoidCalibration,
)
from llama_index.sprag.retriever import SpRAGRetriever

__all__ = [
    "AutoContext",
    "BetaCalibration",
    "ChunkInSegment",
    "ConstantCalibration",
    "FirstGenerationContext",
    "MinMaxCalibration",
    "NoCalibration",
    "PublishedSegments",
    "RelevantSegmentPostprocessor",
    "RuleContext",
    "SegmentConfig",
    "SigmoidCalibration",
    "SpRAGExplanation",
    "SpRAGIndex",
    "SpRAGRetriever",
    "published_config",
]

__version__ = "0.1.0"
