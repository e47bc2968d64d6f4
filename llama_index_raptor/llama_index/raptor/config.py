"""All parameters of RAPTOR, for the tree and for a search, with the published values of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.validation import CheckedFields, Count, CountOrNone, Share, count, number
from llama_index.ragkit.vectors.question_scores import LEXICAL_WEIGHT

__all__ = ["PAPER_SEARCHES", "PAPER_TREE", "Mode", "Summaries", "TreeConfig", "TreeSearchConfig", "Version"]

Summaries = Literal["on_request", "deferred", "eager"]
Mode = Literal["collapsed", "tree_traversal"]
Version = Literal["collapsed", "code", "tree_traversal", "threshold"]


@dataclass(frozen=True)
class TreeConfig(CheckedFields):
    """Parameters of the tree, stored with the index; see :class:`~llama_index.raptor.RaptorIndex`."""

    max_layers: Annotated[int, count(0)] = 5
    max_cluster_tokens: Count = 8192
    max_root_children: Annotated[int, count(2)] = 12
    root: bool = True
    min_shrink: Annotated[float, number(0, 1, below=True)] = 0.3
    summary_tokens: Count = 200
    summaries: Summaries = "deferred"


@dataclass(frozen=True)
class TreeSearchConfig(CheckedFields):
    """Parameters of a search; see :class:`~llama_index.raptor.RaptorRetriever`."""

    mode: Mode = "collapsed"
    beam_width: CountOrNone = None
    min_cosine: Annotated[float | None, number(-1, 1, none_ok=True)] = None
    start_layer: Annotated[int | None, count(0, none_ok=True)] = None
    num_layers: CountOrNone = None
    summary_margin: Annotated[float | None, number(0, none_ok=True)] = 0.6
    lexical_weight: Share = LEXICAL_WEIGHT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.min_cosine is not None and self.beam_width is not None:
            raise ConfigurationError("beam_width and min_cosine are two ways to keep nodes of a layer: set one.")


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
