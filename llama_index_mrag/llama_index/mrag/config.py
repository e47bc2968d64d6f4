"""All parameters of MRAG: those of the index, those of a search, and the values of the published search."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from llama_index.ragkit.validation import check_choice, check_count, check_number
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT
from llama_index.ragkit.vectors.row_buffer import Storage

__all__ = [
    "ASPECTS",
    "PAPER_SEARCHES",
    "VOTES",
    "Aspects",
    "Fusion",
    "MRAGConfig",
    "SearchConfig",
    "Version",
    "Vote",
]

Aspects = Literal["none", "sentences", "llm", "queries"]
Vote = Literal["mrag", "decay", "distance"]
Fusion = Literal["votes", "reciprocal_rank"]
Version = Literal["mrag", "decay", "distance", "fusion"]
ASPECTS: tuple[Aspects, ...] = get_args(Aspects)
VOTES: tuple[Vote, ...] = get_args(Vote)


@dataclass(frozen=True)
class MRAGConfig:
    """Parameters of the index, stored with it; see :class:`~llama_index.mrag.MRAGIndex`."""

    dtype: Storage = "float32"

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, get_args(Storage))


@dataclass(frozen=True)
class SearchConfig:
    """Parameters of a search; see :class:`~llama_index.mrag.MRAGRetriever`."""

    aspects: Aspects = "sentences"
    vote: Vote = "mrag"
    fusion: Fusion = "votes"
    num_candidates: int = 32
    vote_weight: float | None = None
    lexical_weight: float = LEXICAL_WEIGHT
    num_queries: int = 4

    def __post_init__(self) -> None:
        check_choice("aspects", self.aspects, ASPECTS)
        check_choice("vote", self.vote, VOTES)
        check_choice("fusion", self.fusion, get_args(Fusion))
        check_count("num_candidates", self.num_candidates, 1)
        if self.vote_weight is not None:
            check_number("vote_weight", self.vote_weight, 0, 1)
        check_number("lexical_weight", self.lexical_weight, 0, 1)
        check_count("num_queries", self.num_queries, 1)


_HEADS = {"vote": "mrag", "num_candidates": 32, "vote_weight": 1.0, "lexical_weight": 0.0}

PAPER_SEARCHES: Mapping[Version, Mapping[str, Any]] = MappingProxyType(
    {
        # Sections 2.2 and 2.3: the question is embedded as a whole, and only the heads vote.
        # Section 4.5, "two additional voting strategies".
        "mrag": {**_HEADS, "aspects": "none"},
        "decay": {**_HEADS, "aspects": "none", "vote": "decay"},
        "distance": {**_HEADS, "aspects": "none", "vote": "distance"},
        # Section 4.2, "Fusion MRAG", and the authors' code.
        "fusion": {**_HEADS, "aspects": "queries", "num_queries": 4, "fusion": "reciprocal_rank"},
    }
)
"""Parameters of the published searches."""
