"""Windows of texts that are longer than an embedding model reads: the vector of a text is the mean of theirs.

A model that reads 256 tokens embeds the beginning of a chunk of 1,024, and its vector says nothing about the rest. So a
longer text is cut at the ends of sentences into windows that the model reads whole, and each window is embedded.

LlamaIndex's tokenizer counts the tokens. It is not the model's own, so windows are smaller than the limit.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from numpy.typing import NDArray

from llama_index.ragkit.text.sentences import sentence_spans
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["cut_windows", "most_tokens", "pooled"]

_FILLED = 0.8  # of the limit, by another tokenizer than the model's


def most_tokens(model: BaseEmbedding) -> int | None:
    """How many tokens of a text a model reads: its `max_length`, or that of the model that it wraps as `embed_model`.

    `HuggingFaceEmbedding` has that attribute, and a class of your own may have it too. None if it is not known; the
    model is then assumed to read all of a text.
    """
    own = getattr(model, "max_length", None)
    if isinstance(own, int) and own > 0:
        return own
    wrapped = getattr(model, "embed_model", None)
    return most_tokens(wrapped) if isinstance(wrapped, BaseEmbedding) else None


def cut_windows(text: str, limit: int | None) -> list[str]:
    """The windows of a text in order; the text itself if a model reads all of it.

    Parameters
    ----------
    limit : tokens that the model reads, at least 1; None for all

    >>> cut_windows("The lamp is lit. The keeper sleeps. A ship comes in.", 10)
    ['The lamp is lit.', 'The keeper sleeps.', 'A ship comes in.']
    >>> cut_windows("The lamp is lit.", None)
    ['The lamp is lit.']
    """
    short = limit is None or len(text.encode(errors="surrogatepass")) <= limit  # a token has a byte at least
    if limit is None or short or (tokens := count_tokens(text)) <= limit:
        return [text]
    most = max(1, int(_FILLED * limit))
    aim = tokens / math.ceil(tokens / most)  # windows of like length, since each counts alike
    windows: list[str] = []
    start, filled = 0, 0
    for begin, size in _pieces(text, most):
        if filled and (filled + size > most or filled + size / 2 > aim):
            windows.append(text[start:begin].strip())
            start, filled = begin, 0
        filled += size
    return [window for window in [*windows, text[start:].strip()] if window]


def _pieces(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Where each sentence begins, and its tokens; one of more than `most` is halved between two words."""
    waiting = list(reversed(sentence_spans(text)))
    while waiting:
        begin, end = waiting.pop()
        size = count_tokens(text[begin:end])
        if size <= most or end - begin < 2:
            yield begin, size
            continue
        middle = (begin + end) // 2
        cut = max(text.rfind(" ", begin + 1, middle), text.rfind("\n", begin + 1, middle))
        cut = cut if cut > begin else middle
        waiting += [(cut, end), (begin, cut)]


def pooled(vectors: NDArray[np.float32], counts: Sequence[int]) -> NDArray[np.float32]:
    """The vectors of texts from those of their windows, shape (len(counts), d).

    That of several windows is the mean of their directions, of the mean of their lengths; that of one stays as it is.

    Parameters
    ----------
    vectors : of all windows, shape (sum(counts), d)
    counts : windows of each text, at least 1
    """
    starts = np.cumsum([0, *counts[:-1]])
    rows: NDArray[np.float32] = vectors[starts].copy()
    for row, (start, count) in enumerate(zip(starts.tolist(), counts, strict=True)):
        if count > 1:
            own = vectors[start : start + count].astype(np.float64)
            lengths = np.linalg.norm(own, axis=1, keepdims=True)
            mean = (own / np.maximum(lengths, 1e-30)).mean(axis=0)
            rows[row] = mean * (lengths.mean() / max(float(np.linalg.norm(mean)), 1e-30))
    return rows
