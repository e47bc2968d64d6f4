"""The keyword arguments of RAPTOR's index, retriever and postprocessor, typed for editors and type checkers."""

from llama_index.ragkit import IndexKeywords, PostprocessorKeywords, RetrieverKeywords, Summarizer
from llama_index.raptor.clustering.base import Clustering
from llama_index.raptor.config import Mode, Summaries

__all__ = ["RaptorKeywords", "RaptorPostprocessorKeywords", "RaptorRetrieverKeywords"]


class RaptorKeywords(IndexKeywords, total=False):
    """Keywords of :class:`~llama_index.raptor.RaptorIndex`."""

    summarizer: Summarizer | None
    clustering: Clustering | None
    max_layers: int
    max_cluster_tokens: int
    max_root_children: int
    root: bool
    min_shrink: float
    summary_tokens: int
    summaries: Summaries


class RaptorRetrieverKeywords(RetrieverKeywords, total=False):
    """Keywords of :class:`~llama_index.raptor.RaptorRetriever`."""

    mode: Mode
    beam_width: int | None
    min_cosine: float | None
    start_layer: int | None
    num_layers: int | None
    summary_margin: float | None
    lexical_weight: float


class RaptorPostprocessorKeywords(PostprocessorKeywords, total=False):
    """Keywords of :class:`~llama_index.raptor.RaptorPostprocessor`."""

    min_coverage: float
