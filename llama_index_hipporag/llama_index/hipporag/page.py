"""The HTML page of the knowledge graph: phrases, the facts between them, and passages."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from textwrap import shorten

import numpy as np

from llama_index.hipporag.explanation import NEAR, facts_between, way_to
from llama_index.hipporag.graph.knowledge_graph import KnowledgeGraph
from llama_index.hipporag.search.graph_search import GraphSearchResult
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import LastQuery, Steps
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results, passage_label
from llama_index.ragkit.storage.derived_nodes import NodeFetch, texts_of
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["page_of"]

_PHRASES = 1500  # the most activated ones first, or the most frequent ones
_PASSAGES = 500
_EXPLAINED = 12  # passages whose chains of facts are highlighted
_RELATIONS = 60  # characters of the label of an edge
_SNIPPET = 140
_LEAST_TRUST = 0.1  # least trust in the walk for which its paths are drawn
_MOST_PHRASES = 5  # of a path: each fact halves what the walk brings, and a longer path explains nothing
_LEAST_SHARE = 0.002  # least share of the best passage's score in the walk for a path: two or three facts away
_GROUPS = (Group("linked", "Phrase of the question"), Group("phrase", "Phrase"), Group("passage", "Passage"))


def page_of(
    state: HippoRAGState, graph: KnowledgeGraph, allowed: Mask | None, query: LastQuery | None, fetch: NodeFetch
) -> Steps[Page]:
    """Phrases, the facts and synonym edges between them, and passages; the paths to the last answer are highlighted.

    Those of the last answer and of the paths to it come first. `graph` is that of the allowed passages.
    """
    ids = state.chunks.ids
    rows: list[int] = np.argsort(-graph.frequency, kind="stable").tolist()
    passages = list(ids) if allowed is None else [ids[row] for row in np.flatnonzero(allowed)]
    ways: dict[str, list[int]] = {}
    if query is not None:
        found: GraphSearchResult[KnowledgeGraph] = query.found
        answer = [node_id for node_id, _ in query.answer if node_id in state.chunks]
        ways = _ways(found, answer)
        activated = found.nodes[np.argsort(-found.active, kind="stable")].tolist()
        own = [row for node_id in answer for row in graph.phrases_of(state.chunks.row_of(node_id)).tolist()]
        rows = [*found.seeds.weights, *chain.from_iterable(ways.values()), *own, *activated, *rows]
        passages = list(dict.fromkeys([*answer, *passages]))
    phrases = [row for row in dict.fromkeys(rows) if graph.frequency[row] > 0][:_PHRASES]
    texts = yield from texts_of(passages[:_PASSAGES], fetch)
    labels = {n: passage_label(texts[n], state.chunks.metadata_of(n)) for n in passages[:_PASSAGES] if n in texts}
    counts = {
        "passages": graph.shape[0] if allowed is None else int(np.count_nonzero(allowed)),
        "phrases": int(np.count_nonzero(graph.frequency)),
        "facts": int(np.count_nonzero(graph.stated)),
        "synonym edges": graph.synonym_edges.nnz // 2,
    }
    shown = f"{len(phrases)} of {counts['phrases']} phrases and {len(labels)} of {counts['passages']} passages"
    whole = len(labels) == counts["passages"] and len(phrases) == counts["phrases"]
    nodes = [*_phrase_nodes(state, graph, phrases, ways, query), *_passage_nodes(state, texts, labels, query)]
    return Page(
        title="HippoRAG graph",
        subtitle="Phrases, and the passages that contain them" if query is None else f"Question: {query.question}",
        view=Graph(nodes, _edges(state, graph, phrases, labels, ways), _GROUPS, layout="force"),
        panels=[*_answer(state, texts, labels, ways, query), Facts("The graph", counts)],
        legend=["A larger phrase: more activated by the walk" if query else "A larger phrase: in more passages"],
        highlight_label="Path to the answer" if ways else "The answer",
        covers="" if whole else f"The page has {shown}.",
    )


def _phrase_nodes(
    state: HippoRAGState,
    graph: KnowledgeGraph,
    phrases: Sequence[int],
    ways: Mapping[str, Sequence[int]],
    query: LastQuery | None,
) -> Iterator[Node]:
    """Phrases, sized by their activity, or, without a question, by their frequency."""
    active, linked = np.zeros(graph.shape[1]), set[int]()
    if query is not None:
        active[query.found.nodes] = query.found.active
        linked = set(query.found.seeds.weights)
    lit = linked.union(*ways.values())
    top = max(float(active.max(initial=0.0)), 1e-12)
    for place, row in enumerate(phrases):
        frequency, share = int(graph.frequency[row]), float(active[row])
        yield Node(
            id=f"phrase {place}",
            text=state.phrases.at(row),
            group="linked" if row in linked else "phrase",
            size=0.6 + 4 * (share / top) ** 0.5 if query else 1.0 + frequency**0.5,
            score=share if query else None,
            highlighted=row in lit,
            details={"passages": frequency},
        )


def _passage_nodes(
    state: HippoRAGState, texts: Mapping[str, str], labels: Mapping[str, str], query: LastQuery | None
) -> Iterator[Node]:
    scores = dict(query.answer) if query else {}
    for node_id, label in labels.items():
        document = state.chunks.record_of(node_id).ref_doc_id or "none"
        yield Node(
            id=f"passage {node_id}",
            label=label,
            text=texts[node_id],
            group="passage",
            size=2.0 if node_id in scores else 0.8,
            score=scores.get(node_id),
            highlighted=node_id in scores,
            details={"document": document, **state.chunks.metadata_of(node_id)},
        )


def _answer(
    state: HippoRAGState,
    texts: Mapping[str, str],
    labels: Mapping[str, str],
    ways: Mapping[str, Sequence[int]],
    query: LastQuery | None,
) -> Iterator[Facts | Results]:
    """The passages of the answer, each with the path to it or its beginning, and the start of the walk."""
    if query is None:
        return
    items = []
    for node_id, score in query.answer:
        if node_id in labels:
            way = " → ".join(map(state.phrases.at, ways.get(node_id, ())))
            snippet = way or shorten(texts[node_id], _SNIPPET, placeholder="…")
            items.append(Result(labels[node_id], snippet=snippet, score=score, node=f"passage {node_id}"))
    yield Results("Retrieved", items)
    start = ", ".join(dict.fromkeys(link.phrase for link in query.found.seeds.links))
    yield Facts("The walk", {"starts from": start or "nothing: " + query.found.seeds.reason})


def _ways(found: GraphSearchResult[KnowledgeGraph], answer: Sequence[str]) -> dict[str, list[int]]:
    """For each of the first passages that the walk reached, the phrases from the question to it."""
    chunks = found.state.chunks
    rows = {node_id: chunks.row_of(node_id) for node_id in answer[:_EXPLAINED]}
    ways = {node_id: way_to(found, row) for node_id, row in rows.items() if _is_walked(found, row)}
    return {node_id: way for node_id, way in ways.items() if len(way) <= _MOST_PHRASES}


def _is_walked(found: GraphSearchResult[KnowledgeGraph], row: int) -> bool:
    """Whether a passage is in an answer because of the walk: the walk is trusted, and reaches it.

    There is a path between nearly any two phrases of a graph. A path to a passage that only nearness has found would
    lead through phrases that are unrelated to the question.
    """
    if found.walked is None or found.fallback:
        return False
    trusted = found.trust is None or found.trust >= _LEAST_TRUST
    return trusted and float(found.walked[row]) >= _LEAST_SHARE


def _edges(
    state: HippoRAGState,
    graph: KnowledgeGraph,
    phrases: Sequence[int],
    passages: Mapping[str, str],
    ways: Mapping[str, Sequence[int]],
) -> list[Edge]:
    """Facts between phrases with their relations, and the phrases of passages; the paths are highlighted."""
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
            for phrase in graph.phrases_of(state.chunks.row_of(node_id)).tolist()
            if phrase in place
        ]
    return edges
