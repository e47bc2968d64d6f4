"""`IndexContents`: what a query reads, which a write replaces as a whole."""

from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.index.builder import State
from llama_index.ragkit.text.lexical_index import LexicalIndex, aligned_scores

__all__ = ["IndexContents"]


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
