"""How themes are kept: which groups are read again, which themes go, which are written.

A theme is named by the set of its members. What comes out of a spectrum as it was keeps its summary and its
questions; only what changed is bought. The structure (who is in which theme) is stored apart from the texts, so
that a summary that failed or was dropped by a delete is known to be missing.

A theme whose summarizer failed stays in the structure as unwritten; `retry_failed` tries it again.
"""

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.layer import OWNER_KEY, TEXT_KEY, Layer
from llama_index.gemrag.state import Theme
from llama_index.ragkit.driver import Steps, gather
from llama_index.ragkit.errors import ExtractionError
from llama_index.ragkit.extraction import Extraction
from llama_index.ragkit.matrix import Snapshot
from llama_index.ragkit.node_ids import content_id, reading_key, sort_key
from llama_index.ragkit.parts import Parts
from llama_index.ragkit.records import Record, derived_node, node_to_record, plain_text
from llama_index.ragkit.results import count_tokens
from llama_index.ragkit.spaces import Rows

__all__ = ["THEME_KEY", "Group", "ThemeWriter", "group_names", "load_groups", "load_themes", "put_questions", "theme_id"]

THEME_KEY = "gemrag_theme"
_NAMESPACE = uuid.UUID("8f0b1a0e-3a53-5a7e-9a0e-6c1d1f2b7a44")
_THEMES = "themes"
_SUMMARIES = "summaries"
_GROUPS = "groups"

Summarize = Callable[[list[str], str], Steps[tuple[str, list[str]]]]
Ask = Callable[[Mapping[str, str]], Steps[list[Extraction]]]
Embed = Callable[[list[str]], Steps[NDArray[np.float32]]]
Release = Callable[[dict[str, list[str]]], Steps[None]]


def theme_id(members: Iterable[str]) -> str:
    """The id of the theme of a set of chunks: a UUID (version 5) of their sorted ids."""
    return str(uuid.uuid5(_NAMESPACE, "\n".join(sorted(set(members)))))


def question_id(node_id: str, question: str) -> str:
    """The id of a question of a node."""
    return content_id("question", node_id, question)


@dataclass(frozen=True)
class Group:
    """What is known of a group of chunks: how many changed since its spectrum was read, and whether it lost a theme."""

    changed: int = 0
    lost: bool = False


def group_names(chunks: Snapshot, group_by: str | None) -> list[str]:
    """The group of each row: the JSON of its value, or one name for all."""
    if group_by is None or not len(chunks):
        return ["null"] * len(chunks)
    column, codes = chunks.column(group_by)
    names = [json.dumps(value, sort_keys=True, default=str) for value in column.values]
    return [names[code] for code in codes]


def load_groups(parts: Parts) -> Steps[dict[str, Group]]:
    """The groups as they were stored."""
    stored = yield from parts.records.get_all(_GROUPS)
    return {name: Group(int(r["changed"]), bool(r["lost"])) for name, r in stored.items()}


def put_groups(parts: Parts, groups: Mapping[str, Group], gone: Collection[str]) -> Steps[None]:
    """Store groups, and forget others."""
    yield from parts.records.put(_GROUPS, [(name, dict(vars(group))) for name, group in groups.items()])
    yield from parts.records.delete(_GROUPS, gone)


def load_themes(parts: Parts) -> Steps[tuple[dict[str, Theme], dict[str, Record]]]:
    """The themes as they were stored, and the records of those that are written.

    What a killed write left half done is put right: themes with a member that is gone go, and rows, records and
    questions without their node.
    """
    stored = yield from parts.records.get_all(_THEMES)
    chunks = parts.chunks.store.snapshot()
    lost = [name for name, r in stored.items() if any(member not in chunks for member in r["members"])]
    yield from parts.records.delete(_THEMES, lost)
    structure = {
        name: Theme(r["group"], tuple(r["members"]), tuple(r["weights"]))
        for name, r in stored.items()
        if name not in set(lost)
    }
    records = yield from parts.records.get_all(_SUMMARIES)
    rows = parts.spaces["themes"].store.snapshot()
    whole = {name for name in structure if name in records and name in rows}
    yield from parts.records.delete(_SUMMARIES, [name for name in records if name not in whole])
    yield from parts.spaces["themes"].remove([name for name in rows.ids if name not in whole])
    for space, known in (("questions", chunks), ("theme_questions", whole)):
        asked = parts.spaces[space].store.snapshot()
        if len(asked):
            column, codes = asked.column(OWNER_KEY)
            orphan = np.array([owner not in known for owner in column.values], dtype=np.bool_)
            yield from parts.spaces[space].remove([asked.ids[row] for row in np.flatnonzero(orphan[codes])])
    return structure, {name: records[name] for name in sorted(whole)}


def put_questions(
    parts: Parts, space: str, asked: Mapping[str, Sequence[str]], keys: Mapping[str, str], embed: Embed
) -> Steps[None]:
    """Store the questions of nodes in place of those they had.

    Parameters
    ----------
    space : "questions" or "theme_questions"
    asked : node -> its questions, distinct and not empty
    keys : node -> its canonical sort key
    """
    pairs = [(owner, question) for owner, questions in asked.items() for question in questions]
    ids = [question_id(owner, question) for owner, question in pairs]
    new = set(ids)
    yield from drop_questions(parts, space, asked, new)
    if not pairs:
        return
    known = parts.spaces[space].store.snapshot()
    todo = [i for i, row_id in enumerate(ids) if row_id not in known]
    if not todo:
        return
    texts = list(dict.fromkeys(pairs[i][1] for i in todo))
    vectors = yield from embed(texts)
    place = {text: row for row, text in enumerate(texts)}
    rows = Rows(
        [ids[i] for i in todo],
        vectors[[place[pairs[i][1]] for i in todo]],
        [f"{keys[pairs[i][0]]}|{pairs[i][1]}" for i in todo],
        [ids[i] for i in todo],
        [{OWNER_KEY: pairs[i][0], TEXT_KEY: pairs[i][1]} for i in todo],
    )
    yield from parts.spaces[space].put(rows)


def drop_questions(parts: Parts, space: str, owners: Collection[str], keep: Collection[str] = ()) -> Steps[None]:
    """Forget the questions of nodes, except those of the ids `keep`."""
    asked = parts.spaces[space].store.snapshot()
    if not len(asked) or not owners:
        return
    column, codes = asked.column(OWNER_KEY)
    wanted = [column.code_of[owner] for owner in owners if owner in column.code_of]
    rows = np.flatnonzero(np.isin(codes, wanted))
    yield from parts.spaces[space].remove([name for name in (asked.ids[row] for row in rows) if name not in keep])


class ThemeWriter:
    """Brings the stored themes to a wanted structure and writes those that are missing.

    Parameters
    ----------
    parts : where things are stored
    structure, written : the themes that are stored now, and the records of their texts
    summarize : (texts, id of the theme) -> steps of (text, cache keys)
    ask : theme id -> text, to steps of one extraction each
    embed, embed_questions : texts -> steps of their vectors
    release : cache keys by theme -> steps that give the entries back
    max_theme_tokens : what a summary is made from at most
    num_workers, show_progress : for the summaries
    """

    def __init__(
        self,
        parts: Parts,
        structure: Mapping[str, Theme],
        written: Mapping[str, Record],
        summarize: Summarize,
        ask: Ask,
        embed: Embed,
        embed_questions: Embed,
        release: Release,
        max_theme_tokens: int,
        num_workers: int,
        show_progress: bool,
    ) -> None:
        self._parts = parts
        self.structure = dict(structure)
        self.written = dict(written)
        self._summarize = summarize
        self._ask = ask
        self._embed = embed
        self._embed_questions = embed_questions
        self._release = release
        self._max_theme_tokens = max_theme_tokens
        self._num_workers = num_workers
        self._show_progress = show_progress
        self._texts: dict[str, str] = {}
        self.failed: dict[str, Exception] = {}

    # -- structure ----------------------------------------------------------------------------------

    def drop(self, names: Collection[str]) -> Steps[None]:
        """Forget themes: text, vectors, questions, cache entries, and their place in the structure."""
        names = sorted(names)
        yield from self._release({name: self.written.pop(name)["cache_keys"] for name in names if name in self.written})
        yield from self._parts.spaces["themes"].remove(names)
        yield from drop_questions(self._parts, "theme_questions", names)
        yield from self._parts.records.delete(_SUMMARIES, names)
        yield from self._parts.records.delete(_THEMES, names)
        for name in names:
            self.structure.pop(name, None)

    def fit(self, members: Sequence[str]) -> Steps[int]:
        """How many of the members, strongest first, may be summarised together: at least one."""
        left = self._max_theme_tokens
        for i, member in enumerate(members):
            left -= count_tokens((yield from self._text(member)))
            if left < 0:
                return max(1, i)
        return len(members)

    def replace(self, group: str, themes: Sequence[Theme]) -> Steps[None]:
        """Give a group these themes; those that it had keep what was written for them."""
        wanted: dict[str, Theme] = {}
        for theme in themes:
            count = yield from self.fit(theme.members)
            if count > 1:
                fitting = Theme(group, theme.members[:count], theme.weights[:count])
                wanted.setdefault(theme_id(fitting.members), fitting)
        yield from self.drop([n for n, theme in self.structure.items() if theme.group == group and n not in wanted])
        pairs: list[tuple[str, dict[str, Any]]] = []
        for name, theme in wanted.items():
            members, weights = list(theme.members), list(theme.weights)
            pairs.append((name, {"group": group, "members": members, "weights": weights}))
        yield from self._parts.records.put(_THEMES, pairs)
        self.structure.update(wanted)

    # -- texts --------------------------------------------------------------------------------------

    def write(self) -> Steps[None]:
        """Write every theme that is missing; those that failed are in `failed`."""
        missing = sorted(name for name in self.structure if name not in self.written)
        jobs = [partial(self._write_one, name) for name in missing]
        if not jobs:
            return
        outcomes = yield from gather(jobs, self._num_workers, "Themes", self._show_progress)
        texts: dict[str, tuple[str, list[str]]] = {}
        for name, outcome in zip(missing, outcomes, strict=True):
            if outcome.error is not None:
                self.failed[name] = outcome.error
            else:
                texts[name] = outcome.unwrap()
        if not texts:
            return
        asked = yield from self._ask({name: text for name, (text, _) in texts.items()})
        vectors = yield from self._embed([text for text, _ in texts.values()])
        nodes, records = [], []
        for (name, (text, keys)), found in zip(texts.items(), asked, strict=True):
            node = derived_node(name, text, {THEME_KEY: True}, self.structure[name].members)
            nodes.append(node)
            record = {"node": node_to_record(node), "cache_keys": [*keys, *found.cache_keys], "error": found.error}
            records.append((name, record))
        questions = {found.node_id: list((found.record or {}).get("questions", ())) for found in asked}
        order = {node.node_id: sort_key(node) for node in nodes}
        yield from self._parts.records.put(_SUMMARIES, records)
        yield from put_questions(self._parts, "theme_questions", questions, order, self._embed_questions)
        rows = Rows(list(texts), vectors, [order[name] for name in texts], list(texts))
        yield from self._parts.spaces["themes"].put(rows)
        self.written.update(records)

    def _write_one(self, name: str) -> Steps[tuple[str, list[str]]]:
        chunks = self._parts.chunks.store.snapshot()
        members = sorted(self.structure[name].members, key=lambda m: reading_key(chunks.record_of(m).key))
        texts = []
        for member in members:
            text = yield from self._text(member)
            if text.strip():
                texts.append(text)
        if not texts:
            raise ExtractionError(f"None of the {len(members)} members of a theme has a text.")
        return (yield from self._summarize(texts, name))

    def _text(self, node_id: str) -> Steps[str]:
        if node_id not in self._texts:
            found = yield from self._parts.get_node(node_id)
            self._texts[node_id] = plain_text(found) if found is not None else ""
        return self._texts[node_id]


def rows_by_group(names: Sequence[str], wanted: Collection[str], layer: Layer) -> dict[str, NDArray[np.intp]]:
    """For each wanted group its rows, in the canonical order of the chunks."""
    rows: dict[str, list[int]] = {name: [] for name in wanted}
    for row, name in enumerate(names):
        if name in rows:
            rows[name].append(row)
    keys = layer.texts.records
    return {name: np.array(sorted(found, key=lambda r: keys[r].key), np.intp) for name, found in rows.items()}
