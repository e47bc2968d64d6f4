"""The keyword arguments of PG-RAG's index, retriever and postprocessor, typed for editors and type checkers."""

from typing import Literal

from llama_index.pgrag.config import Control, ControlName, Fusion, KeyPoints, Mode, Ranking
from llama_index.ragkit import IndexKeywords, LLMRetrieverKeywords, PostprocessorKeywords

__all__ = ["PGRAGKeywords", "PGRAGPostprocessorKeywords", "PGRAGRetrieverKeywords"]


class PGRAGKeywords(IndexKeywords, total=False):
    """Keywords of :class:`~llama_index.pgrag.PGRAGIndex`."""

    topic_threshold: float
    fact_threshold: float
    fusion: Fusion
    cell_vectors: bool | None


class PGRAGRetrieverKeywords(LLMRetrieverKeywords, total=False):
    """Keywords of :class:`~llama_index.pgrag.PGRAGRetriever`."""

    mode: Mode
    return_source: bool
    key_points: KeyPoints
    max_key_points: int
    seed_topics: int
    max_topics: int
    topic_walk: bool
    fact_walk: bool
    seed_facts: int
    num_seeds: int
    control: ControlName | Control
    ranking: Ranking
    fact_weight: float
    walk_weight: float
    bridge_weight: float
    lexical_weight: float


class PGRAGPostprocessorKeywords(PostprocessorKeywords, total=False):
    """Keywords of :class:`~llama_index.pgrag.PGRAGPostprocessor`."""

    max_paths: int
    scope: Literal["documents", "nodes"]
    lexical_weight: float
