"""Whether the components that are passed to an index are of the right kind."""

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM

from llama_index.ragkit.extraction.node_extractor import NodeExtractor
from llama_index.ragkit.extraction.summarizers import Summarizer
from llama_index.ragkit.validation import check_component

__all__ = ["check_components"]

_LANGCHAIN = {"llm": "BaseLanguageModel", "embed_model": "Embeddings"}  # classes that core adapts


def check_components(method: str, given: Mapping[str, Any], *examples: Callable[[], NodeExtractor] | None) -> None:
    """Check the components among the keywords of an index.

    Parameters
    ----------
    method : that of the index
    examples : extractors of the method, for the message

    Raises
    ------
    ConfigurationError
        If one is a class, a text or another object that cannot do the work, or belongs to another method.
    """
    parts = {name: part for name, part in given.items() if part is not None}
    names = [f"{getattr(example, '__name__', example)}()" for example in examples if example is not None]
    such_as = f", such as {' or '.join(dict.fromkeys(names))}" if names else ""
    if "extractor" in parts:
        wanted = f"an extractor for {method!r}{such_as}"
        check_component("extractor", parts["extractor"], NodeExtractor, wanted, method)
    if "summarizer" in parts:
        wanted = "a summarizer, such as LLMSummarizer() or ExtractiveSummarizer()"
        check_component("summarizer", parts["summarizer"], Summarizer, wanted)
    if "vector_store" in parts:
        check_component("vector_store", parts["vector_store"], ("add", "delete", "query"), "a vector store")
    for name, kind, wanted in (
        ("llm", LLM, 'an LLM of LlamaIndex, or "default"'),
        ("embed_model", BaseEmbedding, 'an embedding model of LlamaIndex, or a text such as "local"'),
    ):
        part = parts.get(name)
        adapted = any(base.__name__ == _LANGCHAIN[name] for base in type(part).__mro__)
        if part is not None and not isinstance(part, str) and not adapted:
            check_component(name, part, kind, wanted)
