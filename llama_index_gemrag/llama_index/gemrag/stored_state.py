"""`StoredMemoryState`: what one prompt to an index that is served from stores is answered from."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from llama_index.gemrag.layer import Layer
from llama_index.gemrag.memory_rows import MemoryRows
from llama_index.gemrag.question_writer import QUESTIONS, THEME_QUESTIONS
from llama_index.gemrag.state import GEMRAGState, Theme
from llama_index.gemrag.stored_writers import CHUNKS, THEMES
from llama_index.ragkit import IndexStorage, Record, Selection, Snapshot, Steps
from llama_index.ragkit.errors import ConfigurationError

__all__ = ["MemoryReader", "StoredMemoryState"]


@dataclass(frozen=True)
class MemoryReader:
    """Reads parts of a memory.

    Attributes
    ----------
    storage, rows : of the index
    selection : which chunks count
    """

    storage: IndexStorage
    rows: MemoryRows
    selection: Selection

    def questions(self, space: str, owners: Iterable[str]) -> Steps[Snapshot]:
        """All questions of some nodes."""
        found = yield from self.rows.questions_of(space, owners)
        return (yield from self.storage.stored[space].fetch([row_id for ids in found.values() for row_id in ids]))

    def themes(self, names: Sequence[str]) -> Steps[tuple[dict[str, Theme], Mapping[str, Record]]]:
        """Those of some themes that have a text and all of whose members pass the filter, with their texts."""
        texts = yield from self.rows.texts(names)
        themes = yield from self.rows.themes(texts)
        if not self.selection.is_whole and themes:
            members = list(dict.fromkeys(member for theme in themes.values() for member in theme.members))
            rows = yield from self.storage.stored[CHUNKS].described(members)
            passing = {rows.ids[row] for row in np.flatnonzero(self.selection.mask(rows))} if len(rows) else set()
            themes = {name: theme for name, theme in themes.items() if passing.issuperset(theme.members)}
        return themes, {name: texts[name] for name in themes}


@dataclass(frozen=True)
class StoredMemoryState(GEMRAGState):
    """The chunks near to a prompt with those of their questions that are near to it, and the themes near to it.

    Attributes
    ----------
    reader : reads the rest
    """

    reader: MemoryReader = field(kw_only=True)

    def check_whole(self, what: str) -> None:
        """Refuse.

        Raises
        ------
        ConfigurationError
        """
        raise ConfigurationError(
            f"{what} compares nodes with all of the memory, which an index that is served from stores does not read "
            'for a prompt: use mode="argmax", or build the index with serve_from="memory".'
        )

    def with_questions_of(self, chunks: Collection[str]) -> Steps[GEMRAGState]:
        """With all questions of those chunks."""
        layer = self.chunk_layer
        ids = [row_id for chunk in chunks for row_id in layer.unread.get(chunk, ())]
        if not ids:
            return self
        further = yield from self.reader.storage.stored[QUESTIONS].fetch(ids)
        unread = {chunk: others for chunk, others in layer.unread.items() if chunk not in chunks}
        return replace(self, chunk_layer=replace(layer, questions=layer.questions.joined(further), unread=unread))

    def with_themes_of(self, chunks: Collection[str]) -> Steps[GEMRAGState]:
        """With all themes that contain those chunks."""
        rows = yield from self.reader.rows.chunks(chunks)
        further = sorted({name for row in rows.values() for name in row["themes"]} - self.themes.keys())
        themes, written = yield from self.reader.themes(further)
        vectors = yield from self.reader.storage.stored[THEMES].fetch(themes)
        questions = yield from self.reader.questions(THEME_QUESTIONS, themes)
        layer = self.theme_layer
        together = Layer(layer.texts.joined(vectors), layer.questions.joined(questions), layer.centre)
        return replace(
            self,
            theme_layer=together,
            themes={**self.themes, **themes},
            written={**self.written, **written},
        )
