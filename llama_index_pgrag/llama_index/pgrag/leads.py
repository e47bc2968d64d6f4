"""From facts to the topics that they name: the next step of a question of several hops."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.allowed import Allowed
from llama_index.pgrag.graph import Fact, PseudoGraph

__all__ = ["Leads", "find_leads", "lead_facts"]

Vector = NDArray[np.float32]
Leads = dict[str, float]  # strength by topic id

_TOPICS_A_LEAD = 10  # topics that one fact can lead to at most


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
