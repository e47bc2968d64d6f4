"""All parameters of MRAG: those of the index, those of a search, and the values of the published search."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from llama_index.ragkit.validation import CheckedFields, Count, Share, ShareOrNone
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
class MRAGConfig(CheckedFields):
    """Parameters of the index, stored with it; see :class:`~llama_index.mrag.MRAGIndex`."""

    dtype: Storage = "float32"


@dataclass(frozen=True)
class SearchConfig(CheckedFields):
    """Parameters of a search; see :class:`~llama_index.mrag.MRAGRetriever`."""

    aspects: Aspects = "sentences"
    vote: Vote = "mrag"
    fusion: Fusion = "votes"
    num_candidates: Count = 32
    vote_weight: ShareOrNone = None
    lexical_weight: Share = LEXICAL_WEIGHT
    num_queries: Count = 4


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
