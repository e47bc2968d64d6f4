"""RAPTOR for LlamaIndex: a tree of summaries over your documents.

See :class:`RaptorIndex`.
"""

from llama_index.raptor.clustering import Clustering
from llama_index.raptor.graph_clustering import GraphClustering
from llama_index.raptor.index import RaptorIndex
from llama_index.raptor.postprocessor import RaptorPostprocessor
from llama_index.raptor.retriever import RaptorExplanation, RaptorRetriever
from llama_index.raptor.umap_gmm import UMAPGMMClustering

__all__ = [
    "Clustering",
    "GraphClustering",
    "RaptorExplanation",
    "RaptorIndex",
    "RaptorPostprocessor",
    "RaptorRetriever",
    "UMAPGMMClustering",
]
