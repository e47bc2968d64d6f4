"""The default search of HippoRAG over a stored graph: the seeds, the walk and the scores of one question.

It is the search of :mod:`llama_index.hipporag.search` with two differences. The walk is a forward push that leaves
what is too little to be worth reading (:mod:`llama_index.hipporag.pagerank.frontier`), and passages are scored
that are among the best by nearness or by the walk: a passage that is in neither is not among the best of their sum.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.graph.passage_edges import is_passage, passage_number
from llama_index.hipporag.pagerank.frontier import EPSILON, FrontierEstimate
from llama_index.hipporag.search.passage_scores import share_of_best
from llama_index.hipporag.search.query_seeds import Link
from llama_index.hipporag.search.question_graph import QuestionGraph
from llama_index.hipporag.search.ranking import WALK_WEIGHT, combine, passage_seeds, trust
from llama_index.hipporag.text.normalization import Normalizer
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.vectors.question_scores import squashed

__all__ = ["NearPassages", "StoredResult", "scores_of", "search_stored"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_NEAR = 200  # passages that are scored because they are near, at least
_WALKED = 60  # and those that are best in the walk; a further one has too little of it to be among the best of the sum
_BEST = 10  # passages of the walk that may be certain
_LEAST_ACTIVE = 1e-7  # probability below which a phrase is not reported
_DECIMALS = 5  # by which scores differ: a push leaves some of the walk out
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

    def of(self, passages: Sequence[str]) -> Steps[Mapping[str, float]]:
        """The nearness of those passages that are stored and may be returned, in the order that breaks ties."""


@dataclass(frozen=True)
class StoredResult:
    """The answer to one question.

    Attributes
    ----------
    ranking : passages and scores in [0, 1], best first
    links : the phrases that the walk started from; their rows are numbers of nodes
    trust : how far the walk counted beside nearness, in [0, 1]; None without a walk
    walked : passages that the walk reached, with their scores as shares of the best
    active : phrases that the walk activated and read, with their probabilities
    read : nodes of the graph that were read for the walk
    missing : mass that was not walked
    certain : whether the ten best passages of the walk are certain to be those, by the bounds of the push
    calls : statements that were sent to the database
    """

    ranking: Sequence[tuple[str, float]]
    links: Sequence[Link]
    trust: float | None = None
    walked: Mapping[str, float] = field(default_factory=dict)
    active: Mapping[str, float] = field(default_factory=dict)
    read: int = 0
    missing: float = 0.0
    certain: bool = True
    calls: int = 0


def search_stored(
    open_graph: Callable[[], AbstractContextManager[QuestionGraph]],
    question: str,
    near: NearPassages,
    config: SearchConfig,
    normalizer: Normalizer = "unicode",
    *,
    by_terms: bool = True,
    wanted: int = 10,
    epsilon: float = EPSILON,
) -> Steps[StoredResult]:
    """Answer a question.

    Parameters
    ----------
    open_graph : the graph, as it is when it is opened
    wanted : how many passages must be in the right order
    by_terms : whether the graph has terms in lower case
    epsilon : see :func:`~llama_index.hipporag.pagerank.frontier.frontiers`

    Raises
    ------
    ConfigurationError
        If the configuration is not that of the default search, except for weights, damping and specificity.
    """
    other = [f"{name}={value!r}" for name, value in _FIXED.items() if getattr(config, name) != value]
    if other:
        raise ConfigurationError(f"A stored graph is searched with {', '.join(other)} alone.")
    found = yield from offload(_walked, open_graph, question, near, config, normalizer, by_terms, wanted, epsilon)
    nearness = yield from near.of(found.candidates)
    return _result(found, nearness, config)


@dataclass(frozen=True)
class _Walked:
    """What a walk found.

    Attributes
    ----------
    candidates : the passages that are scored
    estimate : None where the question names no phrase
    labels : node -> phrase or id of a passage, of the nodes that were read
    """

    links: Sequence[Link]
    candidates: Sequence[str]
    estimate: FrontierEstimate | None
    labels: Mapping[int, str]
    calls: int


def _walked(
    open_graph: Callable[[], AbstractContextManager[QuestionGraph]],
    question: str,
    near: NearPassages,
    config: SearchConfig,
    normalizer: Normalizer,
    by_terms: bool,
    wanted: int,
    epsilon: float,
) -> _Walked:
    near_by, far = max(_NEAR, wanted), max(_WALKED, wanted)
    with open_graph() as graph:
        links = graph.links(question, normalizer, config.node_specificity, by_terms)
        weights = {link.row: link.weight for link in links}
        if not any(weights.values()):
            return _Walked(links, near.best(near_by), None, {}, graph.calls)
        nearest, cosines = near.nearest(near_by)
        nodes, shares = _reset(weights, nearest, cosines, config)
        estimate = graph.walk(nodes, shares, config.damping, epsilon)
        candidates = _candidates(graph, [*near.best(near_by), *nearest], estimate, far)
        return _Walked(links, candidates, estimate, graph.labels, graph.calls)


def _result(found: _Walked, nearness: Mapping[str, float], config: SearchConfig) -> StoredResult:
    """The ranking of the candidates, and how far the walk counts."""
    ids, near = list(nearness), np.array(list(nearness.values()))
    estimate = found.estimate
    if estimate is None:
        return StoredResult(_ranked(ids, near), found.links, calls=found.calls)
    walked = share_of_best(scores_of(estimate, np.array([passage_number(node_id) for node_id in ids], np.int64)))
    trusted = trust(near, walked)
    read = np.array(list(found.labels), np.int64)
    active = zip(found.labels.values(), is_passage(read).tolist(), scores_of(estimate, read).tolist(), strict=True)
    return StoredResult(
        _ranked(ids, combine(near, walked, WALK_WEIGHT * config.walk_share * trusted)),
        found.links,
        trusted,
        dict(zip(ids, walked.tolist(), strict=True)),
        {label: score for label, passage, score in active if label and not passage and score > _LEAST_ACTIVE},
        estimate.read,
        estimate.missing,
        estimate.settled(_BEST, is_passage(estimate.nodes)),
        found.calls,
    )


def scores_of(estimate: FrontierEstimate, nodes: Ints) -> Floats:
    """The scores of nodes, 0 for those that the walk has not reached."""
    order = np.argsort(estimate.nodes)
    places = np.searchsorted(estimate.nodes, nodes, sorter=order)
    places = order[np.minimum(places, len(order) - 1)]
    return np.where(estimate.nodes[places] == nodes, estimate.scores[places], 0.0)


def _reset(
    weights: Mapping[int, float], nearest: Sequence[str], cosines: Floats, config: SearchConfig
) -> tuple[Ints, Floats]:
    """The nodes and weights that a walk starts from."""
    places, shares = passage_seeds(cosines)
    numbers = [passage_number(nearest[place]) for place in places.tolist()]
    nodes = np.array([*weights, *numbers], np.int64)
    return nodes, np.array([*weights.values(), *(shares * config.passage_seed_weight)])


def _candidates(graph: QuestionGraph, near: Sequence[str], estimate: FrontierEstimate, count: int) -> list[str]:
    """The passages that are near, and the best of the walk."""
    known = {passage_number(node_id): node_id for node_id in near}
    passages = is_passage(estimate.nodes)
    best = np.argsort(-estimate.scores[passages], kind="stable")[:count]
    others = [node for node in estimate.nodes[passages][best].tolist() if node not in known]
    return list(dict.fromkeys([*known.values(), *graph.labels_of(np.array(others, np.int64))]))


def _ranked(ids: Sequence[str], scores: Floats) -> list[tuple[str, float]]:
    """Passages by score, those that are as good as equal in the order given."""
    order = np.argsort(-scores.round(_DECIMALS), kind="stable").tolist()
    return [(ids[i], float(score)) for i, score in zip(order, squashed(scores[order]), strict=True)]
