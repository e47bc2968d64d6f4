"""The HTML page of the knowledge graph: phrases, the facts between them, and passages."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from textwrap import shorten

import numpy as np

from llama_index.hipporag.explanation import NEAR, facts_between, way_to
from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.search.graph_search import GraphSearchResult
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results, passage_label
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["page_of", "rows_to_show"]

_PHRASES = 1500  # the most activated ones first, or the most frequent ones
_PASSAGES = 500
_EXPLAINED = 12  # passages whose chains of facts are highlighted
_RELATIONS = 60  # characters of the label of an edge
_SNIPPET = 140
_LEAST_TRUST = 0.1  # in the walk, from which its ways are drawn
_MOST_PHRASES = 5  # of a way: each fact halves what the walk brings, and a longer way explains nothing
_LEAST_SHARE = 0.002  # of the best passage's in the walk, from which a way is drawn: two or three facts away


def rows_to_show(
    state: HippoRAGState, graph: KnowledgeGraph, allowed: Mask | None, query: LastQuery | None
) -> tuple[list[int], list[str]]:
    """Phrases (rows) and passages (ids) of the page: first those of the last answer and of the ways to it.

    Parameters
    ----------
    graph : that of the allowed passages
    allowed : shape (number of passages,), those that may be shown; None for all
    """
    phrases = np.argsort(-graph.frequency, kind="stable").tolist()
    ids = state.chunks.ids
    passages = list(ids) if allowed is None else [ids[row] for row in np.flatnonzero(allowed)]
    if query is not None:
        found: GraphSearchResult[KnowledgeGraph] = query.found
        answer = [node_id for node_id, _ in query.answer if node_id in state.chunks]
        ways = [row for way in _ways(found, answer).values() for row in way]
        activated = found.nodes[np.argsort(-found.active, kind="stable")].tolist()
        own = [row for node_id in answer for row in _phrases_of(graph, state.chunks.row_of(node_id))]
        phrases = [*found.seeds.weights, *ways, *own, *activated, *phrases]
        passages = [*answer, *passages]
    shown = [row for row in dict.fromkeys(phrases) if graph.frequency[row] > 0]
    return shown[:_PHRASES], list(dict.fromkeys(passages))[:_PASSAGES]


def page_of(
    state: HippoRAGState,
    graph: KnowledgeGraph,
    allowed: Mask | None,
    texts: Mapping[str, str],
    query: LastQuery | None,
    phrases: Sequence[int],
    passages: Sequence[str],
) -> Page:
    """Phrases, the facts and synonym edges between them, and passages; the ways to the last answer are highlighted.

    Parameters
    ----------
    graph, allowed : see :func:`rows_to_show`
    texts : text of each passage to show
    query : the last query and its search result, if any
    phrases, passages : what to show, see :func:`rows_to_show`
    """
    active = np.zeros(graph.shape[1])
    linked: set[int] = set()
    ways: dict[str, list[int]] = {}
    scores = dict(query.answer) if query else {}
    if query is not None:
        active[query.found.nodes] = query.found.active
        linked = set(query.found.seeds.weights)
        ways = _ways(query.found, [node_id for node_id in scores if node_id in state.chunks])
    lit = linked | {row for way in ways.values() for row in way}
    top = max(float(active.max(initial=0.0)), 1e-12)
    nodes = [
        Node(
            id=f"phrase {place}",
            text=state.phrases.at(row),
            group="linked" if row in linked else "phrase",
            size=0.6 + 4 * float(np.sqrt(active[row] / top)) if query else 1.0 + float(graph.frequency[row]) ** 0.5,
            score=float(active[row]) if query else None,
            highlighted=row in lit,
            details={"passages": int(graph.frequency[row])},
        )
        for place, row in enumerate(phrases)
    ]
    labels = {n: passage_label(texts[n], state.chunks.metadata_of(n)) for n in passages if n in texts}
    nodes += [
        Node(
            id=f"passage {node_id}",
            label=label,
            text=texts[node_id],
            group="passage",
            size=2.0 if node_id in scores else 0.8,
            score=scores.get(node_id),
            highlighted=node_id in scores,
            details={
                "document": state.chunks.record_of(node_id).ref_doc_id or "none",
                **state.chunks.metadata_of(node_id),
            },
        )
        for node_id, label in labels.items()
    ]
    groups = [Group("linked", "Phrase of the question"), Group("phrase", "Phrase"), Group("passage", "Passage")]
    panels: list[Facts | Results] = []
    if query is not None:
        items = [
            Result(
                labels[n],
                snippet=" → ".join(map(state.phrases.at, ways.get(n, ())))
                or shorten(texts[n], _SNIPPET, placeholder="…"),
                score=score,
                node=f"passage {n}",
            )
            for n, score in query.answer
            if n in labels
        ]
        panels.append(Results("Retrieved", items))
        start = ", ".join(dict.fromkeys(link.phrase for link in query.found.seeds.links))
        panels.append(Facts("The walk", {"starts from": start or "nothing: " + query.found.seeds.reason}))
    counts = {
        "passages": graph.shape[0] if allowed is None else int(np.count_nonzero(allowed)),
        "phrases": int(np.count_nonzero(graph.frequency)),
        "facts": int(np.count_nonzero(graph.stated)),
        "synonym edges": graph.synonym_edges.nnz // 2,
    }
    panels.append(Facts("The graph", counts))
    whole = len(labels) == counts["passages"] and len(phrases) == counts["phrases"]
    return Page(
        title="HippoRAG graph",
        subtitle=f"Question: {query.question}" if query is not None else "Phrases, and the passages that contain them",
        view=Graph(nodes, _edges(state, graph, phrases, labels, ways), groups, layout="force"),
        panels=panels,
        legend=["A larger phrase: more activated by the walk" if query else "A larger phrase: in more passages"],
        highlight_label="Way to the answer",
        covers=""
        if whole
        else f"The page has {len(phrases)} of {counts['phrases']} phrases and {len(labels)} of {counts['passages']} "
        "passages.",
    )


def _ways(found: GraphSearchResult[KnowledgeGraph], answer: Sequence[str]) -> dict[str, list[int]]:
    """For each of the first passages that the walk led to, the phrases from the question to it."""
    chunks = found.state.chunks
    rows = {node_id: chunks.row_of(node_id) for node_id in answer[:_EXPLAINED]}
    ways = {node_id: way_to(found, row) for node_id, row in rows.items() if _is_walked(found, row)}
    return {node_id: way for node_id, way in ways.items() if len(way) <= _MOST_PHRASES}


def _is_walked(found: GraphSearchResult[KnowledgeGraph], row: int) -> bool:
    """Whether a passage is in an answer for the walk's sake: the walk is trusted, and reaches it.

    There is a path between nearly any two phrases of a graph. One to a passage that nearness alone has found would be
    drawn through what has nothing to do with the question.
    """
    if found.walked is None or found.fallback:
        return False
    trusted = found.trust is None or found.trust >= _LEAST_TRUST
    return trusted and float(found.walked[row]) >= _LEAST_SHARE


def _phrases_of(graph: KnowledgeGraph, row: int) -> list[int]:
    phrases: list[int] = graph.contains.indices[graph.contains.indptr[row] : graph.contains.indptr[row + 1]].tolist()
    return phrases


def _edges(
    state: HippoRAGState,
    graph: KnowledgeGraph,
    phrases: Sequence[int],
    passages: Mapping[str, str],
    ways: Mapping[str, Sequence[int]],
) -> list[Edge]:
    """Facts between phrases with their relations, and the phrases of passages; the ways are highlighted."""
    place = {row: i for i, row in enumerate(phrases)}
    lit = {frozenset(pair) for way in ways.values() for pair in pairwise(way)}
    among = graph.adjacency(synonyms=True)[phrases][:, phrases].tocoo()
    edges = []
    for i, j, weight in zip(among.row.tolist(), among.col.tolist(), among.data.tolist(), strict=True):
        if i < j:
            a, b = phrases[i], phrases[j]
            facts = facts_between(state, graph, a, b)
            relations = "; ".join(dict.fromkeys(relation for _, relation, _ in facts))
            label = "≈" if facts[0][1] == NEAR else shorten(relations, _RELATIONS, placeholder="…")
            edges.append(Edge(f"phrase {i}", f"phrase {j}", label, weight, highlighted=frozenset((a, b)) in lit))
    for node_id in passages:
        ends = set(ways.get(node_id, ())[-1:])
        edges += [
            Edge(f"passage {node_id}", f"phrase {place[phrase]}", weight=0.5, highlighted=phrase in ends)
            for phrase in _phrases_of(graph, state.chunks.row_of(node_id))
            if phrase in place
        ]
    return edges
