"""`HybridRetriever`: dense and lexical search together, over any nodes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.embeddings.utils import EmbedType, resolve_embed_model
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import NDArray

from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.index.advantage import measure_advantage
from llama_index.ragkit.index.contents import IndexContents
from llama_index.ragkit.index.results import copied, fresh
from llama_index.ragkit.llm.embeddings import as_matrix, embed_query, embed_texts
from llama_index.ragkit.short_repr import ShortRepr
from llama_index.ragkit.steps import Steps, arun_steps, offload, run_steps
from llama_index.ragkit.storage.nodes import check_nodes, embed_text, sort_key
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.text.lexical_index import NOT_KNOWN, LexicalIndex, lexical_terms
from llama_index.ragkit.validation import check_count, check_ids, check_number
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore
from llama_index.ragkit.vectors.question_scores import (
    LEXICAL_WEIGHT,
    best_rows,
    hybrid_nearness,
    question_cosines,
    result_scores,
)
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["HybridRetriever"]


@dataclass(frozen=True)
class _Chunks:
    chunks: Snapshot = field(default_factory=Snapshot.empty)


class HybridRetriever(ShortRepr, BaseRetriever):
    """Retrieves the nodes nearest to a question by vectors and words together, from memory.

    Nodes are ranked by ``(1 - w) z(cosine) + w z(BM25)``. Both parts are standardised over the hundred best of the
    question, so the scale of the embedding model's cosines does not matter. w is `lexical_weight` for an ordinary
    question, more if its words say more, and less if its cosines do (:mod:`llama_index.ragkit.vectors.trust`).
    Scores are in [0, 1] and scaled so that 0.5 is a cutoff
    (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`). Compare them only within one answer. Words are
    stemmed in the language of the question; scripts without spaces are searched by characters. If no node has a word of
    the question, cosines decide.

    You can add and delete nodes at any time, also while other threads retrieve. This ranking is what every retriever of
    these packages calls nearness, without the structure of a method, and a baseline for them.

    Parameters
    ----------
    nodes : the nodes to search; nodes without text are left out, and embeddings that nodes have are used. Of 160 or
        more, some sentences are embedded too (:mod:`~llama_index.ragkit.vectors.self_retrieval`)
    embed_model : as in `VectorStoreIndex` [`Settings.embed_model`]
    similarity_top_k : maximum number of nodes, at least 1 [10]
    lexical_weight : in [0, 1]; 0 for vectors only, 1 for words only [0.5]
    filters, node_ids, doc_ids : restrict the nodes [None]
    show_progress : whether to show the progress of embedding [False]
    callback_manager, object_map, verbose : as in every LlamaIndex retriever

    Raises
    ------
    ConfigurationError
        If a parameter is invalid.
    """

    def __init__(
        self,
        nodes: Sequence[BaseNode] = (),
        embed_model: EmbedType | None = None,
        *,
        similarity_top_k: int = 10,
        lexical_weight: float = LEXICAL_WEIGHT,
        filters: MetadataFilters | None = None,
        node_ids: Sequence[str] | None = None,
        doc_ids: Sequence[str] | None = None,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self.similarity_top_k = check_count("similarity_top_k", similarity_top_k, 1)
        self.lexical_weight = check_number("lexical_weight", lexical_weight, 0, 1)
        self.filters, self.node_ids, self.doc_ids = filters, node_ids, doc_ids
        self._embed_model = embed_model
        self._show_progress = show_progress
        self._lock = ProcessLock()
        self._store = MatrixVectorStore(stores_text=False)
        self._nodes: dict[str, BaseNode] = {}
        self._contents = IndexContents(_Chunks(), LexicalIndex())
        self._measured = 0  # chunks with which the advantage of words was measured
        super().__init__(callback_manager=callback_manager, object_map=object_map, verbose=verbose)
        self.add_nodes(nodes)

    @property
    def embed_model(self) -> BaseEmbedding:
        """The embedding model: the one passed, or else `Settings.embed_model`."""
        if self._embed_model is None:
            return Settings.embed_model
        self._embed_model = resolve_embed_model(self._embed_model)
        return self._embed_model

    def _described(self) -> Mapping[str, Any]:
        held = {name: value for name, value in super()._described().items() if name not in ("nodes", "embed_model")}
        model = self._embed_model  # not that of `Settings`, which would be loaded
        return {"chunks": len(self), **({} if model is None else {"embed_model": model}), **held}

    def __len__(self) -> int:
        return len(self._contents.state.chunks)

    def add_nodes(self, nodes: Sequence[BaseNode]) -> None:
        """Add nodes. They replace nodes with the same ids; of several with one id the last counts."""
        nodes = list(nodes)
        check_nodes(nodes)
        given = sorted({node.node_id: node for node in nodes if embed_text(node)}.values(), key=sort_key)
        if not given:
            return
        vectors, (advantage, measured) = run_steps(self._embedded(given))
        with self._lock:
            self._measured = measured
            self._store.put(
                [node.node_id for node in given],
                vectors,
                ref_doc_ids=[node.ref_doc_id for node in given],
                metadatas=[node.metadata for node in given],
                keys=[sort_key(node) for node in given],
            )
            self._nodes = {**self._nodes, **{node.node_id: copied(node) for node in given}}
            terms = {node.node_id: lexical_terms(embed_text(node)) for node in given}
            lexical = self._contents.lexical.changed((), terms)
            self._contents = IndexContents(_Chunks(self._store.snapshot()), lexical, advantage)

    def delete_nodes(self, node_ids: Sequence[str]) -> None:
        """Delete nodes; unknown ids are ignored."""
        check_ids("node_ids", node_ids)
        with self._lock:
            self._store.delete_nodes(list(node_ids))
            gone = set(node_ids)
            self._nodes = {node_id: node for node_id, node in self._nodes.items() if node_id not in gone}
            lexical = self._contents.lexical.changed(gone, {})
            chunks = _Chunks(self._store.snapshot())
            self._contents = IndexContents(chunks, lexical, self._contents.advantage)

    def _embedded(self, nodes: Sequence[BaseNode]) -> Steps[tuple[NDArray[np.float32], tuple[float, int]]]:
        """The vectors of nodes, and the advantage of words with the number of chunks that it was measured with."""
        model, shown, texts = self.embed_model, self._show_progress, [embed_text(node) for node in nodes]
        bare = [text for node, text in zip(nodes, texts, strict=True) if node.embedding is None]
        embedded = iter((yield from embed_texts(model, bare, shown)))
        found = [next(embedded) if node.embedding is None else node.embedding for node in nodes]
        vectors, known = as_matrix(found, texts, self._store.dim), (self._contents.advantage, self._measured)
        if not self.lexical_weight:
            return vectors, known
        return vectors, (yield from measure_advantage(nodes, texts, vectors, known, model, show_progress=shown))

    def _found(self, question: QueryBundle) -> Steps[list[NodeWithScore]]:
        contents, nodes = self._contents, self._nodes
        chunks = contents.state.chunks
        if not len(chunks):
            return []
        vector = yield from embed_query(self.embed_model, question, chunks.dim)
        return (yield from offload(self._nearest, contents, nodes, question.query_str, vector))

    def _nearest(
        self,
        contents: IndexContents[_Chunks],
        nodes: dict[str, BaseNode],
        question: str,
        vector: NDArray[np.float32],
    ) -> list[NodeWithScore]:
        chunks = contents.state.chunks
        allowed = Selection(self.filters, self.node_ids, self.doc_ids).allowed(chunks)
        cosines = question_cosines(chunks, vector)
        lexical, full_score = np.zeros(len(chunks)), NOT_KNOWN
        if self.lexical_weight:
            lexical, full_score = contents.scored(question, allowed)
        nearness = hybrid_nearness(cosines, lexical, self.lexical_weight, allowed, full_score)
        best = best_rows(nearness, self.similarity_top_k, chunks)
        found = zip(best, result_scores(nearness[best], nearness).tolist(), strict=True)
        return [fresh(nodes[chunks.ids[row]], score) for row, score in found if chunks.ids[row] in nodes]

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_steps(self._found(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await arun_steps(self._found(query_bundle))
