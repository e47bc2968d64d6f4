"""All parameters of PG-RAG, for the pseudo-graph and for a search, and the published values."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import CheckedFields, Count, Share, check_choice, check_number, count, number
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT

__all__ = [
    "CODE_CONTROL", "PAPER", "PAPER_CONTROL", "PAPER_INDEX", "SIGNED_CONTROL", "Control", "ControlName", "Fusion",
    "KeyPoints", "Mode", "PGRAGConfig", "Ranking", "SearchConfig",
]  # fmt: skip

Fusion = Literal["components", "leaders"]
Mode = Literal["PG-RAG", "PG w. KPs", "PG"]
KeyPoints = Literal["question", "llm"]
ControlName = Literal["signed", "paper", "code"]
Difference = Literal["signed", "absolute"]
Unit = Literal["deviations", "cosines"]
Ranking = Literal["trust", "support"]

Cosines = NDArray[np.float64]
_Size = Annotated[int, count(0)]
_Weight = Annotated[float, number(0)]
_Threshold = Annotated[float, number(0, 1, above=True)]


@dataclass(frozen=True)
class PGRAGConfig(CheckedFields):
    """Parameters of the pseudo-graph, stored with the index; see :class:`~llama_index.pgrag.PGRAGIndex`.

    The thresholds are the paper's; those of the published code are 0.84 and 0.96 on this scale.
    """

    topic_threshold: _Threshold = 0.92
    fact_threshold: _Threshold = 0.98
    fusion: Fusion = "components"
    cell_vectors: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cell_vectors not in (None, True, False):
            raise ConfigurationError(f"cell_vectors must be True, False or None, not {self.cell_vectors!r}.")


@dataclass(frozen=True)
class Control(CheckedFields):
    """When a cell supports a seed.

    Attributes
    ----------
    support, fuzzy : largest differences of similarity that count fully and half, 0 <= support <= fuzzy
    difference : "signed" is seed minus cell, "absolute" its absolute value
    unit : "deviations" compares cosines in standard deviations of the hundred best facts of the question, so that the
        range of an embedding model's cosines does not matter; "cosines" compares the cosines themselves, as published

    Raises
    ------
    ConfigurationError
        If a threshold is negative or not finite, `fuzzy` is below `support`, or `difference` or `unit` is unknown.
    """

    support: _Weight = 0.5
    fuzzy: float = 0.75
    difference: Difference = "signed"
    unit: Unit = "deviations"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("fuzzy", self.fuzzy, self.support)

    def weights(self, cells: Cosines, seeds: Cosines) -> Cosines:
        """1 if a cell supports a seed, 0.5 if it half supports it, 0 if it is rejected.

        Parameters
        ----------
        cells, seeds : similarities of cells and seeds to a key point; their shapes must broadcast
        """
        gap = seeds - cells
        gap = np.abs(gap) if self.difference == "absolute" else gap
        weights: Cosines = np.where(gap <= self.support, 1.0, np.where(gap <= self.fuzzy, 0.5, 0.0))
        return weights


SIGNED_CONTROL = Control()
PAPER_CONTROL = Control(0.03, 0.05, "absolute", "cosines")
CODE_CONTROL = Control(0.01, 0.02, "absolute", "cosines")
_CONTROLS: Mapping[str, Control] = MappingProxyType(
    {"signed": SIGNED_CONTROL, "paper": PAPER_CONTROL, "code": CODE_CONTROL}
)


@dataclass(frozen=True)
class SearchConfig(CheckedFields):
    """Parameters of a search; see :class:`~llama_index.pgrag.PGRAGRetriever`."""

    mode: Mode = "PG-RAG"
    return_source: bool = False
    key_points: KeyPoints = "question"
    max_key_points: Count = 5
    seed_topics: _Size = 3
    max_topics: _Size = 6
    topic_walk: bool = True
    fact_walk: bool = True
    seed_facts: _Size = 30
    num_seeds: Count = 8
    control: ControlName | Control = "signed"
    ranking: Ranking = "trust"
    fact_weight: _Weight = 0.3
    walk_weight: _Weight = 0.3
    bridge_weight: _Weight = 3.0
    lexical_weight: Share = LEXICAL_WEIGHT

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.seed_topics and self.max_topics) and not self.seed_facts:
            raise ConfigurationError(
                "With seed_topics (or max_topics) and seed_facts both 0, a search finds nothing: set one above 0."
            )
        if not isinstance(self.control, Control):
            check_choice("control, unless it is a Control,", self.control, get_args(ControlName))

    @property
    def cell_control(self) -> Control:
        """When a cell supports a seed."""
        return self.control if isinstance(self.control, Control) else _CONTROLS[self.control]

    @property
    def needs_vectors(self) -> bool:
        """Whether the search needs vectors of cells, so that an index without them must embed them first."""
        return not self.ranks_texts or self.cell_control.unit == "cosines"

    @property
    def walks(self) -> bool:
        """Whether maps are walked instead of ranked only by cosines."""
        return self.mode == "PG-RAG"

    @property
    def follows_names(self) -> bool:
        """Whether names are followed from map to map."""
        return self.ranks_texts and self.bridge_weight > 0

    @property
    def ranks_texts(self) -> bool:
        """Whether paths are also ranked by their words and nodes, unlike the published search."""
        return self.walks and self.ranking == "trust"

    @property
    def ranks_support(self) -> bool:
        """Whether paths are ranked only by the support that a walk gives them, as in the published search."""
        return self.walks and self.ranking == "support"


PAPER_INDEX: Mapping[str, Any] = MappingProxyType(
    {"topic_threshold": 0.92, "fact_threshold": 0.98, "fusion": "leaders", "cell_vectors": True}
)
"""Parameters of the paper's pseudo-graph (section 2.3, "Establishment of Cross-Document Relationships")."""

PAPER: Mapping[str, Any] = MappingProxyType(
    {
        "mode": "PG-RAG",
        "key_points": "llm",
        "seed_topics": 3,
        "max_topics": 6,
        "topic_walk": True,
        "fact_walk": True,
        "seed_facts": 0,
        "num_seeds": 8,
        "control": "paper",
        "ranking": "support",
        "similarity_top_k": 8,
    }
)
"""Keywords of the paper's search (section 2.4): seeds come only from titles, and paths are ranked only by support."""
