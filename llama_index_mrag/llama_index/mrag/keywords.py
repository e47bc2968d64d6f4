"""The keyword arguments of MRAG's index, retriever and postprocessor, typed for editors and type checkers."""

from collections.abc import Sequence

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.mrag.config import Aspects, Fusion, Vote
from llama_index.ragkit import IndexKeywords, LLMRetrieverKeywords, PostprocessorKeywords
from llama_index.ragkit.vectors.row_buffer import Storage

__all__ = ["MRAGKeywords", "MRAGPostprocessorKeywords", "MRAGRetrieverKeywords"]


class MRAGKeywords(IndexKeywords, total=False):
    """Keywords of :class:`~llama_index.mrag.MRAGIndex`."""

    head_stores: Sequence[BasePydanticVectorStore] | None
    dtype: Storage


class MRAGRetrieverKeywords(LLMRetrieverKeywords, total=False):
    """Keywords of :class:`~llama_index.mrag.MRAGRetriever`."""

    aspects: Aspects
    vote: Vote
    fusion: Fusion
    num_candidates: int
    vote_weight: float | None
    lexical_weight: float
    num_queries: int


class MRAGPostprocessorKeywords(PostprocessorKeywords, total=False):
    """Keywords of :class:`~llama_index.mrag.MRAGPostprocessor`."""

    aspects: Aspects
    vote: Vote
    vote_weight: float | None
    lexical_weight: float
    num_queries: int
