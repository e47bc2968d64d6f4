"""Embedding models with heads: their flat vectors work in every LlamaIndex index and can be split into heads.

A *flat* vector is the concatenation of the heads' vectors, after the model's own embedding if the model gives both.
`HeadEmbedding.split` returns the heads.
"""

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, SerializeAsAny
from llama_index.core.embeddings.utils import EmbedType, resolve_embed_model

from llama_index.mrag.heads.splitting import natural_heads, split_heads
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.short_repr import ReprText, changed_fields
from llama_index.ragkit.validation import check_count

__all__ = ["HeadEmbedding", "SplitEmbedding", "with_heads"]

logger = logging.getLogger(__name__)


class HeadEmbedding(BaseEmbedding):
    """An embedding model whose vectors consist of parts of equal length, each its own embedding space."""

    def __repr_args__(self) -> Iterator[tuple[str, ReprText]]:
        """What pydantic shows: the parameters that differ from their defaults."""
        return changed_fields(self)

    @abstractmethod
    def heads_of(self, dim: int) -> int:
        """The number of heads in a flat vector of `dim` numbers.

        Raises
        ------
        ConfigurationError
            If that length is not a whole number of heads.
        """

    def own_of(self, dim: int) -> int:
        """How many of the `dim` numbers of a flat vector precede the heads: the length of the model's own embedding."""
        return 0

    @property
    def fingerprint(self) -> dict[str, Any]:
        """The properties besides the model's name that must stay the same for vectors to be comparable."""
        return {}

    def split(self, vectors: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Flat vectors as heads: shape (dim,) to (heads, head_dim), (n, dim) to (n, heads, head_dim)."""
        flat = np.asarray(vectors, dtype=np.float32)
        return split_heads(flat, self.heads_of(flat.shape[-1]), self.own_of(flat.shape[-1]))

    def get_query_embedding_batch(self, queries: Sequence[str]) -> list[list[float]]:
        """Flat vectors of several questions."""
        return [self.get_query_embedding(query) for query in queries]

    async def aget_query_embedding_batch(self, queries: Sequence[str]) -> list[list[float]]:
        """As :meth:`get_query_embedding_batch`."""
        return list(await asyncio.gather(*(self.aget_query_embedding(query) for query in queries)))


class SplitEmbedding(HeadEmbedding):
    """Any embedding model with its vectors split into parts of equal length: Split RAG, the paper's baseline.

    For models that do not expose their heads, such as those behind an API, and for wrappers (a cache) around a
    :class:`MultiHeadEmbedding`. The vectors of the model are unchanged.

    Parameters
    ----------
    embed_model : the model, or anything that LlamaIndex resolves to one
    num_heads : number of parts; must divide the length of the vectors. None takes the divisor whose parts are nearest
        to 32 numbers
    """

    embed_model: SerializeAsAny[BaseEmbedding] = Field(description="The model whose vectors are split.")
    num_heads: int | None = Field(default=None, description="Parts of a vector; None chooses.")

    def __init__(self, embed_model: EmbedType, num_heads: int | None = None, **kwargs: Any) -> None:
        check_count("num_heads", num_heads, 1, none_ok=True)
        model = resolve_embed_model(embed_model)
        named = {"model_name": model.model_name, "embed_batch_size": model.embed_batch_size}
        super().__init__(**{**named, **kwargs, "embed_model": model, "num_heads": num_heads})

    @classmethod
    def class_name(cls) -> str:
        """Name in serialised pipelines."""
        return "SplitEmbedding"

    def heads_of(self, dim: int) -> int:
        """`num_heads`, or the default for vectors of this length."""
        heads = self.num_heads or natural_heads(dim)
        if dim % heads:
            raise ConfigurationError(
                f"Vectors of {self.model_name!r} have {dim} numbers, which cannot be split into {heads} equal heads: "
                f"pass a divisor of {dim} as num_heads=."
            )
        return heads

    # Call the public methods of the model, which handle caching, rate limits and events.

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.embed_model.get_query_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await self.embed_model.aget_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.embed_model.get_text_embedding(text)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await self.embed_model.aget_text_embedding(text)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self.embed_model.get_text_embedding_batch(texts)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await self.embed_model.aget_text_embedding_batch(texts)


def with_heads(model: BaseEmbedding, num_heads: int = 0) -> HeadEmbedding:
    """The model itself if it has heads, else the model wrapped in a :class:`SplitEmbedding`, with a warning.

    With `num_heads` 0 the number of parts is chosen by the wrapper.
    """
    if isinstance(model, HeadEmbedding):
        return model
    logger.warning(
        "%s (%s) does not expose attention heads: its vectors are split into parts instead (SplitEmbedding). Use "
        "MultiHeadEmbedding for heads, or pass SplitEmbedding(embed_model, num_heads=...) to choose the parts.",
        type(model).__name__, model.model_name,
    )  # fmt: skip
    return SplitEmbedding(model, num_heads or None)
