"""Deterministic offline models for tests."""

import hashlib
import threading
from typing import Any

import numpy as np
from pydantic import PrivateAttr

from llama_index.mrag import HeadEmbedding


class HashEmbedding(HeadEmbedding):
    """Bag of hashed words, unit length, of four heads: texts that share words are near. Counts what it is asked."""

    dim: int = 32
    salt: str = ""
    _texts: list[str] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("model_name", "hash")
        super().__init__(**kwargs)

    @property
    def texts(self) -> list[str]:
        """Every text and question embedded so far."""
        return self._texts

    def vector(self, text: str) -> list[float]:
        v = np.full(self.dim, 1e-3)
        for word in text.lower().split():
            digest = hashlib.sha256((self.salt + word.strip(".,!?")).encode()).digest()
            v[digest[0] % self.dim] += 1.0
        return list(v / np.linalg.norm(v))

    def _get_text_embedding(self, text: str) -> list[float]:
        with self._lock:
            self._texts.append(text)
        return self.vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    def heads_of(self, dim: int) -> int:
        return 4
