"""The builder of GEM-RAG: updates questions at every write, and themes when a group of chunks changed enough."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from llama_index.core.schema import BaseNode

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.question_writer import (
    QUESTIONS,
    THEME_QUESTIONS,
    QuestionWriter,
    questions_in,
    terms_with_questions,
)
from llama_index.gemrag.state import GEMRAGState, Theme
from llama_index.gemrag.theme_records import (
    GroupChanges,
    changed_groups,
    group_names,
    group_sizes,
    load_groups,
    load_themes,
    own_groups,
    store_groups,
)
from llama_index.gemrag.theme_writer import ThemeWriter
from llama_index.gemrag.themes.groups import rows_by_group, themes_of_rows
from llama_index.ragkit import (
    Change,
    Failure,
    IndexStorage,
    Record,
    Resources,
    Steps,
    SummaryBuilder,
    SummaryWriter,
    offload,
)

__all__ = ["GEMRAGBuilder"]


class GEMRAGBuilder(SummaryBuilder[MemoryConfig, GEMRAGState]):
    """Keeps the stored questions and themes consistent with the chunks.

    Questions are updated at every write. The spectrum of a group is recomputed when one of its themes was deleted, or
    when more than `refresh_share` of its chunks have changed; until then its themes are kept.
    """

    lexical_source = "text, and what questions add"

    def __init__(self, storage: IndexStorage, resources: Resources, config: MemoryConfig) -> None:
        super().__init__(storage, resources, config)
        self._groups: dict[str, GroupChanges] = {}
        self._questions = QuestionWriter(storage, resources, config.question_role)
        self._summaries = SummaryWriter(storage, resources, config.summary_tokens)

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[GEMRAGState]:
        """Load the state from storage; an interrupted write is repaired."""
        self._groups = yield from load_groups(self.storage)
        return self._state(*(yield from load_themes(self.storage)))

    def terms_of(self, node: BaseNode, record: Record | None) -> Counter[str]:
        """The terms of a chunk and of the questions that it answers."""
        return terms_with_questions(super().terms_of(node, record), record)

    def apply(self, state: GEMRAGState, change: Change) -> Steps[GEMRAGState]:
        """Return the state after a write.

        Themes with a removed member are deleted, and the themes of groups that changed enough are recomputed. After a
        delete without inserts this is deferred to the next insert, unless `summaries="eager"`.
        """
        writer = self._writer(state)
        removed = set(change.removed)
        broken = [name for name, theme in writer.themes.items() if removed.intersection(theme.members)]
        with_broken_theme = {writer.themes[name].group for name in broken}
        yield from writer.delete(broken)  # delete everything derived from a deleted chunk first
        yield from self._questions.delete(QUESTIONS, removed)
        chunks = self.storage.snapshot()
        questions = {n.node_id: questions_in(change.records.get(n.node_id)) for n in change.added}
        keys = {node_id: chunks.record_of(node_id).key for node_id in questions}
        yield from self._questions.store(QUESTIONS, questions, keys)
        sizes = yield from self._count_changes(state, change, with_broken_theme)
        if change.added or self.config.summaries == "eager":
            yield from self._write_themes(writer, self._due(sizes))
        self._update_counters(writer)
        return self._state(writer.themes, writer.written)

    def _state(self, themes: Mapping[str, Theme], written: Mapping[str, Record]) -> GEMRAGState:
        rows = self.storage.snapshot
        return GEMRAGState.of(
            rows(), rows(QUESTIONS), rows("themes"), rows(THEME_QUESTIONS), dict(themes), dict(written)
        )

    def _update_counters(self, writer: ThemeWriter) -> None:
        questions = len(self.storage.snapshot(QUESTIONS))
        counted = {"questions": questions, "themes": len(writer.written), "failed_themes": len(writer.failed)}
        self.storage.struct.counters.update(counted)

    # -- groups -------------------------------------------------------------------------------------

    def _sizes(self) -> Counter[str]:
        """Number of chunks of each group."""
        return group_sizes(Counter(own_groups(self.storage.snapshot(), self.config.group_by)), self.config)

    def _count_changes(
        self, state: GEMRAGState, change: Change, with_broken_theme: Collection[str]
    ) -> Steps[Counter[str]]:
        """Store the number of added and removed chunks of each group, delete empty groups, and return the group sizes.

        Parameters
        ----------
        state : before the change
        with_broken_theme : groups of which a theme was deleted
        """
        new = [node.node_id for node in change.added if node.node_id not in change.repeated]
        own_changed: Counter[str] = Counter()
        own_sizes: list[Counter[str]] = []  # before and after
        for chunks, ids in ((state.chunks, change.removed), (self.storage.snapshot(), new)):
            names = own_groups(chunks, self.config.group_by)
            own_changed.update(names[row] for row in chunks.rows_of(list(ids)) if row >= 0)
            own_sizes.append(Counter(names))
        before, after = own_sizes
        changed, sizes = changed_groups(own_changed, before, after, self.config), group_sizes(after, self.config)
        groups = dict(self._groups)
        for name in {*changed, *with_broken_theme, *(sizes.keys() - groups.keys())}:
            old = groups.get(name, GroupChanges())
            groups[name] = GroupChanges(old.chunks + changed[name], old.theme_deleted or name in with_broken_theme)
        self._groups = {name: group for name, group in groups.items() if sizes[name]}
        touched = {n: group for n, group in self._groups.items() if n in changed or n in with_broken_theme}
        yield from store_groups(self.storage, touched, [name for name in groups if not sizes[name]])
        return sizes

    def _due(self, sizes: Mapping[str, int]) -> list[str]:
        """Groups whose spectrum must be recomputed."""
        share = self.config.refresh_share
        return sorted(name for name, group in self._groups.items() if group.is_due(sizes[name], share))

    # -- themes -------------------------------------------------------------------------------------

    def write_missing(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Recompute the themes of every changed group, and write every missing theme."""
        changed = sorted(name for name, group in self._groups.items() if group.theme_deleted or group.chunks)
        return (yield from self._update(state, changed))

    def rebuild(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Recompute the themes of all groups; unchanged themes are kept."""
        return (yield from self._update(state, sorted(self._sizes())))

    def missing(self, state: GEMRAGState) -> int:
        """The number of unwritten themes."""
        return len(state.unwritten)

    def _update(self, state: GEMRAGState, groups: Sequence[str]) -> Steps[GEMRAGState]:
        """Recompute the spectra of these groups, and write every missing theme."""
        writer, sizes = self._writer(state), self._sizes()
        yield from writer.delete([name for name, theme in writer.themes.items() if theme.group not in sizes])
        yield from self._write_themes(writer, groups)
        return self._state(writer.themes, writer.written)

    def _write_themes(self, writer: ThemeWriter, groups: Sequence[str]) -> Steps[None]:
        layer = self._state({}, {}).chunk_layer
        names = group_names(layer.texts, self.config) if groups else []
        rows = rows_by_group(names, groups, layer)
        for name in groups:
            found = yield from offload(themes_of_rows, layer, name, rows[name], self.config)
            yield from writer.replace(name, found)
        yield from writer.write()
        self._groups = {**self._groups, **{name: GroupChanges() for name in groups}}
        yield from store_groups(self.storage, {name: self._groups[name] for name in groups}, ())
        self._update_counters(writer)
        self._summaries.report(writer.failed, writer.themes)

    def _writer(self, state: GEMRAGState) -> ThemeWriter:
        return ThemeWriter(
            self.storage,
            self.resources,
            self._questions,
            self._summaries,
            self.config.max_theme_tokens,
            state.themes,
            state.written,
        )

    # -- what failed --------------------------------------------------------------------------------

    def failures(self, state: GEMRAGState) -> list[Failure]:
        """The themes without a summary, and those with a summary but without questions."""
        without = _without_questions(state)
        questions = [Failure(name, "questions", str(record["error"])) for name, record in without.items()]
        return [*self._summaries.failures(state.unwritten), *questions]

    def retry(self, state: GEMRAGState) -> Steps[GEMRAGState]:
        """Write the missing themes, then extract the questions of those that only have a summary."""
        if state.unwritten:
            state = yield from self._update(state, ())
        if _without_questions(state):
            writer = self._writer(state)
            yield from writer.ask_again()
            state = self._state(writer.themes, writer.written)
        return state


def _without_questions(state: GEMRAGState) -> dict[str, Record]:
    """Written themes whose question extraction failed, with their records."""
    return {name: record for name, record in state.written.items() if record["error"] is not None}
