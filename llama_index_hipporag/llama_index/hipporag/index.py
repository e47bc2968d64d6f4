"""`HippoRAGIndex`: a knowledge graph over passages (Gutierrez et al., NeurIPS 2024, arXiv 2405.14831)."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from llama_index.core.graph_stores.types import PropertyGraphStore

from llama_index.hipporag.builder import GraphBuilder
from llama_index.hipporag.config import PAPER_GRAPHS, GraphConfig, Version
from llama_index.hipporag.export import to_networkx, to_property_graph
from llama_index.hipporag.extraction.noun_phrase_extractor import NounPhraseExtractor
from llama_index.hipporag.extraction.openie_extractor import OpenIEExtractor
from llama_index.hipporag.keywords import HippoRAGKeywords, HippoRAGRetrieverKeywords
from llama_index.hipporag.page import page_of
from llama_index.hipporag.retriever import HippoRAGRetriever
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import DerivedIndex, DerivedStruct, LastQuery, Selection, register_index
from llama_index.ragkit.html import Page
from llama_index.ragkit.steps import arun_steps, run_steps
from llama_index.ragkit.storage.derived_nodes import texts_of
from llama_index.ragkit.validation import chosen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from llama_index.core.schema import BaseNode, Document, IndexNode
    from llama_index.core.storage.storage_context import StorageContext
    from typing_extensions import Self, Unpack

__all__ = ["HippoRAGIndex", "HippoRAGStruct"]


@dataclass
class HippoRAGStruct(DerivedStruct):
    """The struct of a :class:`HippoRAGIndex`."""

    type_name = "llama_index.hipporag"


class HippoRAGIndex(DerivedIndex[GraphConfig, HippoRAGState]):
    """Passages with their phrases and facts, and the graph that connects these across passages.

    The phrases of a question are linked to the graph, and a walk from there finds passages that are connected to the
    question only through other passages.

    Parameters of the graph are stored with the index and cannot be changed later. The documentation of the package
    lists the deviations from paper and published code.

    Parameters
    ----------
    extractor : extracts entities and triples from a passage; default :class:`OpenIEExtractor`, two LLM calls per
        passage. :class:`NounPhraseExtractor` needs no LLM, :class:`RecordedExtractor` uses existing data
    normalizer : when two phrases are the same. "unicode" keeps all scripts; "legacy" is the published rule
    entity_nodes : whether entities without a triple are phrases of the graph too [True; published
        code: False]
    phrase_vectors : whether each write embeds its phrases and searches for similar ones. Otherwise the first search
        that needs this (`linking="entities"`, `synonyms=True`) embeds all phrases, and later writes embed those that
        they add [False]
    fact_vectors : the same for facts, which `linking="facts"` needs [False]
    synonym_threshold : smallest cosine of similar phrases, in (0, 1] [0.8, as published]
    max_synonyms : number of similar phrases kept for each phrase, at least 1; an edge requires that each phrase is on
        the list of the other [100]
    min_synonym_length : letters and digits that a phrase needs to have synonyms [3, as published]
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Raises
    ------
    ConfigurationError
        If a parameter is invalid, or differs from that of a loaded index.
    """

    index_struct_cls = HippoRAGStruct
    method: ClassVar[str] = "hipporag"
    space_names: ClassVar[tuple[str, ...]] = ("chunks", "phrases", "facts")
    config_cls = GraphConfig
    config_is_fixed = True
    builder_cls = GraphBuilder
    retriever_cls = HippoRAGRetriever
    keywords = HippoRAGKeywords
    default_extractor = OpenIEExtractor
    rule_extractor = NounPhraseExtractor

    if TYPE_CHECKING:  # the keywords, for editors and type checkers

        def __init__(
            self,
            nodes: Sequence[BaseNode] | None = None,
            objects: Sequence[IndexNode] | None = None,
            index_struct: DerivedStruct | None = None,
            storage_context: StorageContext | None = None,
            **kwargs: Unpack[HippoRAGKeywords],
        ) -> None: ...

        @classmethod
        def from_documents(  # type: ignore[override]  # noqa: D102
            cls,
            documents: Sequence[Document],
            storage_context: StorageContext | None = None,
            **kwargs: Unpack[HippoRAGKeywords],
        ) -> Self: ...

        @classmethod
        async def afrom_documents(  # type: ignore[override]  # noqa: D102
            cls,
            documents: Sequence[Document],
            storage_context: StorageContext | None = None,
            **kwargs: Unpack[HippoRAGKeywords],
        ) -> Self: ...

        def as_retriever(  # type: ignore[override]  # noqa: D102
            self, **kwargs: Unpack[HippoRAGRetrieverKeywords]
        ) -> HippoRAGRetriever: ...

    @staticmethod
    def paper(version: Version = "v1") -> dict[str, Any]:
        """The published graph as keywords: `HippoRAGIndex(nodes, **HippoRAGIndex.paper())`.

        The extractor of the papers is the default. Values that the paper leaves open are those of the authors' code.

        Parameters
        ----------
        version : see :meth:`HippoRAGRetriever.paper`; the graphs of "v1" and "v2" differ in the vectors of facts

        Raises
        ------
        ConfigurationError
            If there is no such version.
        """
        return chosen("version", version, PAPER_GRAPHS)

    def to_networkx(self) -> Any:
        """The graph as a `networkx.MultiDiGraph`.

        Nodes are chunks (`kind="chunk"`, by node id; document) and phrases (`kind="phrase"`, as ("phrase", text)),
        all with `text`. Edges have a `kind` and a `weight`: "fact" from head to tail, with how often it is stated
        (relation, node_ids); "near", with the cosine, once phrases are embedded (`phrase_vectors`); "mention" from
        chunk to phrase (subject).

        Raises
        ------
        ImportError
            Without the extra `networkx`.
        """
        state = self.state
        return to_networkx(state, run_steps(texts_of(state.chunks.ids, self.storage.get_node)))

    def export_to(self, store: PropertyGraphStore) -> None:
        """Write the graph into any LlamaIndex property graph store.

        Phrases become entities with the label "phrase", and passages become chunks with their text and metadata. Facts
        become relations with their own label, synonym edges (once phrases are embedded) relations "NEAR", and mentions
        relations "MENTIONS". Later writes to the index do not update the store.

        Parameters
        ----------
        store : its other contents are kept; entries with the same ids are replaced
        """
        run_steps(to_property_graph(self.state, self.storage.get_node, store))

    async def aexport_to(self, store: PropertyGraphStore) -> None:
        """As :meth:`export_to`."""
        await arun_steps(to_property_graph(self.state, self.storage.get_node, store))

    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        if query is not None:
            builder = cast(GraphBuilder, self.builder)
            query = replace(query, found=run_steps(builder.graph.drawn(query.found)))
        state = self.state if query is None else query.found.state
        allowed = selection.allowed(state.chunks)
        graph = state.visible(allowed) if query is None else query.found.graph
        return run_steps(page_of(state, graph, allowed, query, self.storage.get_node))


register_index(HippoRAGIndex)
