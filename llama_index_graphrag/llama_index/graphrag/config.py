"""All parameters with their ranges: the defaults, and the values of the published pipeline.

Published: microsoft/graphrag 3.1.2 with its default settings. They are those of arXiv 2404.16130 if the paper names
them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import CheckedFields, Count, CountOrNone, Share, check_component, count, number
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

_Size = Annotated[int, count(0)]
_SizeOrNone = Annotated[int | None, count(0, none_ok=True)]
_Weight = Annotated[float, number(0)]


@dataclass(frozen=True)
class GraphRAGConfig(CheckedFields):
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
    report_tokens: Count = 800
    verbatim: bool = True
    context_tokens: Count = 4000
    partition_by: str | None = None
    entity_vectors: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.context_tokens < self.report_tokens:
            raise ConfigurationError(
                f"context_tokens must be at least report_tokens, {self.report_tokens}, not {self.context_tokens}."
            )
        if self.partition_by is not None and not (isinstance(self.partition_by, str) and self.partition_by):
            raise ConfigurationError(
                f"partition_by must be the name of a metadata value or None, not {self.partition_by!r}."
            )


@dataclass(frozen=True)
class PublishedOptions(CheckedFields):
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
    report_share: Share = 0.15
    statement_share: Share = 0.35
    relations_per_entity: _Size = 10
    spread: Annotated[float, number(0, 1, below=True)] = 0.3
    relevance_budget: CountOrNone = None
    feedback: _Weight = 0.0
    primer_reports: Count = 20
    primer_calls: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.report_share + self.statement_share > 1:
            raise ConfigurationError(
                f"report_share and statement_share must add up to at most 1, not {self.report_share} and "
                f"{self.statement_share}."
            )


@dataclass(frozen=True)
class SearchConfig(CheckedFields):
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
    lexical_weight: Share = LEXICAL_WEIGHT
    context: Context = "chunks"
    entities_top_k: _Size = 0
    link_threshold: Share = 0.5
    seed_chunks: _Size = 20
    seed_weight: _Weight = 1.0
    structure_weight: _Weight = 4.0
    level: _SizeOrNone = None
    rating_threshold: Annotated[float | None, number(0, 5, none_ok=True)] = None
    max_reports: _SizeOrNone = 20
    num_workers: Count = 4
    max_calls: Annotated[int, count(2)] = 12
    rounds: _Size = 3
    follow_ups: Count = 3
    published: PublishedOptions = PublishedOptions()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_component("published", self.published, PublishedOptions, "PublishedOptions(...)")


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
