"""The builder of GEM-RAG: keeps the questions and the themes of chunks, and reads what prompts need."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.group_reader import GroupReader
from llama_index.gemrag.layer import OWNER_KEY
from llama_index.gemrag.memory_rows import (
    CHUNKS,
    GROUPS,
    OF_GROUP,
    QUESTIONS,
    THEME_QUESTIONS,
    THEMES,
    UNASKED,
    UNWRITTEN,
    MemoryRows,
)
from llama_index.gemrag.memory_view import MemoryContents, MemoryView
from llama_index.gemrag.question_writer import QuestionWriter, questions_in, terms_with_questions
from llama_index.gemrag.state import GEMRAGState
from llama_index.gemrag.theme_writer import ThemeWriter
from llama_index.gemrag.themes.grouping import (
    DOCUMENT_KEYS,
    NO_DOCUMENT,
    ChunkGroup,
    changed_groups,
    group_sizes,
    own_group,
)
from llama_index.ragkit import Change, Failure, Selection, Snapshot, Steps
from llama_index.ragkit.index.builder import SummaryBuilder
from llama_index.ragkit.index.contents import ViewContents
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.summaries import SummaryWriter
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import sort_key
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.stored_chunks import ChunkView

__all__ = ["GEMRAGBuilder"]

_LARGE = 5_000  # if vectors are not in memory, a write computes spectra only of groups of at most so many chunks


class GEMRAGBuilder(SummaryBuilder[MemoryConfig, GEMRAGState]):
    """Keeps the stored questions and themes consistent with the chunks.

    Questions are updated at every write. The spectrum of a group is recomputed when one of its themes was deleted, or
    when more than `refresh_share` of its chunks have changed; until then its themes are kept. If the vectors are not in
    memory, groups of more than 5,000 chunks are left to :meth:`write_missing` and :meth:`rebuild`.

    Attributes
    ----------
    memory : reads the part of the memory that questions need
    """

    lexical_source = "text, and what questions add"
    spaces: ClassVar[tuple[str, ...]] = (CHUNKS, QUESTIONS, THEMES, THEME_QUESTIONS)

    def __init__(self, storage: IndexStorage, resources: Resources, config: MemoryConfig) -> None:
        super().__init__(storage, resources, config)
        self._rows = MemoryRows(storage)
        self._questions = QuestionWriter(storage, resources, self._rows, config)
        self._summaries = SummaryWriter(storage, resources, config.summary_tokens)
        self.memory = MemoryView(storage, self._rows)
        self._brought_forward = False  # whether no rows of earlier versions are left

    def terms_of(self, node: BaseNode, record: Record | None) -> Counter[str]:
        """The terms of a chunk and of the questions that it answers."""
        return terms_with_questions(super().terms_of(node, record), record)

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[GEMRAGState]:
        """The whole index if it is in memory, else an empty state.

        If a write ended early, the remains of deleted chunks and themes are removed, and half-written rows are stored
        again with the next write.
        """
        if not self.storage.is_whole:
            return GEMRAGState()
        chunks, _, texts, _ = self._vectors()
        themes, records = (yield from self._rows.all_themes()), (yield from self._rows.all_texts())
        broken = {n: theme for n, theme in themes.items() if any(member not in chunks for member in theme.members)}
        themes = {name: theme for name, theme in themes.items() if name not in broken}
        written = {name: records[name] for name in sorted(themes) if name in records and name in texts}
        yield from self._rows.delete_themes(broken)
        yield from self._rows.delete_texts([name for name in records if name not in written and name not in broken])
        yield from self.storage.space(THEMES).remove([name for name in texts.ids if name not in written])
        for space, owners in ((QUESTIONS, chunks), (THEME_QUESTIONS, written)):
            yield from self._remove_orphans(space, owners)
        state = GEMRAGState.of(*self._vectors(), themes, written)
        yield from self._rows.note_repairs(state, self.config)
        self._count(state)
        return state

    def arrays_of(self, state: GEMRAGState) -> Arrays:
        """The themes with their texts."""
        return state.arrays()

    def load_arrays(self, arrays: Arrays) -> GEMRAGState:
        """The state of :meth:`arrays_of`, of which objects are made when a search asks for them."""
        state = GEMRAGState.of_arrays(arrays, *self._vectors())
        self._count(state)
        return state

    def _count(self, state: GEMRAGState) -> None:
        counters = self.storage.struct.counters
        counters["themes"] = len(state.written)
        if "questions" in counters:
            counters["questions"] = len(state.chunk_layer.questions)

    def _remove_orphans(self, space: str, owners: Snapshot | Mapping[str, Record]) -> Steps[None]:
        """Remove the questions of nodes that are gone."""
        questions = self.storage.space(space).whole()
        if questions is not None and len(questions):
            column, codes = questions.column(OWNER_KEY)
            orphan = np.array([owner not in owners for owner in column.values], np.bool_)[codes]
            yield from self.storage.space(space).remove([questions.ids[row] for row in np.flatnonzero(orphan)])

    def _vectors(self) -> tuple[Snapshot, Snapshot, Snapshot, Snapshot]:
        """The vectors of chunks, their questions, themes and their questions, of an index in memory."""
        return tuple(map(self.storage.snapshot, self.spaces))  # type: ignore[return-value]

    def _begin(self) -> Steps[ThemeWriter]:
        if not self._brought_forward:
            yield from self._bring_forward()
            self._brought_forward = True
        given = self.storage, self.resources, self._rows, self._questions, self._summaries
        return ThemeWriter(*given, self.config.max_theme_tokens)

    def _bring_forward(self) -> Steps[None]:
        """Convert what earlier versions stored: key phrases lose their vectors; chunks of no document get a group."""
        if not self._questions.embeds:
            yield from self._questions.delete_all()
        earlier, own = own_group(None), own_group(NO_DOCUMENT)
        if self.config.group_by in DOCUMENT_KEYS:
            moved = yield from self._rows.move_chunks(earlier, own)
            if moved:
                yield from self._count_own(Counter({earlier: moved}), Counter({own: moved}), ())

    def _changed(self, state: GEMRAGState, writer: ThemeWriter) -> GEMRAGState:
        """The state after a write; unchanged if it is not the whole index."""
        if not self.storage.is_whole:
            return state
        return state.changed(self._vectors(), writer.changed_themes, writer.changed_texts)

    # -- writing ------------------------------------------------------------------------------------

    def prepare(self, change: Change) -> Steps[None]:
        """Embed the questions of a change."""
        yield from self._questions.prepare(QUESTIONS, self._asked(change))

    def _asked(self, change: Change) -> dict[str, list[str]]:
        """The questions of new chunks that need vectors."""
        return {node.node_id: self._questions.embedded(change.records.get(node.node_id)) for node in change.added}

    def apply(self, state: GEMRAGState, change: Change) -> Steps[GEMRAGState]:
        """Bring the memory up to date.

        Themes with a removed member are deleted, and the themes of groups that changed enough are recomputed. After a
        delete without inserts this is deferred to the next insert, unless `summaries="eager"`.
        """
        writer = yield from self._begin()
        for name in (*(["questions"] if self._questions.embeds else []), "themes", "failed_themes"):
            self.storage.struct.counters.setdefault(name, 0)
        removed = yield from self._rows.chunks(change.removed)
        yield from writer.read([name for row in removed.values() for name in row["themes"]])
        with_broken_theme = {theme.group for theme in writer.themes.values()}
        yield from writer.delete(list(writer.themes))  # delete everything derived from a deleted chunk first
        yield from self._questions.delete(QUESTIONS, change.removed)
        yield from self._rows.delete_chunks(change.removed)
        yield from self._questions.store(QUESTIONS, self._asked(change), {n.node_id: sort_key(n) for n in change.added})
        yield from self._count_changes(change, removed, with_broken_theme)
        if change.added or self.config.summaries == "eager":
            yield from self._write_due(writer)
        return self._changed(state, writer)

    def _count_changes(
        self, change: Change, removed: Mapping[str, Record], with_broken_theme: Collection[str]
    ) -> Steps[None]:
        """Store the groups of the chunks, and how much the groups changed, from the rows of removed chunks."""
        known = yield from self._rows.chunks(node.node_id for node in change.added)
        new = {n.node_id: self._own_group(n) for n in change.added if n.node_id not in known}
        yield from self._rows.put_chunks(new)
        gone, came = Counter(row["own"] for row in removed.values()), Counter(new.values())
        yield from self._count_own(gone, came, with_broken_theme)

    def _count_own(self, gone: Counter[str], came: Counter[str], with_broken_theme: Collection[str]) -> Steps[None]:
        """Store the sizes and changes of groups, from the numbers of chunks that own groups lost and gained."""
        before = yield from self._rows.own_sizes(sorted({*gone, *came}))
        after = {own: before.get(own, 0) - gone[own] + came[own] for own in {*gone, *came}}
        yield from self._rows.put_own_sizes(after)
        changed = changed_groups(gone + came, before, after, self.config)
        sizes = group_sizes(after, self.config)
        sizes.subtract(group_sizes(before, self.config))
        names = {*changed, *with_broken_theme, *sizes}
        groups = yield from self._rows.groups(names)
        for name in names:
            old = groups.get(name, ChunkGroup())
            deleted = old.theme_deleted or name in with_broken_theme
            groups[name] = ChunkGroup(old.size + sizes[name], old.changed + changed[name], deleted)
        yield from self._rows.put_groups(groups, self.config.refresh_share)

    def _own_group(self, node: BaseNode) -> str:
        key = self.config.group_by
        document = NO_DOCUMENT if node.ref_doc_id is None else node.ref_doc_id
        metadata = {**node.metadata, **dict.fromkeys(DOCUMENT_KEYS, document)}
        return own_group(None if key is None else metadata.get(key))

    # -- themes -------------------------------------------------------------------------------------

    def write_missing(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Recompute the themes of every changed group, and write every missing theme."""
        return (yield from self._update(state, self._rows.pending))

    def rebuild(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Recompute the themes of all groups; unchanged themes are kept."""
        return (yield from self._update(state, partial(self._rows.names, GROUPS)))

    def _update(self, state: GEMRAGState, groups: Callable[[], Steps[Iterable[str]]] | None) -> Steps[GEMRAGState]:
        """Recompute the spectra of groups, and write every missing theme."""
        writer = yield from self._begin()
        with_themes = yield from self._rows.names(OF_GROUP)
        there = yield from self._rows.groups(with_themes)
        left = [name for name in with_themes if name not in there]
        yield from writer.read((yield from self._rows.themes_of_groups(left)))
        yield from writer.delete(list(writer.themes))
        chosen = [] if groups is None else list((yield from groups()))
        yield from self._write_themes(writer, chosen, GroupReader(self.storage, self._rows, self.config))
        return self._changed(state, writer)

    def _write_due(self, writer: ThemeWriter) -> Steps[None]:
        """Recompute the spectra that are due, and write every missing theme."""
        reader = GroupReader(self.storage, self._rows, self.config)
        pending = (yield from self._rows.pending()).items()
        due = [name for name, row in pending if row["due"] and (reader.holds_all or row["size"] <= _LARGE)]
        yield from self._write_themes(writer, due, reader)

    def _write_themes(self, writer: ThemeWriter, groups: Sequence[str], reader: GroupReader) -> Steps[None]:
        known = yield from self._rows.themes_of_groups(groups)
        yield from writer.read([*known, *(yield from self._rows.names(UNWRITTEN))])
        themes = {}
        for name in groups:
            themes[name] = yield from reader.themes(name)
        yield from writer.replace(themes)
        yield from writer.write()
        self.storage.struct.counters["failed_themes"] = len(writer.failed)
        sizes = yield from self._rows.groups(groups)
        unchanged = {name: ChunkGroup(group.size) for name, group in sizes.items()}
        yield from self._rows.put_groups(unchanged, self.config.refresh_share)
        self._summaries.report(writer.failed, writer.themes)

    # -- what failed --------------------------------------------------------------------------------

    def missing(self, state: GEMRAGState) -> int:
        """The number of unwritten themes."""
        return len(self._unwritten(state))

    def _unwritten(self, state: GEMRAGState) -> Sequence[str]:
        return state.unwritten if self.storage.is_whole else run_steps(self._rows.names(UNWRITTEN))

    def failures(self, state: GEMRAGState) -> list[Failure]:
        """The themes without a summary, and those whose summary or questions were written by rules."""
        texts = state.written
        if not self.storage.is_whole:
            texts = run_steps(self._rows.texts(run_steps(self._rows.names(UNASKED))))
        by_rules = {name: record for name, record in texts.items() if record.get("by")}
        questions = [
            Failure(name, "questions", str(record["error"]), record.get("asked_by", ""))
            for name, record in texts.items()
            if record["error"] is not None
        ]
        return [*self._summaries.failures(self._unwritten(state), by_rules), *questions]

    def retry(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Write the missing themes and those written by rules, then extract the questions that failed."""
        if self._unwritten(state):
            state = yield from self._update(state, None)
        writer = yield from self._begin()
        yield from writer.read((yield from self._rows.names(UNASKED)))
        yield from writer.write_again()
        if any(record["error"] is not None for record in writer.written.values()):
            yield from writer.ask_again()
        return self._changed(state, writer)

    # -- reading ------------------------------------------------------------------------------------

    def state_for(
        self, question: str, vector: NDArray[np.float32], wanted: int, near: ChunkView, selection: Selection
    ) -> Steps[tuple[GEMRAGState, ChunkView]]:
        """The chunks near to a prompt by their texts, words or questions, and the themes near to it."""
        return (yield from self.memory.search(self.chunks, question, vector, wanted, near, selection))

    def contents_with(
        self,
        whole: MemoryContents,
        nodes: Sequence[str],
        selection: Selection,
        wanted: int,
        question: str,
        vector: NDArray[np.float32] | None,
    ) -> Steps[MemoryContents]:
        """The contents with which a search along edges begins, at `nodes`, whether they count or not.

        `whole` is the whole index, if it is in memory; without a question there is no vector.
        """
        if self.storage.is_whole:
            return whole
        selection = yield from self.select(selection)
        if vector is not None:
            contents = yield from self.view(question, vector, wanted, selection)
        else:
            rows = yield from self.storage.space().fetch(selection.only or ())
            near = ChunkView(rows, np.zeros(len(rows)))
            state = yield from self.memory.over(near, selection)
            further = self.state_of, self.find_further
            contents = ViewContents(state, "", near, self.chunks, selection, *further, self.storage.struct.advantage)
        return (yield from self.memory.with_nodes(contents, nodes))

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[GEMRAGState]:
        """Some chunks with their questions, and under a filter with the themes that contain them."""
        return (yield from self.memory.over(near, selection))

    def questions(self, nodes: Sequence[str]) -> Steps[dict[str, list[str]]]:
        """The questions of chunks, and the questions of themes that are not embedded; only for nodes that have any."""
        entries = yield from self.storage.manifest.entries_of(nodes)
        records = {**(yield from self._rows.texts(nodes)), **{name: entry.record for name, entry in entries.items()}}
        return {name: asked for name, record in records.items() if (asked := questions_in(record))}
