"""Two baselines of PG-RAG's table 1 (appendix C): beam search over a graph of blocks, guided by the question or an LLM.

Each block is linked with those nearest to it. The search is three hops of 8, 5 and 3 blocks; the score of a block is
the product of the scores along its path, and the eight best of all blocks are the context. "KGP" (Wang et al. 2024) has
an LLM write the evidence that is needed next, and goes to the neighbours that are like it. The paper does not say how
many neighbours a block has.
"""

from collections.abc import Sequence

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from numpy.typing import NDArray

__all__ = ["NEIGHBOURS", "BeamSearch", "BlockGraph", "unit_rows"]

NEIGHBOURS = 10
WIDTHS = (8, 5, 3)
_BLOCK = 1024  # rows of the matrix of cosines at a time

EVIDENCE_PROMPT = (
    "Question: {question}\n\nPassages so far:\n{passages}\n\n"
    "Write one sentence with the evidence that is still missing to answer the question. Write the sentence alone."
)


def unit_rows(embed_model: BaseEmbedding, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embeddings of length 1, shape (texts, dimensions)."""
    rows = np.asarray(embed_model.get_text_embedding_batch(list(texts)), dtype=np.float32)
    unit: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


class BlockGraph:
    """Blocks with their vectors and nearest neighbours.

    Attributes
    ----------
    rows : shape (n, d), unit vectors
    neighbours : shape (n, k), the nearest of each, best first, without itself
    """

    def __init__(self, nodes: Sequence[TextNode], embed_model: BaseEmbedding, count: int = NEIGHBOURS) -> None:
        self.nodes = nodes
        self.rows = unit_rows(embed_model, [node.get_content() for node in nodes])
        count = min(count, len(nodes) - 1)
        found = [np.empty((0, count), np.intp)]
        for start in range(0, len(nodes), _BLOCK):
            cosines = self.rows[start : start + _BLOCK] @ self.rows.T
            own = np.arange(len(cosines))
            cosines[own, start + own] = -np.inf
            found.append(np.argsort(-cosines, axis=1, kind="stable")[:, :count])
        self.neighbours = np.concatenate(found)


class BeamSearch(BaseRetriever):
    """Three hops over a block graph, then the best blocks of all paths.

    Parameters
    ----------
    llm : writes the evidence that the next hop looks for, as KGP; None to look for the question throughout
    """

    def __init__(self, graph: BlockGraph, embed_model: BaseEmbedding, count: int, llm: LLM | None = None) -> None:
        self._graph, self._embed_model, self._count, self._llm = graph, embed_model, count, llm
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        graph, question = self._graph, query_bundle.query_str
        wanted = self._unit(self._embed_model.get_query_embedding(question))
        first = graph.rows @ wanted
        ends = [(int(row), float(first[row])) for row in np.argsort(-first, kind="stable")[: WIDTHS[0]]]
        best = dict(ends)
        for width in WIDTHS[1:]:
            if self._llm is not None:
                wanted = self._evidence(question, [row for row, _ in ends])
            reached = []
            for row, score in ends:
                near = graph.neighbours[row]
                scores = graph.rows[near] @ wanted
                order = np.argsort(-scores, kind="stable")[:width]
                reached += [(int(near[i]), score * float(scores[i])) for i in order]
            ends = reached
            for row, score in ends:
                best[row] = max(score, best.get(row, -np.inf))
        ranked = sorted(best, key=lambda row: (-best[row], row))[: self._count]
        return [NodeWithScore(node=graph.nodes[row], score=best[row]) for row in ranked]

    def _evidence(self, question: str, rows: Sequence[int]) -> NDArray[np.float32]:
        assert self._llm is not None
        passages = "\n".join(self._graph.nodes[row].get_content() for row in dict.fromkeys(rows))
        text = self._llm.complete(EVIDENCE_PROMPT.format(question=question, passages=passages)).text
        return self._unit(self._embed_model.get_text_embedding(text.strip() or question))

    @staticmethod
    def _unit(vector: Sequence[float]) -> NDArray[np.float32]:
        row = np.asarray(vector, dtype=np.float32)
        return np.asarray(row / max(float(np.linalg.norm(row)), 1e-12), np.float32)
