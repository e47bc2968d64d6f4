"""The default search of HippoRAG over a stored graph: the seeds, the walk and the scores of one question.

It is the search of :mod:`llama_index.hipporag.search` with two differences. The walk is a forward push that leaves
what is too little to be worth reading (:mod:`llama_index.hipporag.pagerank.frontier_push`), and passages are scored
that are among the best by nearness or by the walk: a passage that is in neither is not among the best of their sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.pagerank.frontier_push import EPSILON, FrontierEstimate, frontiers
from llama_index.hipporag.search.passage_scores import share_of_best
from llama_index.hipporag.search.query_seeds import Link
from llama_index.hipporag.search.ranking import WALK_WEIGHT, combine, passage_seeds, trust
from llama_index.hipporag.stored_graph.passage_edges import is_passage, passage_number
from llama_index.hipporag.stored_graph.question_graph import QuestionGraph
from llama_index.hipporag.text.normalization import Normalizer
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.vectors.question_scores import squashed

__all__ = ["NearPassages", "StoredResult", "search_stored"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_CANDIDATES = 200  # passages that are scored, by nearness and by the walk each
_BEST = 10  # passages of the walk that may be certain
_DECIMALS = 9
_FIXED = {
    "linking": "text", "edges": "added", "synonyms": False, "passage_nodes": True, "passage_seeds": "nearest",
    "ensemble": "trust", "length_normalization": 0.0, "conjunction": 0.0, "max_steps": None,
}  # fmt: skip


class NearPassages(Protocol):
    """How near passages are to one question, wherever their vectors and words are; of those that may be returned."""

    def nearest(self, count: int) -> tuple[Sequence[str], Floats]:
        """At least `count` passages with the largest cosines, if there are as many, and these cosines."""

    def best(self, count: int) -> Sequence[str]:
        """The passages with the highest nearness, dense and lexical together."""

    def of(self, passages: Sequence[str]) -> Floats:
        """The nearness of passages."""


@dataclass(frozen=True)
class StoredResult:
    """The answer to one question.

    Attributes
    ----------
    ranking : passages and scores in [0, 1], best first
    links : the phrases that the walk started from; their rows are numbers of nodes
    trust : how far the walk counted beside nearness, in [0, 1]; None without a walk
    read : nodes of the graph that were read for the walk
    missing : mass that was not walked
    certain : whether the ten best passages of the walk are certain to be those, by the bounds of the push
    calls : statements that were sent to the database
    """

    ranking: Sequence[tuple[str, float]]
    links: Sequence[Link]
    trust: float | None
    read: int
    missing: float
    certain: bool
    calls: int


def search_stored(
    graph: QuestionGraph,
    question: str,
    near: NearPassages,
    config: SearchConfig,
    normalizer: Normalizer = "unicode",
    *,
    by_terms: bool = True,
    epsilon: float = EPSILON,
) -> StoredResult:
    """Answer a question.

    Phrases of most passages are walked as others are: `max_phrase_share` has no effect.

    Parameters
    ----------
    by_terms : whether the graph has terms in lower case
    epsilon : see :func:`~llama_index.hipporag.pagerank.frontier_push.frontiers`

    Raises
    ------
    ConfigurationError
        If the configuration is not that of the default search, except for weights, damping and specificity.
    """
    other = [f"{name}={value!r}" for name, value in _FIXED.items() if getattr(config, name) != value]
    if other:
        raise ConfigurationError(f"A stored graph is searched with {', '.join(other)} alone.")
    links = graph.links(question, normalizer, config.node_specificity, by_terms)
    weights = {link.row: link.weight for link in links}
    if not any(weights.values()):
        ids = near.best(_CANDIDATES)
        return StoredResult(_ranked(ids, near.of(ids)), links, None, 0, 0.0, True, graph.calls)
    nearest, cosines = near.nearest(_CANDIDATES)
    nodes, shares = _reset(weights, nearest, cosines, config)
    *_, estimate = frontiers(graph.fetch, nodes, shares, damping=config.damping, epsilon=epsilon)
    ids = _candidates(graph, [*near.best(_CANDIDATES), *nearest], estimate)
    ranking, trusted = _scored(ids, near.of(ids), estimate, config)
    certain = estimate.settled(_BEST, is_passage(estimate.nodes))
    return StoredResult(ranking, links, trusted, estimate.read, estimate.missing, certain, graph.calls)


def _reset(
    weights: Mapping[int, float], nearest: Sequence[str], cosines: Floats, config: SearchConfig
) -> tuple[Ints, Floats]:
    """The nodes and weights that a walk starts from."""
    places, shares = passage_seeds(cosines)
    numbers = [passage_number(nearest[place]) for place in places.tolist()]
    nodes = np.array([*weights, *numbers], np.int64)
    return nodes, np.array([*weights.values(), *(shares * config.passage_seed_weight)])


def _candidates(graph: QuestionGraph, near: Sequence[str], estimate: FrontierEstimate) -> list[str]:
    """The passages that are near, and the best of the walk."""
    known = {passage_number(node_id): node_id for node_id in near}
    passages = is_passage(estimate.nodes)
    best = np.argsort(-estimate.scores[passages], kind="stable")[:_CANDIDATES]
    others = [node for node in estimate.nodes[passages][best].tolist() if node not in known]
    return list(dict.fromkeys([*known.values(), *graph.labels_of(np.array(others, np.int64))]))


def _scored(
    ids: Sequence[str], nearness: Floats, estimate: FrontierEstimate, config: SearchConfig
) -> tuple[list[tuple[str, float]], float]:
    """The ranking of the candidates, and how far the walk counts."""
    of = dict(zip(estimate.nodes.tolist(), estimate.scores.tolist(), strict=True))
    walked = share_of_best(np.array([of.get(passage_number(node_id), 0.0) for node_id in ids]))
    trusted = trust(nearness, walked)
    return _ranked(ids, combine(nearness, walked, WALK_WEIGHT * config.walk_share * trusted)), trusted


def _ranked(ids: Sequence[str], scores: Floats) -> list[tuple[str, float]]:
    """Passages by score, equal ones by id."""
    order = sorted(range(len(ids)), key=lambda i: (-round(float(scores[i]), _DECIMALS), ids[i]))
    return [(ids[i], float(score)) for i, score in zip(order, squashed(scores[order]), strict=True)]
