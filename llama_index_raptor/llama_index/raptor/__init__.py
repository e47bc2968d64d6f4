"""RAPTOR for LlamaIndex: retrieval from a tree of summaries over documents.

See :class:`RaptorIndex`.
"""

from llama_index.raptor.clustering.base import Clustering
from llama_index.raptor.clustering.graph import GraphClustering
from llama_index.raptor.clustering.umap_gmm import UMAPGMMClustering
from llama_index.raptor.explanation import RaptorExplanation
from llama_index.raptor.index import RaptorIndex
from llama_index.raptor.postprocessor import RaptorPostprocessor
from llama_index.raptor.retriever import RaptorRetriever

__all__ = [
    "Clustering",
    "GraphClustering",
    "RaptorExplanation",
    "RaptorIndex",
    "RaptorPostprocessor",
    "RaptorRetriever",
    "UMAPGMMClustering",
]

__version__ = "0.1.0"
