"""`SpRAGIndex`: chunks with the context of their documents (SuperpoweredAI 2024: spRAG, later dsRAG)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from llama_index.core.schema import BaseNode, Document, IndexNode
from typing_extensions import Self, Unpack

from llama_index.ragkit import DerivedIndex, DerivedStruct, LastQuery, NodeExtractor, Selection, register_index
from llama_index.ragkit.html import Page
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.storage.derived_nodes import texts_of
from llama_index.ragkit.validation import check_choice
from llama_index.sprag.builder import PLAIN, ContextBuilder
from llama_index.sprag.config import SpRAGConfig, Version
from llama_index.sprag.extraction.auto_context import AutoContext
from llama_index.sprag.extraction.first_generation import FirstGenerationContext
from llama_index.sprag.extraction.rule_context import RuleContext
from llama_index.sprag.keywords import SpRAGKeywords, SpRAGRetrieverKeywords
from llama_index.sprag.page import chunks_to_show, documents_to_show, page_of
from llama_index.sprag.retriever import SpRAGRetriever
from llama_index.sprag.state import SpRAGState

__all__ = ["SpRAGIndex", "SpRAGStruct"]


class SpRAGStruct(DerivedStruct):
    """The struct of a :class:`SpRAGIndex`."""

    type_name = "llama_index.sprag"


class SpRAGIndex(DerivedIndex[SpRAGConfig, SpRAGState]):
    """Chunks with headers that say what their documents and sections are about.

    A header precedes a chunk when it is embedded, searched by words or reranked; the nodes are unchanged. Questions are
    answered by relevant segments: runs of neighbouring chunks. The method is for long documents whose chunks say little
    on their own. Use a splitter without overlap.

    A chunk is embedded once, with its header if it has one, and again when its header changes. With `context_weight`
    below 1, the first question that needs them also embeds chunks without their headers. With a `vector_store=` of your
    own, which gets the chunks without headers, both are embedded at once.

    Deviations from the published code are listed in the documentation of the package.

    Parameters
    ----------
    extractor : describes the documents; default :class:`AutoContext`, with one LLM call per document.
        :class:`RuleContext` needs no LLM
    header : wording of the header before a chunk: `"short"` or `"published"` ["short"]
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Raises
    ------
    ConfigurationError
        If a parameter is invalid, or differs from that of a loaded index.
    """

    index_struct_cls = SpRAGStruct
    method: ClassVar[str] = "sprag"
    space_names: ClassVar[tuple[str, ...]] = ("chunks", PLAIN)
    config_cls = SpRAGConfig
    config_is_fixed = True
    builder_cls = ContextBuilder
    builder: ContextBuilder
    retriever_cls = SpRAGRetriever
    keywords = SpRAGKeywords
    default_extractor = AutoContext
    rule_extractor = RuleContext

    @classmethod
    def _components(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        chosen = super()._components(given)
        if "fallback" in chosen:  # it must find the documents that the extractor finds
            chosen["fallback"] = _rules_like(chosen["extractor"])
        return chosen

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self,
            nodes: Sequence[BaseNode] | None = None,
            objects: Sequence[IndexNode] | None = None,
            index_struct: DerivedStruct | None = None,
            **kwargs: Unpack[SpRAGKeywords],
        ) -> None: ...

        @classmethod
        def from_documents(cls, documents: Sequence[Document], **kwargs: Unpack[SpRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        @classmethod
        async def afrom_documents(cls, documents: Sequence[Document], **kwargs: Unpack[SpRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        def as_retriever(self, **kwargs: Unpack[SpRAGRetrieverKeywords]) -> SpRAGRetriever: ...  # type: ignore[override]  # noqa: D102

    @staticmethod
    def paper(version: Version = "code") -> dict[str, Any]:
        """A published index as keywords: `SpRAGIndex(nodes, **SpRAGIndex.paper())`.

        Parameters
        ----------
        version : "code" for dsRAG 0.2.0: an LLM writes title and summary, and divides the documents into sections;
            "article" for the first spRAG: a sentence or two by an LLM, and the name of the file. Headers have the
            published wording

        Raises
        ------
        ConfigurationError
            If there is no such version.
        """
        check_choice("version", version, get_args(Version))
        code = version == "code"
        extractor = AutoContext(sections="llm", min_in_text=0) if code else FirstGenerationContext(min_in_text=0)
        return {"extractor": extractor, "header": "published"}

    def rebuild(self) -> int:
        """Describe all documents again, with their salient terms; unchanged texts cost no LLM call.

        Returns
        -------
        The number of documents that are not described.
        """
        run_steps(self.writer.revise(self.builder.rebuild))
        return self._undescribed

    async def arebuild(self) -> int:
        """As :meth:`rebuild`."""
        await arun_steps(self.writer.revise(self.builder.rebuild))
        return self._undescribed

    @property
    def _undescribed(self) -> int:
        return int(self.storage.struct.counters.get("failed", 0))

    def header_of(self, node_id: str) -> str:
        """The header before a chunk, "" if it has none."""
        state = run_steps(self.writer.recovered()).state
        return run_steps(self.builder.with_headers(state, [node_id])).header(node_id)

    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        state = self.state if query is None else query.found.state
        keys = state.documents if state.is_whole else documents_to_show(state, query)
        state = run_steps(self.builder.with_documents(state, keys, selection)).only()
        texts = run_steps(texts_of(chunks_to_show(state, query), self.storage.get_node))
        counters = self.storage.struct.counters
        if not selection.is_whole:  # stores do not count the chunks that pass
            counters = state.counters() if state.is_whole else {}
        return page_of(state, texts, query, counters)


def _rules_like(extractor: NodeExtractor) -> RuleContext:
    """Rules that group chunks into documents as an extractor does, and find sections if it does."""
    given: dict[str, Any] = {"group_by": getattr(extractor, "group_by", None)}
    if isinstance(extractor, AutoContext):
        given |= {"page_opening": extractor.page_opening, "sections": extractor.sections != "none"}
    return RuleContext(**given)


register_index(SpRAGIndex)
