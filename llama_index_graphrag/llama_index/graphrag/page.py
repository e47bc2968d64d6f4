"""The HTML page of nested communities, entities and chunks around a question."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from llama_index.graphrag.found import GraphRAGFound
from llama_index.graphrag.state import GraphRAGState, GraphView
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results, passage_label

__all__ = ["Shown", "page_of", "rows_to_show"]

_COMMUNITIES = 150
_CHUNKS = 12
_ENTITIES = 250
_LABEL = 40
_SNIPPET = 140
_STATEMENTS = 30  # of a community
_BEST = 5  # chunks to which the highlighted path leads
_LINES = 3  # from a chunk to entities
_SOURCES = 3  # chunks shown with a community


@dataclass(frozen=True)
class Shown:
    """The contents of the page: communities, parents before children, keys of entities, and ids of chunks.

    `sources` are, for each community, the ids of the first chunks that state something inside it.
    """

    communities: Sequence[int]
    entities: Sequence[str]
    chunks: Sequence[str]
    sources: Mapping[int, Sequence[str]]

    @property
    def texts(self) -> list[str]:
        """The ids of all chunks whose texts are shown."""
        return list(dict.fromkeys([*self.chunks, *(node for nodes in self.sources.values() for node in nodes)]))


def rows_to_show(view: GraphView, query: LastQuery | None) -> Shown:
    """The communities, entities and chunks of the page: those of the last query, then the largest."""
    found: GraphRAGFound | None = None if query is None else query.found
    hierarchy, names = view.hierarchy, view.entities.names
    answer = [node_id for node_id, _ in (query.answer if query else ())]
    if found is not None:  # for a report, its first source
        reports = {
            node_id: [child.node_id for child in node.child_nodes or ()] for node_id, node in found.derived.items()
        }
        answer = list(dict.fromkeys(node for node_id in answer for node in reports.get(node_id, [node_id])[:1]))
    chunks = [node_id for node_id in answer if node_id in view.graph.chunks][:_CHUNKS]
    entities = [] if found is None else [link.entity for link in found.starts]
    entities += [key for chunk in chunks for key in _ends(view, found, chunk)]
    read = list(found.cut.communities + found.cut.opened) if found is not None and found.cut is not None else []
    wanted = dict.fromkeys([*read, *(int(hierarchy.leaf[view.entities.position[key]]) for key in entities)])
    wanted.update(dict.fromkeys(sorted(range(len(hierarchy)), key=lambda c: (-int(hierarchy.sizes[c]), c))))
    chosen: dict[int, None] = {}
    for community in wanted:
        if len(chosen) >= _COMMUNITIES:
            break
        chosen.update(dict.fromkeys([*hierarchy.ancestors(community), community]))
    degrees = view.entities.degrees
    strongest = sorted(range(len(names)), key=lambda row: (-int(degrees[row]), names[row]))
    entities += [names[row] for row in strongest if int(hierarchy.leaf[row]) in chosen]
    sources = {community: view.planner.plan(community).nodes[:_SOURCES] for community in chosen}
    return Shown(sorted(chosen), list(dict.fromkeys(entities))[:_ENTITIES], chunks, sources)


def page_of(
    state: GraphRAGState, view: GraphView, shown: Shown, texts: Mapping[str, str], query: LastQuery | None
) -> Page:
    """Nested communities, named by their most salient entities, with the path of the last query highlighted."""
    found: GraphRAGFound | None = None if query is None else query.found
    hierarchy = view.hierarchy
    linked = {link.entity for link in found.starts} if found is not None else set()
    read = set(found.cut.communities) if found is not None and found.cut is not None else set()
    position = view.entities.position
    best = [node_id for node_id, _ in (query.answer if query else ()) if node_id in shown.chunks][:_BEST]
    way = linked | {key for chunk in best for key in _ends(view, found, chunk)[:1]}
    path = {c for key in way if key in position for c in [int(hierarchy.leaf[position[key]])]} | read
    path |= {ancestor for community in path for ancestor in hierarchy.ancestors(community)}
    names = {node_id: passage_label(text, state.chunks.metadata_of(node_id)) for node_id, text in texts.items()}
    nodes = list(_communities(state, view, shown, texts, path, read))
    nodes += [_entity(view, key, key in linked, key in way, found) for key in shown.entities]
    nodes += _chunks(state, shown, texts, names, dict(query.answer) if query else {}, best)
    panels: list[Facts | Results] = []
    if query is not None and found is not None:
        panels.append(Results("Retrieved", _results(query, found, view, texts, names)))
        panels.append(Facts("The search", _facts(view, found)))
    return Page(
        title="Graph RAG communities",
        subtitle=f"Question: {query.question}" if query else "Communities of entities, nested, and their reports",
        view=Graph(nodes, _edges(view, shown, path, way, best, texts, found), _GROUPS, layout="tree"),
        panels=[*panels, Facts("The graph", _counts(state, view))],
        highlight_label="Path to the answer",
    )


_GROUPS = (
    Group("report read", "Community whose report was read"),
    Group("community", "Community"),
    Group("linked", "Entity of the question"),
    Group("entity", "Entity"),
    Group("chunk", "Chunk of a document"),
)


def _communities(
    state: GraphRAGState,
    view: GraphView,
    shown: Shown,
    texts: Mapping[str, str],
    path: Container[int],
    read: Container[int],
) -> Iterator[Node]:
    """The communities on the page, with their reports."""
    hierarchy, planner = view.hierarchy, view.planner
    top = max((int(hierarchy.level[community]) for community in shown.communities), default=0)
    for community in shown.communities:
        chunks = [texts[node] for node in shown.sources[community] if node in texts]
        yield Node(
            id=f"community {community}",
            label=shorten(planner.title(community), _LABEL, placeholder="…"),
            text=_report_text(state, view, community, chunks),
            group="report read" if community in read else "community",
            level=2 + top - int(hierarchy.level[community]),
            size=1.0 + float(hierarchy.sizes[community]) ** 0.5,
            highlighted=community in path,
            details={
                "entities": int(hierarchy.sizes[community]),
                "chunks": len(planner.plan(community).nodes),
                "report": state.report(view, community).form,
            },
        )


def _chunks(
    state: GraphRAGState,
    shown: Shown,
    texts: Mapping[str, str],
    names: Mapping[str, str],
    scores: Mapping[str, float],
    best: Container[str],
) -> Iterator[Node]:
    for node_id in shown.chunks:
        if node_id in texts:
            yield Node(
                id=f"chunk {node_id}",
                label=names[node_id],
                text=texts[node_id],
                group="chunk",
                score=scores.get(node_id),
                highlighted=node_id in best,
                details={"document": state.chunks.record_of(node_id).ref_doc_id or "none"},
            )


def _counts(state: GraphRAGState, view: GraphView) -> dict[str, int]:
    counts = {
        "chunks": len(view.graph.chunks),
        "entities": len(view.entities),
        "relations": len(view.entities.indices) // 2,
        "communities": len(view.hierarchy),
        "written reports": len(view.known(state.reports)),
    }
    if failed := sum(bool(written.error) for written in state.reports.values()):
        counts["of these made of statements because the model failed"] = failed
    return counts


def _report_text(state: GraphRAGState, view: GraphView, community: int, chunks: Sequence[str]) -> str:
    """The text of a community: its report, then the beginnings of its first chunks."""
    report = state.report(view, community)
    title = report.title if len(report.title) > _LABEL else ""  # otherwise the label has it
    lines = [title, report.summary, *(finding.text for finding in report.findings[:_STATEMENTS])]
    listed = [f"Chunk: {shorten(chunk, _SNIPPET, placeholder='…')}" for chunk in chunks]
    return "\n".join([*filter(None, lines), "", *listed]).strip()


def _entity(view: GraphView, key: str, linked: bool, highlighted: bool, found: GraphRAGFound | None) -> Node:
    row = view.entities.position[key]
    statements = list(dict.fromkeys(statement.text for statement in view.graph.statements_about(key)))
    details: dict[str, Any] = {"relations": int(view.entities.degrees[row]), "chunks": len(view.graph.entities[key])}
    kind = view.graph.type_of(key)
    return Node(
        id=f"entity {key}",
        label=view.graph.name_of(key),
        text="\n".join(statements[:_STATEMENTS]),
        group="linked" if linked else "entity",
        level=1,
        size=0.6 + float(view.entities.degrees[row]) ** 0.5 / 2,
        score=None if found is None else found.active.get(key),
        highlighted=highlighted,
        details={"type": kind, **details} if kind else details,
    )


def _ends(view: GraphView, found: GraphRAGFound | None, chunk: str) -> list[str]:
    """The entities to which a chunk has a line: the most active."""
    active: Mapping[str, float] = {} if found is None else found.active
    return sorted(view.entities_in([chunk]).get(chunk, ()), key=lambda key: (-active.get(key, 0.0), key))[:_LINES]


def _edges(
    view: GraphView,
    shown: Shown,
    path: set[int],
    way: set[str],
    best: Sequence[str],
    texts: Mapping[str, str],
    found: GraphRAGFound | None,
) -> list[Edge]:
    hierarchy, position = view.hierarchy, view.entities.position
    communities, entities = set(shown.communities), set(shown.entities)
    edges = []
    for community in shown.communities:
        parent = int(hierarchy.parent[community])
        if parent >= 0:
            both = community in path and parent in path
            edges.append(Edge(f"community {parent}", f"community {community}", highlighted=both))
    for key in shown.entities:
        leaf = int(hierarchy.leaf[position[key]])
        if leaf in communities:
            edges.append(Edge(f"community {leaf}", f"entity {key}", highlighted=key in way))
    for chunk in shown.chunks:
        if chunk in texts:
            edges += [
                Edge(f"entity {key}", f"chunk {chunk}", highlighted=key in way and chunk in best)
                for key in _ends(view, found, chunk)
                if key in entities
            ]
    return edges


def _results(
    query: LastQuery, found: GraphRAGFound, view: GraphView, texts: Mapping[str, str], names: Mapping[str, str]
) -> list[Result]:
    read = {} if found.cut is None else {view.planner.title(c): f"community {c}" for c in found.cut.communities}
    items = []
    for node_id, score in query.answer:
        if node_id in found.derived:
            text = found.derived[node_id].get_content()
            items.append(
                Result(
                    snippet=shorten(text, _SNIPPET, placeholder="…"), score=score, node=read.get(text.split("\n")[0])
                )
            )
        elif node_id in texts:
            snippet = shorten(texts[node_id], _SNIPPET, placeholder="…")
            items.append(Result(names[node_id], snippet=snippet, score=score, node=f"chunk {node_id}"))
    return items


def _facts(view: GraphView, found: GraphRAGFound) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if found.links:
        facts["starts from"] = ", ".join(view.graph.name_of(link.entity) for link in found.starts)
    if found.cut is not None:
        facts["reports read"] = len(found.cut.communities)
        facts["communities opened"] = len(found.cut.opened)
        facts["not opened for lack of tokens"] = len(found.cut.refused)
        facts["tokens"] = found.tokens
    if found.calls:
        facts["calls of a model"] = found.calls
    if found.fallback:
        facts["note"] = found.fallback
    return facts
