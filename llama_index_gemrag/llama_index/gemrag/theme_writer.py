"""`ThemeWriter` keeps unchanged themes and summarises new ones.

The id of a theme is derived from the set of its members. Themes are stored separately from their texts, so that missing
summaries can be detected. If the summarizer fails at a theme, rules write the theme; without this fallback it stays
unwritten. `retry_failed` tries again.
"""

from collections.abc import Collection, Mapping, Sequence

from llama_index.gemrag.memory_rows import THEME_QUESTIONS, THEMES, MemoryRows
from llama_index.gemrag.question_writer import QuestionWriter, questions_in
from llama_index.gemrag.state import Theme
from llama_index.gemrag.themes.grouping import theme_id
from llama_index.ragkit import SpaceRows, Steps
from llama_index.ragkit.ids import reading_key
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.summaries import SummaryWriter
from llama_index.ragkit.storage.derived_nodes import derived_node, node_from_record, node_to_record
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import plain_text, sort_key
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["THEME_KEY", "ThemeWriter"]

THEME_KEY = "gemrag_theme"


class ThemeWriter:
    """Replaces the stored themes with the target themes, and writes the missing texts, in one write."""

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        rows: MemoryRows,
        questions: QuestionWriter,
        summaries: SummaryWriter,
        max_theme_tokens: int,
    ) -> None:
        self._storage = storage
        self._resources = resources
        self._rows = rows
        self._questions = questions
        self._summaries = summaries
        self._max_theme_tokens = max_theme_tokens
        # Themes that the write has read or stored, the records of their texts, and why others have none.
        self.themes: dict[str, Theme] = {}
        self.written: dict[str, Record] = {}
        self.failed: dict[str, Exception] = {}
        # What the write has stored, and None for what it deleted.
        self.changed_themes: dict[str, Theme | None] = {}
        self.changed_texts: dict[str, Record | None] = {}
        self._texts: dict[str, str] = {}

    def read(self, names: Collection[str]) -> Steps[None]:
        """Read themes with their texts."""
        new = [name for name in dict.fromkeys(names) if name not in self.themes]
        self.themes |= yield from self._rows.themes(new)
        self.written |= yield from self._rows.texts(new)

    # -- which themes there are ---------------------------------------------------------------------

    def delete(self, names: Collection[str]) -> Steps[None]:
        """Delete themes that were read, with their members, texts, vectors, questions and cache entries."""
        gone = {name: self.themes.pop(name) for name in sorted(names)}
        if not gone:
            return
        texts = {name: self.written.pop(name) for name in gone if name in self.written}
        yield from self._summaries.release(texts)
        yield from self._storage.space(THEMES).remove(gone)
        yield from self._questions.delete(THEME_QUESTIONS, gone)
        yield from self._rows.delete_themes(gone)
        self.changed_themes |= dict.fromkeys(gone)
        self.changed_texts |= dict.fromkeys(texts)
        self._storage.struct.count(themes=-len(texts))
        self._storage.commits.note_removal()  # a search that is already running may miss the vectors

    def replace(self, themes: Mapping[str, Sequence[Theme]]) -> Steps[None]:
        """Set the themes of groups, whose present themes must have been read; existing themes keep their texts."""
        of_groups = [theme for of_group in themes.values() for theme in of_group]
        yield from self._read(list(dict.fromkeys(member for theme in of_groups for member in theme.members)))
        wanted: dict[str, Theme] = {}
        for theme in of_groups:
            count = self._count_fitting(theme.members)
            if count > 1:
                fitting = Theme(theme.group, theme.members[:count], theme.weights[:count])
                wanted.setdefault(theme_id(fitting.members), fitting)
        yield from self.read(wanted)  # a theme may already exist for another group
        gone = [name for name, theme in self.themes.items() if theme.group in themes and name not in wanted]
        yield from self.delete(gone)
        new = {name: theme for name, theme in wanted.items() if self.themes.get(name) != theme}
        yield from self._rows.put_themes(new, self.themes)
        self.themes.update(new)
        self.changed_themes.update(new)

    def _count_fitting(self, members: Sequence[str]) -> int:
        """How many of the members, strongest first, fit into the token limit: at least one."""
        left = self._max_theme_tokens
        for i, member in enumerate(members):
            left -= count_tokens(self._texts.get(member, ""))
            if left < 0:
                return max(1, i)
        return len(members)

    # -- texts --------------------------------------------------------------------------------------

    def write(self) -> Steps[None]:
        """Write every missing theme; failed ones are in `failed`."""
        yield from self._write(sorted(self.themes.keys() - self.written.keys()))

    def write_again(self) -> Steps[None]:
        """Let the summarizer write the themes that rules have written; a theme at which it fails stays as it is."""
        yield from self._write(sorted(name for name, record in self.written.items() if record.get("by")))

    def _write(self, missing: Sequence[str]) -> Steps[None]:
        of_missing = list(dict.fromkeys(member for name in missing for member in self.themes[name].members))
        rows = yield from self._storage.space().described(of_missing)
        yield from self._read(of_missing)
        given = {}
        for name in missing:
            members = sorted(self.themes[name].members, key=lambda m: reading_key(rows.record_of(m).key))
            given[name] = [self._texts.get(member, "") for member in members]
        texts, failed = yield from self._summaries.write(given, "Themes")
        self.failed.update(failed)
        texts = {name: each for name, each in texts.items() if not (each.by and name in self.written)}
        old = {name: self.written[name] for name in texts if name in self.written}
        if not texts:
            return
        extracted = yield from self._questions.extract({name: each.text for name, each in texts.items()})
        vectors = yield from self._resources.embed([each.text for each in texts.values()], "themes")
        nodes = {
            name: derived_node(name, each.text, {THEME_KEY: True}, self.themes[name].members)
            for name, each in texts.items()
        }
        records: dict[str, Record] = {}
        for (name, each), asked in zip(texts.items(), extracted, strict=True):
            keys = {"cache_keys": [*each.cache_keys, *asked.cache_keys], "error": asked.error}
            records[name] = {"node": node_to_record(nodes[name]), **each.record(), **keys}
            if asked.by:
                records[name]["asked_by"] = asked.by
            if not self._questions.embeds:
                records[name]["questions"] = questions_in(asked.record)
        yield from self._put_texts(records)
        yield from self._summaries.release(old, records)
        questions = {found.node_id: self._questions.embedded(found.record) for found in extracted}
        order = {name: sort_key(node) for name, node in nodes.items()}
        yield from self._questions.store(THEME_QUESTIONS, questions, order)
        rows_of_texts = SpaceRows(list(texts), vectors, [order[name] for name in texts], list(texts))
        yield from self._storage.space(THEMES).put(rows_of_texts)
        self._storage.struct.count(themes=len(texts.keys() - old.keys()))

    def ask_again(self) -> Steps[None]:
        """Extract the questions of the themes for which extraction failed."""
        old = {name: record for name, record in self.written.items() if record["error"] is not None}
        nodes = {name: node_from_record(record["node"]) for name, record in old.items()}
        extracted = yield from self._questions.extract({name: plain_text(node) for name, node in nodes.items()})
        records = {
            found.node_id: {
                **old[found.node_id],
                "error": found.error,
                "asked_by": found.by,
                "cache_keys": list(dict.fromkeys([*old[found.node_id]["cache_keys"], *found.cache_keys])),
            }
            for found in extracted
        }
        questions = {found.node_id: self._questions.embedded(found.record) for found in extracted}
        yield from self._questions.store(
            THEME_QUESTIONS, questions, {name: sort_key(nodes[name]) for name in questions}
        )
        yield from self._put_texts(records)

    def _put_texts(self, records: Mapping[str, Record]) -> Steps[None]:
        yield from self._rows.put_texts(records)
        self.written.update(records)
        self.changed_texts.update(records)

    def _read(self, node_ids: Sequence[str]) -> Steps[None]:
        """Read the texts of chunks, many at once if the store can."""
        found = yield from self._storage.get_nodes([i for i in node_ids if i not in self._texts])
        self._texts.update({node_id: plain_text(node) for node_id, node in found.items()})
