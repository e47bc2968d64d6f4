"""Ranking of fact paths and of source nodes for a question.

Let z(x) be a cosine or BM25 score in standard deviations of the hundred best for this question. With the question q and
the key points k, a node p with the facts F(p) has the score

    s(p) = nearness(p) + fact_weight * z(best(p)) + bridge_weight * t * log share(p)
    best(p) = max(cos(q, p), max_{f in F(p), k} cos(k, f))

It is the sum of three terms:

- The nearness of the node (:mod:`llama_index.ragkit.vectors.question_scores`).
- The cosine of its nearest fact, or its own if that is larger. It counts less if the cosines of the question cannot be
  trusted (:mod:`~llama_index.ragkit.vectors.trust`). The node itself counts because facts leave out much of some
  nodes: a page of tables has few sentences that are facts, and pages of prose, with twenty each, would outnumber it.
  Facts without vectors, which were read without a language model, add nothing: nearness has the node's own cosine.
- Its share of the walk over names (:mod:`~llama_index.pgrag.search.name_walk`). It counts as far as the walk can be
  trusted for this question, t in [0, 1].

A fact path f with the aggregate score w(f) of the walk over the candidate maps has the score

    s(f) = (1 - l) max_k z(cos(k, f)) + walk_weight * w(f) / max w + s(p)

where l is the weight of BM25 in the nearness of nodes for this question. Two criteria that need the texts of paths, or
the other paths, then rank the best paths; neither is in the paper:

- *Words.* The BM25 score of a path among the best paths counts in addition to its cosine. Its weight is l, which is
  larger if the cosines of the question cannot be trusted.
- *Repetition.* If a walk over names is trusted, the facts of an answer lie in several of the nodes to which it leads,
  but the best of these nodes alone may have more facts than are wanted. So each further fact of a node counts less, as
  far as the walk counts.

Shifting or stretching all cosines changes no ranking. Nodes are long and cover several subjects; facts are short and
lack context. Together they rank better than either.

The published ranking, `ranking="support"`, uses only w: paths that no seed reached are not results, and a node has the
support of its best path.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.config import SearchConfig
from llama_index.pgrag.search.candidates import Allowed, Candidate, Vector
from llama_index.pgrag.search.name_walk import NameWalk
from llama_index.pgrag.search.pseudo_graph_walk import Walk, walk
from llama_index.pgrag.state import KINDS, FactPath, PseudoGraph
from llama_index.ragkit.index.chunk_scores import Structure
from llama_index.ragkit.text.lexical_index import lexical_terms, scores_of_few
from llama_index.ragkit.vectors.question_scores import (
    Nearness,
    best_rows,
    question_cosines,
    result_scores,
    sorted_rows,
    standardised,
)
from llama_index.ragkit.vectors.trust import combine

__all__ = [
    "REPEATED",
    "Answer",
    "FactScores",
    "MergedPath",
    "nearness_of_nodes",
    "node_scores",
    "path_scores",
    "rank_paths",
    "score_facts",
]

Floats = NDArray[np.float64]
Scored = tuple[FactPath, float]

_EXACT = 5_000  # facts; there are ten times as many as nodes, so exact cosines of all would take a tenth of a second

REPEATED = 2.0
"""Penalty of a path for each earlier fact of the same node, in units of the weight of the walk over names."""

_WORDS = 200  # paths whose words are compared; takes about 10 ms
_PATHS = 500  # to rank; more if more results are wanted
_BESIDE_OTHERS = 0.5  # weight of its walk over names next to that of HippoRAG


@dataclass(frozen=True)
class Template:
    """The fact paths of the candidate maps as matrices.

    Attributes
    ----------
    facts : one per row
    ids : shape (rows, columns), cell ids; -1 is padding
    vectors : shape (cells, d), unit length, in the order of the ids
    """

    facts: list[FactPath]
    ids: NDArray[np.int64]
    vectors: NDArray[np.float64]

    def similarities(self, key_points: Sequence[Vector]) -> NDArray[np.float64]:
        """Cosine of each key point with each cell, shape (key points, rows, columns); padding is 0."""
        points = _units(np.stack(key_points))
        if not self.facts:
            return np.zeros((len(points), 0, 0))
        cosines = points @ self.vectors.T
        filled: NDArray[np.float64] = np.where(self.ids >= 0, cosines[:, self.ids], 0.0)
        return filled


def _make_template(graph: PseudoGraph, candidates: Sequence[Candidate], allowed: Allowed) -> Template:
    """The template of the facts that pass the filter, with rows in the order of the candidates, then of their maps."""
    facts: list[FactPath] = []
    rows: list[list[int]] = []
    places: dict[tuple[str, str], int] = {}
    for candidate in candidates:
        found = graph.maps[candidate.topic_id]
        for fact in found.facts:
            if allowed.fact(fact):
                facts.append(fact)
                rows.append([places.setdefault(cell, len(places)) for cell in found.cells(fact)])
    ids = np.full((len(rows), max(map(len, rows), default=0)), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    vectors = np.zeros((len(places), graph.facts.dim or 0), dtype=np.float32)
    for kind in KINDS:
        mine = [(place, cell_id) for (own, cell_id), place in places.items() if own == kind]
        if mine:
            vectors[[place for place, _ in mine]] = getattr(graph, kind).vectors_of([cell_id for _, cell_id in mine])
    return Template(facts, ids, _units(vectors))


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    unit: NDArray[np.float64] = np.divide(wide, norms, out=np.zeros_like(wide), where=norms > 0)
    return unit


@dataclass(frozen=True)
class FactScores:
    """The facts of a graph for a question, and the walk over the candidate maps.

    Attributes
    ----------
    allowed : which facts count, shape (facts,); None for all
    cosines : shape (key points, facts)
    nearness : shape (facts,), the best cosine to a key point in standard deviations of the hundred best; -inf for facts
        that do not count
    support : shape (facts,), the shares of the walk, relative to the best
    candidates, template, cell_cosines, sims, walked : the steps of the walk; `sims` are the cosines of the cells in the
        unit of the control
    """

    allowed: NDArray[np.bool_] | None
    cosines: Floats
    nearness: Floats
    support: Floats
    candidates: Sequence[Candidate]
    template: Template
    cell_cosines: Floats
    sims: Floats
    walked: Walk | None


def score_facts(
    graph: PseudoGraph,
    key_points: Sequence[Vector],
    candidates: Sequence[Candidate],
    config: SearchConfig,
    allowed: Allowed,
) -> FactScores:
    """Compare all facts with the key points, and walk over the candidate maps."""
    cosines = np.stack([question_cosines(graph.facts, point, _EXACT) for point in key_points])
    nearness = np.full(len(graph.facts), -np.inf)
    shown = np.arange(len(graph.facts)) if allowed.facts is None else np.flatnonzero(allowed.facts)
    if len(shown):
        nearness[shown] = np.max([standardised(row) for row in cosines[:, shown]], axis=0)
    template = _make_template(graph, candidates, allowed)
    cell_cosines = sims = template.similarities(key_points)
    support = np.zeros(len(graph.facts))
    walked = None
    if config.walks and template.facts:
        control = config.cell_control
        if control.unit == "deviations":
            by_point = [standardised(own, by=row) for own, row in zip(sims, cosines[:, shown], strict=True)]
            sims = np.stack(by_point)
        walked = walk(template.ids, sims, config.num_seeds, control)
        if walked.scores.max() > 0:
            support[graph.facts.rows_of([fact.id for fact in template.facts])] = walked.scores / walked.scores.max()
    return FactScores(allowed.facts, cosines, nearness, support, candidates, template, cell_cosines, sims, walked)


def node_scores(
    graph: PseudoGraph, near: Nearness, facts: FactScores, names: NameWalk | None, config: SearchConfig
) -> Floats:
    """The scores of all nodes, shape (nodes,); -inf for nodes that may not be shown."""
    nearness, cosines = near.scores, near.cosines
    shown = np.isfinite(nearness)
    scores = np.full(len(nearness), -np.inf)
    if config.ranking == "support":
        np.maximum.at(scores, graph.node_rows, path_scores(graph, facts, None, 0.0, config))
        return np.where(shown, scores, -np.inf)
    if graph.fused is None or not len(graph.facts):
        return nearness_of_nodes(near, names, config)
    best, counted = cosines.astype(np.float64), np.isfinite(facts.nearness)
    np.maximum.at(best, graph.node_rows[counted], facts.cosines.max(axis=0)[counted])
    return nearness_of_nodes(near, names, config, best)


def nearness_of_nodes(
    near: Nearness, names: NameWalk | None, config: SearchConfig, best: Floats | None = None
) -> Floats:
    """The scores of all nodes, shape (nodes,); -inf for nodes that may not be shown.

    `best` has the cosine of each node's nearest fact, or its own if that is larger; None if facts have no vectors.
    """
    shown = np.isfinite(near.scores)
    scores = np.full(len(shown), -np.inf)
    scores[shown] = near.scores[shown]
    if config.fact_weight and best is not None:
        # Scores of facts are also cosines, so they count as far as the question's cosines can be trusted.
        usual = 1 - config.lexical_weight
        trusted = (1 - near.lexical_weight) / usual if usual else 1.0
        scores[shown] += config.fact_weight * trusted * standardised(best[shown])
    if names is not None and names.trust:
        scores[shown] = combine(scores[shown], names.shares[shown], config.bridge_weight * names.trust)
    return scores


def path_scores(
    graph: PseudoGraph, facts: FactScores, nodes: Floats | None, lexical_weight: float, config: SearchConfig
) -> Floats:
    """The scores of all fact paths, shape (facts,), without their words; -inf for paths that are not results.

    Without scores of nodes, only the paths count. `lexical_weight`, in [0, 1], is that of words for this question.
    """
    if not config.walks:
        return facts.nearness
    if config.ranking == "support":
        return np.where(facts.support > 0, facts.support, -np.inf)
    own = 0.0 if nodes is None else nodes[graph.node_rows]
    counted = np.isfinite(facts.nearness)
    scores: Floats = np.where(counted, (1 - lexical_weight) * np.where(counted, facts.nearness, 0.0), -np.inf)
    scores += config.walk_weight * facts.support + own
    return scores


@dataclass(frozen=True)
class MergedPath:
    """Facts with the same text as one result: the best fact, its score, and all facts."""

    fact: FactPath
    score: float
    facts: tuple[FactPath, ...]

    @classmethod
    def of(cls, ranking: Sequence[Scored]) -> list["MergedPath"]:
        """One result for each text, at the rank of its best fact, so that a context has no duplicates."""
        same: dict[str, list[Scored]] = {}
        for fact, score in ranking:
            same.setdefault(fact.text, []).append((fact, score))
        return [cls(scored[0][0], scored[0][1], tuple(fact for fact, _ in scored)) for scored in same.values()]

    @property
    def sources(self) -> list[str]:
        """Ids of the nodes that contain it, each once."""
        return list(dict.fromkeys(fact.node_id for fact in self.facts))

    @property
    def documents(self) -> list[str]:
        """Ids of their documents, sorted."""
        return sorted({fact.document for fact in self.facts if fact.document is not None})


def rank_paths(
    graph: PseudoGraph, scores: Floats, count: int, question: str, lexical_weight: float, repeated: float
) -> list[tuple[int, float]]:
    """The best paths with their scores, best first; equal scores in the canonical order.

    `scores`, shape (facts,), are without words; `lexical_weight`, in [0, 1], is that of BM25, and the cosines have the
    rest. A path loses `repeated` for each earlier fact of the same node.
    """
    rows = best_rows(scores, count, graph.facts)
    found = scores[rows]
    if lexical_weight and rows:
        *words, none = _words(graph, rows[:_WORDS], question)
        found[:_WORDS] += lexical_weight * np.array(words)
        found[_WORDS:] += lexical_weight * none
    ranked = dict(zip(rows, found.tolist(), strict=True))
    if repeated:
        taken: Counter[int] = Counter()
        for row in sorted_rows(ranked, graph.facts):
            node = int(graph.node_rows[row])
            ranked[row] -= repeated * taken[node]
            taken[node] += 1
    return [(row, ranked[row]) for row in sorted_rows(ranked, graph.facts)]


def _words(graph: PseudoGraph, rows: Sequence[int], question: str) -> Floats:
    """The BM25 scores of some paths among each other, in standard deviations of the hundred best, and as the last one
    the score of a path without a word of the question; zeros if no path has such a word.
    """
    facts = [graph.fact(graph.facts.ids[row]) for row in rows]
    found = scores_of_few([graph.terms.get(fact.id) or lexical_terms(fact.text) for fact in facts], question)
    return standardised(np.append(found, 0.0), by=found) if found.any() else np.zeros(len(rows) + 1)


@dataclass(frozen=True)
class Answer:
    """A question and everything computed for it.

    Attributes
    ----------
    graph : the graph that was searched
    config : the options
    key_points : the key points
    cosines : shape (key points, nodes)
    near : the nearness of nodes to the question
    facts : the facts, and the walk over the candidate maps
    names : the walk over names; None without a walk
    nodes : shape (nodes,), their scores; -inf for nodes that are not results
    paths : shape (facts,), the scores of fact paths without their words; -inf for paths that are not results
    wanted : the number of results wanted
    fallback : which part of the method was not used, and why; empty otherwise
    """

    graph: PseudoGraph
    config: SearchConfig
    key_points: list[str]
    cosines: Floats
    near: Nearness
    facts: FactScores
    names: NameWalk | None
    nodes: Floats
    paths: Floats
    wanted: int
    fallback: str = ""

    @property
    def lexical_weight(self) -> float:
        """Weight of words for this question, in [0, 1]."""
        return self.near.lexical_weight

    @property
    def added(self) -> list[Structure]:
        """The contributions of names and facts to the scores of nodes, beyond nearness."""
        shown = np.isfinite(self.nodes) & np.isfinite(self.near.scores)
        both, names = np.zeros(len(self.nodes)), np.zeros(len(self.nodes))
        both[shown] = self.nodes[shown] - self.near.scores[shown]
        if self.names is not None and self.names.trust:
            names = combine(names, self.names.shares, self.config.bridge_weight * self.names.trust)
        return [Structure(names, "names", _BESIDE_OTHERS), Structure(both - names, "facts")]

    @property
    def ranking(self) -> Iterator[tuple[str, float]]:
        """Nodes with their scores, best first."""
        chunks, scores = self.graph.chunks, self._shown(self.nodes, self.nodes)
        given, total, k = 0, int(np.isfinite(self.nodes).sum()), self.wanted
        while given < total:
            rows = best_rows(self.nodes, k, chunks)
            for row in rows[given:]:
                yield chunks.ids[row], float(scores[row])
            given, k = len(rows), 4 * k

    @cached_property
    def results(self) -> list[MergedPath]:
        """The paths, best first; paths with the same text are merged."""
        facts, count = self.graph.facts, max(_PATHS, 20 * self.wanted)
        if self.config.ranks_texts:
            walked = 0.0 if self.names is None else self.config.bridge_weight * self.names.trust
            ranked = rank_paths(
                self.graph, self.paths, count, "\n".join(self.key_points), self.lexical_weight, REPEATED * walked
            )
        else:
            ranked = [(row, float(self.paths[row])) for row in best_rows(self.paths, count, facts)]
        found = np.array([score for _, score in ranked])
        scores = self._shown(found, found).tolist()
        return MergedPath.of(
            [(self.graph.fact(facts.ids[row]), score) for (row, _), score in zip(ranked, scores, strict=True)]
        )

    @cached_property
    def row_of(self) -> dict[str, int]:
        """The row of each fact in the template of the walk."""
        return {fact.id: row for row, fact in enumerate(self.facts.template.facts)}

    def best_fact(self, node_id: str) -> MergedPath | None:
        """The fact of a node that is nearest to a key point; None if the node has no fact that counts."""
        facts = self.graph.of_node.get(node_id, ())
        rows = self.graph.facts.rows_of([fact.id for fact in facts])
        counted = np.isfinite(self.facts.nearness[rows])  # a filter may exclude some of them
        own, rows = [fact for fact, counts in zip(facts, counted.tolist(), strict=True) if counts], rows[counted]
        if not own:
            return None
        best = int(np.argmax(self.facts.nearness[rows]))
        return MergedPath(own[best], float(self._shown(self.paths[rows[best]], self.paths)), (own[best],))

    def _shown(self, scores: Floats, of: Floats) -> Floats:
        """Scores mapped to [0, 1]; shares of support already are."""
        return scores if self.config.ranks_support else result_scores(scores, of)
