"""The HTML page of the mind maps."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter, itemgetter

from llama_index.pgrag.maps.mind_map import path_text
from llama_index.pgrag.search.ranking import MergedPath
from llama_index.pgrag.state import MindMap, PseudoGraph
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results

__all__ = ["FoundForPage", "page_of"]

_GROUPS = (
    Group("topic", "Topic"),
    Group("route", "Route"),
    Group("fact", "Fact"),
    Group("super-topic", "Super-topic"),
    Group("super-fact", "Super-fact"),
)


@dataclass(frozen=True)
class FoundForPage:
    """The result paths of an answer, best first, and its graph; None if the page shows the whole index."""

    paths: Sequence[MergedPath]
    graph: PseudoGraph | None


def page_of(graph: PseudoGraph, query: LastQuery | None) -> Page:
    """Topics, routes, facts and super nodes; the paths of the last answer, if any, are highlighted."""
    results: Sequence[MergedPath] = query.found.paths if query is not None else []
    scores = {fact.id: result.score for result in results for fact in result.facts if fact.id in graph.map_of}
    on_path = {cell for fact_id in scores for cell in _above(graph, fact_id)}
    maps = sorted(graph.maps.values(), key=attrgetter("key"))
    nodes = [node for found in maps for node in _nodes_of(found, scores, on_path)]
    edges = [edge for found in maps for edge in _edges_of(found, on_path)]
    for kind, super_nodes in (("topic", graph.super_topics), ("fact", graph.super_facts)):
        for members in super_nodes.nodes():
            name, lit = f"super-{kind}-{members[0]}", len(on_path & set(members)) > 1
            text = f"A super-{kind}: {len(members)} {kind}s with the same content."
            nodes.append(Node(name, label=f"super-{kind}", text=text, group=f"super-{kind}", size=1.5, highlighted=lit))
            edges += [Edge(name, member, highlighted=lit and member in on_path) for member in members]
    subtitle = "Topics, routes and facts; super nodes join those with the same content"
    return Page(
        title="PG-RAG mind maps",
        subtitle=subtitle if query is None else f"Question: {query.question}",
        view=Graph(nodes=nodes, edges=edges, groups=_GROUPS, layout="force"),
        panels=list(_panels(graph, results if query is not None else None)),
        highlight_label="Paths of the answer",
    )


def _nodes_of(found: MindMap, scores: Mapping[str, float], on_path: Container[str]) -> Iterator[Node]:
    """The topic of a map, its routes and its facts."""
    depth = max(len(fact.path) for fact in found.facts)
    yield Node(
        found.id,
        label=_label(found.topic),
        text=found.topic,
        group="topic",
        level=depth,
        size=2.0,
        highlighted=found.id in on_path,
        details={"document": found.document or "none", "facts": len(found.facts)},
    )
    for route_id, path in sorted(found.routes.items(), key=itemgetter(1)):
        level, lit = depth - len(path) + 1, route_id in on_path
        label, text = _label(path[-1]), path_text(path)
        yield Node(route_id, label=label, text=text, group="route", level=level, highlighted=lit)
    for fact in found.facts:
        yield Node(
            fact.id,
            label=_label(fact.path[-1]),
            text=fact.text,
            group="fact",
            score=scores.get(fact.id),
            highlighted=fact.id in scores,
            details={"document": fact.document or "none", "node": fact.node_id},
        )


def _edges_of(found: MindMap, on_path: Container[str]) -> Iterator[Edge]:
    """The lines of a map, from its topic to its facts."""
    cells = ([cell_id for _, cell_id in found.cells(fact)] for fact in found.facts)
    for one, other in dict.fromkeys(pair for way in cells for pair in pairwise(way)):
        yield Edge(one, other, highlighted=one in on_path and other in on_path)


def _panels(graph: PseudoGraph, results: Sequence[MergedPath] | None) -> Iterator[Facts | Results]:
    """The answer, if there is a question, and the counts."""
    if results is not None:
        items = [
            Result(result.fact.path[-1], snippet=" > ".join(result.fact.path), score=result.score, node=result.fact.id)
            for result in results
            if result.fact.id in graph.map_of
        ]
        yield Results("Retrieved", items)
    counts = {
        "mind maps": len(graph.maps),
        "facts": len(graph.map_of),
        "super-topics": len(graph.super_topics.nodes()),
        "super-facts": len(graph.super_facts.nodes()),
    }
    yield Facts("The pseudo-graph", counts)


def _above(graph: PseudoGraph, fact_id: str) -> list[str]:
    fact = graph.fact(fact_id)
    return [cell_id for _, cell_id in graph.maps[fact.topic_id].cells(fact)]


def _label(text: str) -> str:
    """A text without marks of lists or emphasis, or punctuation, at its beginning."""
    return text.lstrip("*#>;:,.-\u2013\u2014 ") or text
