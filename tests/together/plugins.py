"""What a plugin has beside its index, found in its package, so that a `Case` need not name it."""

import importlib
import inspect
from collections.abc import Sequence
from typing import Any, TypeVar

from llama_index.core import StorageContext
from llama_index.core.schema import TextNode
from tests.cases import CASES, Case

from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, LLMSummarizer, NodeExtractor
from llama_index.ragkit.llm.completion import RetryPolicy

T = TypeVar("T")
ONCE = RetryPolicy(max_attempts=1, min_wait=0.0)


def _public(case: Case, base: type[T]) -> list[type[T]]:
    package = importlib.import_module(".".join(case.cls.__module__.split(".")[:2]))
    names = getattr(package, "__all__", [])
    found = [vars(package)[name] for name in names if inspect.isclass(vars(package)[name])]
    return [kind for kind in found if issubclass(kind, base) and not inspect.isabstract(kind)]


def has_postprocessor(case: Case) -> bool:
    return bool(_public(case, DerivedPostprocessor))


def postprocessor(case: Case, index: Any, **kwargs: Any) -> DerivedPostprocessor:
    """The postprocessor of the index's package over an index."""
    return _public(case, DerivedPostprocessor)[0](index=index, **kwargs)


def rule_extractor(case: Case) -> NodeExtractor | None:
    """The extractor without an LLM that the case is built with; None for a method that reads nothing."""
    extractor = case.components().get("extractor")
    return extractor if isinstance(extractor, NodeExtractor) else None


def with_llm(case: Case) -> dict[str, Any]:
    """The components of the index's package that ask an LLM, each once; empty for a method that has none."""
    accepted = inspect.signature(case.cls).parameters
    asking = [kind for kind in _public(case, NodeExtractor) if kind.needs_llm is True]
    components: dict[str, Any] = {"extractor": asking[0](retry=ONCE)} if asking else {}
    if "summarizer" in accepted:
        components["summarizer"] = LLMSummarizer(retry=ONCE, min_in_text=0)
    return components


def every_index(nodes: Sequence[TextNode], context: StorageContext | None = None) -> dict[str, DerivedIndex]:
    """One index of each kind over the same nodes."""
    given = {} if context is None else {"storage_context": context}
    return {case.name: case.build(nodes, **given) for case in CASES}


def chunk_retriever(index: Any, **kwargs: Any) -> Any:
    """A retriever that gives source nodes, for a method that gives what it derived unless told otherwise."""
    accepted = inspect.signature(type(index.as_retriever())).parameters
    if "return_source" in accepted:
        kwargs["return_source"] = True
    elif "segment_headers" in accepted:
        kwargs["mode"] = "chunks"
    return index.as_retriever(**kwargs)
