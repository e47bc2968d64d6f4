"""Late interaction: texts compared by the vectors of their tokens (Khattab and Zaharia, ColBERT, 2020).

The score of a text for a question is the sum, over the question's tokens, of the cosine with the nearest token of the
text. ColBERTv2, one of the retrieval encoders of HippoRAG's paper (section 3.4), compares in this way. As in the
authors' code, the sum is divided by that of the question with itself, so a text with every token of the question has 1.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["TokenEncoder", "TokenVectors", "late_similarities"]

Floats = NDArray[np.float32]


@runtime_checkable
class TokenEncoder(Protocol):
    """A model that gives a vector for each token, such as ColBERT."""

    def encode_query(self, text: str) -> Floats:
        """The vectors of the tokens of a question or a name, shape (t, d), t at least 1."""

    def encode_texts(self, texts: Sequence[str]) -> Sequence[Floats]:
        """The vectors of the tokens of each text, shape (t, d), t at least 1."""


class TokenVectors:
    """The token vectors of many texts, one array after another.

    Parameters
    ----------
    arrays : of each text, shape (t, d), t at least 1
    """

    def __init__(self, arrays: Sequence[Floats]) -> None:
        self._starts = np.cumsum([0, *(len(array) for array in arrays)])[:-1]
        self._tokens = _units(np.concatenate(arrays)) if arrays else np.zeros((0, 0), np.float32)

    def similarities(self, question: Floats) -> NDArray[np.float64]:
        """The similarity of each text to a question of token vectors (t, d), at most 1, shape (texts,)."""
        if not len(self._starts):
            return np.zeros(0)
        asked = _units(question)
        near = np.maximum.reduceat(self._tokens @ asked.T, self._starts, axis=0).sum(axis=1, dtype=np.float64)
        found: NDArray[np.float64] = near / float((asked @ asked.T).max(axis=0).sum(dtype=np.float64))
        return found


def late_similarities(encoder: TokenEncoder, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """The similarity of each text to a question, at most 1, shape (texts,)."""
    return TokenVectors(encoder.encode_texts(texts) if texts else ()).similarities(encoder.encode_query(question))


def _units(rows: Floats) -> Floats:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = np.divide(rows, norms, out=np.zeros_like(rows, np.float32), where=norms > 0)
    return unit
