"""The paper's Algorithm 1: the nodes with the best scores, without edges."""

import numpy as np

from llama_index.gemrag.search.memory_scores import MemoryScores
from llama_index.ragkit.vectors.question_scores import best_rows

__all__ = ["rank_nodes"]

_DECIMALS = 9


def rank_nodes(
    scores: MemoryScores, k: int, *, keep_covered: bool = True, max_summaries: int | None = None
) -> list[tuple[str, float]]:
    """The k nodes with the best scores, each once, best first.

    Parameters
    ----------
    k : at least 1
    keep_covered : whether a theme is kept if one of its members ranks higher
    max_summaries : largest number of themes; None for no limit

    Returns
    -------
    Ids with scores in standard deviations; equal scores in the canonical order.
    """
    state = scores.state
    found = [(state.chunks.ids[row], float(scores.chunks[row])) for row in best_rows(scores.chunks, k, state.chunks)]
    themes = state.theme_layer.texts
    found += [(themes.ids[row], float(scores.themes[row])) for row in np.flatnonzero(np.isfinite(scores.themes))]
    found.sort(key=lambda item: (-round(item[1], _DECIMALS), state.key(item[0])))
    kept: list[tuple[str, float]] = []
    summaries = 0
    covered: set[str] = set()
    for item in found:
        if item[0] in state.written:
            if item[0] in covered or (max_summaries is not None and summaries >= max_summaries):
                continue
            summaries += 1
        elif not keep_covered:
            covered.update(state.themes_of.get(item[0], ()))
        kept.append(item)
    return kept[:k]
