"""The chunks nearest to a question."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.nearness import hybrid_nearness
from llama_index.sprag.config import SearchConfig
from llama_index.sprag.state import SpRAGState

__all__ = ["best_chunks", "nearness_of"]


def nearness_of(
    state: SpRAGState,
    lexical_scores: Callable[[str, NDArray[np.bool_] | None], NDArray[np.float64]],
    question: str,
    vector: NDArray[np.float32],
    options: SearchConfig,
    allowed: NDArray[np.bool_] | None,
) -> NDArray[np.float64]:
    """The nearness of every chunk to a question, shape (n,); -inf for chunks that may not be shown.

    Parameters
    ----------
    lexical_scores : a question, and the chunks that count -> the BM25 score of every chunk
    """
    cosines = state.cosines(vector, options.context_weight)
    lexical = lexical_scores(question, allowed) if options.lexical_weight else np.zeros(len(cosines))
    return hybrid_nearness(cosines, lexical, options.lexical_weight, allowed)


def best_chunks(state: SpRAGState, nearness: NDArray[np.float64], k: int) -> list[tuple[str, float]]:
    """The k nearest chunks with their nearness, best first; of equal ones the first in canonical order."""
    count = min(k, int(np.isfinite(nearness).sum()))
    if not count:
        return []
    least = np.partition(nearness, len(nearness) - count)[len(nearness) - count]
    rows: Sequence[int] = np.flatnonzero(nearness >= least).tolist()
    records = state.chunks.records
    # Rounded, so that chunks that differ by the order of a sum only are equal.
    scored = [
        (-round(float(nearness[row]), 9), records[row].key, records[row].id) for row in rows if nearness[row] > -np.inf
    ]
    return [(node_id, -score) for score, _, node_id in sorted(scored)[:count]]
