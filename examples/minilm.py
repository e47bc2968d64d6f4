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
from scipy.special import erf
from tokenizers import Tokenizer
from tqdm.auto import tqdm

from llama_index.mrag import HeadEmbedding
from llama_index.ragkit.blas import one_blas_thread

__all__ = ["MiniLM", "MiniLMEmbedding", "MiniLMHeads"]

Floats = NDArray[np.float32]
_LAYERS, _HEADS, _MOST_TOKENS = 6, 12, 256
_TOKENS_AT_ONCE = 1024  # of a batch, padding included
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
        order = sorted(range(len(missing)), key=lambda i: len(tokens[i]))  # little padding
        with tqdm(total=len(missing), desc="Embedding chunks", disable=not show_progress) as bar:
            batches = []
            while order:
                size = max(1, _TOKENS_AT_ONCE // len(tokens[order[-1]]))
                batches.append(order[-size:])
                del order[-size:]
            # A thread a core, each with its own batches: threads inside a product would wait for each other, busily.
            with one_blas_thread, ThreadPoolExecutor(os.cpu_count()) as pool:
                done = pool.map(lambda batch: self._forward([tokens[i] for i in batch]), batches)
                for batch, rows in zip(batches, done, strict=True):
                    self._known.update(zip((missing[i] for i in batch), zip(*rows, strict=True), strict=True))
                    bar.update(len(batch))
        found = [self._known[text] for text in texts]
        return np.array([vector for vector, _ in found]), np.array([heads for _, heads in found])

    def _forward(self, tokens: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        longest = max(map(len, tokens))
        mask = np.array([[1.0] * len(row) + [0.0] * (longest - len(row)) for row in tokens], np.float32)
        ids = np.array([[*row, *[0] * (longest - len(row))] for row in tokens])
        words, places, kinds = (
            self._weights[f"embeddings.{of}_embeddings.weight"] for of in ("word", "position", "token_type")
        )
        states = self._norm(words[ids] + places[:longest] + kinds[0], "embeddings.LayerNorm")
        for layer in range(_LAYERS):
            name = f"encoder.layer.{layer}"
            heads = self._attention(states, mask, f"{name}.attention.self")
            states = self._norm(
                states + self._linear(heads, f"{name}.attention.output.dense"), f"{name}.attention.output.LayerNorm"
            )
            inner = self._linear(states, f"{name}.intermediate.dense")
            inner *= 0.5 * (1 + erf(inner * np.float32(0.5**0.5)))
            states = self._norm(states + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        pooled = _mean(states, mask)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True), _mean(heads, mask)

    def _attention(self, states: Floats, mask: Floats, name: str) -> Floats:
        """What the heads attend to, one after the other: (texts, tokens, 384)."""
        texts, longest, width = states.shape
        shape = (texts, longest, _HEADS, width // _HEADS)
        query, key, value = (
            self._linear(states, f"{name}.{part}").reshape(shape).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32((width // _HEADS) ** 0.5)
        scores += np.where(mask, np.float32(0), np.float32(-1e9))[:, None, None]
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ value).transpose(0, 2, 1, 3).reshape(states.shape)

    def _linear(self, inputs: Floats, name: str) -> Floats:
        outputs: Floats = inputs @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return outputs

    def _norm(self, inputs: Floats, name: str) -> Floats:
        centred = inputs - inputs.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        normed: Floats = centred / spread * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normed


def _mean(states: Floats, mask: Floats) -> Floats:
    mean: Floats = np.einsum("btw,bt->bw", states, mask) / mask.sum(axis=1, keepdims=True)
    return mean


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
