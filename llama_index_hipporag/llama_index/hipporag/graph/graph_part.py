"""`GraphPart`: the part of a knowledge graph that was read for one question, ready for a walk like a whole graph."""

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.sparse import csr_matrix

from llama_index.hipporag.config import Edges, PhraseCount
from llama_index.hipporag.pagerank.power_iteration import Walk

__all__ = ["GraphPart"]


@dataclass(frozen=True)
class GraphPart:
    """n phrases that have been read, then p passages, then the other nodes that the walk has reached.

    The options of a search, such as the weights of edges, were applied when the part was read.

    Attributes
    ----------
    phrases : (n,)
    edges : weights, shape (nodes, nodes); no edge leaves a node whose row was not read
    counts : from scores of nodes to scores of passages, shape (p, nodes)
    """

    phrases: Sequence[str]
    edges: csr_matrix
    counts: csr_matrix

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of passages and phrases."""
        return self.counts.shape[0], len(self.phrases)

    def without_common(self, share: float) -> "GraphPart":
        """The same part: phrases that are nearly everywhere were already left out."""
        return self

    def walk(self, edges: Edges, synonyms: bool, subject_weight: float | None) -> Walk:
        """The part prepared for walks."""
        return Walk.of(self.edges, undirected=False)

    def projection(self, counted: PhraseCount, length_normalization: float, passage_nodes: bool) -> csr_matrix:
        """The matrix from scores of nodes to scores of passages, shape (p, nodes)."""
        return self.counts
