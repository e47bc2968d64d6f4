"""Encoding of texts to head vectors: tokenization, batches of similar length, and capture of the heads."""

import json
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModel, AutoTokenizer, __version__
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils.hub import cached_file

from llama_index.mrag.heads.capture import HeadCapture, Pooling
from llama_index.ragkit.errors import ConfigurationError, EmbeddingError
from llama_index.ragkit.validation import check_choice

__all__ = ["HeadEncoder", "is_decoder"]

_SMALL = 2.0**-10  # scales heads against the own embedding of length 1: normal float16 numbers, no effect on cosines
_SANE_LENGTH = 1_000_000  # tokenizers without a limit claim 10^30 tokens


def is_decoder(config: Any) -> bool:
    """Whether a model has causal attention, so that only its last token attends to the whole text."""
    if getattr(config, "is_encoder_decoder", False):
        return False
    causal, masked = (config.model_type in names for names in (_CAUSAL, _MASKED))
    return bool(causal and (not masked or getattr(config, "is_decoder", False)))


_CAUSAL, _MASKED = frozenset(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES), frozenset(MODEL_FOR_MASKED_LM_MAPPING_NAMES)


class HeadEncoder:
    """A loaded model. Parameters as in :class:`~llama_index.mrag.MultiHeadEmbedding`.

    Attributes
    ----------
    num_heads, head_dim : heads of all layers together, numbers per head
    own_dim : numbers of the model's own embedding, which precedes the heads; 0 without it
    pooling : the tokens at which heads are read
    max_length : largest number of tokens used of a text, None without a limit
    """

    def __init__(
        self,
        name: str,
        *,
        layers: Sequence[int],
        pooling: str,
        max_length: int | None,
        append_eos: bool | None,
        batch_size: int,
        device: str | None,
        dtype: str | None,
        own_embedding: bool,
        projection: str | None,
        model_kwargs: dict[str, Any],
        tokenizer_kwargs: dict[str, Any],
    ) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(name, **tokenizer_kwargs)
        device = device or _best_device()
        loaded = AutoModel.from_pretrained(name, **{**_dtype_keyword(dtype, device), **model_kwargs})
        # Only the encoder of an encoder-decoder model (T5, BART) is used; a model placed by device_map is not moved.
        model = loaded.get_encoder() if getattr(loaded.config, "is_encoder_decoder", False) else loaded
        self.model = (model if getattr(loaded, "hf_device_map", None) else model.to(device)).eval()
        self.capture = HeadCapture(self.model, layers, projection)
        self.num_heads, self.head_dim = self.capture.num_heads * len(layers), self.capture.head_dim
        self.pooling: Pooling = _pooling(pooling, self.model.config)
        self.own_pooling = (_own_pooling(name) or self.pooling) if own_embedding else None
        self.batch_size = batch_size
        self.end = self._end_token(append_eos)
        self.max_length = max_length or _longest(self.tokenizer, self.model.config)
        self.own_dim = self._flat(self.tokens([""])).shape[1] - self.num_heads * self.head_dim

    @property
    def device(self) -> torch.device:
        """The device of the inputs."""
        device: torch.device = next(self.model.parameters()).device
        return device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        dtype: torch.dtype = next(self.model.parameters()).dtype
        return dtype

    def _end_token(self, append_eos: bool | None) -> int | None:
        """The token that every text must end with, or None if there is no such token."""
        own = self._own_end()
        eos = self.tokenizer.eos_token_id
        if append_eos is None:
            return (eos if own is None else own) if self.pooling == "last" else None
        if append_eos and eos is None:
            raise ConfigurationError(
                "append_eos=True needs a tokenizer with an end-of-sequence token; this one has none."
            )
        return eos if append_eos else None

    def _own_end(self) -> int | None:
        """The special token that the tokenizer itself appends to a text, if any."""
        with_marks, without = (self.tokenizer("a", add_special_tokens=own)["input_ids"] for own in (True, False))
        ends = len(with_marks) > 0 and (not without or with_marks[-1] != without[-1])
        return int(with_marks[-1]) if ends else None

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, with special tokens, truncated to the maximum length."""
        if not texts:
            return []
        limit = self.max_length
        cut = {"truncation": True, "max_length": limit} if limit else {}
        rows = [list(row) for row in self.tokenizer(list(texts), **cut)["input_ids"]]
        if self.end is not None:
            rows = [row if row[-1:] == [self.end] else [*row[: limit - 1 if limit else None], self.end] for row in rows]
        if not all(rows):  # an empty text without special tokens still needs one token
            rows = [row or [self._filler] for row in rows]
        return rows

    @property
    def _filler(self) -> int:
        for token in (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id):
            if token is not None:
                return int(token)
        return 0

    def batch(self, rows: Sequence[Sequence[int]]) -> dict[str, torch.Tensor]:
        """Token ids of several texts as one batch, always padded on the right.

        With padding on the right, a decoder's real tokens never attend to it, and positions need no correction.

        Raises
        ------
        EmbeddingError
            If a text does not end as the model expects.
        """
        if self.end is not None and any(row[-1] != self.end for row in rows):
            raise EmbeddingError(f"A text does not end with the end-of-sequence token {self.end}.")
        longest = max(map(len, rows))
        ids = torch.full((len(rows), longest), self._filler, dtype=torch.long)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for i, row in enumerate(rows):
            ids[i, : len(row)] = torch.tensor(row)
            mask[i, : len(row)] = 1
        batch = {"input_ids": ids.to(self.device), "attention_mask": mask.to(self.device)}
        # A decoder would otherwise cache keys and values for generation.
        return {**batch, "use_cache": False} if is_decoder(self.model.config) else batch

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Flat vectors of texts, shape (n, own_dim + num_heads * head_dim).

        Texts of similar length share a batch, to reduce padding; the result has the order of the texts.
        """
        rows = self.tokens(texts)
        out = np.empty((len(rows), self.own_dim + self.num_heads * self.head_dim), dtype=np.float32)
        # Longest texts first, so that a lack of memory fails immediately.
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
        for start in range(0, len(order), self.batch_size):
            chosen = order[start : start + self.batch_size]
            out[chosen] = self._flat([rows[i] for i in chosen]).cpu().numpy()
        return out

    def _flat(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """The flat vectors of one batch of token ids."""
        heads, own = self.capture.heads(self.batch(rows), self.pooling, self.own_pooling)
        flat = heads.flatten(1)
        if own is None:
            return flat
        return torch.cat([torch.nn.functional.normalize(own).to(flat.device), flat * _SMALL], dim=1)


def _pooling(given: str, config: Any) -> Pooling:
    if given == "auto":
        return "last" if is_decoder(config) else "mean"
    check_choice("pooling", given, ("auto", *get_args(Pooling)))
    return given  # type: ignore[return-value]


def _own_pooling(name: str) -> Pooling | None:
    """The pooling of a Sentence Transformers model; None for other models, and for poolings not offered for heads."""
    path = cached_file(
        name,
        "1_Pooling/config.json",
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    flags: dict[str, Pooling] = {"cls_token": "cls", "mean_tokens": "mean", "lasttoken": "last"}
    return next((pooling for flag, pooling in flags.items() if config.get(f"pooling_mode_{flag}")), None)


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _dtype_keyword(dtype: str | None, device: str) -> dict[str, Any]:
    """The dtype argument under its name in the installed transformers; "auto" keeps that of the weights."""
    chosen: Any = dtype or ("float32" if device == "cpu" else "auto")
    if chosen != "auto":
        chosen = getattr(torch, chosen, None)
        if not isinstance(chosen, torch.dtype):
            raise ConfigurationError(f"dtype must name a torch dtype such as 'float32' or 'bfloat16', not {dtype!r}.")
    return {"dtype" if int(__version__.split(".")[0]) >= 5 else "torch_dtype": chosen}


def _longest(tokenizer: Any, config: Any) -> int | None:
    """Tokens that tokenizer and model both allow; None when neither sets a limit."""
    text_config = config.get_text_config() if hasattr(config, "get_text_config") else config
    limits = [getattr(tokenizer, "model_max_length", None)]
    positions = getattr(text_config, "max_position_embeddings", None)
    if positions:
        # RoBERTa's positions start after the padding position.
        offset = text_config.pad_token_id + 1 if text_config.model_type in _OFFSET and text_config.pad_token_id else 0
        limits.append(positions - offset)
    sane = [limit for limit in limits if limit is not None and limit < _SANE_LENGTH]
    return int(min(sane)) if sane else None


_OFFSET = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "xlm-roberta-xl", "data2vec-text")
