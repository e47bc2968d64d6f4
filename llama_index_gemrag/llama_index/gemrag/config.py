"""All parameters of GEM-RAG, for the memory and for a search, and the paper's values of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_choice, check_component, check_count, check_number
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
class MemoryConfig:
    """Parameters of the memory, stored with the index; see :class:`~llama_index.gemrag.GEMRAGIndex`."""

    summary_tokens: int = 200
    summaries: Summaries = "deferred"
    themes: ThemeMethod = "spectral"
    num_themes: int | None = None
    max_themes: int = 32
    theme_size: int = 10
    min_component: float = 0.25
    group_by: str | None = "ref_doc_id"
    blend: float = 0.5
    max_theme_tokens: int = 8192
    refresh_share: float = 0.1
    question_role: QuestionRole = "text"
    paper: bool = False
    published: PublishedThemes = PublishedThemes()

    def __post_init__(self) -> None:
        check_count("num_themes", self.num_themes, 0, none_ok=True)
        check_count("max_themes", self.max_themes, 1)
        check_count("theme_size", self.theme_size, 2)
        for name in ("max_theme_tokens", "summary_tokens"):
            check_count(name, getattr(self, name), 1)
        for name in ("min_component", "blend", "refresh_share"):
            check_number(name, getattr(self, name), 0, 1)
        check_choice("themes", self.themes, get_args(ThemeMethod))
        check_choice("question_role", self.question_role, get_args(QuestionRole))
        check_component("published", self.published, PublishedThemes, "PublishedThemes(...)")
        check_choice("summaries", self.summaries, get_args(Summaries))
        if self.group_by is not None and (not isinstance(self.group_by, str) or not self.group_by):
            raise ConfigurationError(f"group_by must be a metadata key or None, not {self.group_by!r}.")


@dataclass(frozen=True)
class MemorySearchConfig:
    """Parameters of a search; see :class:`~llama_index.gemrag.GEMRAGRetriever`."""

    mode: Mode = "argmax"
    question_weight: float = 0.6
    hub_penalty: float = 0.2
    blend: float | None = None
    edge_weight: float = 0.2
    max_summaries: int | None = None
    summary_margin: float | None = None
    keep_covered: bool | None = None
    lexical_weight: float | None = None

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, get_args(Mode))
        check_number("question_weight", self.question_weight, 0, 1)
        check_number("hub_penalty", self.hub_penalty, 0, 2)
        if self.blend is not None:
            check_number("blend", self.blend, 0, 1)
        check_number("edge_weight", self.edge_weight, 0, 1)
        check_count("max_summaries", self.max_summaries, 0, none_ok=True)
        if self.summary_margin is not None:
            check_number("summary_margin", self.summary_margin, 0)
        if self.lexical_weight is not None:
            check_number("lexical_weight", self.lexical_weight, 0, 1)

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
