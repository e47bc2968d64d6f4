"""The keyword arguments of GEM-RAG's index, retriever and postprocessor, typed for editors and type checkers."""

from llama_index.gemrag.config import Mode, PublishedThemes, QuestionRole, Summaries, ThemeMethod
from llama_index.ragkit import IndexKeywords, PostprocessorKeywords, RetrieverKeywords, Summarizer

__all__ = ["GEMRAGKeywords", "GEMRAGPostprocessorKeywords", "GEMRAGRetrieverKeywords"]


class GEMRAGKeywords(IndexKeywords, total=False):
    """Keywords of :class:`~llama_index.gemrag.GEMRAGIndex`."""

    summarizer: Summarizer | None
    group_by: str | None
    themes: ThemeMethod
    num_themes: int | None
    max_themes: int
    theme_size: int
    min_component: float
    blend: float
    max_theme_tokens: int
    summary_tokens: int
    refresh_share: float
    question_role: QuestionRole
    summaries: Summaries
    paper: bool
    published: PublishedThemes


class GEMRAGRetrieverKeywords(RetrieverKeywords, total=False):
    """Keywords of :class:`~llama_index.gemrag.GEMRAGRetriever`."""

    mode: Mode
    question_weight: float
    hub_penalty: float
    blend: float | None
    edge_weight: float
    max_summaries: int | None
    summary_margin: float | None
    keep_covered: bool | None
    lexical_weight: float | None


class GEMRAGPostprocessorKeywords(PostprocessorKeywords, total=False):
    """Keywords of :class:`~llama_index.gemrag.GEMRAGPostprocessor`."""

    edge_weight: float
    lexical_weight: float
    add_themes: bool
    max_summaries: int | None
