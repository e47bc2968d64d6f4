"""The search of a retriever in an index that is served from stores, and what its explanations and page need."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.search.graph_search import GraphSearchResult
from llama_index.hipporag.search.query_seeds import Link, QuerySeeds
from llama_index.hipporag.search.ranking import UNTRUSTED
from llama_index.hipporag.state import HippoRAGState
from llama_index.hipporag.stored_graph.stored_search import StoredResult, search_stored
from llama_index.hipporag.stored_state import StoredGraphState
from llama_index.hipporag.text.normalization import Normalizer
from llama_index.ragkit import ChunkView, Query, Steps
from llama_index.ragkit.vectors.nearness import Nearness
from llama_index.ragkit.vectors.question_scores import best_rows, question_cosines
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["StoredAnswer", "answer_stored"]

Floats = NDArray[np.float64]

_DRAWN = 100  # passages of an answer, and as many of the walk, that explanations and the page know
_NOTHING = "no phrase of the question is in the graph"


@dataclass(frozen=True)
class StoredAnswer:
    """The answer to one question.

    Attributes
    ----------
    state : what it was answered from
    result : the ranking, and the walk
    rows : the passages that were scored
    nearness : of these
    """

    state: StoredGraphState
    result: StoredResult
    rows: Snapshot
    nearness: Nearness

    @property
    def fallback(self) -> str:
        """Why nearness alone decided, without the walk; empty otherwise."""
        if self.result.trust == 0:
            return UNTRUSTED
        return _NOTHING if self.result.trust is None else ""

    @property
    def links(self) -> Sequence[Link]:
        """The phrases that the walk started from."""
        return self.result.links

    def ranking(self, k: int) -> Iterator[tuple[str, float]]:
        """All passages that were scored, best first."""
        return iter(self.result.ranking)

    def drawn(self) -> Steps[GraphSearchResult]:
        """The part of the graph around the answer, as a result over a graph in memory: of the best passages of the
        answer and of the walk, what they consist of.
        """
        result = self.result
        best = [node_id for node_id, _ in result.ranking[:_DRAWN]]
        walked = sorted(result.walked, key=lambda i: (-result.walked[i], i))[:_DRAWN]
        ids = list(dict.fromkeys([*best, *walked]))
        contents = yield from self.state.passage_graph.passages(ids)
        passages = [contents[node_id] for node_id in ids if node_id in contents]
        rows = self.rows.rows_of([node_id for node_id in ids if node_id in contents])
        chunks = Snapshot.of(self.rows.matrix[rows], [self.rows.records[row] for row in rows])
        state = HippoRAGState(chunks=chunks, has_terms=self.state.has_terms).with_names(passages)
        state = replace(state, phrases=state.phrases.extended(link.phrase for link in self.links))
        state = replace(state, graph=state.graph_with(passages))
        scores = dict(result.ranking)
        active = {state.phrases[phrase]: p for phrase, p in result.active.items() if phrase in state.phrases}
        near = self.nearness
        return GraphSearchResult(
            state=state,
            graph=state.graph,
            allowed=None,
            seeds=_seeds(state, self.links, self.fallback if result.trust is None else ""),
            nodes=np.array(list(active), np.int64),
            active=np.array(list(active.values())),
            walked=None if result.trust is None else np.array([result.walked[i] for i in chunks.ids]),
            near=Nearness(near.cosines[rows], near.lexical[rows], near.lexical_weight, near.scores[rows]),
            trust=result.trust,
            scores=np.array([scores[node_id] for node_id in chunks.ids]),
        )


def _seeds(state: HippoRAGState, links: Sequence[Link], reason: str) -> QuerySeeds:
    here = [replace(link, row=state.phrases[link.phrase]) for link in links]
    weights = {link.row: link.weight for link in here}
    return QuerySeeds(here, {} if reason else weights, reason=reason)


def answer_stored(
    query: Query[HippoRAGState], state: StoredGraphState, config: SearchConfig, normalizer: Normalizer
) -> Steps[StoredAnswer]:
    """Answer a question from its state."""
    near = _Near(state, query.text, (yield from query.vector()), config.lexical_weight, state.near)
    result = yield from search_stored(
        partial(state.question_graph, config.subject_weight, config.max_phrase_share),
        query.text,
        near,
        config,
        normalizer,
        by_terms=state.has_terms,
        wanted=query.wanted,
    )
    return StoredAnswer(state, result, near.view.rows, near.nearness)


class _Near:
    """The nearness of the passages near to a question, and of others that the walk finds."""

    def __init__(
        self, state: StoredGraphState, question: str, vector: NDArray[np.float32], weight: float, view: ChunkView
    ) -> None:
        self._state, self._question, self._vector, self._weight = state, question, vector, weight
        self._take(view)

    def _take(self, view: ChunkView) -> None:
        self.view = view
        cosines = question_cosines(view.rows, self._vector)
        self.nearness = Nearness.of(cosines, view.lexical, self._weight, full_score=view.full_score)

    def nearest(self, count: int) -> tuple[Sequence[str], Floats]:
        """The passages with the largest cosines, and these."""
        cosines = self.nearness.cosines
        rows = best_rows(cosines, count, self.view.rows)
        return [self.view.rows.ids[row] for row in rows], cosines[rows]

    def best(self, count: int) -> Sequence[str]:
        """The passages with the highest nearness."""
        return [self.view.rows.ids[row] for row in best_rows(self.nearness.scores, count, self.view.rows)]

    def of(self, passages: Sequence[str]) -> Steps[Mapping[str, float]]:
        """The nearness of passages; those that are not in the view are read."""
        state = self._state
        self._take((yield from state.stored.including(self.view, self._question, passages, state.selection)))
        found = self.view.rows.rows_of(passages)
        records, scores = self.view.rows.records, self.nearness.scores.tolist()
        known = sorted((records[row].key, records[row].id, scores[row]) for row in found[found >= 0].tolist())
        return {node_id: score for _, node_id, score in known}
