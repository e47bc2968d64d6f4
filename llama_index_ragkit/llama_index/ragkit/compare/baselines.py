"""Plain search over the same chunks: dense, BM25, and both fused by rank."""

from collections.abc import Mapping, Sequence

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.ragkit.storage.nodes import embed_text
from llama_index.ragkit.text.lexical_index import LexicalIndex
from llama_index.ragkit.text.lexical_terms import lexical_terms

__all__ = ["BASELINES", "PlainSearch"]

BASELINES = ("dense", "BM25", "hybrid")
_RANK_CONSTANT = 60  # of reciprocal rank fusion (Cormack et al., SIGIR 2009)


class PlainSearch:
    """Chunks by cosine, by BM25, or by reciprocal rank fusion of both.

    Parameters
    ----------
    nodes : with embeddings
    model : embeds the questions
    """

    def __init__(self, nodes: Sequence[BaseNode], model: BaseEmbedding) -> None:
        self._model = model
        vectors = np.array([node.get_embedding() for node in nodes], dtype=np.float32)
        self._rows = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        terms: Mapping[str, Mapping[str, int]] = {str(i): lexical_terms(embed_text(n)) for i, n in enumerate(nodes)}
        self._lexical = LexicalIndex().changed((), terms)

    def search(self, baseline: str, question: str, top_k: int) -> list[tuple[int, float]]:
        """The rows of the best nodes and their scores, best first; chunks without any word in common with the question
        are not found by BM25.
        """
        scores = {"dense": self._dense, "BM25": self._bm25, "hybrid": self._fused}[baseline](question)
        order = np.argsort(-scores, kind="stable")[:top_k]
        return [(int(row), float(scores[row])) for row in order if scores[row] > 0 or baseline == "dense"]

    def _dense(self, question: str) -> NDArray[np.float64]:
        vector = np.asarray(self._model.get_query_embedding(question), dtype=np.float32)
        found: NDArray[np.float64] = (self._rows @ (vector / max(float(np.linalg.norm(vector)), 1e-12))).astype(float)
        return found

    def _bm25(self, question: str) -> NDArray[np.float64]:
        scores = np.zeros(len(self._rows))
        for ids, found in zip(self._lexical.ids, self._lexical.scores(question), strict=True):
            scores[[int(name) for name in ids]] = found
        return scores

    def _fused(self, question: str) -> NDArray[np.float64]:
        fused = np.zeros(len(self._rows))
        for scores in (self._dense(question), self._bm25(question)):
            order = np.argsort(-scores, kind="stable")
            found = order[scores[order] != 0]
            fused[found] += 1 / (_RANK_CONSTANT + 1 + np.arange(len(found)))
        return fused
