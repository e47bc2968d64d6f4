"""`IndexContents`: what a query reads, which a write replaces as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.index.builder import State
from llama_index.ragkit.text.lexical_index import LexicalIndex

__all__ = ["IndexContents", "aligned_scores"]


@dataclass(frozen=True)
class IndexContents(Generic[State]):
    """The state of the method, and the words of its chunks.

    Attributes
    ----------
    state : the state of the method
    lexical : the words of the chunks of that state
    """

    state: State
    lexical: LexicalIndex

    @cached_property
    def _rows(self) -> list[NDArray[np.intp]]:
        """For each block of `lexical` the row of the chunk of each of its rows, -1 for one that is gone."""
        return [self.state.chunks.rows_of(ids) for ids in self.lexical.ids]

    def lexical_scores(self, question: str, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """The BM25 score of each chunk, shape (n,); 0 without a word of the question.

        Parameters
        ----------
        allowed : shape (n,), the chunks that count: others score 0, and these as if there were no others; None for all
        """
        return aligned_scores(self.lexical, question, self._rows, len(self.state.chunks), allowed)


def aligned_scores(
    lexical: LexicalIndex,
    question: str,
    rows_of: Sequence[NDArray[np.intp]],
    count: int,
    allowed: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """BM25 scores in the order of the chunks, shape (count,).

    Parameters
    ----------
    rows_of : for each block of `lexical` the chunk of each of its rows, -1 for none
    allowed : shape (count,), the chunks that count; None for all
    """
    masks = [rows >= 0 if allowed is None else (rows >= 0) & allowed[rows] for rows in rows_of]
    found = np.zeros(count)
    for rows, mask, scores in zip(rows_of, masks, lexical.scores(question, masks), strict=True):
        found[rows[mask]] = scores[mask]
    return found
