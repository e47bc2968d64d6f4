"""The writer of themes: keeps unchanged themes and summarises new ones.

The id of a theme is derived from the set of its members. Themes are stored separately from their texts, so that missing
summaries can be detected. A theme whose summarizer call failed is kept as unwritten; `retry_failed` retries it.
"""

from collections.abc import Collection, Mapping, Sequence

from llama_index.gemrag.question_writer import THEME_QUESTIONS, QuestionWriter, questions_in
from llama_index.gemrag.state import Theme
from llama_index.gemrag.theme_records import SUMMARIES, THEMES, store_themes, theme_id
from llama_index.ragkit import (
    IndexStorage,
    Record,
    Resources,
    Snapshot,
    SpaceRows,
    Steps,
    SummaryWriter,
    count_tokens,
    derived_node,
    node_from_record,
    node_to_record,
    plain_text,
    sort_key,
)
from llama_index.ragkit.ids import reading_key

__all__ = ["THEME_KEY", "ThemeWriter"]

THEME_KEY = "gemrag_theme"


class ThemeWriter:
    """Changes the stored themes to the target themes, and writes the missing ones.

    Parameters
    ----------
    storage, resources : those of the index
    questions, summaries : how questions and summaries are written
    max_theme_tokens : largest number of input tokens of a summary
    themes, written : the stored themes, and the records of their texts
    """

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        questions: QuestionWriter,
        summaries: SummaryWriter,
        max_theme_tokens: int,
        themes: Mapping[str, Theme],
        written: Mapping[str, Record],
    ) -> None:
        self._storage = storage
        self._resources = resources
        self._questions = questions
        self._summaries = summaries
        self._max_theme_tokens = max_theme_tokens
        self.themes = dict(themes)
        self.written = dict(written)
        self.failed: dict[str, Exception] = {}
        self._texts: dict[str, str] = {}

    # -- which themes there are ---------------------------------------------------------------------

    def delete(self, names: Collection[str]) -> Steps[None]:
        """Delete themes: members, text, vectors, questions and cache entries."""
        names = sorted(names)
        yield from self._summaries.release(
            {name: self.written.pop(name)["cache_keys"] for name in names if name in self.written}
        )
        yield from self._remove_vectors(names)
        yield from self._questions.delete(THEME_QUESTIONS, names)
        yield from self._storage.records.delete(SUMMARIES, names)
        yield from self._storage.records.delete(THEMES, names)
        yield from self._forget({name: self.themes.pop(name) for name in names if name in self.themes})

    def replace(self, group: str, themes: Sequence[Theme]) -> Steps[None]:
        """Set the themes of a group; existing themes keep their texts."""
        yield from self._read(list(dict.fromkeys(member for theme in themes for member in theme.members)))
        wanted: dict[str, Theme] = {}
        for theme in themes:
            count = yield from self._count_fitting(theme.members)
            if count > 1:
                fitting = Theme(group, theme.members[:count], theme.weights[:count])
                wanted.setdefault(theme_id(fitting.members), fitting)
        yield from self.delete([n for n, theme in self.themes.items() if theme.group == group and n not in wanted])
        yield from store_themes(self._storage, wanted)
        yield from self._note({name: theme for name, theme in wanted.items() if name not in self.themes})
        self.themes.update(wanted)

    def _count_fitting(self, members: Sequence[str]) -> Steps[int]:
        """How many of the members, strongest first, fit into the token limit: at least one."""
        left = self._max_theme_tokens
        for i, member in enumerate(members):
            left -= count_tokens((yield from self._text(member)))
            if left < 0:
                return max(1, i)
        return len(members)

    # -- texts --------------------------------------------------------------------------------------

    def write(self) -> Steps[None]:
        """Write every missing theme; failed ones are in `failed`."""
        missing = sorted(self.themes.keys() - self.written.keys())
        of_missing = list(dict.fromkeys(member for name in missing for member in self.themes[name].members))
        rows = yield from self._chunks(of_missing)
        yield from self._read(of_missing)
        members = {
            name: sorted(self.themes[name].members, key=lambda m: reading_key(rows.record_of(m).key))
            for name in missing
        }
        texts, failed = yield from self._summaries.write(members, self._text, "Themes")
        self.failed.update(failed)
        if not texts:
            return
        extracted = yield from self._questions.extract({name: text for name, (text, _) in texts.items()})
        vectors = yield from self._resources.embed([text for text, _ in texts.values()], "themes")
        nodes, records = [], []
        for (name, (text, keys)), found in zip(texts.items(), extracted, strict=True):
            node = derived_node(name, text, {THEME_KEY: True}, self.themes[name].members)
            nodes.append(node)
            record = {"node": node_to_record(node), "cache_keys": [*keys, *found.cache_keys], "error": found.error}
            records.append((name, record))
        questions = {found.node_id: questions_in(found.record) for found in extracted}
        order = {node.node_id: sort_key(node) for node in nodes}
        yield from self._put_records(dict(records))
        yield from self._questions.store(THEME_QUESTIONS, questions, order)
        yield from self._put_vectors(SpaceRows(list(texts), vectors, [order[name] for name in texts], list(texts)))
        self.written.update(records)

    def ask_again(self) -> Steps[None]:
        """Extract the questions of the themes for which that failed."""
        old = {name: record for name, record in self.written.items() if record["error"] is not None}
        nodes = {name: node_from_record(record["node"]) for name, record in old.items()}
        extracted = yield from self._questions.extract({name: plain_text(node) for name, node in nodes.items()})
        records = {
            found.node_id: {
                **old[found.node_id],
                "error": found.error,
                "cache_keys": list(dict.fromkeys([*old[found.node_id]["cache_keys"], *found.cache_keys])),
            }
            for found in extracted
        }
        questions = {found.node_id: questions_in(found.record) for found in extracted}
        yield from self._questions.store(
            THEME_QUESTIONS, questions, {name: sort_key(nodes[name]) for name in questions}
        )
        yield from self._put_records(records)
        self.written.update(records)

    def _read(self, node_ids: Sequence[str]) -> Steps[None]:
        """Read the texts of chunks, many at once where the store can."""
        found = yield from self._storage.get_nodes([i for i in node_ids if i not in self._texts])
        self._texts.update({node_id: plain_text(node) for node_id, node in found.items()})

    def _text(self, node_id: str) -> Steps[str]:
        return self._texts.get(node_id, "")
        yield

    # -- where they are stored ----------------------------------------------------------------------

    def _chunks(self, node_ids: Sequence[str]) -> Steps[Snapshot]:
        """A snapshot with the records of chunks."""
        return self._storage.snapshot()
        yield

    def _put_records(self, records: Mapping[str, Record]) -> Steps[None]:
        """Store the texts of themes."""
        yield from self._storage.records.put(SUMMARIES, list(records.items()))

    def _put_vectors(self, rows: SpaceRows) -> Steps[None]:
        yield from self._storage.spaces["themes"].put(rows)

    def _remove_vectors(self, names: Sequence[str]) -> Steps[None]:
        yield from self._storage.spaces["themes"].remove(names)

    def _note(self, themes: Mapping[str, Theme]) -> Steps[None]:
        """New themes were stored."""
        return
        yield

    def _forget(self, themes: Mapping[str, Theme]) -> Steps[None]:
        """Themes were deleted."""
        return
        yield
