"""The HTML page of the mind maps."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from llama_index.pgrag.maps.mind_map import path_text
from llama_index.pgrag.search.ranking import MergedPath
from llama_index.pgrag.state import PseudoGraph
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results

__all__ = ["FoundForPage", "page_of"]


@dataclass(frozen=True)
class FoundForPage:
    """What a page shows of an answer.

    Attributes
    ----------
    paths : the results, best first
    graph : what the answer came from; None where the page shows the whole index
    """

    paths: Sequence[MergedPath]
    graph: PseudoGraph | None


def page_of(graph: PseudoGraph, query: LastQuery | None) -> Page:
    """Topics, routes, facts and super nodes; the paths of an answer highlighted.

    Parameters
    ----------
    query : the last question, if any, and its result paths, best first
    """
    results: Sequence[MergedPath] = query.found.paths if query is not None else []
    scores = {fact.id: result.score for result in results for fact in result.facts if fact.id in graph.map_of}
    on_path = {cell for fact_id in scores for cell in _above(graph, fact_id)}
    nodes: list[Node] = []
    edges: list[Edge] = []
    for topic_id, found in sorted(graph.maps.items(), key=lambda item: item[1].key):
        depth = max(len(fact.path) for fact in found.facts)
        nodes.append(
            Node(
                topic_id,
                label=_label(found.topic),
                text=found.topic,
                group="topic",
                level=depth,
                size=2.0,
                highlighted=topic_id in on_path,
                details={"document": found.document or "none", "facts": len(found.facts)},
            )
        )
        for route_id, path in sorted(found.routes.items(), key=lambda item: item[1]):
            text = path_text(path)
            level = depth - len(path) + 1
            nodes.append(
                Node(
                    route_id,
                    label=_label(path[-1]),
                    text=text,
                    group="route",
                    level=level,
                    highlighted=route_id in on_path,
                )
            )
        drawn: set[tuple[str, str]] = set()
        for fact in found.facts:
            details: dict[str, Any] = {"document": fact.document or "none", "node": fact.node_id}
            score, shown = scores.get(fact.id), fact.id in scores
            nodes.append(
                Node(
                    fact.id,
                    label=_label(fact.path[-1]),
                    text=fact.text,
                    group="fact",
                    score=score,
                    highlighted=shown,
                    details=details,
                )
            )
            cells = [cell_id for _, cell_id in found.cells(fact)]
            for one, other in pairwise(cells):
                if (one, other) not in drawn:
                    drawn.add((one, other))
                    edges.append(Edge(one, other, highlighted=one in on_path and other in on_path))
    for kind, super_nodes in (("topic", graph.super_topics), ("fact", graph.super_facts)):
        for members in super_nodes.nodes():
            name = f"super-{kind}-{members[0]}"
            highlighted = len(on_path & set(members)) > 1
            text = f"A super-{kind}: {len(members)} {kind}s with the same content."
            nodes.append(
                Node(name, label=f"super-{kind}", text=text, group=f"super-{kind}", size=1.5, highlighted=highlighted)
            )
            edges += [Edge(name, member, highlighted=highlighted and member in on_path) for member in members]
    facts = {
        "mind maps": len(graph.maps),
        "facts": len(graph.map_of),
        "super-topics": len(graph.super_topics.nodes()),
        "super-facts": len(graph.super_facts.nodes()),
    }
    panels: list[Facts | Results] = []
    if query is not None:
        items = [
            Result(result.fact.path[-1], snippet=" > ".join(result.fact.path), score=result.score, node=result.fact.id)
            for result in results
            if result.fact.id in graph.map_of
        ]
        panels.append(Results("Retrieved", items))
    panels.append(Facts("The pseudo-graph", facts))
    groups = [
        Group("topic", "Topic"),
        Group("route", "Route"),
        Group("fact", "Fact"),
        Group("super-topic", "Super-topic"),
        Group("super-fact", "Super-fact"),
    ]
    return Page(
        title="PG-RAG mind maps",
        subtitle=f"Question: {query.question}"
        if query is not None
        else "Topics, routes and facts; super nodes join those with the same content",
        view=Graph(nodes=nodes, edges=edges, groups=groups, layout="force"),
        panels=panels,
        highlight_label="Paths of the answer",
    )


def _above(graph: PseudoGraph, fact_id: str) -> list[str]:
    fact = graph.fact(fact_id)
    return [cell_id for _, cell_id in graph.maps[fact.topic_id].cells(fact)]


def _label(text: str) -> str:
    """A text without the marks of a list, of emphasis or of a clause at its beginning."""
    return text.lstrip("*#>;:,.-\u2013\u2014 ") or text
