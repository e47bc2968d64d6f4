"""The methods that may be installed, by the names of their packages and classes; none is imported before it is used."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extraction.context import Estimate
from llama_index.ragkit.extraction.extractive_summarizer import ExtractiveSummarizer
from llama_index.ragkit.llm.cache import ExtractionCache
from llama_index.ragkit.llm.json.shapes import squeezed

__all__ = ["METHODS", "Method", "heads_of", "installed", "missing_packages"]


@dataclass(frozen=True)
class Method:
    """How an index of a package is built and asked."""

    name: str
    module: str
    index: str
    rules: str = ""  # the extractor without an LLM, if the method has extractors
    summarises: bool = False  # whether it takes a summarizer
    retriever: Mapping[str, Any] = field(default_factory=dict)  # keywords with which it returns passages
    heads: bool = False  # whether it searches the attention heads of a model, and not its vectors

    def build(
        self,
        nodes: Sequence[BaseNode],
        model: BaseEmbedding,
        llm: LLM | None,
        cache: ExtractionCache | None,
        show_progress: bool = False,
    ) -> Any:
        """The index over nodes that have the vectors of the model, with the LLM if there is one."""
        copies = [node.model_copy() for node in nodes]
        given: dict[str, Any] = {"show_progress": show_progress, **({} if llm is None else {"llm": llm})}
        if cache is not None:
            given["cache"] = cache
        return self._class()(nodes=copies, embed_model=model, **given, **self._components(llm))

    def estimate(self, nodes: Sequence[BaseNode], llm: LLM | None) -> Estimate:
        """The work of the build; reports of Graph RAG are written when questions read them, and are not among it."""
        cls, parts = self._class(), self._components(llm)
        given = nodes, parts.get("extractor"), parts.get("summarizer")
        work: Estimate = cls.llm_work(*given, llm) + cls.embedding_work(*given, 200, {})
        return work

    @property
    def package(self) -> str:
        """The name by which pip knows the package."""
        return self.module.replace("_", "-").replace(".", "-")

    def _class(self) -> Any:
        return getattr(import_module(self.module), self.index)

    def _components(self, llm: LLM | None) -> dict[str, Any]:
        if llm is not None:
            return {}
        parts = {"extractor": getattr(import_module(self.module), self.rules)()} if self.rules else {}
        return {**parts, "summarizer": ExtractiveSummarizer()} if self.summarises else parts


METHODS = (
    Method("RAPTOR", "llama_index.raptor", "RaptorIndex", summarises=True),
    Method("spRAG", "llama_index.sprag", "SpRAGIndex", "RuleContext", retriever={"mode": "chunks"}),
    Method("GEM-RAG", "llama_index.gemrag", "GEMRAGIndex", "KeyphraseQuestionExtractor", summarises=True),
    Method("HippoRAG", "llama_index.hipporag", "HippoRAGIndex", "NounPhraseExtractor"),
    Method("Graph RAG", "llama_index.graphrag", "GraphRAGIndex", "CooccurrenceExtractor", summarises=True),
    Method("PG-RAG", "llama_index.pgrag", "PGRAGIndex", "OutlineExtractor", retriever={"return_source": True}),
    Method("MRAG", "llama_index.mrag", "MRAGIndex", heads=True),
)


def heads_of(model: BaseEmbedding) -> BaseEmbedding:
    """The attention heads of a local model of Hugging Face; the model itself where it shows none.

    Its prefixes, longest text and device stay as they are.
    """
    if model.class_name() != "HuggingFaceEmbedding":
        return model
    settings = {
        name: value
        for name in ("query_instruction", "text_instruction", "max_length")
        if (value := getattr(model, name, None)) is not None
    }
    found: BaseEmbedding = import_module("llama_index.mrag").MultiHeadEmbedding(
        model.model_name, device=getattr(model, "_device", None), **settings
    )
    return found


def missing_packages() -> list[str]:
    """The packages of the methods that are not installed."""
    return [method.package for method in METHODS if find_spec(method.module) is None]


def installed(names: Sequence[str] | None = None) -> list[Method]:
    """The installed methods, or those of some names; `ConfigurationError` if one is unknown or not installed."""
    found = {method.name: method for method in METHODS if find_spec(method.module) is not None}
    if names is None:
        return list(found.values())
    names = [names] if isinstance(names, str) else list(names)
    known = {squeezed(name): method for name, method in found.items()}
    missing = [name for name in names if squeezed(name) not in known]
    if missing:
        raise ConfigurationError(
            f"Unknown or not installed: {', '.join(missing)}. Installed: {', '.join(found) or 'none'}."
        )
    return [known[name] for name in dict.fromkeys(map(squeezed, names))]
