"""All parameters with their ranges: the defaults, and the values of the published pipeline.

Published: microsoft/graphrag 3.1.2 with its default settings. They are those of arXiv 2404.16130 if the paper names
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_choice, check_component, check_count, check_number
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT

__all__ = [
    "PUBLISHED_INDEX",
    "PUBLISHED_SEARCH",
    "ChunkOrder",
    "Context",
    "GraphRAGConfig",
    "PublishedOptions",
    "ReportTime",
    "SearchConfig",
    "SearchMode",
]

ChunkOrder = Literal["score", "entities"]
Context = Literal["chunks", "mixed"]
ReportTime = Literal["lazy", "deferred", "eager"]
SearchMode = Literal["local", "global", "drift", "basic"]


@dataclass(frozen=True)
class GraphRAGConfig:
    """Parameters of the index.

    Attributes
    ----------
    reports : "lazy" writes a report when a question first reads it, "deferred" when `write_reports` is called, "eager"
        at each write. The statements stand in for an unwritten report [lazy; published eager]
    report_tokens : tokens of a report, at least 1 [800; published 2,000 words]
    verbatim : whether the statements of a community are its report, without a call, if they have no more tokens than a
        report [True; published False: each community of two or more entities has a report written]
    context_tokens : tokens from which a report is made, at least `report_tokens` [4,000; published 8,000]
    partition_by : name of a metadata value, such as the tenant; chunks of different values share no entity and no
        community, so reports can be read under a filter for it. It cannot be changed afterwards [None]
    entity_vectors : whether names of entities are embedded, for a local search with `entities_top_k`. It cannot be
        changed afterwards [False; published True, with their descriptions]

    Raises
    ------
    ConfigurationError
        If a value is out of range, here and in the classes below.
    """

    reports: ReportTime = "lazy"
    report_tokens: int = 800
    verbatim: bool = True
    context_tokens: int = 4000
    partition_by: str | None = None
    entity_vectors: bool = False

    def __post_init__(self) -> None:
        check_choice("reports", self.reports, get_args(ReportTime))
        check_count("report_tokens", self.report_tokens, 1)
        check_count("context_tokens", self.context_tokens, 1)
        if self.context_tokens < self.report_tokens:
            raise ConfigurationError(
                f"context_tokens must be at least report_tokens, {self.report_tokens}, not {self.context_tokens}."
            )
        if self.partition_by is not None and not (isinstance(self.partition_by, str) and self.partition_by):
            raise ConfigurationError(
                f"partition_by must be the name of a metadata value or None, not {self.partition_by!r}."
            )


@dataclass(frozen=True)
class PublishedOptions:
    """Options that only the published search needs, passed to a retriever as `published=`.

    Attributes
    ----------
    chunk_order : in a mixed context, "score" ranks chunks as `context="chunks"` does, "entities" only by the linked
        entities [score; published entities]
    fill : whether a mixed context skips texts that do not fit and gives the remaining room to the next part [True;
        published False]
    report_share, statement_share : shares of a mixed context for reports, and for entities and relations, at least 0
        and together at most 1; chunks get the rest [0.15, 0.35; published the same]
    relations_per_entity : relations to unlinked entities, for each linked entity, at least 0 [10; published 10]
    spread : share of a link's weight that the neighbours of the entity get, in [0, 1) [0.3; published 0]
    relevance_budget : in a global search, the number of chunks that a model tests instead of reading reports, at least
        1; None for reports [None; published in microsoft/intelligence-toolkit 50]
    feedback : with `relevance_budget`, weight of the similarity to the best chunk found relevant, at least 0 [0, as
        published: with hybrid nearness it found no more]
    primer_reports : reports from which a drift search makes its first answers, at least 1 [20; published 20]
    primer_calls : calls among which these reports are divided, at least 1; fewer if `max_calls` allows no more; each
        gives an answer and its own follow-up questions [1; published 5]
    """

    chunk_order: ChunkOrder = "score"
    fill: bool = True
    report_share: float = 0.15
    statement_share: float = 0.35
    relations_per_entity: int = 10
    spread: float = 0.3
    relevance_budget: int | None = None
    feedback: float = 0.0
    primer_reports: int = 20
    primer_calls: int = 1

    def __post_init__(self) -> None:
        check_choice("chunk_order", self.chunk_order, get_args(ChunkOrder))
        for name in ("report_share", "statement_share"):
            check_number(name, getattr(self, name), 0, 1)
        check_count("relations_per_entity", self.relations_per_entity, 0)
        check_number("spread", self.spread, 0, 1, below=True)
        check_count("relevance_budget", self.relevance_budget, 1, none_ok=True)
        check_number("feedback", self.feedback, 0)
        for name in ("primer_reports", "primer_calls"):
            check_count(name, getattr(self, name), 1)
        if self.report_share + self.statement_share > 1:
            raise ConfigurationError(
                f"report_share and statement_share must be at most 1 together, not {self.report_share} and "
                f"{self.statement_share}."
            )


@dataclass(frozen=True)
class SearchConfig:
    """Parameters of a search.

    Attributes
    ----------
    mode : "local" starts from the entities of the question, "global" reads reports on the whole corpus, "drift" asks
        follow-up questions, "basic" searches only by similarity [local]
    lexical_weight : weight of BM25 in the nearness of a chunk, in [0, 1]; the cosine has the rest [0.5; published 0]
    context : in a local search, "chunks" for chunks only, "mixed" for reports and statements, too [chunks; published
        mixed]
    entities_top_k : number of entities that are linked by their vectors, at least 0; for an index with `entity_vectors`
        [0; published 10]
    link_threshold : least weight of such a link, the place of its cosine between those of the 100th and the first
        entity, in [0, 1] [0.5; published 0]
    seed_chunks : number of nearest chunks whose entities are linked, too, at least 0 [20; published 0]
    seed_weight : weight of the nearest of these, relative to an entity that the question names, at least 0 [1]
    structure_weight : weight of the logarithm of the share of linked statements, relative to nearness, if it is fully
        trusted, at least 0 [4; published: chunks are ranked only by entities]
    level : in a global search, the deepest level of the hierarchy that is read, at least 0; None to read what
        `token_budget` allows [None; published 2]
    rating_threshold : in a global search, the least rating by a model with which a report is opened, 0 to 5; None
        without ratings [None; published None, with dynamic selection 1]
    num_workers : simultaneous calls of a model, at least 1 [4]
    max_reports : number of reports that one question may have written, at least 0; None for no limit [20]
    max_calls : in a drift search, calls of a model, the last one for the answer, at least 2 [12; published up to 67]
    rounds : rounds of follow-up questions, at least 0 [3; published 3]
    follow_ups : questions asked in a round, at least 1 [3; published 20]
    published : see :class:`PublishedOptions`
    """

    mode: SearchMode = "local"
    lexical_weight: float = LEXICAL_WEIGHT
    context: Context = "chunks"
    entities_top_k: int = 0
    link_threshold: float = 0.5
    seed_chunks: int = 20
    seed_weight: float = 1.0
    structure_weight: float = 4.0
    level: int | None = None
    rating_threshold: float | None = None
    max_reports: int | None = 20
    num_workers: int = 4
    max_calls: int = 12
    rounds: int = 3
    follow_ups: int = 3
    published: PublishedOptions = PublishedOptions()

    def __post_init__(self) -> None:
        check_component("published", self.published, PublishedOptions, "PublishedOptions(...)")
        check_choice("mode", self.mode, get_args(SearchMode))
        check_choice("context", self.context, get_args(Context))
        for name in ("lexical_weight", "link_threshold"):
            check_number(name, getattr(self, name), 0, 1)
        for name in ("seed_weight", "structure_weight"):
            check_number(name, getattr(self, name), 0)
        least = {"max_calls": 2, "follow_ups": 1, "num_workers": 1, "rounds": 0, "entities_top_k": 0, "seed_chunks": 0}
        for name, number in least.items():
            check_count(name, getattr(self, name), number)
        for name in ("level", "max_reports"):
            check_count(name, getattr(self, name), 0, none_ok=True)
        if self.rating_threshold is not None:
            check_number("rating_threshold", self.rating_threshold, 0, 5)


PUBLISHED_INDEX: Mapping[str, Any] = {
    "reports": "eager",
    "report_tokens": 2700,
    "verbatim": False,
    "context_tokens": 8000,
    "entity_vectors": True,
}
"""The published values of an index; 2,000 words count as 2,700 tokens."""

PUBLISHED_SEARCH: Mapping[str, Any] = {
    "context": "mixed",
    "lexical_weight": 0.0,
    "entities_top_k": 10,
    "link_threshold": 0.0,
    "seed_chunks": 0,
    "level": 2,
    "max_reports": None,
    "max_calls": 67,
    "follow_ups": 20,
    "published": PublishedOptions(chunk_order="entities", fill=False, spread=0.0, primer_calls=5),
}
"""The published values of a search."""
