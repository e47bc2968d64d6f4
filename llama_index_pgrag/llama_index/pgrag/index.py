"""`PGRAGIndex`: mind maps of facts, joined across documents (Liang et al. 2024, arXiv 2405.16933)."""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, get_args

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import BaseNode, IndexNode
from llama_index.core.storage.storage_context import StorageContext

from llama_index.pgrag.export import to_graph
from llama_index.pgrag.graph import KINDS, Fact, PseudoGraph, facts_of, with_facts
from llama_index.pgrag.mind_map import path_text
from llama_index.pgrag.mind_map_extractor import MindMapExtractor
from llama_index.pgrag.records import from_record, is_unverified
from llama_index.pgrag.supers import Fusion, Supers, restore, update
from llama_index.pgrag.view import page_of
from llama_index.ragkit import DerivedIndex, DerivedStruct, NodeExtractor, register_index
from llama_index.ragkit.checks import check_choice, check_number
from llama_index.ragkit.driver import Steps, offload, run_steps
from llama_index.ragkit.embedding import as_matrix, embed_texts
from llama_index.ragkit.html import Page
from llama_index.ragkit.ledger import Entry
from llama_index.ragkit.records import Record
from llama_index.ragkit.spaces import Rows
from llama_index.ragkit.struct import chosen_params
from llama_index.ragkit.writing import Change

__all__ = ["PGRAGIndex", "PGRAGStruct"]

logger = logging.getLogger(__name__)

_FUSED = ("topics", "facts")  # the kinds of cells that super nodes tie together
_DEFAULTS = {"topic_threshold": 0.92, "fact_threshold": 0.98, "fusion": "components"}


@dataclass
class PGRAGStruct(DerivedStruct):
    """The struct of a :class:`PGRAGIndex`."""

    type_name = "llama_index.pgrag"


class PGRAGIndex(DerivedIndex[PGRAGStruct, PseudoGraph]):
    """Every chunk rewritten as facts in a mind map; maps that say the same are tied together.

    A fact is a path: topic, routes, fact. Its whole path is embedded (Eq. 2). Topics whose cosine reaches
    `topic_threshold`, and facts whose cosine reaches `fact_threshold`, share a super node, over which a query walks
    from one document to another. Each fact keeps the node and the document that it was read from.

    Parameters
    ----------
    extractor : reads the mind map of a node; default :class:`~llama_index.pgrag.MindMapExtractor`, an LLM.
        :class:`~llama_index.pgrag.OutlineExtractor` needs none, :class:`~llama_index.pgrag.GivenMindMaps` takes ready
        maps
    topic_threshold, fact_threshold : raw cosines, in (0, 1] [0.92 and 0.98, the paper's; the published code's are 0.84
        and 0.96 on this scale]. What cosines mean depends on the embedding model
    fusion : "components" ties all that is linked, directly or through others; "leaders" is the published greedy
        clustering, within each component and without overlaps
    kwargs : see :class:`~llama_index.ragkit.DerivedIndex`

    Parameters are stored with the index; other thresholds or another fusion, given when it is loaded, are refused.
    Deviations from paper and published code are listed in the documentation of the package.
    """

    index_struct_cls = PGRAGStruct
    method: ClassVar[str] = "pgrag"
    default_extractor = MindMapExtractor
    space_names: ClassVar[tuple[str, ...]] = ("chunks", *KINDS)

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        objects: Sequence[IndexNode] | None = None,
        index_struct: PGRAGStruct | None = None,
        storage_context: StorageContext | None = None,
        *,
        extractor: NodeExtractor | None = None,
        topic_threshold: float | None = None,
        fact_threshold: float | None = None,
        fusion: Fusion | None = None,
        **kwargs: Any,
    ) -> None:
        given = {"topic_threshold": topic_threshold, "fact_threshold": fact_threshold, "fusion": fusion}
        self._params = chosen_params(_DEFAULTS, index_struct, self.method, given, fixed=True)
        _check_params(self._params)
        super().__init__(
            nodes=nodes,
            objects=objects,
            index_struct=index_struct,
            storage_context=storage_context,
            extractor=extractor,
            **kwargs,
        )

    # -- what DerivedIndex asks ---------------------------------------------------------------------

    def _read_state(self) -> Steps[PseudoGraph]:
        """The graph as records and spaces have it; what a write that was cut short left behind goes."""
        spaces = self._parts.spaces
        rows = {kind: spaces[kind].store.snapshot() for kind in KINDS}
        new: dict[str, list[Fact]] = {}
        for node_id, entry in (yield from self._parts.ledger.entries()).items():
            if entry.record is not None:
                new[node_id] = list(facts_of(node_id, entry.ref_doc_id, entry.key, from_record(entry.record)[1]))
        graph, _ = with_facts(self._empty(), new, ())
        whole = {
            fact.id
            for found in graph.maps.values()
            for fact in found.facts
            if all(cell in rows[kind] for kind, cell in found.cells(fact))
        }
        if len(whole) < len(graph.map_of):
            kept = {node_id: [fact for fact in facts if fact.id in whole] for node_id, facts in new.items()}
            graph, _ = with_facts(self._empty(), kept, ())
        routes = {route_id for found in graph.maps.values() for route_id in found.routes}
        wanted: dict[str, Collection[str]] = {"topics": graph.maps, "routes": routes, "facts": graph.map_of}
        for kind in KINDS:
            yield from spaces[kind].remove([row_id for row_id in rows[kind].ids if row_id not in wanted[kind]])
        supers = {}
        for kind in _FUSED:
            stored = {i: r["c"] for i, r in (yield from self._parts.records.get_all(_collection(kind))).items()}
            snapshot = spaces[kind].store.snapshot()
            empty = getattr(graph, f"super_{kind}")
            supers[kind], changed, gone = yield from offload(restore, stored, snapshot, empty.threshold, empty.fusion)
            yield from self._save_supers(kind, changed, gone)
        return self._state_of(graph, supers)

    def _empty(self) -> PseudoGraph:
        fusion = self._params["fusion"]
        topics, facts = (Supers(self._params[f"{kind[:-1]}_threshold"], fusion) for kind in _FUSED)
        return PseudoGraph(super_topics=topics, super_facts=facts)

    def _state_of(self, graph: PseudoGraph, supers: Mapping[str, Supers]) -> PseudoGraph:
        rows = {name: self._parts.spaces[name].store.snapshot() for name in self.space_names}
        return replace(
            graph,
            chunks=rows["chunks"],
            topics=rows["topics"],
            routes=rows["routes"],
            facts=rows["facts"],
            super_topics=supers["topics"],
            super_facts=supers["facts"],
        )

    def _derive(self, change: Change) -> Steps[PseudoGraph]:
        old = self._state
        entries = yield from self._parts.ledger.entries_of(node.node_id for node in change.added)
        new = {
            node_id: facts_of(node_id, entry.ref_doc_id, entry.key, from_record(change.records.get(node_id, {}))[1])
            for node_id, entry in entries.items()
        }
        graph, lost = with_facts(old, new, change.removed)
        for kind in KINDS:  # what is gone goes before anything is bought
            yield from self._parts.spaces[kind].remove(lost[kind])
        came = yield from self._embed_new(graph, {fact.topic_id for facts in new.values() for fact in facts})
        supers = {}
        for kind, known in (("topics", old.super_topics), ("facts", old.super_facts)):
            rows = self._parts.spaces[kind].store.snapshot()
            supers[kind], changed = yield from offload(update, known, rows, came[kind], set(lost[kind]))
            yield from self._save_supers(kind, changed, lost[kind])
        state = self._state_of(graph, supers)
        self._tell(state, [i for i, record in change.records.items() if is_unverified(record)])
        return state

    def _embed_new(self, graph: PseudoGraph, topic_ids: Iterable[str]) -> Steps[dict[str, list[str]]]:
        """Embed and store the cells of maps that have no row yet, each text once; returns their ids by kind."""
        spaces = self._parts.spaces
        have = {kind: spaces[kind].store.snapshot() for kind in KINDS}
        cells: dict[str, dict[str, _Cell]] = {kind: {} for kind in KINDS}
        for topic_id in sorted(topic_ids):
            found = graph.maps[topic_id]
            cells["topics"][topic_id] = _Cell(found.topic, found.key)
            cells["routes"].update((i, _Cell(path_text(path), found.key)) for i, path in sorted(found.routes.items()))
            for fact in found.facts:
                cells["facts"][fact.id] = _Cell(fact.text, fact.key, {"node": fact.node_id, "topic": topic_id})
        new = {kind: {i: cell for i, cell in cells[kind].items() if i not in have[kind]} for kind in KINDS}
        distinct = sorted({cell.text for kind in KINDS for cell in new[kind].values()})
        if distinct:
            vectors = yield from embed_texts(self.embed_model, distinct, self._show_progress)
            as_matrix(list(vectors), distinct, self._parts.struct.embedding["dimension"])
            place = {text: i for i, text in enumerate(distinct)}
            for kind in KINDS:
                ids, found_ = list(new[kind]), list(new[kind].values())
                matrix = vectors[[place[cell.text] for cell in found_]]
                metadatas = [cell.metadata for cell in found_]
                yield from spaces[kind].put(Rows(ids, matrix, [cell.key for cell in found_], ids, metadatas))
        return {kind: list(new[kind]) for kind in KINDS}

    def _save_supers(self, kind: str, changed: Mapping[str, str], gone: Iterable[str]) -> Steps[None]:
        records = self._parts.records
        yield from records.put(_collection(kind), [(row_id, {"c": name}) for row_id, name in changed.items()])
        yield from records.delete(_collection(kind), gone)

    def _tell(self, state: PseudoGraph, unverified: Sequence[str]) -> None:
        self._parts.struct.counters.update(
            topics=len(state.topics),
            facts=len(state.facts),
            super_topics=sum(map(len, state.super_topics.groups.values())),
            super_facts=sum(map(len, state.super_facts.groups.values())),
        )
        if unverified:
            logger.warning(
                "The statements of %d nodes, such as %s, failed their check against the text in every attempt; the "
                "best were kept. index.unverified() lists such nodes.",
                len(unverified), unverified[0],
            )  # fmt: skip

    def _extract(self, nodes: Sequence[BaseNode], given: dict[str, Record]) -> Steps[dict[str, Entry]]:
        extractor = self._extractor
        if isinstance(extractor, MindMapExtractor) and extractor.verify and extractor.embed_model is None:
            self._extractor = extractor.model_copy(update={"embed_model": self.embed_model})
        return (yield from super()._extract(nodes, given))

    def _page(self) -> Page:
        return page_of(self._state, self._last_query)

    # -- public -------------------------------------------------------------------------------------

    @property
    def graph(self) -> PseudoGraph:
        """The mind maps, facts and super nodes as they are now."""
        return self._state

    def unverified(self) -> list[str]:
        """Ids of nodes whose statements failed their check against the text; the best attempt was kept."""
        entries = run_steps(self._parts.ledger.entries())
        return sorted(i for i, entry in entries.items() if entry.record is not None and is_unverified(entry.record))

    def as_retriever(self, **kwargs: Any) -> BaseRetriever:
        """A :class:`PGRAGRetriever` over this index."""
        from llama_index.pgrag.retriever import PGRAGRetriever

        return PGRAGRetriever(self, **kwargs)

    def to_networkx(self) -> Any:
        """The mind maps as a `networkx.Graph`.

        Nodes have `kind` ("chunk", "topic", "route", "fact", "super-topic" or "super-fact") and `text`; a chunk has
        `document` as well. Edges have `kind` and `weight`: "cell" from a cell to the one below it, "source" from a
        fact to its chunk, "same" from a super node to its members.

        Raises
        ------
        ImportError
            Without the extra `networkx`.
        """
        return to_graph(self._state, run_steps(self._texts(self._state.chunks.ids)))


@dataclass(frozen=True)
class _Cell:
    text: str
    key: str
    metadata: dict[str, Any] = field(default_factory=dict)


def _collection(kind: str) -> str:
    return f"super_{kind}"


def _check_params(params: dict[str, Any]) -> None:
    for name in ("topic_threshold", "fact_threshold"):
        check_number(name, params[name], 0, 1, above=True)
    check_choice("fusion", params["fusion"], get_args(Fusion))


register_index(PGRAGIndex)
