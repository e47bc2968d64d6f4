"""The HTML page of the memory: chunks, the questions they answer, and the themes that contain them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from llama_index.gemrag.graph.memory_graph import strongest_edges, unit_rows
from llama_index.gemrag.layer import Layer
from llama_index.gemrag.question_writer import question_id
from llama_index.gemrag.state import GEMRAGState
from llama_index.ragkit import LastQuery
from llama_index.ragkit.html import Edge, Facts, Graph, Group, Node, Page, Result, Results, passage_label
from llama_index.ragkit.text.salient_terms import group_names

__all__ = ["FoundForPage", "page_of"]

_LABEL = 70
_NEIGHBOURS = 2
_COLOURED = 8  # the largest themes have their own colours; more could not be told apart
_GROUPS = (
    Group("theme", "Another theme", "#f28e2b"),
    Group("chunk", "Chunk without one of these themes", "#4e79a7"),
    Group("question", "Question that its node answers", "#8c8c8c"),
)


class FoundForPage(NamedTuple):
    """The part of an answer that the page shows."""

    questions: Mapping[str, str]  # by which each node was found, if any
    state: GEMRAGState | None = None  # that was searched; None for that of the index


def page_of(
    state: GEMRAGState,
    texts: Mapping[str, str],
    plain: Mapping[str, Sequence[str]],
    blend: float,
    query: LastQuery | None,
    max_chunks: int,
) -> Page:
    """The memory; the results of the last prompt, the questions that matched it and the themes are highlighted.

    `plain` are the questions of nodes that are not embedded, and `max_chunks` the largest number of chunks to show:
    first those of the answer, then members of themes, then the others.
    """
    page = _MemoryPage(state, texts, plain, query, max_chunks)
    partial = query is not None and query.found.state is not None
    shown, chunks = len(page.shown), len(state.chunks)
    covers = "" if shown == chunks else f"The page has {shown} of {chunks} chunks."
    nodes = [*page.themes(), *page.chunks(), *page.questions()]
    return Page(
        title="GEM-RAG memory",
        subtitle="Chunks, the questions they answer, and themes" if query is None else f"Question: {query.question}",
        view=Graph(
            nodes, [*page.edges(), *_similar(state.chunk_layer, page.shown, blend)], page.groups(nodes), "force"
        ),
        panels=list(page.panels()),
        covers="The page has the answer, and the chunks and themes near to the question." if partial else covers,
        legend=["A line between two chunks: one is among the two nearest of the other in the memory graph."],
        highlight_label="Answer, questions, themes",
    )


class _MemoryPage:
    """The parts of the page; see :func:`page_of`."""

    def __init__(
        self,
        state: GEMRAGState,
        texts: Mapping[str, str],
        plain: Mapping[str, Sequence[str]],
        query: LastQuery | None,
        max_chunks: int,
    ) -> None:
        self._state, self._texts, self._plain, self._query = state, texts, plain, query
        self._scores = {name: score for name, score in query.answer if name in texts} if query else {}
        self._matching: Mapping[str, str] = query.found.questions if query else {}
        self.shown = _shown(state, texts, list(self._scores), max_chunks)
        self._members = {name: state.themes[name].members for name in state.theme_layer.texts.ids if name in texts}
        self._names = group_names(self._members, {name: texts[name] for name in state.chunks.ids if name in texts})
        largest = sorted(self._members, key=lambda name: (-len(self._members[name]), name))
        self._coloured = largest[:_COLOURED]
        self._highlighted = set(self._scores) | {
            theme for name in self._scores for theme in state.themes_of.get(name, ())
        }
        self._highlighted |= {self._matching[name] for name in self._scores if name in self._matching}

    def _title(self, theme: str) -> str:
        return self._names.get(theme) or self._texts[theme][:_LABEL]

    def themes(self) -> Iterator[Node]:
        """The written themes."""
        for name in self._members:
            yield Node(
                id=name,
                label=self._names.get(name, ""),
                text=self._texts[name],
                group=name if name in self._coloured else "theme",
                level=2,
                size=8,
                score=self._scores.get(name),
                highlighted=name in self._highlighted,
                details=_about_theme(self._state, name),
            )

    def chunks(self) -> Iterator[Node]:
        """The shown chunks, in the colours of their themes."""
        theme_of = {member: name for name in reversed(self._coloured) for member in self._members[name]}
        chunks = self._state.chunks
        for record in chunks.records:
            if record.id in self.shown:
                metadata, text = chunks.metadata_of(record.id), self._texts.get(record.id, "")
                themes = len(self._state.themes_of.get(record.id, ()))
                yield Node(
                    id=record.id,
                    label=passage_label(text, metadata),
                    text=text,
                    group=theme_of.get(record.id, "chunk"),
                    level=1,
                    size=2.5,
                    score=self._scores.get(record.id),
                    highlighted=record.id in self._highlighted,
                    details={"document": record.ref_doc_id or "none", "themes": themes, **metadata},
                )

    def _asked(self) -> Iterator[tuple[str, str, str]]:
        """The owner, the id and the text of each question of a shown node."""
        for layer in (self._state.chunk_layer, self._state.theme_layer):
            for name, (owner, question) in zip(layer.questions.ids, layer.questions_with_owners(), strict=True):
                if owner in self.shown or owner in self._members:
                    yield owner, name, question
        for owner, questions in self._plain.items():
            if owner in self.shown or (owner in self._state.written and owner in self._texts):
                yield from ((owner, question_id(owner, question), question) for question in questions)

    def questions(self) -> Iterator[Node]:
        """The questions of the shown nodes."""
        for _, name, question in self._asked():
            yield Node(id=name, text=question, group="question", size=0.6, highlighted=name in self._highlighted)

    def edges(self) -> Iterator[Edge]:
        """Edges from themes to their members, and from nodes to their questions."""
        for name, members in self._members.items():
            for member, weight in zip(members, self._state.themes[name].weights, strict=True):
                if member in self.shown:
                    lit = name in self._highlighted and member in self._scores
                    yield Edge(name, member, weight=1 + 2 * weight, highlighted=lit)
        for owner, name, _ in self._asked():
            yield Edge(owner, name, weight=0.6, highlighted={owner, name} <= self._highlighted)

    def groups(self, nodes: Sequence[Node]) -> list[Group]:
        """The legend: the largest themes, and the kinds of nodes on the page."""
        kinds = {node.group for node in nodes}
        themes = [Group(name, f"Theme: {self._title(name)}") for name in self._coloured]
        return themes + [group for group in _GROUPS if group.name in kinds]

    def panels(self) -> Iterator[Facts | Results]:
        """The answer, the counts, and the themes."""
        state = self._state
        if self._query is not None:
            found = [
                (name, score) for name, score in self._scores.items() if name in self.shown or name in state.written
            ]
            yield Results("Retrieved", [self._result(name, score) for name, score in found])
        yield Facts("The memory", self._counts())
        if self._members:
            themes = [Result(self._title(name), snippet=self._texts[name], node=name) for name in self._members]
            yield Results("Themes", themes)

    def _result(self, name: str, score: float) -> Result:
        title = self._names.get(name) or passage_label(self._texts[name], _metadata(self._state, name))
        why = _why(self._state, self._matching.get(name), self._texts[name])
        return Result(title, snippet=why, score=score, node=name)

    def _counts(self) -> dict[str, int]:
        state = self._state
        layers = (state.chunk_layer, state.theme_layer)
        counts = {
            "chunks": len(state.chunks),
            "questions": sum(len(layer.questions) for layer in layers) + sum(map(len, self._plain.values())),
            "themes": len(state.theme_layer.texts),
            "graphs with themes": len({theme.group for theme in state.themes.values()}),
        }
        if state.unwritten:
            counts["themes not written yet"] = len(state.unwritten)
        if by_rules := sum(bool(record.get("by")) for record in state.written.values()):
            counts["themes written by rules"] = by_rules
        return counts


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
