"""All parameters of PG-RAG, for the pseudo-graph and for a search, and the published values."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_choice, check_count, check_number
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


@dataclass(frozen=True)
class PGRAGConfig:
    """Parameters of the pseudo-graph, stored with the index; see :class:`~llama_index.pgrag.PGRAGIndex`.

    The thresholds are the paper's; those of the published code are 0.84 and 0.96 on this scale.
    """

    topic_threshold: float = 0.92
    fact_threshold: float = 0.98
    fusion: Fusion = "components"
    cell_vectors: bool | None = None

    def __post_init__(self) -> None:
        check_number("topic_threshold", self.topic_threshold, 0, 1, above=True)
        check_number("fact_threshold", self.fact_threshold, 0, 1, above=True)
        check_choice("fusion", self.fusion, get_args(Fusion))
        if self.cell_vectors not in (None, True, False):
            raise ConfigurationError(f"cell_vectors must be True, False or None, not {self.cell_vectors!r}.")


@dataclass(frozen=True)
class Control:
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

    support: float = 0.5
    fuzzy: float = 0.75
    difference: Difference = "signed"
    unit: Unit = "deviations"

    def __post_init__(self) -> None:
        check_number("support", self.support, 0)
        check_number("fuzzy", self.fuzzy, self.support)
        check_choice("difference", self.difference, get_args(Difference))
        check_choice("unit", self.unit, get_args(Unit))

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
class SearchConfig:
    """Parameters of a search; see :class:`~llama_index.pgrag.PGRAGRetriever`."""

    mode: Mode = "PG-RAG"
    return_source: bool = False
    key_points: KeyPoints = "question"
    max_key_points: int = 5
    seed_topics: int = 3
    max_topics: int = 6
    topic_walk: bool = True
    fact_walk: bool = True
    seed_facts: int = 30
    num_seeds: int = 8
    control: ControlName | Control = "signed"
    ranking: Ranking = "trust"
    fact_weight: float = 0.3
    walk_weight: float = 0.3
    bridge_weight: float = 3.0
    lexical_weight: float = LEXICAL_WEIGHT

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, get_args(Mode))
        check_choice("key_points", self.key_points, get_args(KeyPoints))
        check_count("max_key_points", self.max_key_points, 1)
        for name in ("seed_topics", "max_topics", "seed_facts"):
            check_count(name, getattr(self, name), 0)
        if not (self.seed_topics and self.max_topics) and not self.seed_facts:
            raise ConfigurationError(
                "With seed_topics (or max_topics) and seed_facts both 0, a search finds nothing: set one above 0."
            )
        check_count("num_seeds", self.num_seeds, 1)
        if not isinstance(self.control, Control):
            check_choice("control, unless it is a Control,", self.control, get_args(ControlName))
        check_choice("ranking", self.ranking, get_args(Ranking))
        for name in ("fact_weight", "walk_weight", "bridge_weight"):
            check_number(name, getattr(self, name), 0)
        check_number("lexical_weight", self.lexical_weight, 0, 1)

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
