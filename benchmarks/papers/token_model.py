"""Models that give a vector for each token, for late interaction."""

from typing import Any

from benchmarks.embedding import MINILM_TOKENS, minilm_folder
from llama_index.hipporag.text.late_interaction import TokenEncoder

__all__ = ["token_model"]


def token_model(name: str) -> TokenEncoder:
    """The tokens of MiniLM, which were not trained to be compared, for "minilm"; else a model such as ColBERT."""
    from sentence_transformers import MultiVectorEncoder

    given: dict[str, Any] = {"modules": _minilm()} if name == "minilm" else {"model_name_or_path": name}
    return MultiVectorEncoder(**given)


def _minilm() -> list[Any]:
    """The layers of the model without the projection that a new `MultiVectorEncoder` would add, which is random."""
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    name = "token_embeddings"
    layers = Transformer(str(minilm_folder()), max_seq_length=MINILM_TOKENS)
    return [layers, MultiVectorMask(), Normalize(module_input_name=name, module_output_name=name)]
