"""`RelevantSegmentPostprocessor`: relevant segments from the chunks of any retriever and reranker."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.storage.docstore.types import BaseDocumentStore
from typing_extensions import Unpack

from llama_index.ragkit import DerivedIndex, DerivedPostprocessor, Steps, content_id
from llama_index.ragkit.index.matching import match_nodes
from llama_index.ragkit.steps import call
from llama_index.ragkit.storage.nodes import plain_text
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.sprag.builder import ContextBuilder
from llama_index.sprag.config import SegmentConfig, SpRAGConfig, published_config
from llama_index.sprag.documents import DocumentEntry
from llama_index.sprag.extraction.context_extractor import document_chunks
from llama_index.sprag.keywords import RelevantSegmentKeywords
from llama_index.sprag.segment_nodes import (
    header_of_segment,
    in_document_order,
    merged_by_rank,
    segment_results,
)
from llama_index.sprag.segment_search import RankedChunks, find_segments
from llama_index.sprag.state import SpRAGState

__all__ = ["RelevantSegmentPostprocessor"]

_SEGMENT_PARAMETERS = frozenset(SegmentConfig.__dataclass_fields__)


class RelevantSegmentPostprocessor(DerivedPostprocessor):
    """Replaces chunks by the most valuable runs of neighbouring chunks within a budget.

    It works after any retriever and reranker. It needs no LLM, no embedding model and no index of spRAG. The neighbours
    of a chunk come from the index, or from a document store that holds the nodes of its document; with most external
    vector stores you must add the nodes to one. Chunks whose document is in neither are kept, placed among the segments
    by their rank, with the score of the result before them.

    Let the retriever return many chunks: the published code takes 200.

    Parameters
    ----------
    index : a :class:`~llama_index.sprag.SpRAGIndex`, which knows all documents and their lengths [None]
    docstore : where neighbours are found without an index [None: that of the index]
    reranked : whether the scores are those of a reranker, for `calibration="auto"` [False: only the rank counts]
    segment_headers : whether the text of a segment begins with the header of its document, from the index [False]
    kwargs : how segments are chosen; see :class:`~llama_index.sprag.config.SegmentConfig`
    top_n, token_budget, filters : see :class:`~llama_index.ragkit.DerivedPostprocessor`; filters need the index

    Raises
    ------
    ConfigurationError
        If a parameter is unknown or has an invalid value.
    """

    method: ClassVar[str] = "sprag"
    keywords: ClassVar[type] = RelevantSegmentKeywords
    needs_index: ClassVar[bool] = False

    config: SegmentConfig = Field(default_factory=SegmentConfig, description="How segments are extracted.")
    reranked: bool = Field(default=False, description="Whether the scores are those of a reranker.")
    segment_headers: bool = Field(default=False, description="Whether segments begin with a header.")

    _docstore: BaseDocumentStore | None = PrivateAttr(default=None)

    def __init__(
        self,
        index: DerivedIndex[SpRAGConfig, SpRAGState] | None = None,
        docstore: BaseDocumentStore | None = None,
        **kwargs: Unpack[RelevantSegmentKeywords],
    ) -> None:
        given: dict[str, Any] = dict(kwargs)
        parameters = {name: given.pop(name) for name in list(given) if name in _SEGMENT_PARAMETERS}
        if parameters or "config" not in given:
            given["config"] = SegmentConfig(**parameters)
        owner: Any = index
        super().__init__(owner, **given)
        self._docstore = docstore if docstore is not None else (None if index is None else index.docstore)

    @staticmethod
    def paper(preset: str = "balanced") -> dict[str, Any]:
        """The published parameters as keywords: `RelevantSegmentPostprocessor(**...paper("precision"))`.

        Parameters
        ----------
        preset : "balanced" [the published default], "precision", "find_all" or "article"
        """
        return {**vars(published_config(preset)), "segment_headers": True}

    def _results(
        self, nodes: Sequence[NodeWithScore], bundle: QueryBundle | None, vectors: Any
    ) -> Steps[list[NodeWithScore]]:
        state = yield from self._state(nodes)
        matched = [r.node.node_id for r in nodes] if state is None else match_nodes(nodes, state.chunks)
        best: dict[str, NodeWithScore] = {}
        for result, chunk in zip(nodes, matched, strict=True):
            best.setdefault(chunk or result.node.node_id, result)
        if state is not None:
            keys = dict.fromkeys(state.document_of[i] for i in best if i in state.document_of)
            state = yield from self._builder.with_documents(state, keys, self._selection)
        documents, place_of = yield from self._documents(best, state)
        scores = np.array([np.nan if r.score is None else float(r.score) for r in best.values()], np.float64)
        ranking = RankedChunks(list(best), scores, self.reranked)
        shown = None if state is None else state.shown
        segments = find_segments([ranking], documents, place_of.get, self.config, shown)
        headers = None
        if self.segment_headers:
            entries = documents if shown is None else {key: entry.only(shown) for key, entry in documents.items()}
            headers = {key: header_of_segment(entry.title, entry.summary) for key, entry in entries.items()}

        def fetch(node_ids: Sequence[str]) -> Steps[dict[str, BaseNode]]:
            found = {i: best[i].node.model_copy(deep=True) for i in node_ids if i in best}
            return found | (yield from self._fetch([i for i in node_ids if i not in found]))

        found = yield from segment_results(segments, fetch, headers)
        if self.config.order == "document":
            kept_here = {id(result) for result in self._cut([result for _, result in found])}
            found = in_document_order([pair for pair in found if id(pair[1]) in kept_here])
        used = {chunk for segment in segments for chunk in segment.chunks}
        alone = {entry.chunks[0] for entry in documents.values() if entry.key == _alone(entry.chunks[0])}
        rank = {chunk: place for place, chunk in enumerate(best)}
        kept = [(rank[chunk], best[chunk].node) for chunk in best if chunk in alone and chunk not in used]
        ranked = [(min(rank.get(chunk, len(rank)) for chunk in s.chunks), result) for s, result in found]
        return merged_by_rank(ranked, kept)

    def _state(self, nodes: Sequence[NodeWithScore]) -> Steps[SpRAGState | None]:
        """The state of the index, or the part of it with the given nodes."""
        if self._index is None:
            return None
        state = (yield from self._index.writer.recovered()).state
        return (yield from self._builder.state_around(state, [each.node for each in nodes]))

    @property
    def _builder(self) -> ContextBuilder:
        builder: ContextBuilder = self._index.builder
        return builder

    def _documents(
        self, given: Mapping[str, NodeWithScore], state: SpRAGState | None
    ) -> Steps[tuple[dict[str, DocumentEntry], dict[str, tuple[str, int]]]]:
        """The documents of chunks, and the place of each of their chunks."""
        documents: dict[str, DocumentEntry] = {}
        place_of: dict[str, tuple[str, int]] = {}
        for chunk, result in given.items():
            if chunk in place_of:
                continue
            if state is not None and state.place(chunk) is not None:
                entry = state.documents[state.document_of[chunk]]
            else:
                entry = _entry(*(yield from self._neighbours(chunk, result.node)))
            documents[entry.key] = entry
            place_of.update({each: (entry.key, number) for number, each in enumerate(entry.chunks)})
        return documents, place_of

    def _neighbours(self, chunk: str, node: BaseNode) -> Steps[tuple[str, list[BaseNode]]]:
        """The nodes of the LlamaIndex document of a node, from the document store; only the node without a document."""
        store = self._docstore
        if store is not None and node.ref_doc_id is not None:
            info = yield from call(store.get_ref_doc_info, store.aget_ref_doc_info, node.ref_doc_id)
            if info is not None and chunk in info.node_ids:
                nodes = yield from call(store.get_nodes, store.aget_nodes, list(info.node_ids), raise_error=False)
                if any(each.node_id == chunk for each in nodes):  # or it is being deleted
                    return content_id("document", node.ref_doc_id), list(nodes)
        return _alone(chunk), [node]

    def _fetch(self, node_ids: Sequence[str]) -> Steps[dict[str, BaseNode]]:
        """The nodes that the document store has."""
        store = self._docstore
        if store is None or not node_ids:
            return {}
        if self._index is not None and store is self._index.docstore:
            return dict((yield from self._index.storage.get_nodes(node_ids)))
        found = yield from call(store.get_nodes, store.aget_nodes, list(node_ids), raise_error=False)
        return {node.node_id: node for node in found}


def _alone(chunk: str) -> str:
    """The key of a document of which only a single chunk is known."""
    return content_id("alone", chunk)


def _entry(key: str, nodes: Iterable[BaseNode]) -> DocumentEntry:
    document = document_chunks(key, nodes)
    tokens = [count_tokens(node.get_content(metadata_mode=MetadataMode.LLM)) + 1 for node in document.nodes]
    characters = [len(plain_text(node)) for node in document.nodes]
    lengths = np.array(tokens, np.int64), np.array(characters, np.int64)
    return DocumentEntry(key, tuple(node.node_id for node in document.nodes), tuple(document.goes_on), *lengths)
