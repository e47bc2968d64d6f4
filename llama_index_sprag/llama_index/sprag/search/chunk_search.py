"""The chunks nearest to a question."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_index import FullScore
from llama_index.ragkit.vectors.largest import largest
from llama_index.ragkit.vectors.nearness import Nearness
from llama_index.sprag.config import SearchConfig
from llama_index.sprag.state import SpRAGState

__all__ = ["best_chunks", "nearness_of"]


class QuestionWords(Protocol):
    """An object that has the words of chunks."""

    def scored(self, question: str, allowed: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.float64], FullScore]:
        """The BM25 score of every chunk that counts; and the score of a chunk of mean length that has each word of the
        question once, with that length.
        """


def nearness_of(
    state: SpRAGState,
    words: QuestionWords,
    question: str,
    vector: NDArray[np.float32],
    options: SearchConfig,
    allowed: NDArray[np.bool_] | None,
    advantage: float = 0.0,
) -> Nearness:
    """The nearness of every chunk to a question.

    Parameters
    ----------
    words : the state, or the words of an index that a question has read
    advantage : of words over cosines, see :class:`~llama_index.ragkit.text.lexical_index.FullScore`
    """
    cosines = state.cosines(vector, options.context_weight)
    if not options.lexical_weight:
        return Nearness.of(cosines, np.zeros(len(cosines)), 0.0, allowed)
    lexical, full_score = words.scored(question, allowed)
    return Nearness.of(cosines, lexical, options.lexical_weight, allowed, full_score._replace(advantage=advantage))


def best_chunks(state: SpRAGState, nearness: NDArray[np.float64], k: int) -> list[tuple[str, float]]:
    """The k nearest chunks with their nearness, best first, equal ones in canonical order."""
    count = min(k, int(np.isfinite(nearness).sum()))
    if not count:
        return []
    least = nearness[largest(nearness, count)].min()
    rows: Sequence[int] = np.flatnonzero(nearness >= least).tolist()
    records = state.chunks.records
    # Rounded, so that chunks that differ only by the order of a sum are equal.
    scored = [
        (-round(float(nearness[row]), 9), records[row].key, records[row].id) for row in rows if nearness[row] > -np.inf
    ]
    return [(node_id, -score) for score, _, node_id in sorted(scored)[:count]]
