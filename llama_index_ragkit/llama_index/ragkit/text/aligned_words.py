"""BM25 scores of texts in the order of given rows, such as the chunks of an index."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_index import FullScore, LexicalIndex

__all__ = ["AlignedWords"]


class AlignedWords:
    """Scores of a lexical index, in the order of rows.

    Parameters
    ----------
    lexical : the words of texts
    rows_of : ids of texts -> their rows, -1 for texts without one
    count : number of rows; a row without a text has no words
    """

    def __init__(self, lexical: LexicalIndex, rows_of: Callable[[Sequence[str]], NDArray[np.intp]], count: int) -> None:
        self._lexical = lexical
        self._rows = [rows_of(ids) for ids in lexical.ids]  # of each row of each block
        self._count = count

    def scored(self, question: str, allowed: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.float64], FullScore]:
        """The BM25 score of each row, shape (count,), 0 for a row without any word of the question; and the
        full score of the question.

        Parameters
        ----------
        allowed : shape (count,), the rows that count; None for all. Other rows score 0 and do not
            influence the scores of these
        """
        masks = self._masks(allowed)
        found = np.zeros(self._count)
        of_blocks, full = self._lexical.scored(question, masks)
        for rows, mask, scores in zip(self._rows, masks, of_blocks, strict=True):
            if mask.all():
                found[rows] = scores
            else:
                found[rows[mask]] = scores[mask]
        return found, full

    def scores(self, question: str, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """The scores of :meth:`scored`."""
        return self.scored(question, allowed)[0]

    def full_scores(self, questions: Sequence[str], allowed: NDArray[np.bool_] | None = None) -> list[FullScore]:
        """See :meth:`~llama_index.ragkit.text.lexical_index.LexicalIndex.full_scores`.

        Parameters
        ----------
        allowed : see :meth:`scored`
        """
        return self._lexical.full_scores(questions, self._masks(allowed))

    def _masks(self, allowed: NDArray[np.bool_] | None) -> list[NDArray[np.bool_]]:
        return [rows >= 0 if allowed is None else (rows >= 0) & allowed[rows] for rows in self._rows]
