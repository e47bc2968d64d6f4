"""An answer without an LLM: the sentences of the retrieved nodes that are nearest to the question.

A LlamaIndex response synthesizer, so that the query engine, its sources and its events work as usual. An LLM writes
better answers; this class quotes what was found.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llama_index.core import Settings
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.response_synthesizers import BaseSynthesizer

from llama_index.ragkit.text.statements import sentences_of_prose


class ExtractedAnswer(BaseSynthesizer):
    """Answers with `sentences` sentences, the nearest first."""

    def __init__(self, sentences: int = 2) -> None:
        super().__init__()
        self._sentences = sentences

    def get_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """The nearest sentences of the chunks."""
        candidates = list(dict.fromkeys(s for chunk in text_chunks for s in sentences_of_prose(chunk)))
        if not candidates:
            return "No results found."
        vectors = np.array(Settings.embed_model.get_text_embedding_batch(candidates))
        question = np.array(Settings.embed_model.get_query_embedding(query_str))
        scores = vectors @ question / np.linalg.norm(vectors, axis=1)
        return " ".join(candidates[i] for i in np.argsort(-scores)[: self._sentences])

    async def aget_response(self, query_str: str, text_chunks: Sequence[str], **kwargs: Any) -> str:
        """As :meth:`get_response`."""
        return self.get_response(query_str, text_chunks, **kwargs)

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts: PromptDictType) -> None:
        """No prompts to update."""
