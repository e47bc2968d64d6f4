"""`GraphSearchResult` and `search_many`: walks from the seeds of questions, and scores of passages.

The default ranking needs no LLM. It combines the walk and nearness:

1. The phrases of the graph that occur in the question are linked (`llama_index.ragkit.text.known_names`).
2. A walk starts from them, each with the weight 1 / (number of passages with it), and from the passages nearest to the
   question, with a total weight of `passage_seed_weight`: much less than a name in one or two passages, and more than a
   word in hundreds.
3. The score of a passage is its nearness to the question, dense and lexical together, plus the logarithm of its share
   of the walk, which counts as far as the walk can be trusted (:func:`walk_trust`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.graph.knowledge_graph import GraphPart, KnowledgeGraph
from llama_index.hipporag.pagerank.forward_push import PageRankEstimate, refinements, settled
from llama_index.hipporag.pagerank.power_iteration import Ordered, Walk, pagerank
from llama_index.hipporag.search.query_seeds import QuerySeeds
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit.vectors.question_scores import Nearness, best_rows, result_scores
from llama_index.ragkit.vectors.trust import combine, gain, lead, passage_seeds, trust

__all__ = [
    "UNTRUSTED",
    "WALK_WEIGHT",
    "GraphSearchResult",
    "geometric_mean",
    "min_max",
    "needs_dense",
    "search_many",
    "seed_passages",
    "share_of_best",
    "walk_trust",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

WALK_WEIGHT = 7.0  # of a walk that is trusted fully
_LEAD_WEIGHT = 0.15  # per standard deviation by which the nearest passage is ahead
UNTRUSTED = "the walk does not reach the passage that is nearest to the question, or leads elsewhere than its words"

_LEAST = 1e-6  # smallest share in a geometric mean
_DECIMALS = 10  # of scores: hides the effect of the order of rows on sums


def share_of_best(scores: Floats, allowed: Mask | None = None) -> Floats:
    """Scores of at least 0 as shares of the best of the allowed ones, in [0, 1]; others become 0."""
    if allowed is not None:
        scores = np.where(allowed, scores, 0.0)
    top = float(scores.max(initial=0.0))
    return np.round(scores / top, _DECIMALS) if top > 0 else scores


def geometric_mean(shares: Sequence[Floats]) -> Floats:
    """The geometric mean of shares in [0, 1], shape (p,); a zero is replaced by a millionth, so that the others still
    matter.
    """
    logs = np.mean([np.log(share + _LEAST) for share in shares], axis=0)
    mean: Floats = np.exp(logs) - _LEAST
    return np.maximum(mean, 0.0)


def min_max(values: Floats, allowed: Mask | None = None) -> Floats:
    """Values scaled to [0, 1]: the lowest of the allowed ones to 0, the highest to 1; others become 0.

    Equal values are all 1, or all 0 if they are zero; the published code divides by zero there.
    """
    part = values if allowed is None else values[allowed]
    if not part.size:
        return np.zeros_like(values)
    low, high = float(part.min()), float(part.max())
    found = (values - low) / (high - low) if high > low else np.full_like(values, 1.0 if high else 0.0)
    if allowed is not None:
        found = np.where(allowed, found, 0.0)
    return np.round(found, _DECIMALS)


def walk_trust(nearness: Floats, walked: Floats, rarity: float, candidates: Mask | None = None) -> float:
    """How far to trust a walk for a question, in [0, 1]; see :func:`~llama_index.ragkit.vectors.trust.trust`.

    The further the nearest passage is ahead of the others, the more it counts whether the walk reaches it: a chain
    begins there, and a passage that has everything in the question answers it without a chain. `rarity` is that of the
    rarest name from which the walk starts.
    """
    return rarity * trust(nearness, walked, _LEAD_WEIGHT * lead(nearness), candidates)


Ints = NDArray[np.int64]
Reset = tuple[Ints, Floats]
Graph = TypeVar("Graph", KnowledgeGraph, GraphPart)

_WALKS_AT_ONCE = 32  # bounds the memory of many questions over a large graph
_LEAST_ACTIVE = 1e-7  # probability below which a phrase is not reported


@dataclass(frozen=True)
class GraphSearchResult(Generic[Graph]):
    """The answer to one question, over all passages.

    Attributes
    ----------
    state, graph : the searched state, and the part of its graph that passes the filters, or was read for the question
    allowed : (p,), passages that may be returned; None for all
    seeds : the start of the walk
    nodes, active : phrases that the walk activated (rows), and their probabilities; empty after a fallback
    walked : (p,), each passage's score in the walk as a share of the best, in [0, 1]; None after a fallback
    near : the nearness of passages to the question; None if it was not needed
    trust : how far the walk was trusted, in [0, 1]; None if the options do not use trust
    scores : (p,), the final scores, in [0, 1]
    synonyms : whether the walk used synonym edges
    """

    state: HippoRAGState
    graph: Graph
    allowed: Mask | None
    seeds: QuerySeeds
    nodes: Ints
    active: Floats
    walked: Floats | None
    near: Nearness | None
    trust: float | None
    scores: Floats
    synonyms: bool = False

    @property
    def fallback(self) -> str:
        """Why only nearness was used, without the walk; empty otherwise."""
        if self.trust == 0:
            return UNTRUSTED
        return self.seeds.reason

    def added(self, config: SearchConfig) -> Floats:
        """The part of the walk in the scores of passages, shape (p,), in standard deviations; 0 if not trusted."""
        if self.walked is None:
            return np.zeros(self.scores.size)
        return combine(np.zeros(self.walked.size), self.walked, _weight(config, self.trust or 0.0))

    def ranking(self, k: int) -> Iterator[tuple[str, float]]:
        """The k best passages, then the others, since a node may be deleted or too long for a budget."""
        return chain.from_iterable(self._ranked(k))

    def _ranked(self, k: int) -> Iterator[Iterable[tuple[str, float]]]:
        """The ranking in parts, the first of k."""
        chunks = self.state.chunks
        shown = self.scores if self.allowed is None else np.where(self.allowed, self.scores, -np.inf)
        given, total = 0, int(np.isfinite(shown).sum())
        while given < total:
            rows = best_rows(shown, k, chunks)
            yield [(chunks.ids[row], float(shown[row])) for row in rows[given:]]
            given, k = len(rows), 4 * k


def search_many(
    state: HippoRAGState,
    graph: Graph,
    allowed: Mask | None,
    all_seeds: Sequence[QuerySeeds],
    nearness: Sequence[Nearness | None],
    config: SearchConfig,
    wanted: int,
) -> list[GraphSearchResult[Graph]]:
    """Answer many questions: by joint power iteration in a small graph, by forward push in a large one.

    The `wanted` best passages are in the right order. Nearness is needed if options use it or nothing is linked.
    """
    nothing = np.empty(0, np.int64), np.empty(0), None
    found = {
        i: GraphSearchResult(state, graph, allowed, seeds, *nothing, near, None, _by_nearness(graph, near))
        for i, (seeds, near) in enumerate(zip(all_seeds, nearness, strict=True))
        if seeds.reason
    }
    walking = [i for i, seeds in enumerate(all_seeds) if not seeds.reason]
    if walking:
        search = _GraphSearch(graph.shape[1], allowed, config, *graph.for_search(config))
        questions = [search.question(all_seeds[i], nearness[i]) for i in walking]
        answered = (
            [search.near(search.walk, question, wanted) for question in questions]
            if isinstance(search.walk, Ordered)
            else search.exactly(questions)
        )
        for i, (nodes, active, passages) in zip(walking, answered, strict=True):
            found[i] = GraphSearchResult(
                state, graph, allowed, all_seeds[i], nodes, active,
                passages.walked, nearness[i], passages.trust, passages.scores, config.synonyms,
            )  # fmt: skip
    return [found[i] for i in range(len(all_seeds))]


def _by_nearness(graph: Graph, near: Nearness | None) -> Floats:
    return np.zeros(graph.shape[0]) if near is None else result_scores(near.scores, near.scores)


@dataclass(frozen=True)
class _Passages:
    """Shares of the walk, relative to the best, and scores of all passages, shape (p,); and the trust if it is used."""

    walked: Floats
    scores: Floats
    trust: float | None = None


@dataclass(frozen=True)
class _Question:
    """The reset of a walk, and the values with which its result is combined."""

    reset: Reset
    near: Nearness | None  # in the scores; None to use only the walk
    averaged: bool  # whether nearness and walk are averaged, regardless of trust in the walk
    shared: Floats | None  # (p,), how well each passage is reached from every linked phrase; None if it is not used
    rarity: float  # of the rarest name


@dataclass(frozen=True)
class _GraphSearch:
    """A graph of `phrases` phrases prepared for a search, and the projection of walks on its passages, (p, nodes)."""

    phrases: int
    allowed: Mask | None
    config: SearchConfig
    walk: Walk | Ordered
    projection: csr_matrix

    def question(self, seeds: QuerySeeds, nearness: Nearness | None) -> _Question:
        """The prepared question."""
        config, published = self.config, self.config.published
        averaged = published.ensemble == "average" or (
            published.ensemble == "uncertainty" and seeds.weakest <= published.recognition_threshold
        )
        cosines = None if nearness is None else nearness.cosines
        reset = _reset(self.phrases, self.allowed, seeds, cosines, config)
        combined = nearness if averaged or published.ensemble == "trust" else None
        return _Question(reset, combined, averaged, self._shared(seeds), seeds.rarity)

    def exactly(self, questions: Sequence[_Question]) -> Iterator[tuple[Ints, Floats, _Passages]]:
        """The reached phrases, their probabilities, and the scores of passages, for each question."""
        resets = [question.reset for question in questions]
        for question, scores in zip(questions, self._walks(resets), strict=True):
            nodes = np.flatnonzero(scores[: self.phrases])
            yield nodes, scores[nodes], _final(self._scores(question, self.projection @ scores))

    def near(self, walk: Ordered, question: _Question, wanted: int) -> tuple[Ints, Floats, _Passages]:
        """The same for a question to a large graph, as exact as the order of the best passages requires."""
        for estimate in refinements(walk, *question.reset, damping=self.config.damping):
            passage_scores = self.projection @ estimate.scores
            found = self._scores(question, passage_scores)
            gains = partial(self._gains, question, estimate, passage_scores, found)
            if settled(found.scores, wanted, gains, estimate.uncertainty):
                break
        order = walk.order
        activated = np.flatnonzero(estimate.scores > _LEAST_ACTIVE)
        activated = activated[order[activated] < self.phrases]
        return order[activated].astype(np.int64), estimate.scores[activated], _final(found)

    def _walks(self, resets: Sequence[Reset]) -> Iterator[Floats]:
        """The probability of every node for each walk: exact, or approximate in a large graph."""
        if isinstance(self.walk, Ordered):
            for nodes, weights in resets:
                yield next(refinements(self.walk, nodes, weights, damping=self.config.damping)).scores
            return
        for start in range(0, len(resets), _WALKS_AT_ONCE):
            block = resets[start : start + _WALKS_AT_ONCE]
            dense = np.zeros((len(block), len(self.walk)))
            for row, (nodes, weights) in zip(dense, block, strict=True):
                row[nodes] = weights
            reset = dense if len(dense) > 1 else dense[0]  # one vector is multiplied faster than a matrix of one column
            scores = pagerank(self.walk, reset, damping=self.config.damping, max_steps=self.config.published.max_steps)
            yield from np.atleast_2d(scores)

    def _shared(self, seeds: QuerySeeds) -> Floats | None:
        if not self.config.published.conjunction or len(seeds.weights) < 2:
            return None
        walks = self._walks([(np.array([row], np.int64), np.ones(1)) for row in seeds.weights])
        shares = [share_of_best(self.projection @ scores, self.allowed) for scores in walks]
        return share_of_best(geometric_mean(shares), self.allowed)

    def _scores(self, question: _Question, passage_scores: Floats) -> _Passages:
        """The scores of passages; with trust they are unbounded."""
        if question.shared is not None:
            part = self.config.published.conjunction
            passage_scores = share_of_best(passage_scores, self.allowed) ** (1 - part) * question.shared**part
        walked = share_of_best(passage_scores, self.allowed)
        if question.near is None:
            return _Passages(walked, walked)
        if not question.averaged:
            shown = slice(None) if self.allowed is None else self.allowed
            near, candidates = question.near.scores, question.near.candidates
            trusted = walk_trust(near[shown], walked[shown], question.rarity, candidates[shown])
            return _Passages(walked, combine(near, walked, _weight(self.config, trusted)), trusted)
        parts = min_max(passage_scores, self.allowed), min_max(question.near.scores, self.allowed)
        return _Passages(walked, self.config.walk_share * parts[0] + (1 - self.config.walk_share) * parts[1])

    def _gains(
        self, question: _Question, estimate: PageRankEstimate, passage_scores: Floats, found: _Passages, rows: Ints
    ) -> Floats:
        """The change of passages' scores in the last step of a walk, to first order."""
        now, gained = passage_scores[rows], estimate.gain(self.projection, passage_scores, rows)
        extended: Floats = np.divide(gained, now, out=np.zeros_like(now), where=now > 0)
        if question.shared is not None:
            extended *= 1 - self.config.published.conjunction
        walked = found.walked[rows]
        if found.trust is not None:
            extended *= gain(walked, _weight(self.config, found.trust))
        else:
            extended *= walked * (1.0 if question.near is None else self.config.walk_share)
        return extended


def _weight(config: SearchConfig, trusted: float) -> float:
    return WALK_WEIGHT * config.walk_share * trusted


def _final(found: _Passages) -> _Passages:
    return found if found.trust is None else replace(found, scores=result_scores(found.scores, found.scores))


def _reset(
    phrases: int, allowed: Mask | None, seeds: QuerySeeds, cosines: Floats | None, config: SearchConfig
) -> Reset:
    """The reset of a walk: phrases by weight, and passages (nodes after the phrases)."""
    nodes = np.fromiter(seeds.weights, np.int64, len(seeds.weights))
    weights = np.fromiter(seeds.weights.values(), np.float64, len(seeds.weights))
    rows, shares = seed_passages(cosines, allowed, config)
    return np.concatenate([nodes, rows + phrases]), np.concatenate([weights, shares])


def seed_passages(cosines: Floats | None, allowed: Mask | None, config: SearchConfig) -> Reset:
    """The passages (rows) from which a walk starts, by `passage_seeds` and cosines, shape (p,); and their weights."""
    if config.passage_seeds == "none" or cosines is None:
        return np.empty(0, np.int64), np.empty(0)
    if config.passage_seeds == "each":
        rows, shares = np.arange(cosines.size), min_max(cosines, allowed)
    else:
        chosen = np.arange(cosines.size) if allowed is None else np.flatnonzero(allowed)
        places, shares = passage_seeds(cosines[chosen])
        rows = chosen[places]
    return rows, shares * config.passage_seed_weight


def needs_dense(seeds: QuerySeeds, config: SearchConfig) -> bool:
    """Whether a question needs the nearness of all passages."""
    return bool(seeds.reason) or config.passage_seeds != "none" or config.published.ensemble != "none"
