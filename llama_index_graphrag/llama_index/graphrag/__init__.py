"""Graph RAG for LlamaIndex: communities of a knowledge graph, and reports about them."""

from llama_index.graphrag.clustering.agglomerative import AgglomerativeClustering
from llama_index.graphrag.clustering.base import Clustering
from llama_index.graphrag.clustering.leiden import LeidenClustering

__all__ = ["AgglomerativeClustering", "Clustering", "LeidenClustering"]
