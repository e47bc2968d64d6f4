"""Vectors of the sentences of texts, kept in a cache text by text.

A summary is written again when one of its texts changes, and the sentences of the others would be embedded again. They
are not kept in the index itself, where they would take several times the space of the chunks' own vectors.
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
    sentences: Sequence[str],
    split: Sequence[Sequence[str]],
    model: BaseEmbedding,
    cache: ExtractionCache | None,
    user: str,
) -> Steps[tuple[Floats, list[str]]]:
    """Vectors of sentences, shape (len(sentences), d), and the keys of the cache entries that hold them.

    Parameters
    ----------
    sentences : distinct
    split : the distinct sentences of each text, all among `sentences`
    cache : None to keep nothing
    user : of the cache entries
    """
    if cache is None:
        return (yield from embed_texts(model, sentences)), []
    texts = {_key(text, model): text for text in split if text}
    known: dict[str, Floats] = {}
    missing = []
    for key, text in texts.items():
        kept = yield from cache.get(key, user)
        rows = None if kept is None else _unpacked(kept, len(text))
        if rows is None:
            missing.append(key)
        else:
            known.update(zip(text, rows, strict=True))
    new = [sentence for sentence in sentences if sentence not in known]
    known.update(zip(new, (yield from embed_texts(model, new)), strict=True))
    for key in missing:
        yield from cache.put(key, _packed(np.stack([known[sentence] for sentence in texts[key]])), user)
    return np.stack([known[sentence] for sentence in sentences]), list(texts)


def _key(text: Sequence[str], model: BaseEmbedding) -> str:
    return cache_key("sentence vectors", type(model).__name__, model.model_name, *text)


def _packed(rows: Floats) -> str:
    return base64.b64encode(rows.astype("<f4").tobytes()).decode("ascii")


def _unpacked(kept: object, count: int) -> Floats | None:
    """The rows; None for what cannot be such an entry."""
    try:
        numbers = np.frombuffer(base64.b64decode(str(kept), validate=True), dtype="<f4")
    except ValueError:
        return None
    found = numbers.size and numbers.size % count == 0 and np.isfinite(numbers).all()
    return numbers.reshape(count, -1) if found else None
