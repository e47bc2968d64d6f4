"""`LLMStep`: the model, the prompts and the cache of a step of evaluation that asks a language model."""

from collections.abc import Mapping
from pathlib import Path

from llama_index.core.llms import LLM
from llama_index.core.prompts import BasePromptTemplate

from llama_index.ragkit.extraction.context import ExtractionContext
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.completion import find_llm
from llama_index.ragkit.llm.prompts import PromptHolder
from llama_index.ragkit.llm.retry import RetryPolicy

__all__ = ["LLMStep"]


class LLMStep(PromptHolder):
    """The base of readers and judges.

    Parameters
    ----------
    llm : any LlamaIndex LLM; default `Settings.llm`
    prompts : replacements for some of `default_prompts`
    cache : a cache of replies, or its path, so that a repeated experiment pays for nothing twice; None for no cache
    retry : how calls are retried [3 attempts]

    Raises
    ------
    ConfigurationError
        If a prompt is unknown or has none of its variables.
    """

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        prompts: Mapping[str, BasePromptTemplate] | None = None,
        cache: ExtractionCache | str | Path | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.prompts = dict(prompts or {})
        self.check_prompts(self.prompts)
        self._llm = llm
        self._cache = cache if cache is None or isinstance(cache, ExtractionCache) else ExtractionCache(cache)
        self._retry = retry or RetryPolicy()

    @property
    def llm(self) -> LLM:
        """The model: the one passed, or else `Settings.llm`."""
        return find_llm(self._llm)

    def context(self) -> ExtractionContext:
        """The extraction context for one answer."""
        return ExtractionContext(self.llm, self._cache, "evaluation", self._retry, prompts=self._get_prompts())
