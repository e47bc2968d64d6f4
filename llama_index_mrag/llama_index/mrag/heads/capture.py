"""Capture of the attention heads of a Hugging Face text model in an ordinary batched forward pass.

The attention of a layer ends in a product with an output projection. The *input* of that projection is the
concatenation of the outputs of the query heads, one slice per head:

    attention(x) = concat(head_1(x), ..., head_H(x)) W_o (+ b)

Those slices, at one token or averaged over the tokens, are the vectors of Multi-Head RAG (Besta et al. 2024, arXiv
2406.05085, section 2.2). A forward *pre*-hook on the projection captures them; masks, positions, attention kernels and
grouped keys are left to the model. The pass is stopped at the last of the chosen projections, since nothing after it is
needed for the heads; for the model's own embedding it is completed. With grouped-query attention there is one slice per
query head, although groups of them share keys and values.

The length of a slice is the projection's input divided by the number of heads: in Qwen3 and Gemma it is not
the hidden size divided by the number of heads.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import torch

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["HeadCapture", "Pooling", "pool"]

Pooling = Literal["last", "cls", "mean"]

# Suffixes of the module names of attention output projections.
PROJECTIONS = (
    "self_attn.o_proj",  # Llama, Mistral, Qwen, Gemma, Phi-3, OLMo, Granite, ...
    "attention.output.dense",  # BERT, RoBERTa, XLM-R, ELECTRA, DeBERTa, ...
    "attn.Wo",  # ModernBERT
    "attn.c_proj",  # GPT-2
    "attn.attention.out_proj",  # GPT-Neo
    "attn.out_proj",  # GPT-J
    "self_attn.out_proj",  # OPT, BART
    "attention.dense",  # GPT-NeoX
    "self_attention.dense",  # BLOOM, Falcon
    "self_attn.dense",  # Phi-2
    "attention.out_lin",  # DistilBERT
    "attention.attn.o",  # MPNet
    "SelfAttention.o",  # T5 encoders
)


class _AllCapturedError(Exception):
    """Stops a forward pass after the last chosen projection."""


class HeadCapture:
    """Hooks on the chosen layers of a model that capture the head vectors of a batch.

    Parameters
    ----------
    model : a Hugging Face base model; of an encoder-decoder model, the encoder
    layers, projection : see :class:`~llama_index.mrag.MultiHeadEmbedding`

    Attributes
    ----------
    num_heads : query heads per layer
    head_dim : numbers per head

    Raises
    ------
    ConfigurationError
        If the model has no such projection or layer, or its layers differ in shape.
    """

    def __init__(self, model: torch.nn.Module, layers: Sequence[int], projection: str | None = None) -> None:
        self._model = model
        found = _projections(model, projection)
        wrong = [layer for layer in layers if not -len(found) <= layer < len(found)]
        if wrong or not layers:
            raise ConfigurationError(
                f"layers must be some of {-len(found)} to {len(found) - 1}, as the model has {len(found)} layers with "
                f"attention, not {list(layers)}."
            )
        chosen = [found[layer] for layer in layers]
        config: Any = model.config
        config = config.get_text_config() if hasattr(config, "get_text_config") else config
        self.num_heads = int(config.num_attention_heads)
        widths = sorted({_in_features(module) for module in chosen})
        if len(widths) > 1 or widths[0] % self.num_heads:
            raise ConfigurationError(
                f"The output projections of layers {list(layers)} have {widths} inputs, which cannot be divided into "
                f"{self.num_heads} heads per layer."
            )
        self.head_dim = widths[0] // self.num_heads
        # One batch per thread: LlamaIndex embeds several batches concurrently in threads.
        self._captured = threading.local()
        self._places = len(chosen)
        for place, module in enumerate(chosen):
            module.register_forward_pre_hook(self._hook(place))

    def _hook(self, place: int) -> Callable[[torch.nn.Module, tuple[Any, ...]], None]:
        def capture(module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
            captured = getattr(self._captured, "batch", None)
            if captured is None:
                return
            captured[place] = inputs[0]
            if len(captured) == self._places and not self._captured.whole:
                raise _AllCapturedError

        return capture

    def heads(
        self, batch: dict[str, torch.Tensor], pooling: Pooling, own_pooling: Pooling | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Head vectors of a padded batch, and the model's own embeddings, from one pass.

        Parameters
        ----------
        batch : `input_ids` and `attention_mask`, each (batch, tokens), and other inputs of the model
        own_pooling : how the last hidden states become the model's own embedding; None to leave it out

        Returns
        -------
        heads : shape (batch, layers * heads, head_dim), float32
        own : shape (batch, hidden size), float32, of any norm; None without `own_pooling`
        """
        captured: dict[int, torch.Tensor] = {}
        self._captured.batch, self._captured.whole = captured, own_pooling is not None
        output: Any = None
        try:
            with torch.inference_mode(), suppress(_AllCapturedError):
                output = self._model(**batch)
        finally:
            self._captured.batch = None
        mask = batch["attention_mask"].bool()
        pooled = [pool(_padded(captured[place], mask), mask, pooling) for place in range(self._places)]
        own = None if own_pooling is None else pool(_padded(output.last_hidden_state, mask), mask, own_pooling)
        return torch.stack(pooled, dim=1).reshape(len(mask), -1, self.head_dim), own


def pool(tokens: torch.Tensor, mask: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """One vector per text, float32, shape (batch, width), of tokens, shape (batch, tokens, width).

    `mask` is true at real tokens, at least one per row; padding may be on either side. "last" and "cls" take the last
    and the first real token.
    """
    if pooling == "mean":
        weights = mask.to(tokens.device, torch.float32)
        total = torch.einsum("btw,bt->bw", tokens.float().masked_fill(~mask[..., None], 0.0), weights)
        return total / weights.sum(1, keepdim=True)
    places = torch.arange(mask.shape[1], device=mask.device)
    chosen = (mask * places).argmax(1) if pooling == "last" else mask.int().argmax(1)
    return tokens[torch.arange(len(tokens), device=tokens.device), chosen.to(tokens.device)].float()


def _padded(tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Restore the padding for models that compute without it and have all real tokens in one row."""
    if tokens.shape[:2] == mask.shape:
        return tokens
    flat = tokens.reshape(-1, tokens.shape[-1])
    if len(flat) == mask.numel():
        return flat.reshape(*mask.shape, -1)
    out = flat.new_zeros((*mask.shape, flat.shape[-1]))
    out[mask] = flat
    return out


def _projections(model: torch.nn.Module, projection: str | None) -> list[torch.nn.Module]:
    suffixes = (projection,) if projection is not None else PROJECTIONS
    modules = list(model.named_modules())
    for suffix in suffixes:
        found = [module for name, module in modules if f".{name}".endswith(f".{suffix}")]
        if found:
            return found
    raise ConfigurationError(
        f"{type(model).__name__} has no module called {' or '.join(suffixes)}: pass projection=, the suffix of the "
        "names of its attention output projections in model.named_modules()."
    )


def _in_features(module: Any) -> int:
    # GPT-2's Conv1D stores its weight transposed, and calls its input size nx.
    width = getattr(module, "in_features", None) or module.weight.shape[0]
    return int(width)
