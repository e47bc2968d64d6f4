"""Late interaction: texts compared by the vectors of their tokens (Khattab and Zaharia, ColBERT, 2020).

The score of a text for a question is the sum, over the question's tokens, of the cosine with the nearest token of the
text. ColBERTv2, one of the retrieval encoders of HippoRAG's paper (section 3.4), compares in this way. As in the
authors' code, the sum is divided by that of the question with itself, so a text with every token of the question has 1.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["TokenEncoder", "TokenVectors", "late_similarities"]

Floats = NDArray[np.float32]


@runtime_checkable
class TokenEncoder(Protocol):
    """A model that gives a vector for each token, such as a `MultiVectorEncoder` of sentence-transformers.

    Vectors are arrays or tensors of torch.
    """

    def encode_query(self, text: str, /) -> Any:
        """The vectors of the tokens of a question or a name, shape (t, d)."""

    def encode_document(self, texts: list[str], /) -> Any:
        """The vectors of the tokens of each text, shape (t, d)."""


class TokenVectors:
    """The token vectors of many texts, one array (t, d) after another.

    Raises a `ConfigurationError` if a text or a question has one vector for all its tokens.
    """

    def __init__(self, arrays: Sequence[Any]) -> None:
        arrays = [_array(array) for array in arrays]
        self._starts = np.cumsum([0, *(len(array) for array in arrays)])[:-1]
        self._tokens = _units(np.concatenate(arrays)) if arrays else np.zeros((0, 0), np.float32)

    def similarities(self, question: Any) -> NDArray[np.float64]:
        """The similarity of each text to a question of token vectors (t, d), at most 1, shape (texts,)."""
        if not len(self._starts):
            return np.zeros(0)
        asked = _units(_array(question))
        near = np.maximum.reduceat(self._tokens @ asked.T, self._starts, axis=0).sum(axis=1, dtype=np.float64)
        own = float((asked @ asked.T).max(axis=0).sum(dtype=np.float64))
        found: NDArray[np.float64] = near / own if own else np.zeros(len(near))
        return found


def late_similarities(encoder: TokenEncoder, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
    """The similarity of each text to a question, at most 1, shape (texts,)."""
    return TokenVectors(encoder.encode_document(list(texts)) if texts else ()).similarities(
        encoder.encode_query(question)
    )


def _array(vectors: Any) -> Floats:
    """The array (t, d) of a text; a vector of zeros if a model keeps none of its tokens, such as signs alone.

    Tensors of torch may lie on an accelerator and have half precision.
    """
    array: Floats = np.asarray(vectors.detach().float().cpu() if hasattr(vectors, "detach") else vectors, np.float32)
    if array.ndim != 2:
        raise ConfigurationError(
            f"A model of token vectors gives an array (tokens, dimensions) for a text, but this one {array.shape}. "
            "Use a model such as ColBERT: MultiVectorEncoder(name) of sentence-transformers."
        )
    return array if len(array) else np.zeros((1, array.shape[1]), np.float32)


def _units(rows: Floats) -> Floats:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = np.divide(rows, norms, out=np.zeros_like(rows, np.float32), where=norms > 0)
    return unit
