"""The keyword arguments of spRAG's index, retriever and postprocessor, typed for editors and type checkers."""

from typing import TypedDict

from llama_index.core.postprocessor.types import BaseNodePostprocessor

from llama_index.ragkit import IndexKeywords, LLMRetrieverKeywords, PostprocessorKeywords
from llama_index.sprag.config import HeaderWording, LengthUnit, Mode, Order, PublishedSegments, Selection
from llama_index.sprag.relevance.calibration import Calibration

__all__ = ["RelevantSegmentKeywords", "SegmentKeywords", "SpRAGKeywords", "SpRAGRetrieverKeywords"]


class SpRAGKeywords(IndexKeywords, total=False):
    """Keywords of :class:`~llama_index.sprag.SpRAGIndex`."""

    header: HeaderWording


class SegmentKeywords(TypedDict, total=False):
    """How relevant segments are extracted; see :class:`~llama_index.sprag.config.SegmentConfig`."""

    overall_max_length: int
    max_length: int | None
    minimum_value: float
    irrelevant_chunk_penalty: float
    neighbor_relevance: float | None
    decay_rate: float | None
    length_unit: LengthUnit
    calibration: str | Calibration
    selection: Selection
    fill: bool
    order: Order
    published: PublishedSegments


class SpRAGRetrieverKeywords(LLMRetrieverKeywords, SegmentKeywords, total=False):
    """Keywords of :class:`~llama_index.sprag.SpRAGRetriever`."""

    mode: Mode
    candidates: int
    lexical_weight: float
    context_weight: float
    auto_query: bool
    max_queries: int
    segment_headers: bool
    reranker: BaseNodePostprocessor | None


class RelevantSegmentKeywords(PostprocessorKeywords, SegmentKeywords, total=False):
    """Keywords of :class:`~llama_index.sprag.RelevantSegmentPostprocessor`."""

    reranked: bool
    segment_headers: bool
