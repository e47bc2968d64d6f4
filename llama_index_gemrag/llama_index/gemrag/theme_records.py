"""Storage of themes and groups in the records of an index."""

import json
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.layer import OWNER_KEY
from llama_index.gemrag.question_writer import QUESTIONS, THEME_QUESTIONS
from llama_index.gemrag.state import Theme
from llama_index.gemrag.themes.eigenthemes import NODES_PER_THEME
from llama_index.ragkit import IndexStorage, Record, Snapshot, Steps

__all__ = [
    "SHORT_DOCUMENTS",
    "SUMMARIES",
    "THEMES",
    "GroupChanges",
    "changed_groups",
    "group_names",
    "group_of",
    "group_sizes",
    "load_groups",
    "load_themes",
    "own_group",
    "own_groups",
    "store_groups",
    "store_themes",
    "theme_id",
    "theme_of",
]

THEMES = "themes"
SHORT_DOCUMENTS = "short documents"  # not the JSON of a value
SUMMARIES = "summaries"
_GROUPS = "groups"
_NAMESPACE = uuid.UUID("8f0b1a0e-3a53-5a7e-9a0e-6c1d1f2b7a44")


def theme_id(members: Iterable[str]) -> str:
    """The id of the theme of a set of chunks: a UUID (version 5) of their sorted ids."""
    return str(uuid.uuid5(_NAMESPACE, "\n".join(sorted(set(members)))))


@dataclass(frozen=True)
class GroupChanges:
    """The changes of a group of chunks since its spectrum was computed.

    Attributes
    ----------
    chunks : number of chunks that were added, changed or removed
    theme_deleted : whether one of its themes was deleted
    """

    chunks: int = 0
    theme_deleted: bool = False

    def is_due(self, size: int, share: float) -> bool:
        """Whether the spectrum must be recomputed.

        Parameters
        ----------
        size : chunks of the group
        share : of them that may change before
        """
        return self.theme_deleted or (self.chunks > 0 and self.chunks > share * (size - self.chunks))


def own_groups(chunks: Snapshot, group_by: str | None) -> list[str]:
    """The own group of each row: the JSON of its value, or one name for all."""
    if group_by is None or not len(chunks):
        return ["null"] * len(chunks)
    column, codes = chunks.column(group_by)
    names = [own_group(value) for value in column.values]
    return [names[code] for code in codes]


def own_group(value: object) -> str:
    """The own group of the chunks with a value of the metadata key."""
    if isinstance(value, str):
        return json.dumps(value)  # without options, which would make an encoder for each document
    return json.dumps(value, sort_keys=True, default=str)


def group_of(own: str, size: int, config: MemoryConfig) -> str:
    """The group whose graph the chunks of an own group are in: that group, or the one that short documents share.

    The paper takes each document for itself; one of fewer chunks than a theme needs would have no themes.
    """
    shares = config.group_by == "ref_doc_id" and not config.paper
    return SHORT_DOCUMENTS if shares and size < NODES_PER_THEME else own


def group_names(chunks: Snapshot, config: MemoryConfig) -> list[str]:
    """The group of each row."""
    names = own_groups(chunks, config.group_by)
    group = {name: group_of(name, size, config) for name, size in Counter(names).items()}
    return [group[name] for name in names]


def group_sizes(own_sizes: Mapping[str, int], config: MemoryConfig) -> Counter[str]:
    """The number of chunks of each group, from those of the own groups."""
    sizes: Counter[str] = Counter()
    for own, size in own_sizes.items():
        sizes[group_of(own, size, config)] += size
    return sizes


def changed_groups(
    own_changed: Mapping[str, int], before: Mapping[str, int], after: Mapping[str, int], config: MemoryConfig
) -> Counter[str]:
    """Changed chunks of each group, with those that came or went because their document grew or shrank.

    Parameters
    ----------
    own_changed : number of changed chunks of each own group
    before, after : the sizes of these own groups
    """
    changed: Counter[str] = Counter()
    for own, count in own_changed.items():
        sizes = before.get(own, 0), after.get(own, 0)
        was, now = (group_of(own, size, config) for size in sizes)
        changed[now if sizes[1] else was] += count
        if was != now and all(sizes):
            changed[was] += sizes[0]
            changed[now] += max(0, sizes[1] - count)
    return changed


def load_groups(storage: IndexStorage) -> Steps[dict[str, GroupChanges]]:
    """Load the stored groups."""
    stored = yield from storage.records.get_all(_GROUPS)
    return {name: GroupChanges(int(r["changed"]), bool(r["lost"])) for name, r in stored.items()}


def store_groups(storage: IndexStorage, groups: Mapping[str, GroupChanges], removed: Collection[str]) -> Steps[None]:
    """Store groups, and delete others."""
    records = [(name, {"changed": group.chunks, "lost": group.theme_deleted}) for name, group in groups.items()]
    yield from storage.records.put(_GROUPS, records)
    yield from storage.records.delete(_GROUPS, removed)


def load_themes(storage: IndexStorage) -> Steps[tuple[dict[str, Theme], dict[str, Record]]]:
    """Load the themes, and the records of the written ones.

    An interrupted write is repaired: themes with a removed member are deleted, and so are rows, records and questions
    without a node.
    """
    stored = {name: theme_of(r) for name, r in (yield from storage.records.get_all(THEMES)).items()}
    chunks = storage.snapshot()
    broken = {name for name, theme in stored.items() if any(member not in chunks for member in theme.members)}
    yield from storage.records.delete(THEMES, sorted(broken))
    themes = {name: theme for name, theme in stored.items() if name not in broken}
    records = yield from storage.records.get_all(SUMMARIES)
    rows = storage.snapshot("themes")
    written = {name for name in themes if name in records and name in rows}
    yield from storage.records.delete(SUMMARIES, [name for name in records if name not in written])
    yield from storage.spaces["themes"].remove([name for name in rows.ids if name not in written])
    for space, known in ((QUESTIONS, chunks), (THEME_QUESTIONS, written)):
        questions = storage.snapshot(space)
        if len(questions):
            column, codes = questions.column(OWNER_KEY)
            orphan = np.array([owner not in known for owner in column.values], dtype=np.bool_)
            yield from storage.spaces[space].remove([questions.ids[row] for row in np.flatnonzero(orphan[codes])])
    return themes, {name: records[name] for name in sorted(written)}


def theme_of(record: Record) -> Theme:
    """The theme that :func:`store_themes` stored."""
    return Theme(record["group"], tuple(record["members"]), tuple(record["weights"]))


def store_themes(storage: IndexStorage, themes: Mapping[str, Theme]) -> Steps[None]:
    """Store the members of these themes."""
    records = [
        (name, {"group": theme.group, "members": list(theme.members), "weights": list(theme.weights)})
        for name, theme in themes.items()
    ]
    yield from storage.records.put(THEMES, records)
