"""`CombinedRetriever`: several indexes of the same chunks, asked as one."""

import base64
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.vector_stores.types import MetadataFilters
from numpy.typing import NDArray

from llama_index.ragkit.errors import ConfigurationError, EmbeddingModelMismatchError
from llama_index.ragkit.index.chunk_scores import ChunkScores, SharedQuestion, summed
from llama_index.ragkit.index.derived_index import DerivedIndex
from llama_index.ragkit.index.description import describe_index
from llama_index.ragkit.index.query import as_bundle
from llama_index.ragkit.index.results import LOOKED_AT_PER_RESULT, result_fields, take_nodes
from llama_index.ragkit.index.retriever import DerivedRetriever, Explanation
from llama_index.ragkit.steps import Steps, arun_steps, offload, run_steps
from llama_index.ragkit.text.lexical_index import question_stems
from llama_index.ragkit.validation import check_count
from llama_index.ragkit.vectors.question_scores import Nearness, best_rows, result_scores
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["CombinedExplanation", "CombinedRetriever"]

_SAME = 0.999  # cosine of the vectors that two models give to one text, if they are one model


@dataclass(frozen=True, kw_only=True)
class CombinedExplanation(Explanation):
    """Why a node was retrieved.

    Attributes
    ----------
    nearness : to the question, dense and lexical together, in standard deviations
    cosine, lexical : of the question and the node: the cosine, and the BM25 score; None where no index that computed
        them has read the node
    lexical_weight : weight of the BM25 score in nearness that this question chose, in [0, 1]; None where no index
        computed it
    added : what each method adds to it, in standard deviations, by method. A walk only subtracts, least from the chunks
        that it leads to
    """

    nearness: float
    cosine: float | None
    lexical: float | None
    lexical_weight: float | None
    added: Mapping[str, float]


@dataclass(frozen=True)
class _Found:
    ids: Sequence[str]
    near: tuple[Sequence[str], float, Nearness] | None
    nearness: NDArray[np.float64]
    added: Mapping[str, NDArray[np.float64]]
    best: Sequence[int]
    scores: NDArray[np.float64]


class CombinedRetriever(BaseRetriever):
    """Retrieves chunks by everything that several indexes of the same chunks know about a question.

    All methods score on one scale: nearness in standard deviations, plus a structure as far as it can be trusted for
    the question. So structures can be added: the score is the sum of nearness and what each method adds
    (:meth:`explain`). It is scaled to [0, 1] with 0.5 as a cutoff
    (:func:`~llama_index.ragkit.vectors.question_scores.result_scores`), and comparable within one answer. If two
    indexes rest on the same evidence, as two walks over the same names do, the weaker one counts in part. Beside MRAG,
    walks count less the more sentences a question has (:func:`~llama_index.ragkit.index.chunk_scores.summed`).

    Each index is searched with the defaults of its method. Nearness and the vector of the question are computed once
    for indexes in memory that have their chunks in the same order and share an embedding model.

    Parameters
    ----------
    indexes : at least two, of different methods, over the same chunks and with the same embedding model. One of them
        must compare chunks as they are: HippoRAG, PG-RAG, MRAG or Graph RAG. RAPTOR is rejected, since it scores
        summaries and adds nothing to the scores of chunks
    similarity_top_k : maximum number of nodes, at least 1 [10]
    token_budget : maximum number of tokens of all nodes; None for no limit [None]
    filters, node_ids, doc_ids : restrict the nodes [None]
    callback_manager, object_map, verbose : as in every LlamaIndex retriever

    Raises
    ------
    ConfigurationError
        If a parameter is invalid, or the indexes do not hold the same chunks, now or when a question is asked.
    EmbeddingModelMismatchError
        If the indexes were built with different embedding models.
    """

    def __init__(
        self,
        indexes: Sequence[DerivedIndex[Any, Any]],
        *,
        similarity_top_k: int = 10,
        token_budget: int | None = None,
        filters: MetadataFilters | None = None,
        node_ids: Sequence[str] | None = None,
        doc_ids: Sequence[str] | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> None:
        self._indexes = _checked(indexes)
        self.similarity_top_k = check_count("similarity_top_k", similarity_top_k, 1)
        self.token_budget = check_count("token_budget", token_budget, 1, none_ok=True)
        self.filters, self.node_ids, self.doc_ids = filters, node_ids, doc_ids
        first = next(iter(self._indexes.values()))
        super().__init__(callback_manager=callback_manager or first.callback_manager, verbose=verbose)
        of_indexes: Any = ChainMap(*(index.object_map for index in self._indexes.values()))
        self.object_map = of_indexes if object_map is None else object_map

    def __repr__(self) -> str:
        shown = ", ".join(str(describe_index(index)) for index in self._indexes.values())
        return f"CombinedRetriever(indexes=[{shown}], similarity_top_k={self.similarity_top_k})"

    def explain(self, query: QueryType) -> list[CombinedExplanation]:
        """Why each result for a question was retrieved, in the order of the results."""
        return run_steps(self._explained(as_bundle(query)))

    async def aexplain(self, query: QueryType) -> list[CombinedExplanation]:
        """As :meth:`explain`."""
        return await arun_steps(self._explained(as_bundle(query)))

    def _explained(self, bundle: QueryBundle) -> Steps[list[CombinedExplanation]]:
        found = yield from self._found(bundle)
        if found is None:
            return []
        row_of = {node_id: row for row, node_id in enumerate(found.ids)}
        ids, _, near = found.near or ((), 0.0, None)
        near_row = {node_id: row for row, node_id in enumerate(ids)}
        explained = []
        for result in (yield from self._taken(found)):
            row, read = row_of[result.node.node_id], near_row.get(result.node.node_id)
            added = {name: float(scores[row]) for name, scores in found.added.items()}
            explained.append(
                CombinedExplanation(
                    **result_fields(result),
                    nearness=float(found.nearness[row]),
                    cosine=None if near is None or read is None else float(near.cosines[read]),
                    lexical=None if near is None or read is None else float(near.lexical[read]),
                    lexical_weight=None if near is None else near.lexical_weight,
                    added=added,
                )
            )
        return explained

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return run_steps(self._answer(query_bundle))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await arun_steps(self._answer(query_bundle))

    def _answer(self, bundle: QueryBundle) -> Steps[list[NodeWithScore]]:
        found = yield from self._found(bundle)
        return [] if found is None else (yield from self._taken(found))

    def _taken(self, found: _Found) -> Steps[list[NodeWithScore]]:
        ranking = [(found.ids[row], float(found.scores[row])) for row in found.best]
        fetch = next(iter(self._indexes.values())).storage.get_node
        return (yield from take_nodes(ranking, fetch, self.similarity_top_k, self.token_budget))

    def _found(self, bundle: QueryBundle) -> Steps[_Found | None]:
        yield from offload(_check_chunks, self._indexes)
        shared, scored = SharedQuestion(), {}
        for name, index in self._indexes.items():
            retriever: Any = index.as_retriever(
                similarity_top_k=self.similarity_top_k,
                filters=self.filters,
                node_ids=self.node_ids,
                doc_ids=self.doc_ids,
            )
            found = yield from retriever.scored(bundle, shared)
            if found is not None:
                scored[name] = found
        if not scored:
            return None
        if all(scores.nearness is None for scores in scored.values()):
            raise ConfigurationError(
                f"None of the indexes ({', '.join(scored)}) compares chunks as they are. Add one that does: of "
                "HippoRAG, PG-RAG, MRAG or Graph RAG."
            )
        return (yield from offload(self._ranked, bundle.query_str, scored, shared))

    def _ranked(self, question: str, scored: Mapping[str, ChunkScores], shared: SharedQuestion) -> _Found:
        ids, nearness, added = summed(scored, question_stems(question).sentences)
        total = nearness + sum(added.values())
        read = [scores.chunks for scores in scored.values() if scores.nearness is not None]
        rows = read[0]
        if rows.ids != ids:  # in another order, filtered, or parts that were read from stores
            record_of = {record.id: record for chunks in reversed(read) for record in chunks.records}
            rows = Snapshot.empty().append(np.zeros((len(ids), 1), np.float32), [record_of[i] for i in ids])
        best = best_rows(total, LOOKED_AT_PER_RESULT * self.similarity_top_k, rows)
        return _Found(ids, shared.near, nearness, added, best, result_scores(total, total))


def _checked(indexes: Sequence[DerivedIndex[Any, Any]]) -> dict[str, DerivedIndex[Any, Any]]:
    """The indexes by method."""
    given = list(indexes)
    for index in given:
        if not isinstance(index, DerivedIndex):
            raise ConfigurationError(
                f"indexes must be indexes of these packages, such as HippoRAGIndex, not {type(index).__name__}."
            )
        if index.retriever_cls.chunk_scores is DerivedRetriever.chunk_scores:
            raise ConfigurationError(
                f"{type(index).__name__} has no scores of chunks of its own to combine: leave it out, or ask it alone."
            )
    named = {index.method: index for index in given}
    if len(given) < 2 or len(named) < len(given):
        methods = ", ".join(index.method for index in given) or "none"
        raise ConfigurationError(f"indexes must be at least two, each of another method, not {methods}.")
    first, *others = given
    for other in others:
        if not _same_model(first, other):
            raise EmbeddingModelMismatchError(
                f"{type(first).__name__} was built with the embedding model "
                f"{first.storage.struct.embedding.get('name')!r}, {type(other).__name__} with "
                f"{other.storage.struct.embedding.get('name')!r}. Build both with the same model."
            )
    _check_chunks(named)
    return named


def _same_model(one: DerivedIndex[Any, Any], other: DerivedIndex[Any, Any]) -> bool:
    """Whether both gave a fixed text the same vector; before the vectors of heads stands the model's own."""
    known = [index.storage.struct.embedding for index in (one, other)]
    if not all(known):  # of an index without nodes
        return True
    probes = [np.frombuffer(base64.b64decode(each["probe"]), "<f4").astype(np.float64) for each in known]
    count = min(map(len, probes))
    a, b = probes[0][:count], probes[1][:count]
    return float(a @ b) >= _SAME * float(np.linalg.norm(a) * np.linalg.norm(b))


def _check_chunks(indexes: Mapping[str, DerivedIndex[Any, Any]]) -> None:
    """Refuse indexes of other chunks; of indexes in stores, only the numbers of chunks are compared."""
    (first, one), *others = indexes.items()
    for name, other in others:
        whole = one.storage.space().whole(), other.storage.space().whole()
        if whole[0] is not None and whole[1] is not None:
            mine, theirs = whole[0].ids, whole[1].ids
            lacking = set() if mine == theirs else set(mine) ^ set(theirs)
            told = f"{len(lacking)} are in one of them only, such as {min(lacking)!r}" if lacking else ""
        else:
            counts = [index.storage.struct.counters.get("chunks", 0) for index in (one, other)]
            told = f"the one has {counts[0]}, the other {counts[1]}" if counts[0] != counts[1] else ""
        if told:
            raise ConfigurationError(
                f"The indexes {first} and {name} do not hold the same chunks: {told}. Insert and delete the same nodes "
                "in both."
            )
