"""`StoredMemoryBuilder`: keeps the memory of an index that is served from stores, and reads what a prompt needs."""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.layer import OWNER_KEY, Centre, Layer
from llama_index.gemrag.memory_rows import GroupRow, MemoryRows
from llama_index.gemrag.question_writer import QUESTIONS, THEME_QUESTIONS, questions_in, terms_with_questions
from llama_index.gemrag.state import GEMRAGState, Theme
from llama_index.gemrag.stored_graph import in_canonical_order, read_graph
from llama_index.gemrag.stored_state import MemoryReader, StoredMemoryState
from llama_index.gemrag.stored_writers import CHUNKS, THEMES, StoredQuestionWriter, StoredThemeWriter
from llama_index.gemrag.theme_records import (
    SHORT_DOCUMENTS,
    GroupChanges,
    changed_groups,
    group_of,
    own_group,
    own_groups,
)
from llama_index.gemrag.themes.eigenthemes import most_themes
from llama_index.gemrag.themes.groups import themes_of_graph
from llama_index.ragkit import (
    Change,
    ChunkView,
    Failure,
    IndexStorage,
    Record,
    Resources,
    Selection,
    Snapshot,
    Steps,
    StoredBuilder,
    SummaryBuilder,
    SummaryWriter,
    offload,
    run_steps,
    sort_key,
)
from llama_index.ragkit.vectors.question_scores import question_cosines

__all__ = ["StoredMemoryBuilder"]

_FEWEST = 100  # themes, and questions, that a prompt looks at
_LARGE = 5_000  # chunks of a group that a write computes the spectrum of


class StoredMemoryBuilder(StoredBuilder[MemoryConfig, GEMRAGState], SummaryBuilder[MemoryConfig, GEMRAGState]):
    """Keeps questions and themes in vector stores, and groups, members and texts as rows.

    A write computes the spectra of groups that changed enough, as
    :class:`~llama_index.gemrag.builder.GEMRAGBuilder` does, from vectors that are read part by part
    (:func:`~llama_index.gemrag.stored_graph.read_graph`). Those of more than 5,000 chunks are left to
    :meth:`write_missing` and :meth:`rebuild`.
    """

    spaces: ClassVar[tuple[str, ...]] = (CHUNKS, QUESTIONS, THEMES, THEME_QUESTIONS)

    def __init__(self, storage: IndexStorage, resources: Resources, config: MemoryConfig) -> None:
        super().__init__(storage, resources, config)
        self._rows = MemoryRows(storage)
        self._questions = StoredQuestionWriter(storage, resources, config.question_role, self._rows)
        self._summaries = SummaryWriter(storage, resources, config.summary_tokens)

    def terms_of(self, node: BaseNode, record: Record | None) -> Counter[str]:
        """The terms of a chunk and of the questions that it answers."""
        return terms_with_questions(super().terms_of(node, record), record)

    # -- writing ------------------------------------------------------------------------------------

    def load(self) -> Steps[GEMRAGState]:
        """Nothing: the memory stays in its stores."""
        return GEMRAGState()
        yield

    def prepare(self, change: Change) -> Steps[None]:
        """Embed the questions of a change."""
        yield from self._questions.prepare(QUESTIONS, _asked(change))

    def apply(self, state: GEMRAGState, change: Change) -> Steps[GEMRAGState]:
        """Bring the memory up to date, as :class:`~llama_index.gemrag.builder.GEMRAGBuilder` does."""
        placed = yield from self._rows.chunks(change.removed)
        broken = sorted({name for row in placed.values() for name in row["themes"]})
        writer = yield from self._writer(broken)
        with_broken_theme = {theme.group for theme in writer.themes.values()}
        written = len(writer.written)
        yield from writer.delete(broken)  # delete everything derived from a deleted chunk first
        self._count_themes(-written)
        yield from self._questions.delete(QUESTIONS, change.removed)
        yield from self._rows.delete_chunks(change.removed)
        keys = {node.node_id: sort_key(node) for node in change.added}
        yield from self._questions.store(QUESTIONS, _asked(change), keys)
        yield from self._count_changes(change, placed, with_broken_theme)
        if change.added or self.config.summaries == "eager":
            pending = yield from self._rows.pending()
            due = [name for name, group in pending.items() if group["due"] and group["size"] <= _LARGE]
            yield from self._write_themes(due)
        return state

    def _count_changes(
        self, change: Change, removed: Mapping[str, Record], with_broken_theme: Collection[str]
    ) -> Steps[None]:
        """Store which groups the chunks are of, and how much the groups changed.

        Parameters
        ----------
        removed : the rows of removed chunks
        with_broken_theme : groups of which a theme was deleted
        """
        known = yield from self._rows.chunks(node.node_id for node in change.added)
        new = {n.node_id: self._own_group(n) for n in change.added if n.node_id not in known}
        yield from self._rows.put_chunks({node_id: {"own": own, "themes": []} for node_id, own in new.items()})
        gone, came = Counter(row["own"] for row in removed.values()), Counter(new.values())
        before = yield from self._rows.own_sizes(sorted({*gone, *came}))
        after = {own: before.get(own, 0) - gone[own] + came[own] for own in {*gone, *came}}
        yield from self._rows.put_own_sizes(after)
        changed = changed_groups(gone + came, before, after, self.config)
        sizes: Counter[str] = Counter()
        for own in after:
            for size, sign in ((before.get(own, 0), -1), (after[own], 1)):
                sizes[group_of(own, size, self.config)] += sign * size
        groups = yield from self._rows.groups({*changed, *with_broken_theme, *sizes})
        for name in {*changed, *with_broken_theme, *sizes}:
            old = groups.get(name, GroupRow())
            changes = GroupChanges(
                old.changes.chunks + changed[name], old.changes.theme_deleted or name in with_broken_theme
            )
            groups[name] = GroupRow(old.size + sizes[name], changes)
        yield from self._rows.put_groups(groups, self.config.refresh_share)

    def _own_group(self, node: BaseNode) -> str:
        key = self.config.group_by
        metadata = {**node.metadata, "doc_id": node.ref_doc_id, "ref_doc_id": node.ref_doc_id}
        return own_group(None if key is None else metadata.get(key))

    def _count_themes(self, more: int) -> None:
        counters = self.storage.struct.counters
        counters["themes"] = counters.get("themes", 0) + more

    # -- themes -------------------------------------------------------------------------------------

    def write_missing(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Recompute the themes of every changed group, and write every missing theme."""
        yield from self._update(list((yield from self._rows.pending())))
        return state

    def rebuild(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Recompute the themes of all groups; unchanged themes are kept."""
        yield from self._update((yield from self._rows.all_groups()))
        return state

    def missing(self, state: GEMRAGState) -> int:
        """The number of unwritten themes."""
        return len(run_steps(self._rows.unwritten()))

    def failures(self, state: GEMRAGState) -> list[Failure]:
        """The themes without a summary, and those with a summary but without questions."""
        unasked = run_steps(self._rows.texts(run_steps(self._rows.unasked())))
        questions = [Failure(name, "questions", str(record["error"])) for name, record in unasked.items()]
        return [*self._summaries.failures(run_steps(self._rows.unwritten())), *questions]

    def retry(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Write the missing themes, then extract the questions of those that only have a summary."""
        if (yield from self._rows.unwritten()):
            yield from self._update(())
        unasked = yield from self._rows.unasked()
        if unasked:
            yield from (yield from self._writer(unasked)).ask_again()
        return state

    def _update(self, groups: Sequence[str]) -> Steps[None]:
        """Recompute the spectra of these groups, and write every missing theme."""
        with_themes = yield from self._rows.groups_with_themes()
        there = yield from self._rows.groups(with_themes)
        left = [name for name in with_themes if name not in there]
        writer = yield from self._writer((yield from self._rows.themes_of_groups(left)))
        self._count_themes(-len(writer.written))
        yield from writer.delete(list(writer.themes))
        yield from self._write_themes(groups)

    def _write_themes(self, groups: Sequence[str]) -> Steps[None]:
        known = yield from self._rows.themes_of_groups(groups)
        writer = yield from self._writer([*known, *(yield from self._rows.unwritten())])
        written = len(writer.written)
        for name in groups:
            yield from writer.replace(name, (yield from self._themes_of(name)))
        yield from writer.write()
        self._count_themes(len(writer.written) - written)
        self.storage.struct.counters["failed_themes"] = len(writer.failed)
        sizes = yield from self._rows.groups(groups)
        unchanged = {name: GroupRow(group.size) for name, group in sizes.items()}
        yield from self._rows.put_groups(unchanged, self.config.refresh_share)
        self._summaries.report(writer.failed, writer.themes)

    def _writer(self, names: Sequence[str]) -> Steps[StoredThemeWriter]:
        """A writer that has some of the themes."""
        return StoredThemeWriter(
            self._rows,
            storage=self.storage,
            resources=self.resources,
            questions=self._questions,
            summaries=self._summaries,
            max_theme_tokens=self.config.max_theme_tokens,
            themes=(yield from self._rows.themes(dict.fromkeys(names))),
            written=(yield from self._rows.texts(dict.fromkeys(names))),
        )

    def _themes_of(self, group: str) -> Steps[list[Theme]]:
        """What the themes of a group are now."""
        reader = self._reader(Selection())
        ids = yield from in_canonical_order(reader, (yield from self._chunks_of(group)))
        if not most_themes(self.config, len(ids)):
            return []
        graph = yield from read_graph(reader, ids, self.config)
        return (yield from offload(themes_of_graph, graph, group, ids, self.config))

    def _chunks_of(self, group: str) -> Steps[list[str]]:
        """The chunks of a group: those of its documents, where documents are groups, else by their metadata."""
        owns = (yield from self._rows.short()) if group == SHORT_DOCUMENTS else [group]
        values = [json.loads(own) for own in owns]
        if self.config.group_by == "ref_doc_id" and None not in values:
            return list((yield from self.storage.manifest.nodes_of_documents(values)))
        rows = yield from self.storage.stored[CHUNKS].described()
        return [
            row_id for row_id, own in zip(rows.ids, own_groups(rows, self.config.group_by), strict=True) if own in owns
        ]

    # -- reading ------------------------------------------------------------------------------------

    def _reader(self, selection: Selection) -> MemoryReader:
        return MemoryReader(self.storage, self._rows, selection)

    def state_for(
        self, question: str, vector: NDArray[np.float32], wanted: int, near: ChunkView, selection: Selection
    ) -> Steps[tuple[GEMRAGState, ChunkView]]:
        """The chunks near to a prompt, by their texts, words or questions, and the themes near to it."""
        count, stored, counters = max(wanted, _FEWEST), self.storage.stored, self.storage.struct.counters
        asked: Snapshot | None = None
        if selection.only is None and counters.get("questions", 0):
            asked = yield from stored[QUESTIONS].candidates(vector, 2 * count)
            owners = asked.column(OWNER_KEY)[0].values if len(asked) else ()
            near = yield from self.chunks.including(near, question, owners, selection)
        names: dict[str, None] = {}
        if counters.get("themes", 0):
            found = yield from stored[THEMES].records_near(vector, count)
            names |= dict.fromkeys(record["id"] for record in found.values())
            names |= dict.fromkeys(_owners((yield from stored[THEME_QUESTIONS].records_near(vector, count))))
        state = yield from self._state(near, selection, names, asked)
        most = -np.inf if asked is None or not len(asked) else float(question_cosines(asked, vector).min())
        return replace(state, chunk_layer=replace(state.chunk_layer, most=most)), near

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[GEMRAGState]:
        """Some chunks, with the themes that contain them."""
        return (yield from self._state(near, selection, ()))

    def _state(
        self, near: ChunkView, selection: Selection, themes: Collection[str], asked: Snapshot | None = None
    ) -> Steps[GEMRAGState]:
        """The state over some chunks, with some themes, and under a filter with those that contain the chunks.

        Parameters
        ----------
        asked : the questions to read; None for all of the chunks
        """
        reader = self._reader(selection)
        names = dict.fromkeys(themes)
        if not selection.is_whole:
            rows = yield from self._rows.chunks(near.rows.ids)
            names |= dict.fromkeys(name for row in rows.values() for name in row["themes"])
        found, written = yield from reader.themes(list(names))
        questions, unread = asked, {}
        if questions is None:
            questions = yield from reader.questions(QUESTIONS, near.rows.ids)
        else:
            ids_of = yield from self._rows.questions_of(QUESTIONS, near.rows.ids)
            others = {chunk: [row_id for row_id in ids if row_id not in questions] for chunk, ids in ids_of.items()}
            unread = {chunk: ids for chunk, ids in others.items() if ids}
        # Where the selection names the chunks that count, all of their questions are there.
        centre = Centre(questions) if selection.only is not None else Centre(total=(yield from self._rows.centre()))
        texts = yield from self.storage.stored[THEMES].fetch(found)
        theme_questions = yield from reader.questions(THEME_QUESTIONS, found)
        return StoredMemoryState(
            chunk_layer=Layer(near.rows, questions, centre, unread),
            theme_layer=Layer(texts, theme_questions, centre),
            themes=found,
            written=written,
            reader=reader,
        )


def _asked(change: Change) -> dict[str, list[str]]:
    """The questions of new chunks."""
    return {node.node_id: questions_in(change.records.get(node.node_id)) for node in change.added}


def _owners(questions: Mapping[str, Record]) -> list[str]:
    """The nodes of the records of questions, each once."""
    return list(dict.fromkeys(record["meta"][OWNER_KEY] for record in questions.values()))
