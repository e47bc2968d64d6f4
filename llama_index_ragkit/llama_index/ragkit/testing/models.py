"""Models for tests: deterministic, without a network, and with a record of every call."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.llms.callbacks import llm_completion_callback

from llama_index.ragkit.validation import Count

__all__ = ["HashEmbedding", "ScriptedLLM"]


class HashEmbedding(BaseEmbedding):
    """Bags of hashed words as vectors of unit length: texts that share words are near each other.

    A text has the same vector in every process, whatever PYTHONHASHSEED is.

    Parameters
    ----------
    dim : length of the vectors, at least 1; beyond 256 the further numbers are equal [32]
    salt : models with different salts embed the same text differently [""]
    fail_on : texts that contain it raise a RuntimeError; "" for none [""]
    """

    dim: Count = Field(default=32, description="Length of the vectors.")
    salt: str = Field(default="", description="What is hashed with every word.")
    fail_on: str = Field(default="", description="Texts that contain it raise an error.")
    _texts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("model_name", "hash")
        super().__init__(**kwargs)

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return cls.__name__

    @property
    def texts(self) -> list[str]:
        """Every text and question embedded so far; clear the list to count anew."""
        return self._texts

    def vector(self, text: str) -> list[float]:
        """The vector of a text, without a record of the call."""
        v = np.full(self.dim, 1e-3)
        for word in text.lower().split():
            digest = hashlib.sha256((self.salt + word.strip(".,!?")).encode()).digest()
            v[digest[0] % self.dim] += 1.0
        return list(v / np.linalg.norm(v))

    def _get_text_embedding(self, text: str) -> list[float]:
        if self.fail_on and self.fail_on in text:
            raise RuntimeError(f"HashEmbedding fails at texts that contain {self.fail_on!r}")
        self._texts.append(text)
        return self.vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embedding(text)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


class ScriptedLLM(CustomLLM):
    """An LLM whose replies are a function of the prompt. Chat messages reach it as one prompt.

    Parameters
    ----------
    script : from prompt to reply, or one reply for every prompt
    """

    _script: Callable[[str], str] = PrivateAttr()
    _prompts: list[str] = PrivateAttr(default_factory=list)

    def __init__(self, script: Callable[[str], str] | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._script = script if callable(script) else lambda _: script

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return cls.__name__

    @property
    def metadata(self) -> LLMMetadata:
        """A completion model without function calling, with room for long prompts."""
        return LLMMetadata(model_name="scripted", context_window=100_000, num_output=256)

    @property
    def prompts(self) -> list[str]:
        """Every prompt so far; clear the list to count anew."""
        return self._prompts

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The reply to a prompt."""
        self._prompts.append(prompt)
        return CompletionResponse(text=self._script(prompt))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """The reply to a prompt, character by character."""
        self._prompts.append(prompt)
        reply = self._script(prompt)

        def pieces() -> CompletionResponseGen:
            for end, piece in enumerate(reply, start=1):
                yield CompletionResponse(text=reply[:end], delta=piece)

        return pieces()
