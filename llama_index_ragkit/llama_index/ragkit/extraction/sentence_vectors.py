"""Vectors of sentences, kept in a cache.

A summary is written again when one of its texts changes, and most of the sentences that it is chosen from are the same.
"""

import base64
from collections.abc import Sequence

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from numpy.typing import NDArray

from llama_index.ragkit.llm.cache import ExtractionCache, cache_key
from llama_index.ragkit.llm.embeddings import embed_texts
from llama_index.ragkit.steps import Steps

__all__ = ["sentence_vectors"]

Floats = NDArray[np.float32]


def sentence_vectors(
    sentences: Sequence[str], model: BaseEmbedding, cache: ExtractionCache | None, user: str
) -> Steps[tuple[Floats, list[str]]]:
    """Vectors of sentences, shape (len(sentences), d), and the keys of the cache entries that hold them.

    Parameters
    ----------
    sentences : distinct
    cache : None to keep nothing
    user : of the cache entries
    """
    if cache is None:
        return (yield from embed_texts(model, sentences)), []
    keys = [cache_key("sentence vector", type(model).__name__, model.model_name, sentence) for sentence in sentences]
    known: dict[str, Floats] = {}
    for key, sentence in zip(keys, sentences, strict=True):
        kept = yield from cache.get(key, user)
        row = None if kept is None else _unpacked(kept)
        if row is not None:
            known[sentence] = row
    new = {sentence: key for key, sentence in zip(keys, sentences, strict=True) if sentence not in known}
    known.update(zip(new, (yield from embed_texts(model, list(new))), strict=True))
    for sentence, key in new.items():
        yield from cache.put(key, _packed(known[sentence]), user)
    return np.stack([known[sentence] for sentence in sentences]), keys


def _packed(row: Floats) -> str:
    return base64.b64encode(row.astype("<f4").tobytes()).decode("ascii")


def _unpacked(kept: object) -> Floats | None:
    """The vector; None for what cannot be such an entry."""
    try:
        numbers = np.frombuffer(base64.b64decode(str(kept), validate=True), dtype="<f4")
    except ValueError:
        return None
    return numbers if numbers.size and np.isfinite(numbers).all() else None
