"""All parameters of RAPTOR, for the tree and for a search, with the published values of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import check_choice, check_count, check_number
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT

__all__ = ["PAPER_SEARCHES", "PAPER_TREE", "Mode", "Summaries", "TreeConfig", "TreeSearchConfig", "Version"]

Summaries = Literal["on_request", "deferred", "eager"]
Mode = Literal["collapsed", "tree_traversal"]
Version = Literal["collapsed", "code", "tree_traversal", "threshold"]


@dataclass(frozen=True)
class TreeConfig:
    """Parameters of the tree, stored with the index; see :class:`~llama_index.raptor.RaptorIndex`."""

    max_layers: int = 5
    max_cluster_tokens: int = 8192
    max_root_children: int = 12
    root: bool = True
    min_shrink: float = 0.3
    summary_tokens: int = 200
    summaries: Summaries = "deferred"

    def __post_init__(self) -> None:
        check_count("max_layers", self.max_layers, 0)
        check_count("max_cluster_tokens", self.max_cluster_tokens, 1)
        check_count("max_root_children", self.max_root_children, 2)
        check_number("min_shrink", self.min_shrink, 0, 1, below=True)
        check_count("summary_tokens", self.summary_tokens, 1)
        check_choice("summaries", self.summaries, get_args(Summaries))


@dataclass(frozen=True)
class TreeSearchConfig:
    """Parameters of a search; see :class:`~llama_index.raptor.RaptorRetriever`."""

    mode: Mode = "collapsed"
    beam_width: int | None = None
    min_cosine: float | None = None
    start_layer: int | None = None
    num_layers: int | None = None
    summary_margin: float | None = 0.6
    lexical_weight: float = LEXICAL_WEIGHT

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, get_args(Mode))
        for name in ("beam_width", "num_layers"):
            check_count(name, getattr(self, name), 1, none_ok=True)
        check_count("start_layer", self.start_layer, 0, none_ok=True)
        if self.min_cosine is not None:
            check_number("min_cosine", self.min_cosine, -1, 1)
            if self.beam_width is not None:
                raise ConfigurationError("beam_width and min_cosine are two ways to keep nodes of a layer: set one.")
        if self.summary_margin is not None:
            check_number("summary_margin", self.summary_margin, 0)
        check_number("lexical_weight", self.lexical_weight, 0, 1)


PAPER_TREE: Mapping[str, Any] = MappingProxyType(
    {
        "max_layers": 5,
        "max_cluster_tokens": 3500,
        "max_root_children": 11,
        "root": False,
        "min_shrink": 0.0,
        "summary_tokens": 100,
    }
)
"""Parameters of the published tree, as in the authors' code; its clustering is `UMAPGMMClustering`."""

_COSINES = {"summary_margin": None, "lexical_weight": 0.0}

PAPER_SEARCHES: Mapping[Version, Mapping[str, Any]] = MappingProxyType(
    {
        # The paper, section "Querying": collapsed tree, 2,000 tokens, "approximately the top 20 nodes".
        "collapsed": {**_COSINES, "mode": "collapsed", "similarity_top_k": 20, "token_budget": 2000},
        # The authors' code: `retrieve(question)`.
        "code": {**_COSINES, "mode": "collapsed", "similarity_top_k": 10, "token_budget": 3500},
        # Five nodes from each of the five layers of summaries and from the leaves; all of them are the result.
        "tree_traversal": {**_COSINES, "mode": "tree_traversal", "beam_width": 5, "similarity_top_k": 30},
        "threshold": {**_COSINES, "mode": "tree_traversal", "min_cosine": 0.5, "similarity_top_k": 100},
    }
)
"""Parameters of the published searches, which rank all nodes only by their cosine."""
