"""`GraphView`: the graph for one question: the whole graph if it is in memory, else the part that it needs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.graph.knowledge_graph import GraphPart, KnowledgeGraph
from llama_index.hipporag.graph.passage import Fact, Passage, passage_number, phrase_number
from llama_index.hipporag.passage_graph import PassageGraph
from llama_index.hipporag.search.graph_search import GraphSearchResult, seed_passages
from llama_index.hipporag.search.query_seeds import Link, NamedPhrases, QuerySeeds, links_of_named
from llama_index.hipporag.search.question_graph import SMALL, QuestionGraph, Reset
from llama_index.hipporag.search.reranking import rerank_weights
from llama_index.hipporag.state import HippoRAGState, Numbering, facts_of
from llama_index.ragkit import Query, Selection, Snapshot, Steps, offload
from llama_index.ragkit.index.contents import ViewContents
from llama_index.ragkit.steps import immediate, run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.vectors.question_scores import Nearness
from llama_index.ragkit.vectors.snapshot import Hits, Mask

__all__ = ["FACTS", "PHRASES", "AskedGraph", "GraphView", "Prepared", "ReadGraph", "WholeGraph"]

PHRASES, FACTS = "phrases", "facts"
"""Spaces of vectors."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]
Graph = KnowledgeGraph | GraphPart

_WALKED = 60  # best passages of the walk; the share of others is too small for them to be among the best of the sum
_FARTHEST = 100  # farthest passages, which include the one of least nearness
_DRAWN = 100  # passages of an answer, and as many of the walk, that explanations and the page know
_MORE = 4  # factor by which more phrases or facts are requested while too few of them may be shown
_MOST = 16_000
_EQUAL = 1e-6  # cosines within the error of a store


class Prepared(NamedTuple):
    """The input from which :func:`~llama_index.hipporag.search.graph_search.search_many` answers questions."""

    queries: Sequence[Query[HippoRAGState]]
    graph: Graph
    seeds: Sequence[QuerySeeds]
    nearness: Sequence[Nearness | None]


@dataclass(frozen=True)
class WholeGraph:
    """A graph in memory: the state of the whole index, and the graph of the passages that a question may see."""

    state: HippoRAGState
    graph: KnowledgeGraph
    has_terms: bool = True

    @property
    def has_phrases(self) -> bool:
        """Whether there are phrases to which a question can be linked."""
        return len(self.state.phrases) > 0

    @immediate
    def links(self, question: str, normal: Callable[[str], str], by_specificity: bool) -> list[Link]:
        """The phrases that a question names."""
        state, graph = self.state, self.graph
        named = NamedPhrases(state.known_names(normal), state.phrases.at, graph.frequency, graph.mentioned)
        return links_of_named(named, question, by_specificity, self.has_terms)

    @immediate
    def places(self, phrases: Sequence[str]) -> dict[str, tuple[int, float]]:
        """The row of each of some phrases, and its number of passages, without phrases that no passage has."""
        rows, frequency = self.state.phrases, self.graph.frequency
        known = {one: rows[one] for one in phrases if one in rows}
        return {one: (row, float(frequency[row])) for one, row in known.items() if frequency[row]}

    @immediate
    def phrases_near(self, vectors: Floats, most: int) -> tuple[Snapshot, Mask]:
        """Phrases that include the `most` nearest to each of some vectors, and a mask of those that may be shown."""
        phrases = self.state.phrase_vectors
        return phrases, self.graph.frequency[: len(phrases)] > 0

    @immediate
    def facts_near(self, vector: Floats, most: int) -> tuple[Snapshot, Mask]:
        """Facts that include the `most` nearest to a vector and the farthest, and a mask of those that may be shown."""
        facts, stated = self.state.fact_vectors, self.graph.stated
        return facts, np.ones(len(facts), np.bool_) if stated.all() else stated[self.state.fact_columns]

    @immediate
    def prepared(
        self, queries: Sequence[Query[HippoRAGState]], seeds: Sequence[QuerySeeds], near: Sequence[Nearness | None]
    ) -> Prepared:
        """The graph for the walks of questions."""
        return Prepared(queries, self.graph, seeds, near)

    @immediate
    def around(
        self, ids: Sequence[str | None], seeds: QuerySeeds, node_weight: float
    ) -> tuple[Graph, Ints, QuerySeeds]:
        """The graph for a walk from some passages, their rows (-1 for unknown ones), and the seeds besides them."""
        return self.graph, self.state.chunks.rows_of([each or "" for each in ids]).astype(np.int64), seeds


@dataclass(frozen=True)
class ReadGraph:
    """A graph of which a question reads only a part; its methods are those of :class:`WholeGraph`."""

    view: "GraphView"
    question: QuestionGraph
    selection: Selection
    config: SearchConfig
    has_phrases: bool = True

    def links(self, question: str, normal: Callable[[str], str], by_specificity: bool) -> Steps[list[Link]]:
        """The phrases that a question names; their rows are numbers of nodes."""
        return (yield from offload(self.question.links, question, normal, by_specificity, self.view.has_terms))

    def places(self, phrases: Sequence[str]) -> Steps[dict[str, tuple[int, float]]]:
        """The number of the node of each of some phrases, and its number of passages."""
        found = yield from offload(self.question.frequencies, phrases)
        return {phrase: (phrase_number(phrase), count) for phrase, count in found.items()}

    def phrases_near(self, vectors: Floats, most: int) -> Steps[tuple[Snapshot, Mask]]:
        """See :meth:`WholeGraph.phrases_near`."""
        wanted = _MORE * most
        while True:
            found = yield from self.view.space(PHRASES).near(vectors, wanted)
            shown = yield from offload(self.question.frequencies, [record.key for record in found.records])
            mask = np.array([record.key in shown for record in found.records], np.bool_)
            enough = all(_enough(hits, mask, most) for hits in found.search(vectors, wanted))
            if enough or len(found) < wanted or wanted > _MOST:
                return found, mask
            wanted *= _MORE

    def facts_near(self, vector: Floats, most: int) -> Steps[tuple[Snapshot, Mask]]:
        """See :meth:`WholeGraph.facts_near`."""
        wanted, ends = _MORE * most, np.stack([vector, -vector])
        while True:
            found = yield from self.view.space(FACTS).near(ends, wanted)
            facts = facts_of(record.key for record in found.records)
            stated = yield from self.view.stated(self.question, facts)
            mask = np.array([fact in stated for fact in facts], np.bool_)
            near, far = found.search(ends, wanted)
            if (_enough(near, mask, most) and mask[far.rows].any()) or len(found) < wanted or wanted > _MOST:
                return found, mask
            wanted *= _MORE

    def prepared(
        self, queries: Sequence[Query[HippoRAGState]], seeds: Sequence[QuerySeeds], near: Sequence[Nearness | None]
    ) -> Steps[Prepared]:
        """The part of the graph for the walk of one question, over passages near to it or reached by the walk."""
        ((query,), (linked,), (nearness,)) = queries, seeds, near
        contents = query.contents
        if not isinstance(contents, ViewContents) or linked.reason:
            return Prepared(queries, (yield from self._part(query.state.chunks, linked))[0], seeds, near)
        resets = self._resets(query.state.chunks, linked, nearness)
        found = yield from self._read(resets, max(_WALKED, query.wanted))
        found += yield from self._others(query)
        chunks = yield from contents.stored.including(contents.near, query.text, found, self.selection)
        part, linked = yield from self._part(chunks.rows, linked)
        state = replace(query.state, chunks=chunks.rows, phrases=Numbering(part.phrases), names={})
        query = query.over(replace(contents, state=state, near=chunks))
        if nearness is not None:
            nearness = yield from query.nearness(self.config.lexical_weight)
        return Prepared([query], part, [linked], [nearness])

    def around(
        self, ids: Sequence[str | None], seeds: QuerySeeds, node_weight: float
    ) -> Steps[tuple[Graph, Ints, QuerySeeds]]:
        """See :meth:`WholeGraph.around`."""
        chunks = yield from self.view.space().described(dict.fromkeys(each for each in ids if each is not None))
        rows = chunks.rows_of([each or "" for each in ids]).astype(np.int64)
        places = np.flatnonzero(rows >= 0).tolist()
        if places:
            weights, shares = rerank_weights(seeds.weights, places, node_weight)
            nodes = [*weights, *(passage_number(ids[place] or "") for place in places)]
            reset = np.array(nodes, np.int64), np.array([*weights.values(), *shares])
            yield from self._read([reset], 0)
        part, seeds = yield from self._part(chunks, seeds)
        return part, rows, seeds

    def _resets(self, chunks: Snapshot, seeds: QuerySeeds, near: Nearness | None) -> list[Reset]:
        """The starts of walks: all seeds, and, for a conjunction, each phrase."""
        rows, shares = seed_passages(None if near is None else near.cosines, None, self.config)
        numbers = [*seeds.weights, *(passage_number(chunks.ids[row]) for row in rows.tolist())]
        resets = [(np.array(numbers, np.int64), np.array([*seeds.weights.values(), *shares]))]
        if self.config.published.conjunction and len(seeds.weights) > 1:
            resets += [(np.array([number], np.int64), np.ones(1)) for number in seeds.weights]
        return resets

    def _read(self, resets: Sequence[Reset], count: int) -> Steps[list[str]]:
        found = yield from offload(self.question.read, resets, count)
        if self.selection.is_whole:
            self.view.rows.common = frozenset(self.question.common)
        return found

    def _others(self, query: Query[HippoRAGState]) -> Steps[list[str]]:
        """Passages that count although they are neither near nor reached: the least near, or all of a small index."""
        if self.config.published.ensemble == "trust":
            return []
        if self.view.passages <= SMALL:
            return list((yield from self.view.space().described(None, self.selection)).ids)
        vector = yield from query.vector()
        return list((yield from self.view.space().near(-vector[None], _FARTHEST, self.selection)).ids)

    def _part(self, chunks: Snapshot, seeds: QuerySeeds) -> Steps[tuple[GraphPart, QuerySeeds]]:
        """The part of the graph that was read, over some passages, and the seeds with their rows there."""
        contents = None
        if not self.config.published.passage_nodes or self.config.published.length_normalization:
            contents = yield from self.view.consisting(chunks)
        part = yield from offload(self.question.part, chunks.ids, seeds.links, contents)
        rows = {phrase: row for row, phrase in enumerate(part.phrases)}
        row = {link.row: rows[link.phrase] for link in seeds.links}
        links = [replace(link, row=row[link.row]) for link in seeds.links]
        return part, replace(seeds, links=links, weights={row[one]: weight for one, weight in seeds.weights.items()})


def _enough(hits: Hits, shown: Mask, most: int) -> bool:
    """Whether `most` of the hits may be shown and are nearer than the last hit: a store picks among equal rows."""
    near = np.asarray(hits.scores)[shown[hits.rows]]
    return len(near) > most and bool(near[most - 1] > hits.scores[-1] + _EQUAL)


AskedGraph: TypeAlias = WholeGraph | ReadGraph


class GraphView:
    """Reads the parts of an index's graph that questions and writes need."""

    def __init__(self, storage: IndexStorage, rows: PassageGraph) -> None:
        self._storage = storage
        self.rows = rows
        self.space = storage.space

    @property
    def passages(self) -> int:
        """The number of passages."""
        return self._storage.struct.counters.get("chunks", 0)

    @property
    def has_terms(self) -> bool:
        """Whether the graph has terms in lower case: it does unless its extractor is set to extract none."""
        return self._storage.struct.components.get("extractor", {}).get("terms") != "false"

    def asked(
        self, state: HippoRAGState, allowed: Mask | None, selection: Selection, config: SearchConfig
    ) -> Steps[AskedGraph]:
        """The graph, restricted to what a question may see: by the mask in memory, by the selection in stores."""
        if not self.rows.is_stored:
            return WholeGraph(state, (yield from offload(state.visible, allowed)), self.has_terms)
        return ReadGraph(self, self._question(selection, config), selection, config)

    def _question(self, selection: Selection, config: SearchConfig) -> QuestionGraph:
        if selection.is_whole:
            return QuestionGraph(self.rows.reader, None, self.passages, config, self.rows.common)

        def allowed(numbers: Ints) -> Mask:
            shown = run_steps(self.rows.node_ids(numbers)) if selection.only is None else selection.only
            if selection.filters is not None:
                shown = run_steps(self.space().described(shown, selection)).ids
            return np.isin(numbers, [passage_number(node_id) for node_id in shown])

        return QuestionGraph(self.rows.reader, allowed, self.passages, config)

    def stated(self, question: QuestionGraph, facts: Iterable[Fact]) -> Steps[set[Fact]]:
        """The facts that are stated by a passage that may be returned."""
        passages = yield from offload(question.passages_with, list(facts))
        contents = yield from self.rows.passages(passages)
        return {fact for each in contents.values() for fact in each.statements}

    def lost(self, passages: Iterable[Passage]) -> Steps[tuple[list[str], list[Fact]]]:
        """The phrases and facts of earlier passages that no passage has any more."""
        question = self._question(Selection(), SearchConfig())
        held = HippoRAGState().with_names(list(passages))
        phrases = yield from offload(question.frequencies, list(held.phrases))
        facts = yield from self.stated(question, held.facts)
        return [one for one in held.phrases if one not in phrases], [one for one in held.facts if one not in facts]

    def consisting(self, chunks: Snapshot) -> Steps[HippoRAGState]:
        """The state of some chunks, made from their stored passages."""
        contents = yield from self.rows.passages(chunks.ids)
        return HippoRAGState.of(chunks, [contents.get(i, Passage({}, {})) for i in chunks.ids])

    def drawn(self, found: GraphSearchResult[Any]) -> Steps[GraphSearchResult[KnowledgeGraph]]:
        """A result over the whole graph, or over the graph of the best passages of the answer and of the walk."""
        if isinstance(found.graph, KnowledgeGraph):
            return found
        scores = found.scores if found.walked is None else found.walked
        best = [np.argsort(-each, kind="stable")[:_DRAWN] for each in (found.scores, scores)]
        rows = np.array(list(dict.fromkeys(np.concatenate(best).tolist())), np.int64)
        links, name = found.seeds.links, found.state.phrases.at
        state = yield from self.consisting(found.state.chunks.part(rows))
        state = replace(state, phrases=state.phrases.extended(link.phrase for link in links), names={})
        state = replace(state, graph=state.graph_with([]))
        if found.synonyms:
            state = state.with_lists((yield from self.rows.lists(list(state.phrases))))
        active = zip(map(name, found.nodes.tolist()), found.active.tolist(), strict=True)
        here = {state.phrases[phrase]: share for phrase, share in active if phrase in state.phrases}
        rows_of = {row: state.phrases[name(row)] for row in found.seeds.weights}
        weights = {rows_of[row]: weight for row, weight in found.seeds.weights.items()}
        seeds = replace(found.seeds, links=[replace(x, row=state.phrases[x.phrase]) for x in links], weights=weights)
        near = found.near
        return replace(
            found,
            state=state,
            graph=state.graph,
            seeds=seeds,
            nodes=np.array(list(here), np.int64),
            active=np.array(list(here.values())),
            walked=None if found.walked is None else found.walked[rows],
            near=near
            and replace(near, cosines=near.cosines[rows], lexical=near.lexical[rows], scores=near.scores[rows]),
            scores=found.scores[rows],
        )
