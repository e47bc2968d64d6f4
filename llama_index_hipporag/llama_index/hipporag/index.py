"""`HippoRAGIndex`: a knowledge graph over passages (Gutierrez et al., NeurIPS 2024, arXiv 2405.14831)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from llama_index.core.graph_stores.types import ChunkNode, EntityNode, LabelledNode, PropertyGraphStore, Relation
from llama_index.core.schema import BaseNode, Document, IndexNode
from scipy.sparse import triu
from typing_extensions import Self, Unpack

from llama_index.hipporag.builder import GraphBuilder
from llama_index.hipporag.config import PAPER_GRAPHS, GraphConfig, Version
from llama_index.hipporag.extraction.noun_phrase_extractor import NounPhraseExtractor
from llama_index.hipporag.extraction.openie_extractor import OpenIEExtractor
from llama_index.hipporag.graph.passage import Fact
from llama_index.hipporag.keywords import HippoRAGKeywords, HippoRAGRetrieverKeywords
from llama_index.hipporag.page import page_of
from llama_index.hipporag.retriever import HippoRAGRetriever
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import DerivedIndex, DerivedStruct, LastQuery, Selection, Steps, register_index
from llama_index.ragkit.extras import need
from llama_index.ragkit.html import Page
from llama_index.ragkit.steps import arun_steps, call, run_steps
from llama_index.ragkit.storage.derived_nodes import NodeFetch, texts_of
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.validation import chosen

__all__ = ["HippoRAGIndex", "HippoRAGStruct"]

_BATCH = 1000  # nodes or relations in one call of a property graph store


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
    builder: GraphBuilder
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
            **kwargs: Unpack[HippoRAGKeywords],
        ) -> None: ...

        @classmethod
        def from_documents(cls, documents: Sequence[Document], **kwargs: Unpack[HippoRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        @classmethod
        async def afrom_documents(cls, documents: Sequence[Document], **kwargs: Unpack[HippoRAGKeywords]) -> Self: ...  # type: ignore[override]  # noqa: D102

        def as_retriever(self, **kwargs: Unpack[HippoRAGRetrieverKeywords]) -> HippoRAGRetriever: ...  # type: ignore[override]  # noqa: D102

    @staticmethod
    def paper(version: Version = "v1") -> dict[str, Any]:
        """The published graph as keywords: `HippoRAGIndex(nodes, **HippoRAGIndex.paper())`.

        The extractor of the papers is `extractor=OpenIEExtractor.paper()`: that of the default has other examples, and
        drops what is not in the passage. Values that the paper leaves open are those of the authors' code.

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
        return _to_networkx(state, run_steps(texts_of(state.chunks.ids, self.storage.get_node)))

    def export_to(self, store: PropertyGraphStore) -> None:
        """Write the graph into any LlamaIndex property graph store.

        Phrases become entities with the label "phrase", and passages become chunks with their text and metadata. Facts
        become relations with their own label, synonym edges (once phrases are embedded) relations "NEAR", and mentions
        relations "MENTIONS". Later writes to the index do not update the store.

        Parameters
        ----------
        store : its other contents are kept; entries with the same ids are replaced
        """
        run_steps(_to_property_graph(self.state, self.storage.get_node, store))

    async def aexport_to(self, store: PropertyGraphStore) -> None:
        """As :meth:`export_to`."""
        await arun_steps(_to_property_graph(self.state, self.storage.get_node, store))

    def _page(self, query: LastQuery | None, selection: Selection) -> Page:
        if query is not None:
            query = replace(query, found=run_steps(self.builder.graph.drawn(query.found)))
        state = self.state if query is None else query.found.state
        allowed = selection.allowed(state.chunks)
        graph = state.visible(allowed) if query is None else query.found.graph
        return run_steps(page_of(state, graph, allowed, query, self.storage.get_node))


def _facts_of(state: HippoRAGState) -> Iterator[tuple[Fact, int, list[str]]]:
    """Every fact in the order of the graph's columns, how often it is stated, and the passages that state it."""
    statements, ids = state.graph.statements.tocsc(), state.chunks.ids
    for fact, (start, end) in zip(state.facts, pairwise(statements.indptr), strict=True):
        yield fact, int(statements.data[start:end].sum()), [ids[row] for row in statements.indices[start:end]]


def _synonym_edges_of(state: HippoRAGState) -> Iterator[tuple[str, str, float]]:
    """Two phrases on each other's lists, and their cosine; each pair once."""
    upper = triu(state.graph.synonym_edges, k=1).tocoo()
    for i, j, cosine in zip(upper.row.tolist(), upper.col.tolist(), upper.data.tolist(), strict=True):
        yield state.phrases.at(i), state.phrases.at(j), cosine


def _mentions_of(state: HippoRAGState) -> Iterator[tuple[str, str, bool]]:
    """Every passage with each phrase in it, and whether the phrase is its subject."""
    about = state.graph.about
    for row, node_id in enumerate(state.chunks.ids):
        own, subjects = state.graph.phrases_of(row), about.indices[about.indptr[row] : about.indptr[row + 1]]
        for phrase, subject in zip(own.tolist(), np.isin(own, subjects).tolist(), strict=True):
            yield node_id, state.phrases.at(phrase), subject


def _to_networkx(state: HippoRAGState, texts: Mapping[str, str]) -> Any:
    """Chunks with their texts, and phrases, with the edges between them."""
    networkx = need("networkx", "to_networkx()", "llama-index-hipporag[networkx]")
    exported = networkx.MultiDiGraph()
    for record in state.chunks.records:
        exported.add_node(record.id, kind="chunk", text=texts.get(record.id, ""), document=record.ref_doc_id or "")
    for phrase in state.phrases:
        exported.add_node(("phrase", phrase), kind="phrase", text=phrase)
    for (head, relation, tail), times, node_ids in _facts_of(state):
        ends = ("phrase", head), ("phrase", tail)
        exported.add_edge(*ends, kind="fact", weight=times, relation=relation, node_ids=node_ids)
    for one, other, cosine in _synonym_edges_of(state):
        exported.add_edge(("phrase", one), ("phrase", other), kind="near", weight=cosine)
    for node_id, phrase, subject in _mentions_of(state):
        exported.add_edge(node_id, ("phrase", phrase), kind="mention", weight=1, subject=subject)
    return exported


def _to_property_graph(state: HippoRAGState, fetch: NodeFetch, store: PropertyGraphStore) -> Steps[None]:
    """Write the graph into a property graph store; see :meth:`~llama_index.hipporag.HippoRAGIndex.export_to`."""
    nodes: list[LabelledNode] = [EntityNode(name=phrase, label="phrase") for phrase in state.phrases if phrase]
    for node_id in state.chunks.ids:
        node = yield from fetch(node_id)
        if node is not None:
            nodes.append(ChunkNode(id_=node_id, text=plain_text(node), properties=dict(node.metadata)))
    known = {node.id for node in nodes}
    relations = [
        Relation(label=fact[1] or "is related to", source_id=fact[0], target_id=fact[2],
                 properties={"times": times, "node_ids": ", ".join(node_ids)})
        for fact, times, node_ids in _facts_of(state)
    ]  # fmt: skip
    relations += [
        Relation(label="NEAR", source_id=one, target_id=other, properties={"cosine": cosine})
        for one, other, cosine in _synonym_edges_of(state)
    ]
    relations += [
        Relation(label="MENTIONS", source_id=node_id, target_id=phrase, properties={"subject": subject})
        for node_id, phrase, subject in _mentions_of(state)
    ]
    whole = [relation for relation in relations if relation.source_id in known and relation.target_id in known]
    for start in range(0, len(nodes), _BATCH):
        yield from call(store.upsert_nodes, store.aupsert_nodes, nodes[start : start + _BATCH])
    for start in range(0, len(whole), _BATCH):
        yield from call(store.upsert_relations, store.aupsert_relations, whole[start : start + _BATCH])


register_index(HippoRAGIndex)
