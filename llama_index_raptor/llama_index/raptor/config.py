"""All parameters of RAPTOR: those of the tree, those of a search, and the published values of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from llama_index.ragkit.validation import check_choice, check_count, check_number
from llama_index.ragkit.vectors.nearness import LEXICAL_WEIGHT

__all__ = ["PAPER", "PAPER_SEARCH", "Mode", "Summaries", "TreeConfig", "TreeSearchConfig"]

Summaries = Literal["deferred", "eager"]
Mode = Literal["collapsed", "tree_traversal"]


@dataclass(frozen=True)
class TreeConfig:
    """Parameters of the tree, stored with the index; see :class:`~llama_index.raptor.RaptorIndex`.

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    max_layers: int = 5
    max_cluster_tokens: int = 8192
    max_root_children: int = 12
    summary_tokens: int = 200
    summaries: Summaries = "deferred"

    def __post_init__(self) -> None:
        check_count("max_layers", self.max_layers, 0)
        check_count("max_cluster_tokens", self.max_cluster_tokens, 1)
        check_count("max_root_children", self.max_root_children, 2)
        check_count("summary_tokens", self.summary_tokens, 1)
        check_choice("summaries", self.summaries, get_args(Summaries))


@dataclass(frozen=True)
class TreeSearchConfig:
    """Parameters of a search; see :class:`~llama_index.raptor.RaptorRetriever`.

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    mode: Mode = "collapsed"
    beam_width: int | None = None
    summary_margin: float | None = 0.6
    lexical_weight: float = LEXICAL_WEIGHT

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, get_args(Mode))
        check_count("beam_width", self.beam_width, 1, none_ok=True)
        if self.summary_margin is not None:
            check_number("summary_margin", self.summary_margin, 0)
        check_number("lexical_weight", self.lexical_weight, 0, 1)


PAPER: Mapping[str, Any] = MappingProxyType({"max_layers": 5, "max_cluster_tokens": 3500, "summary_tokens": 100})
"""Parameters of the tree in the authors' code; its clustering is `UMAPGMMClustering`."""

PAPER_SEARCH: Mapping[str, Any] = MappingProxyType({"summary_margin": None, "lexical_weight": 0.0})
"""Parameters of the paper's retrieval, which ranks all nodes by the cosine only."""
