"""`MemoryView` reads from the rows the part of a memory that one question needs, if the whole is not in memory."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.layer import OWNER_KEY, Centre, Layer
from llama_index.gemrag.memory_rows import CHUNKS, QUESTIONS, THEME_QUESTIONS, THEMES, MemoryRows
from llama_index.gemrag.state import GEMRAGState, Theme
from llama_index.ragkit import Selection, Snapshot, Steps
from llama_index.ragkit.index.contents import IndexContents, ViewContents
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.stored_chunks import ChunkView, StoredChunks
from llama_index.ragkit.vectors.question_scores import NEAREST, question_cosines

__all__ = ["MemoryContents", "MemoryView"]

MemoryContents = IndexContents[GEMRAGState] | ViewContents[GEMRAGState]
"""The whole index, or the part that was read for a question."""

Searched = TypeVar("Searched")

_FEWEST = 100  # least number of themes and of questions that are read for a prompt


class MemoryView:
    """Reads the states for questions."""

    def __init__(self, storage: IndexStorage, rows: MemoryRows) -> None:
        self._storage = storage
        self._rows = rows

    # -- states -------------------------------------------------------------------------------------

    def search(
        self,
        chunks: StoredChunks,
        question: str,
        vector: NDArray[np.float32],
        wanted: int,
        near: ChunkView,
        selection: Selection,
    ) -> Steps[tuple[GEMRAGState, ChunkView]]:
        """The state for a question, and its chunks: those near to the question by their texts, words or questions.

        The state has the themes near to the question by their texts or questions, and the themes of the chunks with
        most words of the question. Parameters as of :meth:`~llama_index.ragkit.Builder.state_for`; `chunks` are those
        of the index.
        """
        count, counters = max(wanted, _FEWEST), self._storage.struct.counters
        asked: Snapshot | None = None
        if selection.only is None and counters.get("questions", 0):
            asked = yield from self._storage.space(QUESTIONS).near(vector[None], 2 * count)
            near = yield from chunks.including(near, question, _owners(asked), selection)
        state = yield from self.over(near, selection, asked)
        if counters.get("themes", 0):
            texts = yield from self._storage.space(THEMES).near(vector[None], count)
            of_themes = yield from self._storage.space(THEME_QUESTIONS).near(vector[None], count)
            by_words = yield from self._themes_of([near.rows.ids[row] for row in np.argsort(-near.lexical)[:wanted]])
            names = [*texts.ids, *_owners(of_themes), *by_words]
            state = yield from self._with_themes(state, names, selection, texts, of_themes)
        most = -np.inf if asked is None or not len(asked) else float(question_cosines(asked, vector).min())
        return replace(state, chunk_layer=replace(state.chunk_layer, most=most)), near

    def over(self, near: ChunkView, selection: Selection, asked: Snapshot | None = None) -> Steps[GEMRAGState]:
        """The state of some chunks with their questions; with a filter, also with the themes that contain them.

        Of the questions only those `asked` are used; None for all of the chunks.
        """
        ids_of = yield from self._rows.questions_of(QUESTIONS, near.rows.ids)
        questions, unread = asked, _without(ids_of, asked)
        if questions is None:
            questions, unread = (yield from self._storage.space(QUESTIONS).fetch(_all(ids_of))), {}
        # If the selection names the chunks that count, all of their questions are there.
        centre = Centre(questions) if selection.only is not None else Centre(total=(yield from self._rows.centre()))
        state = GEMRAGState(Layer(near.rows, questions, centre, unread), Layer(centre=centre), outside=())
        if selection.is_whole:
            return state
        return (yield from self._with_themes(state, (yield from self._themes_of(near.rows.ids)), selection))

    # -- more of a state ----------------------------------------------------------------------------

    def with_questions_of(self, contents: MemoryContents, nodes: Iterable[str]) -> Steps[MemoryContents]:
        """The contents with all questions of some nodes."""
        layer = contents.state.chunk_layer
        asked = {name: layer.unread[name] for name in nodes if name in layer.unread}
        if not asked:
            return contents
        further = yield from self._storage.space(QUESTIONS).fetch(_all(asked))
        unread = {chunk: ids for chunk, ids in layer.unread.items() if chunk not in asked}
        layer = replace(layer, questions=layer.questions.joined(further), unread=unread)
        return replace(contents, state=replace(contents.state, chunk_layer=layer))

    def with_themes_of(self, contents: MemoryContents, chunks: Sequence[str]) -> Steps[MemoryContents]:
        """The contents with all themes that contain any of these chunks."""
        if not isinstance(contents, ViewContents):
            return contents
        names = yield from self._themes_of(chunks)
        return replace(contents, state=(yield from self._with_themes(contents.state, names, contents.selection)))

    def around(self, contents: MemoryContents, nodes: Sequence[str], blend: float) -> Steps[MemoryContents]:
        """The contents with the neighbours of nodes in the memory graph: a hundred chunks each, and as many themes.

        The nodes are those of the state, whether they count or not.
        """
        contents = yield from self.with_questions_of(contents, nodes)
        if not nodes or not isinstance(contents, ViewContents) or contents.selection.only is not None:
            return contents  # all chunks that count have been read
        state, selection = contents.state, contents.selection
        layers = [(name, state.layer_of(name)) for name in nodes]
        means = np.concatenate([part.mean_questions([part.texts.row_of(name)], blend) for name, part in layers])
        found = yield from contents.stored.space.records_near_each(list(means), NEAREST, selection)
        records = {key: record for records in found for key, record in records.items()}
        near = yield from contents.stored.joined(contents.near, contents.question, records, selection)
        state = yield from self._with_chunks(state, near.rows)
        if self._storage.struct.counters.get("themes", 0):
            texts = yield from self._storage.space(THEMES).near(means, _FEWEST)
            state = yield from self._with_themes(state, texts.ids, selection, texts)
        return replace(contents, state=state, near=near)

    def with_nodes(self, contents: ViewContents[GEMRAGState], nodes: Sequence[str]) -> Steps[MemoryContents]:
        """The contents with some nodes; those that do not count are put `outside`."""
        near = yield from contents.stored.including(contents.near, contents.question, nodes)
        state = yield from self._with_chunks(contents.state, near.rows)
        state = yield from self._with_themes(state, nodes, Selection())
        themes = {name: state.themes[name] for name in nodes if name in state.themes}
        passing = yield from self._passing(themes, contents.selection)
        chunks = yield from self._storage.space(CHUNKS).described(nodes, contents.selection)
        outside = {name for name in nodes if name not in chunks and name not in passing}
        state = replace(state, outside=outside)
        return (yield from self.with_questions_of(replace(contents, state=state, near=near), nodes))

    def explored(
        self,
        contents: MemoryContents,
        search: Callable[[MemoryContents], Steps[Searched]],
        reached: Callable[[Searched], Iterable[str]],
        start: Sequence[str],
        blend: float,
    ) -> Steps[tuple[MemoryContents, Searched]]:
        """The contents read for a search along the edges of the memory graph, and the result of the search.

        If the whole memory is not here, the neighbours of the nodes that were reached are read and the search is
        repeated, until it reaches no new nodes.
        """
        seen = set(start)
        contents = yield from self.around(contents, start, blend)
        while True:
            found = yield from search(contents)
            new = [name for name in reached(found) if name not in seen]
            more = yield from self.around(contents, new, blend)
            if more is contents:
                return contents, found
            contents = more
            seen.update(new)

    def _with_chunks(self, state: GEMRAGState, chunks: Snapshot) -> Steps[GEMRAGState]:
        """The state with further chunks, whose questions are not read."""
        layer = state.chunk_layer
        ids_of = yield from self._rows.questions_of(QUESTIONS, [name for name in chunks.ids if name not in layer.texts])
        unread = {**layer.unread, **_without(ids_of, layer.questions)}
        return replace(state, chunk_layer=replace(layer, texts=chunks, unread=unread))

    def _with_themes(
        self,
        state: GEMRAGState,
        names: Collection[str],
        selection: Selection,
        texts: Snapshot | None = None,
        questions: Snapshot | None = None,
    ) -> Steps[GEMRAGState]:
        """The state with the themes among these that have a text and whose members all pass the filter.

        Vectors among `texts` and `questions` are not read again.
        """
        written = yield from self._rows.texts(name for name in dict.fromkeys(names) if name not in state.themes)
        themes = yield from self._passing((yield from self._rows.themes(written)), selection)
        if not themes:
            return state
        ids_of = yield from self._rows.questions_of(THEME_QUESTIONS, themes)
        vectors = yield from self._vectors(THEMES, list(themes), texts)
        asked = yield from self._vectors(THEME_QUESTIONS, _all(ids_of), questions)
        layer = state.theme_layer
        return replace(
            state,
            theme_layer=replace(layer, texts=layer.texts.joined(vectors), questions=layer.questions.joined(asked)),
            themes={**state.themes, **themes},
            written={**state.written, **{name: written[name] for name in themes}},
        )

    def _passing(self, themes: dict[str, Theme], selection: Selection) -> Steps[dict[str, Theme]]:
        """The themes whose members all count."""
        if selection.is_whole or not themes:
            return themes
        members = dict.fromkeys(member for theme in themes.values() for member in theme.members)
        rows = yield from self._storage.space(CHUNKS).described(members, selection)
        return {name: theme for name, theme in themes.items() if all(member in rows for member in theme.members)}

    def _themes_of(self, chunks: Sequence[str]) -> Steps[list[str]]:
        rows = yield from self._rows.chunks(chunks)
        return sorted({name for row in rows.values() for name in row["themes"]})

    def _vectors(self, space: str, ids: Sequence[str], read: Snapshot | None) -> Steps[Snapshot]:
        """The rows of a space with these ids, some of which may already have been read."""
        known = Snapshot.empty() if read is None else read
        rows = known.part(known.rows_of([row_id for row_id in ids if row_id in known])) if len(known) else known
        others = yield from self._storage.space(space).fetch([row_id for row_id in ids if row_id not in known])
        return rows.joined(others)


def _owners(questions: Snapshot) -> list[str]:
    """The nodes of questions, each once."""
    return list(dict.fromkeys(questions.column(OWNER_KEY)[0].values)) if len(questions) else []


def _all(ids_of: Mapping[str, Sequence[str]]) -> list[str]:
    return [row_id for ids in ids_of.values() for row_id in ids]


def _without(ids_of: Mapping[str, Sequence[str]], read: Snapshot | None) -> dict[str, Sequence[str]]:
    """The unread questions of each node that has any."""
    if read is None:
        return {}
    others = {node: [row_id for row_id in ids if row_id not in read] for node, ids in ids_of.items()}
    return {node: ids for node, ids in others.items() if ids}
