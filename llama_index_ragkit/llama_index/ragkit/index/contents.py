"""What a query reads: all of an index in memory, or the part that one question needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.index.builder import State
from llama_index.ragkit.storage.stored_chunks import StoredTerms
from llama_index.ragkit.text.lexical_index import LexicalIndex, aligned_scores

__all__ = ["IndexContents", "ViewContents"]


@dataclass(frozen=True)
class IndexContents(Generic[State]):
    """The state of the method, and the words of its chunks; a write replaces them as a whole.

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


@dataclass(frozen=True)
class ViewContents(Generic[State]):
    """The state for one question to an index that is served from stores, whose chunks may all be shown.

    Attributes
    ----------
    state : the state of the method
    terms : the words of all chunks of the index; None for an index without
    known : question -> BM25 scores of the chunks of the state, shape (n,)
    only : ids of the only chunks of the index that count; None for all
    """

    state: State
    terms: StoredTerms | None
    known: Mapping[str, NDArray[np.float64]]
    only: Sequence[str] | None = None

    def lexical_scores(self, question: str, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """As :meth:`IndexContents.lexical_scores`; how rare a word is, is counted over all chunks of the index."""
        scores = self.known.get(question)
        if scores is None:
            ids = self.state.chunks.ids
            found = {} if self.terms is None else self.terms.scores(question, 1, self.only, ids)
            scores = np.array([found.get(node_id, 0.0) for node_id in ids])
        return scores if allowed is None else np.where(allowed, scores, 0.0)
