"""`RaptorIndex`: an index with a tree of summaries over chunks (Sarthi et al., ICLR 2024, arXiv 2401.18059)."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.llms import LLM
from llama_index.core.schema import BaseNode, Document, IndexNode
from typing_extensions import Self, Unpack

from llama_index.ragkit import (
    DerivedIndex,
    DerivedStruct,
    Estimate,
    ExtractiveSummarizer,
    LastQuery,
    LLMSummarizer,
    NodeExtractor,
    Selection,
    Summarizer,
    register_index,
)
from llama_index.ragkit.html import Page
from llama_index.ragkit.index.summaries import SummaryMethods
from llama_index.ragkit.llm.completion import known_llm
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.derived_nodes import fetch_derived, texts_of
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.raptor.builder import TreeBuilder
from llama_index.raptor.clustering.umap_gmm import UMAPGMMClustering
from llama_index.raptor.config import PAPER_TREE, TreeConfig
from llama_index.raptor.keywords import RaptorKeywords, RaptorRetrieverKeywords
from llama_index.raptor.page import page_of
from llama_index.raptor.retriever import RaptorRetriever
from llama_index.raptor.state import RaptorState
from llama_index.raptor.tree import Tree

__all__ = ["RaptorIndex", "RaptorStruct"]


class RaptorStruct(DerivedStruct):
    """The struct of a :class:`RaptorIndex`."""

    type_name = "llama_index.raptor"


class RaptorIndex(SummaryMethods, DerivedIndex[TreeConfig, RaptorState]):
    """A tree index: chunks, summaries of clusters of chunks, summaries of clusters of summaries, up to a root.

    Chunks answer questions about details, summaries questions about a whole document. One search over all layers
    (`mode="collapsed"`) or a traversal of the tree (`mode="tree_traversal"`) finds both.

    Parameters of the tree are stored with the index; values that you pass when you load it replace them. The
    documentation of the package lists the deviations from paper and published code.

    `estimate` also takes `cluster_size`, the assumed ratio of the number of nodes of a layer to that of the layer above
    [10].

    Parameters
    ----------
    summarizer : writes the summaries; default :class:`~llama_index.ragkit.LLMSummarizer`.
        :class:`~llama_index.ragkit.ExtractiveSummarizer` needs no LLM.
    clustering : groups the nodes of a layer; default :class:`~llama_index.raptor.GraphClustering`.
        :class:`~llama_index.raptor.UMAPGMMClustering` is that of the paper.
    max_layers : largest number of summary layers; 0 builds none [5, as published]
    max_cluster_tokens : largest number of input tokens of a summary; larger clusters are split [8192; published 3500]
    summary_tokens : requested length of a summary [200; published 100, cut in mid-sentence]
    max_root_children : a layer with at most this many nodes is not clustered [12; published 11]
    root : whether such a layer gets one summary above it, the root; otherwise it is the last layer [True; published
        False]
    min_shrink : share by which a layer must have fewer nodes than the one below to be built, in [0, 1); 0 builds any
        [0.3; published 0]
    summaries : when summaries are rewritten; those above deleted and joined chunks are always removed at once.
        "deferred": by an insert, which also writes those that a delete removed, or by :meth:`write_summaries`; a delete
        needs no LLM. "eager": by a delete, too. "on_request": only by :meth:`write_summaries` and the first build; an
        insert embeds only its own chunks ["deferred"]
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value.
    """

    index_struct_cls = RaptorStruct
    method: ClassVar[str] = "raptor"
    space_names: ClassVar[tuple[str, ...]] = ("chunks", "summaries")
    config_cls = TreeConfig
    builder_cls = TreeBuilder
    builder: TreeBuilder
    retriever_cls = RaptorRetriever
    keywords = RaptorKeywords
    default_summarizer = LLMSummarizer
    rule_summarizer = ExtractiveSummarizer
    assumed: ClassVar[Mapping[str, float]] = MappingProxyType({"cluster_size": 10})

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self,
            nodes: Sequence[BaseNode] | None = None,
            objects: Sequence[IndexNode] | None = None,
            index_struct: DerivedStruct | None = None,
            **kwargs: Unpack[RaptorKeywords],
        ) -> None: ...

        @classmethod
        def from_documents(cls, documents: Sequence[Document], **kwargs: Unpack[RaptorKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        @classmethod
        async def afrom_documents(cls, documents: Sequence[Document], **kwargs: Unpack[RaptorKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        def as_retriever(self, **kwargs: Unpack[RaptorRetrieverKeywords]) -> RaptorRetriever: ...  # type: ignore[override]  # noqa: D102

    @staticmethod
    def paper() -> dict[str, Any]:
        """The published tree as keywords, as in the authors' code: `RaptorIndex(nodes, **RaptorIndex.paper())`.

        Raises
        ------
        ConfigurationError
            If the extra `umap` is not installed.
        """
        return {**PAPER_TREE, "clustering": UMAPGMMClustering()}

    @property
    def tree(self) -> Tree:
        """The current tree: ids and levels of summaries, parents and children."""
        return self.state.tree

    def leaves_of(self, node_id: str) -> list[str]:
        """Ids of the chunks below a node, sorted; for a chunk, its own id."""
        return sorted(self.state.tree.leaves(node_id))

    @classmethod
    def _writing_work(
        cls,
        nodes: Sequence[BaseNode],
        extractor: NodeExtractor | None,
        summarizer: Summarizer | None,
        llm: LLM | None,
        config: TreeConfig,
        assumed: Mapping[str, float],
    ) -> Estimate:
        if summarizer is None or not summarizer.needs_llm:
            return Estimate()
        below, tokens = float(len(nodes)), float(sum(count_tokens(plain_text(node)) for node in nodes))
        calls = prompt = reply = 0.0
        while below > 1:
            layer = max(1.0, below / assumed["cluster_size"])
            one = summarizer.estimate(tokens / layer, below / layer, config.summary_tokens, known_llm(llm))
            calls += layer * one.calls
            prompt += layer * one.prompt_tokens
            reply += layer * one.completion_tokens
            below, tokens = layer, layer * config.summary_tokens
        return Estimate(round(calls), round(prompt), round(reply))

    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        found = None if query is None else query.found
        if query is None or found is None:
            state = self.state
        else:
            state = run_steps(self.builder.tree.drawn(found, [node for node, _ in query.answer]))
        state = state.only(selection.allowed(state.chunks))
        fetch = fetch_derived(state.written, self.storage.get_node)
        texts = run_steps(texts_of([*state.chunks.ids, *state.written], fetch))
        return page_of(state, texts, query, partial=found is not None)


register_index(RaptorIndex)
