"""`HippoRAGExplanation`: linked phrases, connecting facts and activated phrases of a retrieved passage."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from llama_index.core.schema import NodeWithScore
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.graph.passage import Fact
from llama_index.hipporag.search.graph_search import GraphSearchResult
from llama_index.hipporag.search.query_seeds import Link
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import Explanation
from llama_index.ragkit.index.results import result_fields

__all__ = ["NEAR", "HippoRAGExplanation", "explain", "facts_between", "passages_stating", "way_to"]

NEAR = "is near to"  # stands for the relation of two synonyms in a path
_ACTIVATED = 500  # phrases of highest probability, among which paths are searched
_SHOWN = 8  # active phrases in an explanation


@dataclass(frozen=True, kw_only=True)
class HippoRAGExplanation(Explanation):
    """Why a passage was retrieved.

    Attributes
    ----------
    walk : the passage's score in the walk, as a share of the best, in [0, 1]; None without a walk
    trust : how far the walk was trusted, in [0, 1]; None if the options do not use trust
    cosine : of question and passage, in [-1, 1]; None if it was not used
    lexical : BM25 score of the passage, at least 0; None if it was not used
    lexical_weight : weight of the BM25 score in nearness for this question, in [0, 1]; None if it was not used
    linked : the phrases from which the walk started
    facts : the path from there to the passage, as facts (head, relation, tail), with `NEAR` as the relation of two
        synonyms; then facts of the passage about linked phrases
    active : phrases of the passage with their probabilities after the walk, highest first
    facts_by : as `by`, for facts, if no LLM has read any passage that states them
    """

    walk: float | None
    trust: float | None
    cosine: float | None
    lexical: float | None
    lexical_weight: float | None
    linked: Sequence[Link]
    facts: Sequence[Fact]
    active: Sequence[tuple[str, float]]
    facts_by: Mapping[Fact, str] = field(default_factory=dict)


def explain(found: GraphSearchResult[KnowledgeGraph], result: NodeWithScore) -> HippoRAGExplanation:
    """Explain one passage of an answer, using only passages that may be returned."""
    state, graph = found.state, found.graph
    row = state.chunks.row_of(result.node.node_id)
    active = _activity(found)
    way = way_to(found, row)
    facts = [fact for a, b in pairwise(way) for fact in facts_between(state, graph, a, b)]
    facts += _facts_about(state, graph, row, {*way, *found.seeds.weights})
    own = sorted(graph.phrases_of(row).tolist(), key=lambda phrase: (-active[phrase], state.phrases.at(phrase)))
    return HippoRAGExplanation(
        **result_fields(result),
        walk=None if found.walked is None else float(found.walked[row]),
        trust=found.trust,
        cosine=None if found.near is None else float(found.near.cosines[row]),
        lexical=None if found.near is None else float(found.near.lexical[row]),
        lexical_weight=None if found.near is None else found.near.lexical_weight,
        linked=found.seeds.links,
        facts=list(dict.fromkeys(facts)),
        active=[(state.phrases.at(phrase), float(active[phrase])) for phrase in own[:_SHOWN] if active[phrase] > 0],
        fallback=found.fallback,
    )


def passages_stating(found: GraphSearchResult[KnowledgeGraph], facts: Iterable[Fact]) -> dict[Fact, list[str]]:
    """Ids of the passages that state each of some facts, among those that may be returned."""
    state = found.state
    columns = {fact: state.facts[fact] for fact in facts if fact in state.facts}
    stated = found.graph.statements[:, list(columns.values())].tocsc()
    places = pairwise(stated.indptr)
    return {
        fact: [state.chunks.ids[row] for row in stated.indices[start:end]]
        for fact, (start, end) in zip(columns, places, strict=True)
    }


def way_to(found: GraphSearchResult[KnowledgeGraph], row: int) -> list[int]:
    """The phrases of a shortest path from a linked phrase to one of a passage (its row); empty if there is none."""
    own, seeds = found.graph.phrases_of(row), np.array(sorted(found.seeds.weights), np.int64)
    if not seeds.size or not own.size:
        return []
    return _way(found.graph.adjacency(synonyms=found.synonyms), seeds, own, _activity(found))


def _activity(found: GraphSearchResult[KnowledgeGraph]) -> NDArray[np.float64]:
    """The probability of each phrase after the walk."""
    active = np.zeros(found.graph.shape[1])
    active[found.nodes] = found.active
    return active


def _way(
    edges: csr_matrix, seeds: NDArray[np.int64], ends: NDArray[np.int64], active: NDArray[np.float64]
) -> list[int]:
    """Phrases of a shortest path from a seed to one of `ends`, through the most activated phrases."""
    # Deferred: it imports the solvers of scipy.linalg, for a tenth of a second.
    from scipy.sparse.csgraph import dijkstra

    activated = np.argsort(-active, kind="stable")[:_ACTIVATED]
    known = np.unique(np.concatenate([activated[active[activated] > 0], seeds, ends]))
    adjacency = edges[known][:, known]
    starts = np.searchsorted(known, seeds)
    distance, before, _ = dijkstra(adjacency, unweighted=True, indices=starts, min_only=True, return_predecessors=True)
    goals = np.searchsorted(known, ends)
    goal = min(goals.tolist(), key=lambda place: (distance[place], -active[known[place]]))
    if not np.isfinite(distance[goal]):
        return []
    way = [goal]
    while before[way[-1]] >= 0:
        way.append(int(before[way[-1]]))
    return [int(known[place]) for place in reversed(way)]


def facts_between(state: HippoRAGState, graph: KnowledgeGraph, a: int, b: int) -> list[Fact]:
    """The facts that connect two neighbours in the graph, or their synonym edge."""
    ends = graph.phrase_facts
    of_a = ends.indices[ends.indptr[a] : ends.indptr[a + 1]]
    both = [c for c in of_a.tolist() if {int(graph.heads[c]), int(graph.tails[c])} == {a, b} and graph.stated[c]]
    facts = [state.facts.at(column) for column in both]
    return facts or [(state.phrases.at(a), NEAR, state.phrases.at(b))]


def _facts_about(state: HippoRAGState, graph: KnowledgeGraph, row: int, phrases: set[int]) -> list[Fact]:
    statements = graph.statements.indices[graph.statements.indptr[row] : graph.statements.indptr[row + 1]].tolist()
    return [
        state.facts.at(column)
        for column in sorted(statements)
        if int(graph.heads[column]) in phrases or int(graph.tails[column]) in phrases
    ]
