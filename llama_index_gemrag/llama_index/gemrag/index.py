"""`GEMRAGIndex`: the index of graphical eigen memories (Rappazzo et al., 2024, arXiv 2409.15566)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np
from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, Document, IndexNode, TextNode
from typing_extensions import Self, Unpack

from llama_index.gemrag.builder import GEMRAGBuilder
from llama_index.gemrag.config import PAPER_MEMORY, MemoryConfig, ThemeMethod
from llama_index.gemrag.extraction.question_extractor import KeyphraseQuestionExtractor, UtilityQuestionExtractor
from llama_index.gemrag.graph.memory_graph import strongest_edges, unit_rows
from llama_index.gemrag.group_reader import GroupReader
from llama_index.gemrag.keywords import GEMRAGKeywords, GEMRAGRetrieverKeywords
from llama_index.gemrag.memory_rows import MemoryRows
from llama_index.gemrag.page import page_of
from llama_index.gemrag.question_writer import question_id
from llama_index.gemrag.retriever import GEMRAGRetriever
from llama_index.gemrag.state import GEMRAGState
from llama_index.gemrag.themes.eigenthemes import NODES_PER_THEME, Spectrum, spectrum_of
from llama_index.ragkit import (
    DerivedIndex,
    DerivedStruct,
    Estimate,
    ExtractiveSummarizer,
    LastQuery,
    LLMSummarizer,
    NodeExtractor,
    Selection,
    Steps,
    Summarizer,
    register_index,
)
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extras import need
from llama_index.ragkit.html import Page
from llama_index.ragkit.index.summaries import SummaryMethods
from llama_index.ragkit.llm.completion import known_llm
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.derived_nodes import fetch_derived, texts_of
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.validation import check_choice

__all__ = ["GEMRAGIndex", "GEMRAGStruct"]


class GEMRAGStruct(DerivedStruct):
    """The struct of a :class:`GEMRAGIndex`."""

    type_name = "llama_index.gemrag"


class GEMRAGIndex(SummaryMethods, DerivedIndex[MemoryConfig, GEMRAGState]):
    """An index of chunks with the questions that they answer, a memory graph over them, and summaries of its themes.

    A prompt retrieves chunks by their text and by the questions they were tagged with. The themes cover the corpus as a
    whole: each summarises the chunks with the largest components in a leading eigenvector of the graph.

    Parameters of the memory are stored with the index; values that you pass when you load it replace them. The
    documentation of the package lists the deviations from the paper.

    `estimate` also takes `themes_per_document`, the assumed number of themes, which is only known after a build, and
    `theme_size`, the chunks in the summary of one [2, 10]. Each chunk needs one call for its questions, each theme one
    for its summary and one for its questions.

    Parameters
    ----------
    extractor : generates the questions that a chunk or a theme answers; default
        :class:`~llama_index.gemrag.UtilityQuestionExtractor`.
        :class:`~llama_index.gemrag.KeyphraseQuestionExtractor` needs no LLM; `num_questions=0` on either builds
        without questions
    summarizer : writes the themes; default :class:`~llama_index.ragkit.LLMSummarizer`.
        :class:`~llama_index.ragkit.ExtractiveSummarizer` needs no LLM
    group_by : which chunks share a graph: a metadata key, "ref_doc_id" for one graph per document, None for one graph
        of all chunks. Documents of fewer than three chunks share one graph, unless `paper` is set ["ref_doc_id", as in
        the paper]
    themes : "spectral", or "k-means", the baseline that the paper compares with ["spectral"]
    num_themes : themes per group; None for the largest relative drop of the spectrum; 0 builds none
    max_themes : largest number of themes per group if chosen by the spectrum [32]. A group has at most a third as many
        themes as chunks
    theme_size, min_component : largest number of members of a theme, and the least component of a member relative to
        the largest [10, 0.25]
    blend : weight of the question in a blended vector of question and text, in the graph [0.5, as published]
    max_theme_tokens : largest number of input tokens of a summary; the weakest members are omitted [8192]
    summary_tokens : requested length of a summary [200]
    refresh_share : share of changed chunks in a group above which its spectrum is recomputed; 0 recomputes it at every
        write, 1 only when necessary [0.1]
    question_role : how questions are embedded: "text" in batches like chunks, "query" one by one like prompts, for
        models that distinguish the two ["text"]
    summaries : when themes are recomputed after a delete. "deferred": at the next insert or by
        :meth:`write_summaries`, so that a delete needs no LLM; "eager": as part of the delete. Themes with a deleted
        member are always removed at once ["deferred"]
    paper : whether to follow the paper literally: two components including the first eigenvector, by the magnitude of
        their eigenvalues, no rotation, no component threshold, S - I, sums over questions, summaries of the length of a
        chunk; retrievers then score by the blended vectors only [False]
    published : which eigenvectors give themes, see :class:`~llama_index.gemrag.PublishedThemes`
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    index_struct_cls = GEMRAGStruct
    method: ClassVar[str] = "gemrag"
    space_names: ClassVar[tuple[str, ...]] = GEMRAGBuilder.spaces
    config_cls = MemoryConfig
    builder_cls = GEMRAGBuilder
    builder: GEMRAGBuilder
    retriever_cls = GEMRAGRetriever
    keywords = GEMRAGKeywords
    default_extractor = UtilityQuestionExtractor
    default_summarizer = LLMSummarizer
    rule_summarizer = ExtractiveSummarizer
    rule_extractor = KeyphraseQuestionExtractor
    assumed: ClassVar[Mapping[str, float]] = MappingProxyType({"themes_per_document": 2, "theme_size": 10})

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self,
            nodes: Sequence[BaseNode] | None = None,
            objects: Sequence[IndexNode] | None = None,
            index_struct: DerivedStruct | None = None,
            **kwargs: Unpack[GEMRAGKeywords],
        ) -> None: ...

        @classmethod
        def from_documents(cls, documents: Sequence[Document], **kwargs: Unpack[GEMRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        @classmethod
        async def afrom_documents(cls, documents: Sequence[Document], **kwargs: Unpack[GEMRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        def as_retriever(self, **kwargs: Unpack[GEMRAGRetrieverKeywords]) -> GEMRAGRetriever: ...  # type: ignore[override]  # noqa: D102

    @classmethod
    def _parameters(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if not given.get("paper"):
            return given
        # None is a valid value only for `group_by`.
        chosen = {name: value for name, value in given.items() if value is not None or name == "group_by"}
        return {**PAPER_MEMORY, **chosen}

    @staticmethod
    def paper(themes: ThemeMethod = "spectral") -> dict[str, Any]:
        """The paper's memory as keywords: `GEMRAGIndex(nodes, **GEMRAGIndex.paper())`.

        The default extractor is the paper's, an LLM that writes utility questions, but it drops questions that share
        no words with their chunk, unless you pass `extractor=UtilityQuestionExtractor(min_in_text=0)`.

        Parameters
        ----------
        themes : "k-means" for the baseline that the paper compares with

        Raises
        ------
        ConfigurationError
            If `themes` is neither "spectral" nor "k-means".
        """
        check_choice("themes", themes, get_args(ThemeMethod))
        return {"paper": True, "themes": themes, **PAPER_MEMORY}

    # -- the memory ---------------------------------------------------------------------------------

    def spectrum(self, group: Any = "") -> Spectrum:
        """Eigenvalues of a memory graph, the number of themes that they indicate, and how distinct the themes are.

        Parameters
        ----------
        group : a document id, or another value of `group_by`; by default all chunks in one graph

        Raises
        ------
        ConfigurationError
            If no chunk belongs to that group.
        """
        return run_steps(self.reader.in_one_generation(partial(self._spectrum, group)))

    def _spectrum(self, group: Any) -> Steps[Spectrum]:
        reader = GroupReader(self.storage, MemoryRows(self.storage), self.config)
        rows = yield from self.storage.space().described()
        chunks: Sequence[str] = rows.ids
        if group != "":
            column, codes = rows.column(self.config.group_by or "ref_doc_id")
            chunks = [rows.ids[row] for row in np.flatnonzero(codes == column.code_of.get(group, -1))]
            if not chunks:
                shown = ", ".join(map(repr, column.values[:5]))
                raise ConfigurationError(f"No chunk belongs to the group {group!r}; groups are {shown}, ...")
        graph = yield from reader.graph((yield from reader.in_order(chunks)))
        return spectrum_of(graph, self.config.max_themes)

    @property
    def themes(self) -> dict[str, list[str]]:
        """The themes: theme id -> ids of its members, strongest first."""
        themes = run_steps(self.reader.in_one_generation(MemoryRows(self.storage).all_themes))
        return {name: list(theme.members) for name, theme in themes.items()}

    def questions_of(self, node_id: str) -> list[str]:
        """The questions that a chunk or a theme was tagged with, in alphabetical order."""
        state = self.state
        layers = (state.chunk_layer, state.theme_layer)
        embedded = {text for layer in layers for owner, text in layer.questions_with_owners() if owner == node_id}
        return sorted(embedded or self._plain_questions(state, [node_id]).get(node_id, []))

    def _plain_questions(self, state: GEMRAGState, nodes: Sequence[str]) -> dict[str, list[str]]:
        """The questions of nodes that are not embedded."""
        if len(state.chunk_layer.questions) or len(state.theme_layer.questions):
            return {}
        return run_steps(self.reader.in_one_generation(partial(self.builder.questions, nodes)))

    def to_networkx(self, neighbours: int = 5) -> Any:
        """The memory as a `networkx.Graph` of chunks, themes and questions.

        Nodes are named by their ids and have `kind` ("chunk", "theme" or "question") and `text`; a chunk also has
        `document`. Edges have `kind` and `weight`. A "member" edge joins a theme and a chunk; its weight is the
        component. An "asks" edge joins a question and its node; its weight is their cosine, or 1 for a question that is
        not embedded. A "similar" edge joins two chunks, with the weight of the memory graph.

        Parameters
        ----------
        neighbours : number of strongest edges per chunk to include; 0 for none

        Raises
        ------
        ImportError
            Without the extra `networkx`.
        """
        state = self.state
        plain = self._plain_questions(state, [*state.chunks.ids, *state.written])
        return _to_networkx(state, self._texts(state), plain, self.config.blend, neighbours)

    def _page(self, query: LastQuery | None, selection: Selection, max_chunks: int = 1500) -> Page:
        """The page of the memory; a large memory is shown in part: the answer first, then the members of themes."""
        state = self.state if query is None or query.found.state is None else query.found.state
        state = state.only(selection.allowed(state.chunks))
        plain = self._plain_questions(state, [*state.chunks.ids, *state.written])
        return page_of(state, self._texts(state), plain, self.config.blend, query, max_chunks)

    def _texts(self, state: GEMRAGState) -> dict[str, str]:
        """The texts of existing chunks and of themes."""
        fetch = fetch_derived(state.written, self.storage.get_node)
        return run_steps(texts_of([*state.chunks.ids, *state.written], fetch))

    @classmethod
    def embedding_work(
        cls,
        nodes: Sequence[BaseNode],
        extractor: NodeExtractor | None,
        summarizer: Summarizer | None,
        sample: int,
        parameters: Mapping[str, Any],
    ) -> Estimate:
        """As for every index; questions of an LLM are embedded, and so are the key phrases used if the LLM fails."""
        reads = extractor or UtilityQuestionExtractor()
        if reads.needs_llm:
            asked = getattr(reads, "num_questions", KeyphraseQuestionExtractor().num_questions)
            extractor = KeyphraseQuestionExtractor(num_questions=asked, embed_questions=True)
        return super().embedding_work(nodes, extractor, summarizer, sample, parameters)

    @classmethod
    def _writing_work(
        cls,
        nodes: Sequence[BaseNode],
        extractor: NodeExtractor | None,
        summarizer: Summarizer | None,
        llm: LLM | None,
        config: MemoryConfig,
        assumed: Mapping[str, float],
    ) -> Estimate:
        work = Estimate()
        if extractor is None or summarizer is None:
            return work
        sizes = Counter(node.ref_doc_id for node in nodes)
        short = sum(n for n in sizes.values() if n < NODES_PER_THEME)  # chunks of documents that share one graph
        graphs = [*(n for n in sizes.values() if n >= NODES_PER_THEME), short]
        themes = round(sum(min(assumed["themes_per_document"], n // NODES_PER_THEME) for n in graphs))
        if themes and summarizer.needs_llm:
            read = sum(count_tokens(plain_text(node)) for node in nodes) / len(nodes) * assumed["theme_size"]
            one = summarizer.estimate(read, assumed["theme_size"], config.summary_tokens, known_llm(llm))
            work += sum([one] * themes, Estimate())
        if themes:
            filler = TextNode(text=" ".join(["word"] * config.summary_tokens))
            work += extractor.estimate([filler] * themes, llm)
        return work


def _to_networkx(
    state: GEMRAGState, texts: Mapping[str, str], plain: Mapping[str, Sequence[str]], blend: float, neighbours: int
) -> Any:
    """The graph of :meth:`GEMRAGIndex.to_networkx`; `plain` are the questions of nodes that are not embedded."""
    graph = need("networkx", "to_networkx()", "llama-index-gemrag[networkx]").Graph()
    for record in state.chunks.records:
        graph.add_node(record.id, kind="chunk", text=texts.get(record.id, ""), document=record.ref_doc_id or "")
    for name in state.theme_layer.texts.ids:
        graph.add_node(name, kind="theme", text=texts.get(name, ""))
        theme = state.themes[name]
        for member, weight in zip(theme.members, theme.weights, strict=True):
            graph.add_edge(name, member, kind="member", weight=weight)
    for layer in (state.chunk_layer, state.theme_layer):
        for name, (owner, question), near in zip(
            layer.questions.ids, layer.questions_with_owners(), layer.agreement, strict=True
        ):
            graph.add_node(name, kind="question", text=question)
            graph.add_edge(name, owner, kind="asks", weight=float(near))
    for owner, question in ((owner, question) for owner, asked in plain.items() for question in asked):
        graph.add_node(question_id(owner, question), kind="question", text=question)
        graph.add_edge(question_id(owner, question), owner, kind="asks", weight=1.0)
    if neighbours and len(state.chunks) > 1:
        ids = state.chunks.ids
        means = state.chunk_layer.mean_questions(range(len(ids)), blend)
        for i, j, weight in strongest_edges(means, unit_rows(state.chunks.matrix), neighbours):
            graph.add_edge(ids[i], ids[j], kind="similar", weight=weight)
    return graph


register_index(GEMRAGIndex)
