"""All parameters of GEM-RAG, for the memory and for a search, and the paper's values of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import CheckedFields, Count, Share, ShareOrNone, check_component, count, number
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT

__all__ = [
    "PAPER_MEMORY",
    "PAPER_RANKING",
    "MemoryConfig",
    "MemorySearchConfig",
    "Mode",
    "PublishedThemes",
    "QuestionRole",
    "Summaries",
    "ThemeMethod",
]

Summaries = Literal["deferred", "eager"]
QuestionRole = Literal["text", "query"]
Mode = Literal["argmax", "best_first"]
ThemeMethod = Literal["spectral", "k-means"]


@dataclass(frozen=True)
class PublishedThemes:
    """Which eigenvectors give themes, for the paper and its ablations, as `published=` of an index.

    Attributes
    ----------
    rotate : whether varimax rotates the leading eigenvectors, so that each represents one theme [True; paper False]
    include_trivial : without rotation, whether the first eigenvector gives a theme too [False; paper True]
    both_poles : without rotation, whether the negative components of the others give themes too [False]
    """

    rotate: bool = True
    include_trivial: bool = False
    both_poles: bool = False


@dataclass(frozen=True)
class MemoryConfig(CheckedFields):
    """Parameters of the memory, stored with the index; see :class:`~llama_index.gemrag.GEMRAGIndex`."""

    summary_tokens: Count = 200
    summaries: Summaries = "deferred"
    themes: ThemeMethod = "spectral"
    num_themes: Annotated[int | None, count(0, none_ok=True)] = None
    max_themes: Count = 32
    theme_size: Annotated[int, count(2)] = 10
    min_component: Share = 0.25
    group_by: str | None = "ref_doc_id"
    blend: Share = 0.5
    max_theme_tokens: Count = 8192
    refresh_share: Share = 0.1
    question_role: QuestionRole = "text"
    paper: bool = False
    published: PublishedThemes = PublishedThemes()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_component("published", self.published, PublishedThemes, "PublishedThemes(...)")
        if self.group_by is not None and (not isinstance(self.group_by, str) or not self.group_by):
            raise ConfigurationError(f"group_by must be a metadata key or None, not {self.group_by!r}.")


@dataclass(frozen=True)
class MemorySearchConfig(CheckedFields):
    """Parameters of a search; see :class:`~llama_index.gemrag.GEMRAGRetriever`."""

    mode: Mode = "argmax"
    question_weight: Share = 0.6
    hub_penalty: Annotated[float, number(0, 2)] = 0.2
    blend: ShareOrNone = None
    edge_weight: Share = 0.2
    max_summaries: Annotated[int | None, count(0, none_ok=True)] = None
    summary_margin: Annotated[float | None, number(0, none_ok=True)] = None
    keep_covered: bool | None = None
    lexical_weight: ShareOrNone = None

    def ranking(self, paper: bool) -> dict[str, Any]:
        """The parameters whose defaults depend on the index, with these defaults in place of unset values.

        Parameters
        ----------
        paper : the index's parameter
        """
        defaults = PAPER_RANKING if paper else _OUR_RANKING
        return {n: default if getattr(self, n) is None else getattr(self, n) for n, default in defaults.items()}


PAPER_MEMORY: Mapping[str, Any] = MappingProxyType(
    {
        "num_themes": 2,
        "published": PublishedThemes(rotate=False, include_trivial=True),
        "min_component": 0.0,
        "summary_tokens": 100,
    }
)
"""Parameters of the memory that `paper=True` sets, in addition to the operator itself."""

PAPER_RANKING: Mapping[str, Any] = MappingProxyType(
    {"blend": 0.5, "summary_margin": 0.0, "keep_covered": True, "lexical_weight": 0.0}
)
"""Parameters of the paper's ranking, the defaults for an index with `paper=True`."""

_OUR_RANKING: Mapping[str, Any] = MappingProxyType(
    {"blend": None, "summary_margin": 1.0, "keep_covered": False, "lexical_weight": LEXICAL_WEIGHT}
)
