"""An embedding model of other habits: the same order of cosines, in a narrow range far above 0."""

from typing import Any

import numpy as np
from llama_index.core.bridge.pydantic import Field

from llama_index.mrag import HeadEmbedding
from llama_index.ragkit.testing import HashEmbedding

__all__ = ["ShiftedEmbedding", "ShiftedHeads"]


class ShiftedEmbedding(HashEmbedding):
    """Every vector gets a component `common` that all texts share: ``cos' = (cos + common^2) / (1 + common^2)``.

    Words are random directions, so that no two cosines are equal by chance.
    """

    common: float = Field(default=0.0, description="Length of the shared component.")
    heads: int = Field(default=1, description="Parts that get such a component each.")

    def vector(self, text: str) -> list[float]:
        """The vector of a text, without a record of the call."""
        words = [word.strip(".,!?").lower() for word in text.split()]
        total = sum((_direction(word, self.dim) for word in words), _direction("", self.dim))
        parts = total.reshape(self.heads, -1)
        parts = parts / np.linalg.norm(parts, axis=1, keepdims=True)
        shifted = np.hstack([parts, np.full((self.heads, 1), self.common)])
        flat = shifted.ravel() / np.linalg.norm(shifted)
        return [float(x) for x in flat]


class ShiftedHeads(ShiftedEmbedding, HeadEmbedding):
    """The same, of four heads."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"heads": 4, **kwargs})

    def heads_of(self, dim: int) -> int:
        return 4


def _direction(word: str, dim: int) -> np.ndarray:
    return np.random.default_rng(list(f" {word}".encode())).normal(size=dim)
