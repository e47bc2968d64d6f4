"""all-MiniLM-L6-v2 in NumPy: the embeddings and the attention heads of the demo, without PyTorch.

One forward pass gives both: the mean of the last layer, and that of what enters the output projection of its attention,
one slice a head. `HuggingFaceEmbedding` and `MultiHeadEmbedding` give the same vectors, and want gigabytes to do so.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from benchmarks.embedding import MINILM, minilm_folder
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from tqdm.auto import tqdm

from llama_index.mrag import HeadEmbedding
from llama_index.ragkit.blas import one_blas_thread

__all__ = ["MiniLM", "MiniLMEmbedding", "MiniLMHeads"]

Floats = NDArray[np.float32]
_LAYERS, _HEADS, _MOST_TOKENS = 6, 12, 256  # tokens of a text, and of a batch: more do not fit the cache of a core
_ERF = [np.float32(factor) for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)]
_SMALL = np.float32(2**-10)  # of the heads, beside which the cosine of two vectors is that of the texts


class MiniLM:
    """The model, which remembers what it has encoded: every text is read once, whoever asks for it."""

    def __init__(self) -> None:
        folder = minilm_folder()
        self._weights: dict[str, Floats] = load_file(folder / "model.safetensors")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(_MOST_TOKENS)
        self._tokenizer.no_padding()
        self._known: dict[str, tuple[Floats, Floats]] = {}

    def encode(self, texts: Sequence[str], show_progress: bool = False) -> tuple[Floats, Floats]:
        """The vectors of texts, of length 1, and their heads, each (texts, 384)."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._known]
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(missing)]
        with tqdm(total=len(missing), desc="Embedding chunks", disable=not show_progress) as bar:
            batches = _batches([len(row) for row in tokens])
            # A thread a core, each with its own batches: threads inside a product would wait for each other, busily.
            with one_blas_thread, ThreadPoolExecutor(os.cpu_count()) as pool:
                done = pool.map(lambda batch: self._forward([tokens[i] for i in batch]), batches)
                for batch, rows in zip(batches, done, strict=True):
                    self._known.update(zip((missing[i] for i in batch), zip(*rows, strict=True), strict=True))
                    bar.update(len(batch))
        found = [self._known[text] for text in texts]
        return np.array([vector for vector, _ in found]), np.array([heads for _, heads in found])

    def _forward(self, texts: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """The vectors and heads of texts, which stand one after the other: nothing is padded."""
        lengths = np.array([len(text) for text in texts])
        starts = np.cumsum(lengths) - lengths
        numbers = np.repeat(np.arange(len(texts)), lengths)
        elsewhere = np.where(numbers[:, None] == numbers, np.float32(0), np.float32(-1e9))
        words, places, kinds = (
            self._weights[f"embeddings.{of}_embeddings.weight"] for of in ("word", "position", "token_type")
        )
        ids = np.concatenate(texts)
        states = words[ids] + places[np.arange(len(ids)) - starts[numbers]] + kinds[0]
        states = self._norm(states, "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            name = f"encoder.layer.{layer}"
            heads = self._attention(states, elsewhere, f"{name}.attention.self")
            states = self._norm(
                states + self._linear(heads, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
            )
            inner = _gelu(self._linear(states, f"{name}.intermediate.dense"))
            states = self._norm(states + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        pooled, voted = (np.add.reduceat(rows, starts) / lengths[:, None] for rows in (states, heads))
        vectors = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return vectors.astype(np.float32), voted.astype(np.float32)

    def _attention(self, states: Floats, elsewhere: Floats, name: str) -> Floats:
        """What the heads attend to, one after the other: (tokens, 384)."""
        tokens, width = states.shape
        query, key, value = (
            self._linear(states, f"{name}.{part}").reshape(tokens, _HEADS, width // _HEADS).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query / np.float32((width // _HEADS) ** 0.5) @ key.swapaxes(1, 2)
        scores += elsewhere
        scores -= scores.max(axis=-1, keepdims=True)
        shares = np.exp(scores, out=scores)
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ value).swapaxes(0, 1).reshape(states.shape)

    def _linear(self, inputs: Floats, name: str) -> Floats:
        outputs: Floats = inputs @ self._weights[f"{name}.weight"].T
        outputs += self._weights[f"{name}.bias"]
        return outputs

    def _norm(self, inputs: Floats, name: str) -> Floats:
        centred = inputs - inputs.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        normed: Floats = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normed


def _gelu(inputs: Floats) -> Floats:
    """The activation, in place; its error function is formula 7.1.26 of Abramowitz and Stegun, off by 1.5e-7 at most.

    SciPy's takes a third of the time of the model. A few rows at a time stay in the cache of a core.
    """
    half = np.float32(0.5**0.5)
    for rows in np.split(inputs, range(16, len(inputs), 16)):
        size = np.abs(rows) * half
        share = 1 / (1 + np.float32(0.3275911) * size)
        tail = np.zeros_like(size)
        for factor in _ERF:
            tail += factor
            tail *= share
        tail *= np.exp(-size * size)
        tail *= half * size
        np.maximum(rows, 0, out=rows)
        rows -= tail
    return inputs


def _batches(lengths: Sequence[int]) -> list[list[int]]:
    """Places of texts, in batches of at most so many tokens, where no text is longer."""
    batches: list[list[int]] = []
    free = 0
    for place, length in enumerate(lengths):
        if length > free:
            batches.append([])
            free = _MOST_TOKENS
        batches[-1].append(place)
        free -= length
    return batches


class MiniLMEmbedding(BaseEmbedding):
    """The vectors of a :class:`MiniLM` as an embedding model of LlamaIndex."""

    _model: MiniLM = PrivateAttr()

    def __init__(self, model: MiniLM, **kwargs: Any) -> None:
        super().__init__(**{"model_name": MINILM, "embed_batch_size": 2048, **kwargs})
        self._model = model

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._model.encode(texts)[0].tolist()
        return vectors

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._vectors(texts)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._vectors([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._vectors([query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._vectors([query])[0]


class MiniLMHeads(MiniLMEmbedding, HeadEmbedding):
    """Vectors and heads of a :class:`MiniLM`, as :class:`~llama_index.mrag.MultiHeadEmbedding` gives them."""

    def heads_of(self, dim: int) -> int:
        """Those of the last layer."""
        return _HEADS

    def own_of(self, dim: int) -> int:
        """The vector of the text stands before the heads, which are as many numbers."""
        return dim // 2

    def get_query_embedding_batch(self, queries: Sequence[str]) -> list[list[float]]:
        """Flat vectors of several questions."""
        return self._vectors(queries)

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        own, heads = self._model.encode(texts)
        flat: list[list[float]] = np.hstack([own, heads * _SMALL]).tolist()
        return flat
