"""The writers of questions and themes of an index that is served from stores."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import QuestionRole
from llama_index.gemrag.graph.memory_graph import unit_rows
from llama_index.gemrag.layer import OWNER_KEY
from llama_index.gemrag.memory_rows import MemoryRows
from llama_index.gemrag.question_writer import QUESTIONS, QuestionWriter
from llama_index.gemrag.state import Theme
from llama_index.gemrag.theme_writer import ThemeWriter
from llama_index.ragkit import IndexStorage, Record, Resources, Snapshot, SpaceRows, Steps

__all__ = ["CHUNKS", "THEMES", "StoredQuestionWriter", "StoredThemeWriter"]

CHUNKS, THEMES = "chunks", "themes"  # spaces


class StoredQuestionWriter(QuestionWriter):
    """Keeps the questions in a vector store, and the sum of their unit vectors as a row.

    Parameters
    ----------
    storage, resources, role : see :class:`~llama_index.gemrag.question_writer.QuestionWriter`
    rows : of the index
    """

    def __init__(self, storage: IndexStorage, resources: Resources, role: QuestionRole, rows: MemoryRows) -> None:
        super().__init__(storage, resources, role)
        self._rows = rows

    def _stored(self, space: str, owners: Collection[str]) -> Steps[Mapping[str, Sequence[str]]]:
        return (yield from self._rows.questions_of(space, owners))

    def _put(self, space: str, rows: SpaceRows) -> Steps[None]:
        owners = [metadata[OWNER_KEY] for metadata in rows.metadatas]
        known = yield from self._rows.questions_of(space, dict.fromkeys(owners))
        for owner, row_id in zip(owners, rows.ids, strict=True):
            known.setdefault(owner, []).append(row_id)
        yield from self._rows.put_questions_of(space, known)
        yield from self._storage.stored[space].put(rows)
        yield from self._add(space, rows.vectors, 1)

    def _remove(self, space: str, ids: Sequence[str]) -> Steps[None]:
        if not ids:
            return
        found = yield from self._storage.stored[space].fetch(ids)
        yield from self._add(space, found.matrix, -1)
        owners = dict.fromkeys(found.metadata_of(row_id)[OWNER_KEY] for row_id in found.ids)
        known = yield from self._rows.questions_of(space, owners)
        gone = set(ids)
        left = {owner: [row_id for row_id in of_node if row_id not in gone] for owner, of_node in known.items()}
        yield from self._rows.put_questions_of(space, left)
        yield from self._storage.stored[space].remove(ids)
        self._storage.note_removal()  # a question that has begun may miss the vectors

    def _add(self, space: str, vectors: NDArray[np.float32], sign: int) -> Steps[None]:
        """Add to the sum over the questions of chunks, or take from it."""
        if space != QUESTIONS or not len(vectors):
            return
        total, count = yield from self._rows.centre()
        more = unit_rows(vectors.astype(np.float64)).sum(axis=0)
        count += sign * len(vectors)
        yield from self._rows.put_centre(sign * more + (total if len(total) else 0.0), count)
        self._storage.struct.counters["questions"] = count


class StoredThemeWriter(ThemeWriter):
    """Keeps the vectors of themes in a vector store, and notes in rows whose members and whose themes they are.

    It has the themes that a write touches.

    Parameters
    ----------
    rows : of the index
    kwargs : see :class:`~llama_index.gemrag.theme_writer.ThemeWriter`
    """

    def __init__(self, rows: MemoryRows, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rows = rows

    def _chunks(self, node_ids: Sequence[str]) -> Steps[Snapshot]:
        return (yield from self._storage.stored[CHUNKS].described(node_ids))

    def _put_records(self, records: Mapping[str, Record]) -> Steps[None]:
        yield from self._rows.put_texts(records)

    def _put_vectors(self, rows: SpaceRows) -> Steps[None]:
        yield from self._storage.stored[THEMES].put(rows)

    def _remove_vectors(self, names: Sequence[str]) -> Steps[None]:
        if names:
            yield from self._storage.stored[THEMES].remove(names)
            self._storage.note_removal()  # a question that has begun may miss the vectors

    def _note(self, themes: Mapping[str, Theme]) -> Steps[None]:
        yield from self._rows.add_themes(themes)

    def _forget(self, themes: Mapping[str, Theme]) -> Steps[None]:
        yield from self._rows.remove_themes(themes)
