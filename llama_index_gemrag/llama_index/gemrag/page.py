"""The HTML page of the memory: chunks, the questions they answer, and the themes that contain them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llama_index.gemrag.graph.memory_graph import unit_rows
from llama_index.gemrag.graph.strongest_edges import strongest_edges
from llama_index.gemrag.layer import Layer
from llama_index.gemrag.question_writer import question_id
from llama_index.gemrag.state import GEMRAGState
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results, passage_label
from llama_index.ragkit.text.salient_terms import group_names

__all__ = ["FoundForPage", "page_of"]

_LABEL = 70
_NEIGHBOURS = 2
_COLOURED = 8  # themes with a colour of their own, the largest; more could not be told apart
_GROUPS = (
    Group("theme", "Another theme", "#f28e2b"),
    Group("chunk", "Chunk without one of these themes", "#4e79a7"),
    Group("question", "Question that its node answers", "#8c8c8c"),
)


class FoundForPage(NamedTuple):
    """What the page shows of an answer.

    Attributes
    ----------
    questions : the question by which each node was found, if any
    state : what was searched; None for the state of the index
    """

    questions: Mapping[str, str]
    state: GEMRAGState | None = None


def page_of(
    state: GEMRAGState,
    texts: Mapping[str, str],
    plain: Mapping[str, Sequence[str]],
    blend: float,
    query: LastQuery | None,
    max_chunks: int,
) -> Page:
    """The memory, with the results of the last prompt, the questions that matched it and the themes highlighted.

    Parameters
    ----------
    texts : the text of every node that has one
    plain : the questions of nodes that are not embedded
    query : the last prompt, if any; `found` is a :class:`FoundForPage`
    max_chunks : largest number of chunks to show: those of the answer first, then members of themes, then the others
    """
    found = [(name, score) for name, score in query.answer if name in texts] if query else []
    shown = _shown(state, texts, [name for name, _ in found], max_chunks)
    scores = dict(found)
    highlighted = set(scores) | {theme for name in scores for theme in state.themes_of.get(name, ())}
    matching: Mapping[str, str] = query.found.questions if query else {}
    highlighted |= {matching[name] for name in scores if name in matching}
    members = {name: state.themes[name].members for name in state.theme_layer.texts.ids if name in texts}
    names = group_names(members, {name: texts[name] for name in state.chunks.ids if name in texts})
    coloured = sorted(members, key=lambda name: (-len(members[name]), name))[:_COLOURED]
    theme_of = {member: name for name in reversed(coloured) for member in members[name]}
    edges = [
        Edge(name, member, weight=1 + 2 * weight, highlighted=name in highlighted and member in scores)
        for name in state.theme_layer.texts.ids
        for member, weight in zip(state.themes[name].members, state.themes[name].weights, strict=True)
        if name in texts and member in shown
    ]
    nodes = [
        Node(
            id=name,
            label=names.get(name, ""),
            text=texts[name],
            group=name if name in coloured else "theme",
            level=2,
            size=8,
            score=scores.get(name),
            highlighted=name in highlighted,
            details=_about_theme(state, name),
        )
        for name in state.theme_layer.texts.ids
        if name in texts
    ]
    for record in state.chunks.records:
        if record.id in shown:
            about = {"document": record.ref_doc_id or "none", "themes": len(state.themes_of.get(record.id, ()))}
            about.update(state.chunks.metadata_of(record.id))
            nodes.append(
                Node(
                    id=record.id,
                    label=passage_label(texts.get(record.id, ""), state.chunks.metadata_of(record.id)),
                    text=texts.get(record.id, ""),
                    group=theme_of.get(record.id, "chunk"),
                    level=1,
                    size=2.5,
                    score=scores.get(record.id),
                    highlighted=record.id in highlighted,
                    details=about,
                )
            )
    for layer in (state.chunk_layer, state.theme_layer):
        for name, (owner, question) in zip(layer.questions.ids, layer.questions_with_owners(), strict=True):
            if owner in shown or (layer is state.theme_layer and owner in texts):
                nodes.append(Node(id=name, text=question, group="question", size=0.6, highlighted=name in highlighted))
                edges.append(Edge(owner, name, weight=0.6, highlighted=name in highlighted and owner in highlighted))
    for owner, question in ((owner, question) for owner, asked in plain.items() for question in asked):
        if owner in shown or (owner in state.written and owner in texts):
            name = question_id(owner, question)
            nodes.append(Node(id=name, text=question, group="question", size=0.6))
            edges.append(Edge(owner, name, weight=0.6))
    edges += _similar(state.chunk_layer, shown, blend)
    groups = {theme.group for theme in state.themes.values()}
    partial = query is not None and query.found.state is not None
    covers = "" if len(shown) == len(state.chunks) else f"The page has {len(shown)} of {len(state.chunks)} chunks."
    facts = {
        "chunks": len(state.chunks),
        "questions": len(state.chunk_layer.questions)
        + len(state.theme_layer.questions)
        + sum(map(len, plain.values())),
        "themes": len(state.theme_layer.texts),
        "graphs that the themes are of": len(groups),
    }
    if state.unwritten:
        facts["themes not written yet"] = len(state.unwritten)
    if by_rules := sum(bool(record.get("by")) for record in state.written.values()):
        facts["themes written by rules"] = by_rules
    groups_shown = [Group(name, f"Theme: {names.get(name) or texts[name][:_LABEL]}") for name in coloured]
    groups_shown += [group for group in _GROUPS if any(node.group == group.name for node in nodes)]
    panels: list[Facts | Results] = []
    if query is not None:
        items = [
            Result(
                names.get(name) or passage_label(texts[name], _metadata(state, name)),
                snippet=_why(state, matching.get(name), texts[name]),
                score=score,
                node=name,
            )
            for name, score in found
            if name in shown or name in state.written
        ]
        panels.append(Results("Retrieved", items))
    themes = [
        Result(names.get(name) or texts[name][:_LABEL], snippet=texts[name], node=name)
        for name in state.theme_layer.texts.ids
        if name in texts
    ]
    panels.append(Facts("The memory", facts))
    if themes:
        panels.append(Results("Themes", themes))
    return Page(
        title="GEM-RAG memory",
        subtitle=f"Question: {query.question}"
        if query is not None
        else "Chunks, the questions they answer, and themes",
        view=Graph(nodes=nodes, edges=edges, groups=groups_shown, layout="force"),
        panels=panels,
        covers="The page has the answer, and the chunks and themes near to the question." if partial else covers,
        legend=["A line between two chunks: one is among the two nearest of the other in the memory graph."],
        highlight_label="Answer, its questions and themes",
    )


def _about_theme(state: GEMRAGState, name: str) -> dict[str, Any]:
    by = state.written.get(name, {}).get("by")
    theme = state.themes[name]
    return {"members": len(theme.members), "group": theme.group, **({"written by": by} if by else {})}


def _metadata(state: GEMRAGState, name: str) -> dict[str, Any]:
    return state.chunks.metadata_of(name) if name in state.chunks else {}


def _shown(state: GEMRAGState, texts: Mapping[str, str], found: Sequence[str], most: int) -> set[str]:
    """The chunks shown on the page."""
    members = [member for name in sorted(state.themes) for member in state.themes[name].members]
    ordered = dict.fromkeys([*found, *members, *state.chunks.ids])
    return set([name for name in ordered if name in state.chunks and name in texts][:most])


def _similar(layer: Layer, shown: set[str], blend: float) -> list[Edge]:
    rows = np.array([row for row, name in enumerate(layer.texts.ids) if name in shown], dtype=np.intp)
    if len(rows) < 2:
        return []
    ids = [layer.texts.ids[row] for row in rows]
    means = layer.mean_questions(rows, blend)
    pairs = strongest_edges(means, unit_rows(layer.texts.vectors_of(ids)), _NEIGHBOURS)
    return [Edge(ids[i], ids[j], weight=max(weight, 0.0)) for i, j, weight in pairs]


def _why(state: GEMRAGState, question_id: str | None, text: str) -> str:
    for layer in (state.chunk_layer, state.theme_layer):
        if question_id is not None and question_id in layer.questions:
            return f"nearest question: {layer.question_text(question_id)}"
    return text
