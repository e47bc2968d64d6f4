"""All parameters of the method, with the defaults and the published values."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import (
    CheckedFields,
    Count,
    CountOrNone,
    Share,
    ShareOrNone,
    check_choice,
    check_component,
    count,
    number,
)
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT
from llama_index.sprag.relevance.calibration import Calibration, check_calibration

__all__ = [
    "PUBLISHED",
    "ContextConfig",
    "HeaderWording",
    "LengthAdjustment",
    "LengthUnit",
    "Mode",
    "Order",
    "PublishedSegments",
    "SearchConfig",
    "Sections",
    "SegmentConfig",
    "Selection",
    "SpRAGConfig",
    "Version",
    "published_config",
    "published_search",
]

LengthUnit = Literal["chunks", "tokens"]
LengthAdjustment = Literal["bounded", "unbounded", "none"]
Selection = Literal["greedy", "optimal"]
HeaderWording = Literal["short", "published"]
Sections = Literal["rules", "llm", "none"]
Mode = Literal["segments", "chunks"]
Version = Literal["code", "article"]
Order = Literal["nearness", "value", "document"]

_Size = Annotated[int, count(0)]
_AboveZeroOrNone = Annotated[float | None, number(0, above=True, none_ok=True)]

# Share of the number of chunks that the budget holds; 1 in the published presets. With .6 and the published penalty,
# about as many chunks have a positive value as the budget holds.
_DECAY_SHARE = 0.6

_MOST_QUERIES = 5  # as published

# The part of the text next to a hit that belongs to the answer does not grow with the length of the chunks.
_NEIGHBOR_RELEVANCE = 0.2
_NEIGHBOR_LENGTH = {"tokens": 256.0, "chunks": 1024.0}  # longest chunk with that share: tokens, or characters


@dataclass(frozen=True)
class PublishedSegments(CheckedFields):
    """Parameters that only the published segments need, as `published=` of a retriever or a postprocessor.

    Attributes
    ----------
    overall_max_length_extension : added to the overall length for each further query, at least 0
    top_k_for_document_selection : number of chunks of each query from whose documents segments are taken, at least 1;
        with `fill`, more if the retrieved chunks of these documents do not fill the budget
    length_adjustment : how a chunk's length changes its value, see :mod:`llama_index.sprag.segments.values`
    reference_length : length that leaves the value unchanged, in tokens if `length_unit` is "tokens", else in
        characters [None: the median of the retrieved chunks]
    nearest_first : whether the first segment that is chosen for a query contains its nearest chunk, if that segment has
        the minimum value. Otherwise longer segments may take its place [True; False as published]

    Raises
    ------
    ConfigurationError
        If a parameter has a value that it cannot have.
    """

    overall_max_length_extension: _Size = 0
    top_k_for_document_selection: Count = 10
    length_adjustment: LengthAdjustment = "bounded"
    reference_length: _AboveZeroOrNone = None
    nearest_first: bool = True


@dataclass(frozen=True)
class SegmentConfig(CheckedFields):
    """How relevant segments are extracted. The defaults fill a budget of tokens, and all else follows from it.

    Attributes
    ----------
    overall_max_length : maximum length of all segments of one query, in `length_unit`
    max_length : maximum length of a segment; a single chunk may be longer [None: half of the overall length, as in the
        published presets "balanced", "precision" and "article"]
    minimum_value : least value of a segment [0: segments that are worth more than they cost]
    irrelevant_chunk_penalty : price of carrying one irrelevant chunk, in [0, 1]. Published guidance if the length is
        not the limit: .05 for 20 to 50 chunks, .1 for 10 to 20, .2 for 4 to 10, .3 for 2 to 6, .4 for 1 to 3
    neighbor_relevance : least worth of the chunks next to a hit as a share of its worth, before the penalty, from 0 to
        1 [None: 0.2; if the reference length is above 256 tokens or 1,024 characters, less in inverse proportion to it;
        0 as published]
    decay_rate : places of the ranking after which a chunk is worth 1/e as much [None: 0.6 of the number of chunks of
        the reference length that the overall length holds]
    length_unit : unit of lengths: `"tokens"` or `"chunks"`
    calibration : maps scores to relevance in [0, 1]: a name of :mod:`llama_index.sprag.relevance.calibration`, a
        function, or `"auto"` to choose by the scores
    fill : whether the rest of the budget is filled with single retrieved chunks, best ranks first [True; False as
        published]
    order : of the segments: by `"nearness"`, that is by the best chunk of each; by `"value"`, as published; or in the
        order of the `"document"`, documents by their best segment
    selection : `"greedy"` as published, or `"optimal"` for the largest possible total value; see
        :mod:`llama_index.sprag.segments.optimal` for why it carries fewer gaps
    published : see :class:`PublishedSegments`

    Raises
    ------
    ConfigurationError
        If a parameter has a value that it cannot have.
    """

    overall_max_length: Count = 4000
    max_length: CountOrNone = None
    minimum_value: Annotated[float, number(0)] = 0.0
    irrelevant_chunk_penalty: Share = 0.18
    neighbor_relevance: ShareOrNone = None
    decay_rate: _AboveZeroOrNone = None
    length_unit: LengthUnit = "tokens"
    calibration: str | Calibration = "auto"
    selection: Selection = "greedy"
    fill: bool = True
    order: Order = "nearness"
    published: PublishedSegments = PublishedSegments()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_component("published", self.published, PublishedSegments, "PublishedSegments(...)")
        check_calibration(self.calibration)

    @property
    def by_rank(self) -> bool:
        """Whether segments are ordered by the ranks of their chunks, without a reranker."""
        return self.order != "value" and self.calibration in ("auto", "rank")

    @property
    def segment_length(self) -> int:
        """`max_length`, or the value that None stands for."""
        return max(1, self.overall_max_length // 2) if self.max_length is None else self.max_length

    def decay_rate_for(self, reference_length: float) -> float:
        """`decay_rate`, or the value that None stands for if chunks have the reference length."""
        if self.decay_rate is not None:
            return self.decay_rate
        of_chunk = reference_length if self.length_unit == "tokens" else 1.0
        return max(1.0, _DECAY_SHARE * self.overall_max_length / of_chunk)

    def neighbor_relevance_for(self, reference_length: float) -> float:
        """`neighbor_relevance`, or the value that None stands for if chunks have the reference length."""
        if self.neighbor_relevance is not None:
            return self.neighbor_relevance
        return _NEIGHBOR_RELEVANCE * min(1.0, _NEIGHBOR_LENGTH[self.length_unit] / reference_length)


# dsRAG 0.2.0, with its later correction of lengths; "article" is the code of the time of the article.
_BALANCED = SegmentConfig(
    overall_max_length=30,
    max_length=15,
    minimum_value=0.5,
    irrelevant_chunk_penalty=0.18,
    neighbor_relevance=0.0,
    decay_rate=30.0,
    length_unit="chunks",
    calibration="auto",
    selection="greedy",
    fill=False,
    order="value",
    published=PublishedSegments(
        overall_max_length_extension=5,
        top_k_for_document_selection=10,
        length_adjustment="bounded",
        reference_length=700.0,
        nearest_first=False,
    ),
)
PUBLISHED: Mapping[str, SegmentConfig] = MappingProxyType(
    {
        "balanced": _BALANCED,
        "precision": replace(_BALANCED, minimum_value=0.7, irrelevant_chunk_penalty=0.2),
        "find_all": replace(
            _BALANCED,
            max_length=40,
            overall_max_length=200,
            minimum_value=0.4,
            decay_rate=200.0,
            published=replace(_BALANCED.published, overall_max_length_extension=0, top_k_for_document_selection=200),
        ),
        "article": replace(
            _BALANCED,
            max_length=10,
            overall_max_length=20,
            minimum_value=0.7,
            irrelevant_chunk_penalty=0.2,
            decay_rate=20.0,
            calibration="rank",
            published=replace(_BALANCED.published, top_k_for_document_selection=7, length_adjustment="none"),
        ),
    }
)


def published_config(preset: str = "balanced", **changes: Any) -> SegmentConfig:
    """A published preset, with changes if any; other parameters are those of the preset.

    Parameters
    ----------
    preset : "balanced" [the published default], "precision", "find_all", or "article", the code at the time of the
        article on it, also called "first_generation"
    changes : parameters of :class:`SegmentConfig`

    Raises
    ------
    ConfigurationError
        If there is no such preset or parameter, or a value is out of range.
    """
    known = sorted(vars(_BALANCED))
    unknown = sorted(changes.keys() - set(known))
    if unknown:
        raise ConfigurationError(f"There is no parameter {unknown[0]!r}; there are {', '.join(known)}.")
    name = "article" if preset == "first_generation" else check_choice("preset", preset, tuple(PUBLISHED))
    return replace(PUBLISHED[name], **changes)


@dataclass(frozen=True)
class ContextConfig(CheckedFields):
    """The contents of the rule-based context of a document; see :class:`~llama_index.sprag.RuleContext`."""

    first_lines: _Size = 150
    page_opening: _Size = 150
    sections: bool = True


@dataclass(frozen=True)
class SpRAGConfig(CheckedFields):
    """Parameters of the index, stored with it.

    Attributes
    ----------
    header : wording of the header before a chunk: `"short"` has title, terms, summary and section, one per line;
        `"published"` is that of dsRAG 0.2.0
    """

    header: HeaderWording = "short"


@dataclass(frozen=True)
class SearchConfig(SegmentConfig):
    """Parameters of a search: those of relevant segments, and how chunks are found and returned.

    Attributes
    ----------
    mode : `"segments"`, or `"chunks"` for only the ranking
    candidates : number of chunks of each query from which segments are made [200, as published]
    lexical_weight : weight of BM25 in the nearness of a chunk, in [0, 1]; the rest is that of the cosine [0.5;
        published: 0]
    context_weight : weight of the vector of header and chunk together, in [0, 1]; the rest is that of only the chunk
        [1, as published]
    auto_query : whether a language model turns the question into several queries
    max_queries : maximum number of these queries [5, as published]
    segment_headers : whether the text of a segment begins with the header of its document, as published
    """

    mode: Mode = "segments"
    candidates: Count = 200
    lexical_weight: Share = LEXICAL_WEIGHT
    context_weight: Share = 1.0
    auto_query: bool = False
    max_queries: Count = _MOST_QUERIES
    segment_headers: bool = False


def published_search(preset: str = "balanced") -> dict[str, Any]:
    """The search of the published code as keywords of the retriever.

    Parameters
    ----------
    preset : see :func:`published_config`
    """
    segments = published_config(preset)
    search = {"candidates": 200, "lexical_weight": 0.0, "context_weight": 1.0, "segment_headers": True}
    # Published: no limit but the number of chunks, since a segment has at least one; here the chunks of five queries.
    most = segments.overall_max_length + (_MOST_QUERIES - 1) * segments.published.overall_max_length_extension
    return {**vars(segments), **search, "similarity_top_k": most}
