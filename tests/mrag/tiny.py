"""Tiny random Hugging Face models in folders, as a hub would give them, with a tokenizer of whole words."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer, models, pre_tokenizers, processors

if TYPE_CHECKING:  # importing it takes seconds, in each process that collects tests
    import torch

WORDS = ["the", "a", "lamp", "light", "keeper", "sea", "ship", "storm", "bell", "rope", "tower", "cake", "fiddle"]
WORDS += ["star", "ice", "of", "in", "and", "who", "what"]
SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
}
GROUPED = {**SMALL, "num_key_value_heads": 2, "max_position_embeddings": 64}

# name -> (class of the config, its options, name of the attention module of layer i, output projection in it)
MODELS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "llama": ("LlamaConfig", GROUPED, "layers.{}.self_attn", "o_proj"),
    "mistral": ("MistralConfig", {**GROUPED, "sliding_window": None}, "layers.{}.self_attn", "o_proj"),
    # 4 heads of 16 where 32 / 4 would be 8.
    "qwen3": ("Qwen3Config", {**GROUPED, "head_dim": 16}, "layers.{}.self_attn", "o_proj"),
    "gpt2": (
        "GPT2Config",
        {"vocab_size": 64, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 64},
        "h.{}.attn",
        "c_proj",
    ),
    "opt": (
        "OPTConfig",
        {
            "vocab_size": 64,
            "hidden_size": 32,
            "ffn_dim": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "word_embed_proj_dim": 32,
            "max_position_embeddings": 64,
            "pad_token_id": 0,
        },
        "decoder.layers.{}.self_attn",
        "out_proj",
    ),
    "bart": (
        "BartConfig",
        {
            "vocab_size": 64,
            "d_model": 32,
            "encoder_layers": 3,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "max_position_embeddings": 64,
        },
        "layers.{}.self_attn",
        "out_proj",
    ),
    "bert": ("BertConfig", {**SMALL, "max_position_embeddings": 64}, "encoder.layer.{}.attention", "output.dense"),
    "modernbert": (
        "ModernBertConfig",
        {**SMALL, "max_position_embeddings": 64, "pad_token_id": 0, "reference_compile": False},
        "layers.{}.attn",
        "Wo",
    ),
}


def make(name: str, folder: Path, *, marks: str = "") -> Path:
    """A folder with a random model and a tokenizer.

    `marks` says which special tokens the tokenizer puts around a text: "" none, "bert" both, "end" the end token.
    """
    import torch
    import transformers

    config, options, _, _ = MODELS[name]
    torch.manual_seed(7)
    transformers.AutoModel.from_config(getattr(transformers, config)(**options)).save_pretrained(folder)
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "</s>"]
    vocabulary = {word: i for i, word in enumerate([*specials, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ids = {special: vocabulary[special] for special in specials}
    if marks:
        single = "[CLS] $A [SEP]" if marks == "bert" else "$A </s>"
        tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=list(ids.items()))
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
        eos_token="</s>", model_max_length=64,
    )  # fmt: skip
    fast.save_pretrained(folder)
    return folder


def attention_outputs(name: str, model: Any, ids: list[int], layer: int) -> "tuple[torch.Tensor, torch.nn.Module]":
    """What the attention of a layer gives for one text, (tokens, hidden), and its output projection."""
    import torch

    _, _, path, projection = MODELS[name]
    attention = model.get_submodule(path.format(layer))
    dense = attention.get_submodule(projection)
    caught: list[torch.Tensor] = []
    # The projection's output is the attention's, but for BERT's sum with what came in.
    hook = dense.register_forward_hook(lambda module, inputs, output: caught.append(output))
    with torch.no_grad():
        model(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long))
    hook.remove()
    return caught[0].reshape(len(ids), -1), dense


def project(dense: Any, flat: "torch.Tensor") -> "torch.Tensor":
    """The output projection by hand, from its weights alone."""
    weight = dense.weight if hasattr(dense, "in_features") else dense.weight.T  # GPT-2's Conv1D is transposed
    out = flat @ weight.T
    return out if dense.bias is None else out + dense.bias
