"""The keywords of indexes, retrievers and postprocessors: typed for editors and type checkers, checked at run time.

A class takes `**kwargs: Unpack[SomeKeywords]`, a `TypedDict` with the name and type of each. :func:`check_keywords`
rejects other names, and :func:`show_keywords` writes the names into the signature that `help()` shows.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, update_wrapper
from types import FunctionType, NoneType
from typing import Any, TypedDict, get_args, get_type_hints

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.chat_engine import (
    CondensePlusContextChatEngine,
    CondenseQuestionChatEngine,
    ContextChatEngine,
    SimpleChatEngine,
)
from llama_index.core.embeddings.utils import EmbedType
from llama_index.core.llms import LLM
from llama_index.core.llms.utils import LLMType
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import TransformComponent
from llama_index.core.storage.storage_context import StorageContext
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.node_extractor import NodeExtractor
from llama_index.ragkit.extraction.summarizers import Summarizer
from llama_index.ragkit.index.resources import CacheType
from llama_index.ragkit.llm.completion import Mode
from llama_index.ragkit.llm.prices import Prices
from llama_index.ragkit.llm.retry import RetryPolicy
from llama_index.ragkit.validation import Fallback, OnError, check_component, did_you_mean

__all__ = [
    "IndexKeywords",
    "LLMRetrieverKeywords",
    "PostprocessorKeywords",
    "RetrieverKeywords",
    "check_components",
    "check_keywords",
    "choose_parameters",
    "field_defaults",
    "field_names",
    "names_of",
    "show_keywords",
    "without_engine_keywords",
]

_LANGCHAIN = {"llm": "BaseLanguageModel", "embed_model": "Embeddings"}  # classes that core adapts


class IndexKeywords(TypedDict, total=False):
    """Keywords of every index, LlamaIndex's own among them; see :class:`~llama_index.ragkit.DerivedIndex`."""

    storage_context: StorageContext | None
    callback_manager: CallbackManager | None
    transformations: list[TransformComponent] | None
    show_progress: bool
    llm: LLMType | None
    embed_model: EmbedType | None
    vector_store: BasePydanticVectorStore | None
    extractor: NodeExtractor | None
    num_workers: int
    on_error: OnError
    fallback: Fallback
    cache: CacheType | None
    prices: Prices | None


class RetrieverKeywords(TypedDict, total=False):
    """Keywords of every retriever; see :class:`~llama_index.ragkit.DerivedRetriever`."""

    similarity_top_k: int
    token_budget: int | None
    filters: MetadataFilters | None
    node_ids: Sequence[str] | None
    doc_ids: Sequence[str] | None
    callback_manager: CallbackManager | None
    object_map: dict[str, Any] | None
    verbose: bool


class LLMRetrieverKeywords(RetrieverKeywords, total=False):
    """Keywords of every retriever that may call an LLM; see :class:`~llama_index.ragkit.DerivedRetriever`."""

    llm: LLMType | None
    prompts: Mapping[str, BasePromptTemplate] | None
    retry: RetryPolicy | None
    llm_mode: Mode
    same_language: bool


class PostprocessorKeywords(TypedDict, total=False):
    """Keywords of every postprocessor; see :class:`~llama_index.ragkit.DerivedPostprocessor`."""

    top_n: int | None
    token_budget: int | None
    filters: MetadataFilters | None


def check_keywords(owner: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Reject keywords that a class does not have, with a `TypeError`."""
    known = sorted(known)
    unknown = sorted(set(given) - set(known))
    if unknown:
        meant = did_you_mean(unknown, known)
        if "vector_store_query_mode" in unknown:
            meant += " vector_store_query_mode= belongs to VectorStoreIndex."
        raise TypeError(
            f"{owner} got unexpected keyword arguments: {', '.join(unknown)}.{meant} It has {', '.join(known)}."
        )


def names_of(keywords: type) -> frozenset[str]:
    """The names in a `TypedDict`, including inherited ones."""
    return frozenset(keywords.__annotations__)


@cache
def _engine_keywords() -> frozenset[str]:
    makers: list[Callable[..., Any]] = [
        RetrieverQueryEngine.from_args,
        ContextChatEngine.from_defaults,
        CondenseQuestionChatEngine.from_defaults,
        CondensePlusContextChatEngine.from_defaults,
        SimpleChatEngine.from_defaults,
    ]
    return frozenset(name for maker in makers for name in inspect.signature(maker).parameters) - {"kwargs"}


def without_engine_keywords(given: Mapping[str, Any], own: Collection[str]) -> dict[str, Any]:
    """Keywords without those of core's query and chat engines.

    `as_query_engine` and `as_chat_engine` pass all their keywords to `as_retriever` too.
    """
    return {name: value for name, value in given.items() if name in own or name not in _engine_keywords()}


def show_keywords(cls: type, methods: Mapping[str, type], defaults: Mapping[str, Any] | None = None) -> None:
    """Write keywords into the signatures of a class and its methods, for `help()` and editors.

    `methods` has the `TypedDict` of each method that takes `**kwargs`; "__init__" is the class itself. `...` stands for
    the defaults that are not given.
    """
    for name, keywords in methods.items():
        if name == "__init__":
            signature = _signature(cls.__init__, keywords, defaults or {})  # type: ignore[misc]
            cls.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
            continue
        method = inspect.getattr_static(cls, name)
        function = method.__func__ if isinstance(method, classmethod) else method
        # A copy, since all classes that inherit the function share it.
        copy = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
        update_wrapper(copy, function)
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__signature__ = _signature(function, keywords, defaults or {})  # type: ignore[attr-defined]
        del copy.__wrapped__  # type: ignore[attr-defined]
        setattr(cls, name, classmethod(copy) if isinstance(method, classmethod) else copy)


def _signature(function: Callable[..., Any], keywords: type, defaults: Mapping[str, Any]) -> inspect.Signature:
    signature = inspect.signature(function)
    plain = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    taken = {parameter.name for parameter in plain}
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name, ...), annotation=hint)
        for name, hint in keywords.__annotations__.items()
        if name not in taken
    ]
    return signature.replace(parameters=[*plain, *named])


def check_components(method: str, given: Mapping[str, Any], *examples: Callable[[], NodeExtractor] | None) -> None:
    """Check the components among the keywords of an index; `examples` are extractors of the method, for the message.

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


def field_names(config_cls: type[Any]) -> tuple[str, ...]:
    """The parameters of a config class, a dataclass."""
    return tuple(field.name for field in fields(config_cls))


def field_defaults(config_cls: type[Any]) -> dict[str, Any]:
    """The defaults of the parameters of a config class."""
    return {field.name: field.default for field in fields(config_cls) if field.default is not MISSING}


def choose_parameters(
    config_cls: type[Any], stored: Mapping[str, Any], given: Mapping[str, Any], *, fixed: bool
) -> Any:
    """The parameters of an index: those passed, else those it was built with, else the defaults.

    Parameters
    ----------
    stored : what the index was built with; empty for a new one
    given : the user's values; None stands for no value, unless the parameter can be None
    fixed : whether stored parameters cannot be changed

    Raises
    ------
    ConfigurationError
        If a fixed parameter is passed with a value other than that of the build, or a value is out of range.
    """
    names = field_names(config_cls)
    types = get_type_hints(config_cls)
    optional = {name for name in names if NoneType in get_args(types[name])}
    before = {name: stored[name] for name in names if name in stored}
    for field in fields(config_cls):
        if is_dataclass(field.default):  # its values were parameters of their own in earlier versions
            kind: type[Any] = type(field.default)
            values = {**stored, **stored.get(field.name, {})}
            before[field.name] = kind(**{name: values[name] for name in field_names(kind) if name in values})
    chosen = {name: _plain(given[name]) for name in names if given.get(name) is not None}
    chosen.update({name: None for name in optional if name in given and given[name] is None})
    config = config_cls(**{**before, **chosen})
    changed = [name for name in chosen if fixed and name in before and before[name] != chosen[name]]
    if changed:
        differences = ", ".join(f"{name}={before[name]!r}, not {chosen[name]!r}" for name in changed)
        raise ConfigurationError(f"The index was built with {differences}. Leave it out, or build a new index.")
    return config


def _plain(value: Any) -> Any:
    """A NumPy number converted to Python, since parameters are stored as JSON."""
    return value.item() if hasattr(value, "item") else value
