"""The HTML page of the graph around a question."""

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import Any

import numpy as np

from llama_index.hipporag.explanation import NEAR, facts_between
from llama_index.hipporag.search.graph_search import GraphSearchResult
from llama_index.hipporag.state import HippoRAGState
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results

__all__ = ["page_of", "rows_to_show"]

_PHRASES = 60  # phrases around a question, or the most frequent ones without a question
_PASSAGES = 12
_LABEL = 40
_SNIPPET = 140


def rows_to_show(state: HippoRAGState, query: LastQuery | None) -> tuple[list[int], list[str]]:
    """Phrases (rows) and passages (ids) of the page."""
    if query is None:
        order = np.argsort(-state.graph.frequency, kind="stable")[:_PHRASES]
        return [int(row) for row in order], []
    found: GraphSearchResult = query.found
    passages = [node_id for node_id, _ in query.answer[:_PASSAGES] if node_id in state.chunks]
    activated = found.nodes[np.argsort(-found.active, kind="stable")[:_PHRASES]]
    linked = [link.row for link in found.seeds.links]
    return list(dict.fromkeys([*linked, *activated.tolist()])), passages


def page_of(state: HippoRAGState, texts: Mapping[str, str], query: LastQuery | None) -> Page:
    """The most activated phrases, the facts and synonym edges between them, and the retrieved passages.

    Parameters
    ----------
    texts : text of each passage to show
    query : the last query and its search result; None shows the most frequent phrases
    """
    phrases, passages = rows_to_show(state, query)
    graph = state.graph if query is None else query.found.graph
    active = np.zeros(graph.shape[1])
    linked: set[int] = set()
    if query is not None:
        active[query.found.nodes] = query.found.active
        linked = set(query.found.seeds.weights)
    top = max(float(active.max(initial=0.0)), 1e-12)
    nodes = [
        Node(
            id=f"phrase {row}",
            text=state.phrases.at(row),
            group="linked" if row in linked else "phrase",
            size=0.6 + 4 * float(np.sqrt(active[row] / top)) if query else 1.0 + float(graph.frequency[row]) ** 0.5,
            score=float(active[row]) if query else None,
            highlighted=row in linked,
            details={"passages": int(graph.frequency[row])},
        )
        for row in phrases
    ]
    scores = dict(query.answer) if query else {}
    nodes += [
        Node(
            id=f"passage {node_id}",
            label=shorten(texts[node_id], _LABEL, placeholder="…"),
            text=texts[node_id],
            group="passage",
            size=2.0,
            score=scores[node_id],
            highlighted=True,
            details={"document": state.chunks.record_of(node_id).ref_doc_id or "none"},
        )
        for node_id in passages
        if node_id in texts
    ]
    groups = [Group("linked", "Phrase of the question"), Group("phrase", "Phrase"), Group("passage", "Passage")]
    panels: list[Facts | Results] = []
    if query is not None:
        found, answer = query.found, query.answer
        items = [
            Result(snippet=shorten(texts[n], _SNIPPET, placeholder="…"), score=score, node=f"passage {n}")
            for n, score in answer
            if n in texts and n in passages
        ]
        panels.append(Results("Retrieved", items))
        start = ", ".join(dict.fromkeys(link.phrase for link in found.seeds.links))
        panels.append(Facts("The walk", {"starts from": start or "nothing: " + found.seeds.reason}))
    counts = dict(zip(("passages", "phrases", "facts"), graph.shape, strict=True))
    panels.append(Facts("The graph", {**counts, "synonym edges": graph.synonym_edges.nnz // 2}))
    return Page(
        title="HippoRAG graph",
        subtitle=f"Question: {query.question}" if query is not None else "Phrases, and the passages that contain them",
        view=Graph(nodes=nodes, edges=_edges(state, graph, phrases, passages, texts, linked), groups=groups,
                   layout="force"),
        panels=panels,
        legend=["A larger phrase: more activated by the walk" if query else "A larger phrase: in more passages"],
        highlight_label="Question and answer",
    )  # fmt: skip


def _edges(
    state: HippoRAGState,
    graph: Any,
    phrases: Sequence[int],
    passages: Sequence[str],
    texts: Mapping[str, str],
    linked: set[int],
) -> list[Edge]:
    place = {row: i for i, row in enumerate(phrases)}
    among = graph.adjacency(synonyms=True)[phrases][:, phrases].tocoo()
    edges = []
    for i, j, weight in zip(among.row.tolist(), among.col.tolist(), among.data.tolist(), strict=True):
        if i < j:
            a, b = phrases[i], phrases[j]
            facts = facts_between(state, graph, a, b)
            label = "; ".join(dict.fromkeys(relation for _, relation, _ in facts))[:_LABEL]
            near = facts[0][1] == NEAR
            edges.append(Edge(f"phrase {a}", f"phrase {b}", label="≈" if near else label, weight=weight))
    for node_id in passages:
        if node_id in texts:
            row = state.chunks.row_of(node_id)
            own = graph.contains.indices[graph.contains.indptr[row] : graph.contains.indptr[row + 1]].tolist()
            edges += [
                Edge(f"passage {node_id}", f"phrase {phrase}", weight=0.5, highlighted=phrase in linked)
                for phrase in own
                if phrase in place
            ]
    return edges
