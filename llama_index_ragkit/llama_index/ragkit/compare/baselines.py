"""Plain search over the same chunks: dense, BM25, and both together."""

from types import MappingProxyType

from llama_index.ragkit.vectors.nearness import LEXICAL_WEIGHT

__all__ = ["BASELINES"]

BASELINES = MappingProxyType({"dense": 0.0, "BM25": 1.0, "hybrid": LEXICAL_WEIGHT})
"""Name -> the weight of the words in a :class:`~llama_index.ragkit.HybridRetriever`."""
