"""What a plugin has beside its index, found in its package, so that a `Case` need not name it."""

import importlib
import inspect
from typing import Any, TypeVar

from tests.cases import Case

from llama_index.ragkit import DerivedPostprocessor, NodeExtractor

T = TypeVar("T")


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


def extractors(case: Case) -> list[type[NodeExtractor]]:
    """The extractors of the index's package, those that ask an LLM first."""
    return sorted(_public(case, NodeExtractor), key=lambda kind: (not kind.needs_llm, kind.__name__))
