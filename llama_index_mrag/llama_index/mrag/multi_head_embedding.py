"""`MultiHeadEmbedding`: a text model's own embedding and one vector per attention head, from one forward pass."""

import asyncio
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from llama_index.core.bridge.pydantic import Field, PrivateAttr

from llama_index.mrag.embedding import HeadEmbedding
from llama_index.ragkit.errors import ConfigurationError, EmbeddingError

__all__ = ["MultiHeadEmbedding"]

_OF_ENCODER = (
    "layers", "pooling", "max_length", "append_eos", "batch_size", "device", "dtype", "own_embedding", "projection",
    "model_kwargs", "tokenizer_kwargs",
)  # fmt: skip


class MultiHeadEmbedding(HeadEmbedding):
    """A Hugging Face text model's own embedding and its attention heads, with one vector per head.

    A flat vector is the model's own embedding, of length 1, followed by `len(layers) * heads * head_dim` numbers: raw
    activations, as in the paper, divided by 1,024; their norms enter the importance of a head. So cosines of flat
    vectors are those of the model's own embedding, to about four decimals. `split` returns the heads, whose cosines do
    not depend on a factor. The own embedding is the last hidden state, pooled as the model's folder says
    (`1_Pooling/config.json` of Sentence Transformers), or else like the heads. Further layers that such a folder may
    name are left out.

    Any encoder or decoder of transformers whose attention ends in an output projection is supported. It is loaded at
    first use. Requires `pip install "llama-index-mrag[hf]"`.

    Parameters
    ----------
    model_name : a hub name or a folder
    layers : layer numbers, from 0, or negative from the end [-1, as published]
    pooling : "last" token, "cls" (first token) or "mean" over the tokens; "auto" is "last" for decoders,
        as published, and "mean" for encoders
    query_instruction, text_instruction : prefixes of questions and texts, without a separator
    max_length : maximum number of tokens of a text; default the limit of tokenizer and model
    append_eos : whether each text ends with the end-of-sequence token. None: with pooling "last", unless the tokenizer
        already adds a final special token
    batch_size : texts per forward pass
    device : such as "cuda:0"; default the first available of "cuda", "mps" and "cpu"
    dtype : such as "bfloat16"; default that of the weights on a GPU, float32 on a CPU
    own_embedding : whether flat vectors begin with the model's own embedding; without it they are only the heads, as
        in indexes of version 0.1
    projection : the suffix of the module name of the attention's output projection, for unknown models
    model_kwargs, tokenizer_kwargs : passed to `from_pretrained`, such as `attn_implementation`
    embed_batch_size : texts that are sorted by length together, to reduce padding

    Raises
    ------
    ImportError
        When first used without torch or transformers.
    """

    layers: list[int] = Field(default=[-1], description="Layers whose heads are used, -1 for the last.")
    pooling: Literal["auto", "last", "cls", "mean"] = Field(
        default="auto", description="Tokens at which heads are read."
    )
    query_instruction: str = Field(default="", description="Prefix of questions.")
    text_instruction: str = Field(default="", description="Prefix of texts.")
    max_length: int | None = Field(default=None, gt=1, description="Largest number of tokens of a text.")
    append_eos: bool | None = Field(default=None, description="End each text with the end-of-sequence token.")
    batch_size: int = Field(default=32, gt=0, description="Texts per forward pass.")
    device: str | None = Field(default=None, description="Torch device.")
    dtype: str | None = Field(default=None, description="Torch dtype of the weights.")
    own_embedding: bool = Field(default=True, description="Whether the model's own embedding precedes the heads.")
    projection: str | None = Field(default=None, description="End of the name of the output projections.")
    model_kwargs: dict[str, Any] = Field(default_factory=dict, description="For the model's from_pretrained.")
    tokenizer_kwargs: dict[str, Any] = Field(default_factory=dict, description="For the tokenizer's from_pretrained.")
    embed_batch_size: int = Field(default=1024, gt=0, le=2048, description="Texts sorted by length together.")

    _encoder: Any = PrivateAttr(default=None)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def __init__(self, model_name: str | Path, **kwargs: Any) -> None:
        super().__init__(model_name=os.fspath(model_name), **kwargs)

    @classmethod
    def class_name(cls) -> str:
        """Name in serialised pipelines."""
        return "MultiHeadEmbedding"

    @property
    def encoder(self) -> Any:
        """The loaded :class:`~llama_index.mrag.heads.encoder.HeadEncoder`."""
        with self._lock:
            if self._encoder is None:
                self._encoder = self._load()
            return self._encoder

    def _load(self) -> Any:
        try:
            from llama_index.mrag.heads.encoder import HeadEncoder
        except ImportError as error:
            raise ImportError(
                f"MultiHeadEmbedding needs {error.name or 'torch and transformers'}: "
                'pip install "llama-index-mrag[hf]".'
            ) from error
        return HeadEncoder(self.model_name, **{name: getattr(self, name) for name in _OF_ENCODER})

    def heads_alone(self) -> "MultiHeadEmbedding":
        """The same model without its own embedding before the heads."""
        if not self.own_embedding:
            return self
        model = self.model_copy(update={"own_embedding": False})
        model._encoder, model._lock = None, threading.Lock()
        return model

    @property
    def num_heads(self) -> int:
        """The number of heads in a flat vector, over all layers."""
        return int(self.encoder.num_heads)

    @property
    def head_dim(self) -> int:
        """Numbers per head."""
        return int(self.encoder.head_dim)

    def heads_of(self, dim: int) -> int:
        """The number of heads of the model; refuses a length that its vectors do not have."""
        own, heads = self.encoder.own_dim, self.num_heads
        if dim != own + heads * self.head_dim:
            before = f"{own} + " if own else ""
            raise ConfigurationError(
                f"Vectors of {self.model_name!r} have {before}{heads} x {self.head_dim} numbers, not {dim}."
            )
        return heads

    def own_of(self, dim: int) -> int:
        """Numbers of the model's own embedding; 0 without `own_embedding`."""
        return int(self.encoder.own_dim)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Layers, pooling and instructions, which may differ between models of the same name."""
        names = ("layers", "pooling", "query_instruction", "text_instruction", "append_eos")
        own = {"own_embedding": True} if self.own_embedding else {}  # without it as in an index of version 0.1
        return {**{name: getattr(self, name) for name in names}, **own}

    def get_query_embedding_batch(self, queries: Sequence[str]) -> list[list[float]]:
        """Flat vectors of several questions, in as few forward passes as the batch size allows."""
        return self._embed(self.query_instruction, queries)

    async def aget_query_embedding_batch(self, queries: Sequence[str]) -> list[list[float]]:
        """As :meth:`get_query_embedding_batch`, in a thread."""
        return await asyncio.to_thread(self._embed, self.query_instruction, queries)

    def _embed(self, instruction: str, texts: Sequence[str]) -> list[list[float]]:
        vectors = self.encoder.encode([instruction + text for text in texts])
        bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        if bad.size:
            raise EmbeddingError(
                f"{self.model_name!r} returned NaN or infinity for {bad.size} texts, such as "
                f"{texts[int(bad[0])][:60]!r}; its dtype is {self.encoder.dtype}: try float32 or bfloat16."
            )
        return [row.tolist() for row in vectors]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._embed(self.query_instruction, [query])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return (await asyncio.to_thread(self._embed, self.query_instruction, [query]))[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._embed(self.text_instruction, [text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await asyncio.to_thread(self._embed, self.text_instruction, [text]))[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._embed(self.text_instruction, texts)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._embed, self.text_instruction, texts)
