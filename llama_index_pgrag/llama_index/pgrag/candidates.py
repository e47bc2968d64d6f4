"""Which mind maps a question looks at, and their cells as a template (section 2.4, steps 1 to 3).

1. Seed topics: the nearest to the question.
2. Topic walk: topics that share a super-topic with a seed.
3. Fact walk: topics of facts that share a super-fact with a fact of a seed. In the paper; the published code has none.
4. Entry by facts: topics of the facts that are nearest to a key point. Ours: by 1 to 3 no more than `max_topics`
documents
   can ever answer, and only such as are found by their titles.

What 2 and 3 add is ranked by its cosine to the question and cut so that 1 to 3 together are at most `max_topics`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.graph import Fact, PseudoGraph
from llama_index.ragkit.errors import ConfigurationError

__all__ = [
    "Allowed",
    "Candidate",
    "Leads",
    "Reach",
    "Template",
    "find_candidates",
    "find_leads",
    "lead_facts",
    "make_template",
]

Mask = NDArray[np.bool_]
Vector = NDArray[np.float32]
Leads = dict[str, float]  # strength by topic id
Reason = Literal["seed topic", "topic walk", "fact walk", "fact", "lead"]

_TOPICS_A_LEAD = 10  # topics that one fact can lead to at most


@dataclass(frozen=True)
class Reach:
    """How far a question looks.

    Attributes
    ----------
    seed_topics : topics nearest to the question, at least 0 [3, as published]
    max_topics : topics that seeds and walks come to at most [6, as published]
    topic_walk, fact_walk : whether super-topics, and super-facts, are walked
    seed_facts : facts nearest to each key point that bring their maps, at least 0; 0 is the paper

    Raises
    ------
    ConfigurationError
        If a number is negative, or both kinds of seeds are 0.
    """

    seed_topics: int = 3
    max_topics: int = 6
    topic_walk: bool = True
    fact_walk: bool = True
    seed_facts: int = 30

    def __post_init__(self) -> None:
        for name in ("seed_topics", "max_topics", "seed_facts"):
            if getattr(self, name) < 0:
                raise ConfigurationError(f"{name} must be at least 0, not {getattr(self, name)}.")
        if not (self.seed_topics and self.max_topics) and not self.seed_facts:
            raise ConfigurationError("Nothing can be found with seed_topics (or max_topics) and seed_facts both 0.")


@dataclass(frozen=True)
class Allowed:
    """What a filter lets pass; None does not restrict.

    Attributes
    ----------
    facts, topics : masks over the rows; a topic passes if one of its facts does
    nodes : ids of the nodes that pass
    """

    facts: Mask | None = None
    topics: Mask | None = None
    nodes: frozenset[str] | None = None

    def fact(self, fact: Fact) -> bool:
        """Whether a fact may be shown."""
        return self.nodes is None or fact.node_id in self.nodes

    @classmethod
    def by_nodes(cls, graph: PseudoGraph, nodes: frozenset[str]) -> "Allowed":
        """The facts of some nodes, and the topics over them."""
        if not len(graph.facts):
            return cls(np.zeros(0, np.bool_), np.zeros(0, np.bool_), nodes)
        column, codes = graph.facts.column("node")
        passing = np.fromiter((value in nodes for value in column.values), np.bool_, len(list(column.values)))
        facts = passing[codes]
        topics = np.zeros(len(graph.topics), dtype=np.bool_)
        column, codes = graph.facts.column("topic")
        values = list(column.values)
        topics[graph.topics.rows_of([values[code] for code in np.unique(codes[facts])])] = True
        return cls(facts, topics, nodes)


@dataclass(frozen=True)
class Candidate:
    """A mind map that is looked at, why, and the cosine of its topic to the question."""

    topic_id: str
    reason: Reason
    cosine: float


def find_candidates(
    graph: PseudoGraph,
    question: Vector,
    key_points: Sequence[Vector],
    reach: Reach,
    allowed: Allowed,
    leads: Leads,
) -> list[Candidate]:
    """The mind maps to walk, each once, the seeds first.

    Parameters
    ----------
    question, key_points : vectors
    leads : topics that facts lead to, of :func:`find_leads`
    """
    if not len(graph.facts):
        return []
    found: dict[str, Candidate] = {}
    hits = graph.topics.search([question], min(reach.seed_topics, reach.max_topics), allowed.topics)[0]
    for topic_id, cosine in zip(hits.ids, hits.scores, strict=True):
        found[topic_id] = Candidate(topic_id, "seed topic", cosine)
    reached: dict[str, Reason] = {}
    for topic_id in list(found):
        if reach.topic_walk:
            for other in graph.super_topics.together(topic_id):
                reached.setdefault(other, "topic walk")
    for topic_id in list(found):
        for fact in graph.maps[topic_id].facts if reach.fact_walk else ():
            if allowed.fact(fact):
                for other in graph.super_facts.together(fact.id):
                    reached.setdefault(graph.map_of[other], "fact walk")
    for topic_id, cosine in _nearest(graph, question, [i for i in reached if i not in found], allowed.topics):
        if len(found) < reach.max_topics:
            found[topic_id] = Candidate(topic_id, reached[topic_id], cosine)
    if reach.seed_facts:
        entered = [
            graph.map_of[fact_id]
            for hits in graph.facts.search(np.stack(key_points), reach.seed_facts, allowed.facts)
            for fact_id in hits.ids
        ]
        for topic_id, cosine in _nearest(graph, question, [i for i in dict.fromkeys(entered) if i not in found], None):
            found[topic_id] = Candidate(topic_id, "fact", cosine)
    for topic_id, cosine in _nearest(graph, question, [i for i in leads if i not in found], allowed.topics):
        found[topic_id] = Candidate(topic_id, "lead", cosine)
    return list(found.values())


def lead_facts(
    graph: PseudoGraph, key_points: Sequence[Vector], count: int, allowed: Allowed
) -> list[tuple[Fact, float]]:
    """The facts nearest to any key point with their cosines, best first: where :func:`find_leads` starts."""
    best: dict[str, float] = {}
    for hits in graph.facts.search(np.stack(key_points), count, allowed.facts):
        for fact_id, cosine in zip(hits.ids, hits.scores, strict=True):
            best[fact_id] = max(cosine, best.get(fact_id, cosine))
    found = [(graph.fact(fact_id), cosine) for fact_id, cosine in best.items()]
    return sorted(found, key=lambda pair: (-pair[1], pair[0].key))[:count]


def find_leads(
    graph: PseudoGraph,
    facts: Sequence[tuple[Fact, float]],
    ends: Sequence[Vector],
    threshold: float,
    allowed: Allowed,
) -> Leads:
    """The topics of other maps that facts name: what a question of several hops must go on to.

    A fact whose path is near to a key point by c, and whose last cell alone is near to a topic by t, leads there with
    the strength

        c * max(0, t - threshold) / (1 - threshold)

    of which the greatest counts. Ours: neither paper nor code goes from a fact to a topic.

    Parameters
    ----------
    facts : of :func:`lead_facts`
    ends : vectors of their last cells, each embedded without its path
    threshold : in [0, 1)

    Returns
    -------
    Strength by topic id, above 0 and at most 1.
    """
    leads: Leads = {}
    if not facts:
        return leads
    hits = graph.topics.search(np.stack(ends), _TOPICS_A_LEAD, allowed.topics)
    for (fact, cosine), found in zip(facts, hits, strict=True):
        for topic_id, near in zip(found.ids, found.scores, strict=True):
            strength = cosine * (near - threshold) / (1 - threshold)
            if topic_id != fact.topic_id and strength > leads.get(topic_id, 0.0):
                leads[topic_id] = strength
    return leads


def _nearest(
    graph: PseudoGraph, question: Vector, topic_ids: Sequence[str], mask: Mask | None
) -> list[tuple[str, float]]:
    """Topics with their cosine to the question, best first; those that the mask hides are left out."""
    if not topic_ids:
        return []
    asked = np.zeros(len(graph.topics), dtype=np.bool_)
    asked[graph.topics.rows_of(topic_ids)] = True
    hits = graph.topics.search([question], len(topic_ids), asked if mask is None else asked & mask)[0]
    return list(zip(hits.ids, hits.scores, strict=True))


@dataclass(frozen=True)
class Template:
    """The fact paths of the candidate maps as matrices.

    Attributes
    ----------
    facts : one a row
    ids : shape (rows, columns), which cell stands where; -1 is padding
    vectors : shape (cells, d), unit length, in the order of the ids
    """

    facts: list[Fact]
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


def make_template(graph: PseudoGraph, candidates: Sequence[Candidate], allowed: Allowed) -> Template:
    """The template of the facts that may be shown; rows in the order of the candidates, then of their maps."""
    facts: list[Fact] = []
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
    for kind in ("topics", "routes", "facts"):
        mine = [(place, cell_id) for (own, cell_id), place in places.items() if own == kind]
        if mine:
            vectors[[place for place, _ in mine]] = getattr(graph, kind).vectors_of([cell_id for _, cell_id in mine])
    return Template(facts, ids, _units(vectors))


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    unit: NDArray[np.float64] = np.divide(wide, norms, out=np.zeros_like(wide), where=norms > 0)
    return unit
