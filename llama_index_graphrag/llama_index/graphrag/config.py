"""All parameters with their ranges: our defaults, and beside them the values of the published pipeline.

Published: microsoft/graphrag 3.1.2 with its default settings, which are those of arXiv 2404.16130 where the paper
names them.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_choice, check_count, check_number

__all__ = [
    "DriftConfig",
    "ExtractionConfig",
    "GlobalConfig",
    "LocalConfig",
    "RelevanceConfig",
    "ReportConfig",
    "ReportTime",
    "SearchMode",
]

ReportTime = Literal["lazy", "deferred", "eager"]
SearchMode = Literal["local", "global", "drift", "basic"]


@dataclass(frozen=True)
class ExtractionConfig:
    """What is asked of a chunk.

    Attributes
    ----------
    gleanings : times that a model is asked for what it missed, at least 0 [0; published 1]
    claims : whether claims are extracted too [no; published no]
    description_tokens : of the descriptions of an entity or a pair before a model merges them, at least 1 [800;
        published 4,000 before the merge, 500 words after it]

    Raises
    ------
    ConfigurationError
        If a value is out of range; so for each class here.
    """

    gleanings: int = 0
    claims: bool = False
    description_tokens: int = 800

    def __post_init__(self) -> None:
        check_count("gleanings", self.gleanings, 0)
        check_count("description_tokens", self.description_tokens, 1)
        if not isinstance(self.claims, bool):
            raise ConfigurationError(f"claims must be True or False, not {self.claims!r}.")

    @classmethod
    def paper(cls) -> "ExtractionConfig":
        """The published values."""
        return cls(gleanings=1, description_tokens=4000)


@dataclass(frozen=True)
class ReportConfig:
    """How reports are made.

    Attributes
    ----------
    time : "lazy" writes a report when a question reads it, "deferred" when it is asked to, "eager" at each write
        [lazy; published eager]
    report_tokens : of a report, at least 1; a community with no more tokens of statements is reported by these
        verbatim [800; published 2,000 words, and no community verbatim]
    context_tokens : that a report is made of, at least `report_tokens` [4,000; published 8,000]
    max_calls : reports that one question may have written, at least 0; None for no limit [20]
    """

    time: ReportTime = "lazy"
    report_tokens: int = 800
    context_tokens: int = 4000
    max_calls: int | None = 20

    def __post_init__(self) -> None:
        check_choice("time", self.time, get_args(ReportTime))
        check_count("report_tokens", self.report_tokens, 1)
        check_count("context_tokens", self.context_tokens, 1)
        check_count("max_calls", self.max_calls, 0, none_ok=True)
        if self.context_tokens < self.report_tokens:
            raise ConfigurationError(
                f"context_tokens must be at least report_tokens, {self.report_tokens}, not {self.context_tokens}."
            )

    @classmethod
    def paper(cls) -> "ReportConfig":
        """The published values; 2,000 words are taken for 2,700 tokens."""
        return cls(time="eager", report_tokens=2700, context_tokens=8000, max_calls=None)


@dataclass(frozen=True)
class LocalConfig:
    """A search from the entities of a question.

    Attributes
    ----------
    entities_top_k : entities that are linked by their vectors, at least 0 [10; published 10]
    link_threshold : least cosine of such a link, in [-1, 1] [0.5; published none]
    spread : share of a link's weight that goes on to the neighbours of the entity, in [0, 1) [0.3; published 0]
    structure_weight : of the share of linked statements beside nearness, at least 0 [1; published: chunks are ranked
        by entities alone]
    token_budget : of the context, at least 1 [12,000; published 12,000]
    report_share, statement_share : of the context for reports, and for entities and relations, at least 0 and together
        at most 1; the rest is for chunks [0.15, 0.35; published the same]
    relations_per_entity : relations to entities that are not linked, for each that is, at least 0 [10; published 10]
    """

    entities_top_k: int = 10
    link_threshold: float = 0.5
    spread: float = 0.3
    structure_weight: float = 1.0
    token_budget: int = 12_000
    report_share: float = 0.15
    statement_share: float = 0.35
    relations_per_entity: int = 10

    def __post_init__(self) -> None:
        check_count("entities_top_k", self.entities_top_k, 0)
        check_number("link_threshold", self.link_threshold, -1, 1)
        check_number("spread", self.spread, 0, 1, below=True)
        check_number("structure_weight", self.structure_weight, 0)
        check_count("token_budget", self.token_budget, 1)
        check_number("report_share", self.report_share, 0, 1)
        check_number("statement_share", self.statement_share, 0, 1)
        check_count("relations_per_entity", self.relations_per_entity, 0)
        if self.report_share + self.statement_share > 1:
            raise ConfigurationError(
                f"report_share and statement_share must be at most 1 together, not {self.report_share} and "
                f"{self.statement_share}."
            )

    @classmethod
    def paper(cls) -> "LocalConfig":
        """The published values."""
        return cls(link_threshold=-1.0, spread=0.0)


@dataclass(frozen=True)
class GlobalConfig:
    """A question about the whole.

    Attributes
    ----------
    token_budget : of the reports read, at least 1; None to read a level instead [12,000; published None]
    level : the deepest level that is read where there is no budget, at least 0 [2; published 2]
    batch_tokens : of the reports in one call, at least 1 [12,000; published 12,000]
    reduce_tokens : of the points that the answer is made of, at least 1 [12,000; published 12,000]
    rating_threshold : rating from which a report is opened when a model rates them, 0 to 5; None without ratings [None;
        published None, with dynamic selection 1]
    """

    token_budget: int | None = 12_000
    level: int = 2
    batch_tokens: int = 12_000
    reduce_tokens: int = 12_000
    rating_threshold: int | None = None

    def __post_init__(self) -> None:
        check_count("token_budget", self.token_budget, 1, none_ok=True)
        check_count("level", self.level, 0)
        check_count("batch_tokens", self.batch_tokens, 1)
        check_count("reduce_tokens", self.reduce_tokens, 1)
        if self.rating_threshold is not None:
            check_number("rating_threshold", self.rating_threshold, 0, 5)

    @classmethod
    def paper(cls) -> "GlobalConfig":
        """The published values."""
        return cls(token_budget=None)


@dataclass(frozen=True)
class DriftConfig:
    """A question that leads to further questions.

    Attributes
    ----------
    max_calls : of a model, the last of them for the answer, at least 2 [12; published up to 67]
    rounds : of follow-up questions, at least 0 [3; published 3]
    follow_ups : asked in a round, at least 1 [3; published 20]
    primer_reports : that the first answer is made of, at least 1 [20; published 20, in 5 calls]
    """

    max_calls: int = 12
    rounds: int = 3
    follow_ups: int = 3
    primer_reports: int = 20

    def __post_init__(self) -> None:
        check_count("max_calls", self.max_calls, 2)
        check_count("rounds", self.rounds, 0)
        check_count("follow_ups", self.follow_ups, 1)
        check_count("primer_reports", self.primer_reports, 1)

    @classmethod
    def paper(cls) -> "DriftConfig":
        """The published values."""
        return cls(max_calls=67, follow_ups=20)


@dataclass(frozen=True)
class RelevanceConfig:
    """A search that asks a model of one chunk after another whether it is relevant.

    Attributes
    ----------
    budget : chunks that are tested, at least 1 [50; published 50]
    feedback : weight of the similarity to the best chunk found relevant, at least 0 [0.5; published 0]
    """

    budget: int = 50
    feedback: float = 0.5

    def __post_init__(self) -> None:
        check_count("budget", self.budget, 1)
        check_number("feedback", self.feedback, 0)

    @classmethod
    def paper(cls) -> "RelevanceConfig":
        """The published values, in microsoft/intelligence-toolkit."""
        return cls(feedback=0.0)
