"""`PGRAGIndex`: an index of mind maps whose facts are linked across documents (Liang et al. 2024, arXiv 2405.16933)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from llama_index.core.schema import BaseNode, Document, IndexNode
from typing_extensions import Self, Unpack

from llama_index.pgrag.builder import MapBuilder, embeds_cells
from llama_index.pgrag.config import PAPER_INDEX, PGRAGConfig
from llama_index.pgrag.extraction.mind_map_extractor import MindMapExtractor, TwoStageMindMapExtractor
from llama_index.pgrag.extraction.outline_extractor import OutlineExtractor
from llama_index.pgrag.keywords import PGRAGKeywords, PGRAGRetrieverKeywords
from llama_index.pgrag.maps.mind_map import path_text
from llama_index.pgrag.maps.verification import Scorer
from llama_index.pgrag.page import page_of
from llama_index.pgrag.records import is_unverified
from llama_index.pgrag.retriever import PGRAGRetriever
from llama_index.pgrag.state import KINDS, PseudoGraph
from llama_index.ragkit import (
    DerivedIndex,
    DerivedStruct,
    Estimate,
    LastQuery,
    NodeExtractor,
    Selection,
    Summarizer,
    register_index,
)
from llama_index.ragkit.extras import need
from llama_index.ragkit.html import Page
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.derived_nodes import texts_of

__all__ = ["PGRAGIndex", "PGRAGStruct"]


class PGRAGStruct(DerivedStruct):
    """The struct of a :class:`PGRAGIndex`."""

    type_name = "llama_index.pgrag"


class PGRAGIndex(DerivedIndex[PGRAGConfig, PseudoGraph]):
    """An index that rewrites every chunk as facts in a mind map and links maps with the same content by super nodes.

    A fact is a path: topic, routes, fact. Its whole path is embedded (Eq. 2; see `cell_vectors`). Topics whose cosine
    reaches `topic_threshold`, and facts whose cosine reaches `fact_threshold`, share a super node, through which a
    query walks from one document to another. Each fact keeps the node and the document that it was extracted from.

    Parameters are stored with the index; loading it with different thresholds or another fusion raises an error. The
    documentation of the package lists the deviations from the paper and the published code.

    Parameters
    ----------
    extractor : extracts the mind map of a node; by default :class:`~llama_index.pgrag.MindMapExtractor`, which calls an
        LLM. :class:`~llama_index.pgrag.OutlineExtractor` needs no LLM, :class:`~llama_index.pgrag.GivenMindMaps` takes
        existing maps
    topic_threshold, fact_threshold : raw cosines, in (0, 1] [0.92 and 0.98, the paper's; the published code's are 0.84
        and 0.96 on this scale]. Suitable values depend on the embedding model
    fusion : "components" merges everything that is linked directly or indirectly; "leaders" is the published greedy
        clustering, within each component and without overlaps
    cell_vectors : whether topics, routes and facts are embedded with each write. Otherwise searches compare them by
        their words, and only equal texts share a super node. The first search that needs vectors
        (`ranking="support"`, `mode="PG"`) embeds all cells, and later writes embed the cells that they add [None: True
        unless the extractor is an :class:`~llama_index.pgrag.OutlineExtractor`, whose facts are sentences of the text
        that is embedded anyway; paper: True]
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Raises
    ------
    ConfigurationError
        If a parameter has an invalid value, or differs from that of the loaded index.
    """

    index_struct_cls = PGRAGStruct
    method: ClassVar[str] = "pgrag"
    space_names: ClassVar[tuple[str, ...]] = ("chunks", *KINDS)
    config_cls = PGRAGConfig
    config_is_fixed = True
    builder_cls = MapBuilder
    retriever_cls = PGRAGRetriever
    keywords = PGRAGKeywords
    default_extractor = MindMapExtractor
    rule_extractor = OutlineExtractor

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self,
            nodes: Sequence[BaseNode] | None = None,
            objects: Sequence[IndexNode] | None = None,
            index_struct: DerivedStruct | None = None,
            **kwargs: Unpack[PGRAGKeywords],
        ) -> None: ...

        @classmethod
        def from_documents(cls, documents: Sequence[Document], **kwargs: Unpack[PGRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        @classmethod
        async def afrom_documents(cls, documents: Sequence[Document], **kwargs: Unpack[PGRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        def as_retriever(self, **kwargs: Unpack[PGRAGRetrieverKeywords]) -> PGRAGRetriever: ...  # type: ignore[override]  # noqa: D102

    @property
    def graph(self) -> PseudoGraph:
        """The current mind maps, facts and super nodes."""
        return self.state

    @staticmethod
    def paper(scorer: Scorer | None = None) -> dict[str, Any]:
        """The published index as keywords: `PGRAGIndex(nodes, **PGRAGIndex.paper())`.

        Statements are extracted first and must reach the paper's thresholds. A second call makes a mind map of them. A
        list is one fact, and super nodes are found with `fusion="leaders"`.

        Parameters
        ----------
        scorer : computes BERTScore, as in the paper; see :class:`~llama_index.pgrag.MindMapExtractor`. None for the
            cosine of embeddings
        """
        extractor = TwoStageMindMapExtractor(min_rouge_l=0.75, min_semantic=0.85, join_lists=True, scorer=scorer)
        return {**PAPER_INDEX, "extractor": extractor}

    @classmethod
    def embedding_work(
        cls,
        nodes: Sequence[BaseNode],
        extractor: NodeExtractor | None,
        summarizer: Summarizer | None,
        sample: int,
        parameters: Mapping[str, Any],
    ) -> Estimate:
        """As for every index; if rules stand in for an LLM, their cells are embedded like the LLM's."""
        config = PGRAGConfig(cell_vectors=parameters.get("cell_vectors"))
        chosen = {**parameters, "cell_vectors": embeds_cells(config, extractor)}
        return super().embedding_work(nodes, extractor, summarizer, sample, chosen)

    def unverified(self) -> list[str]:
        """Ids of nodes whose statements failed verification against the text; the best attempt was kept."""
        entries = run_steps(self.storage.manifest.entries())
        return sorted(i for i, entry in entries.items() if entry.record is not None and is_unverified(entry.record))

    def to_networkx(self) -> Any:
        """The mind maps as a `networkx.Graph`.

        Nodes have `kind` ("chunk", "topic", "route", "fact", "super-topic" or "super-fact") and `text`; a chunk also
        has `document`. Edges have `kind` and `weight`: a "cell" edge joins a cell and the cell below it, a "source"
        edge a fact and its chunk, a "same" edge a super node and a member.

        Raises
        ------
        ImportError
            Without the extra `networkx`.
        """
        graph = self.state
        return _to_networkx(graph, run_steps(texts_of(graph.chunks.ids, self.storage.get_node)))

    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        graph = self.state if query is None or query.found.graph is None else query.found.graph
        return page_of(graph.only(selection.allowed(graph.chunks)), query)


def _to_networkx(graph: PseudoGraph, texts: Mapping[str, str]) -> Any:
    """A graph of chunks with their texts, the cells of their mind maps and super nodes, and the edges between them."""
    networkx = need("networkx", "to_networkx()", "llama-index-pgrag[networkx]")
    found = networkx.Graph()
    for record in graph.chunks.records:
        found.add_node(record.id, kind="chunk", text=texts.get(record.id, ""), document=record.ref_doc_id or "")
    for topic_id, mind_map in sorted(graph.maps.items(), key=lambda item: item[1].key):
        found.add_node(topic_id, kind="topic", text=mind_map.topic)
        for route_id, path in mind_map.routes.items():
            found.add_node(route_id, kind="route", text=path_text(path))
        for fact in mind_map.facts:
            found.add_node(fact.id, kind="fact", text=fact.text)
            found.add_edge(fact.id, fact.node_id, kind="source", weight=1.0)
            for above, below in pairwise(cell for _, cell in mind_map.cells(fact)):
                found.add_edge(above, below, kind="cell", weight=1.0)
    for kind, super_nodes in (("topic", graph.super_topics), ("fact", graph.super_facts)):
        for members in super_nodes.nodes():
            name = f"super-{kind}-{members[0]}"
            found.add_node(name, kind=f"super-{kind}", text=found.nodes[members[0]]["text"])
            found.add_edges_from(((name, member) for member in members), kind="same", weight=1.0)
    return found


register_index(PGRAGIndex)
