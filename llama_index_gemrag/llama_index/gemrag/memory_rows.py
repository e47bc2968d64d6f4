"""`MemoryRows` stores the chunks, groups, themes and questions of an index as records."""

import base64
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.config import MemoryConfig
from llama_index.gemrag.layer import OWNER_KEY, Layer
from llama_index.gemrag.state import GEMRAGState, Theme
from llama_index.gemrag.themes.eigenthemes import NODES_PER_THEME
from llama_index.gemrag.themes.grouping import ChunkGroup, group_sizes, own_groups
from llama_index.ragkit import Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record

__all__ = [
    "CHUNKS",
    "GROUPS",
    "OF_GROUP",
    "QUESTIONS",
    "SHORT",
    "THEMES",
    "THEME_QUESTIONS",
    "UNASKED",
    "UNWRITTEN",
    "MemoryRows",
]

CHUNKS, QUESTIONS, THEMES, THEME_QUESTIONS = "chunks", "questions", "themes", "theme_questions"
"""The vector spaces. The collection with the name of the themes' space holds their members."""

_SUMMARIES = "summaries"  # the texts of themes

SHORT, GROUPS, OF_GROUP = "gem_short", "gem_groups", "gem_of_group"
UNWRITTEN, UNASKED = "gem_unwritten", "gem_unasked"
"""Collections of :meth:`MemoryRows.names`."""

_CHUNKS, _LONG, _PENDING, _CENTRE = "gem_chunks", "gem_long", "gem_pending", "gem_centre"
_EARLIER_GROUPS = "groups"  # of an index in memory, from versions without the rows above

Doubles = NDArray[np.float64]
Rows = dict[str, Record]


class MemoryRows:
    """The rows of one index.

    The row of a chunk holds its own group and the themes of which it is a member. Other rows hold the sizes of own
    groups, the groups with their changes, the themes of each group, and the questions of each node. Further rows list
    the changed groups, the themes without a text and the themes without questions.
    """

    def __init__(self, storage: IndexStorage) -> None:
        self._records = storage.records

    # -- all rows -----------------------------------------------------------------------------------

    def note_repairs(self, state: GEMRAGState, config: MemoryConfig) -> Steps[bool]:
        """Note it if the stored rows are not those of this state.

        They differ if a write without transactions ended early, or if an index in memory comes from a version without
        such rows.
        """
        earlier = yield from self._records.get_all(_EARLIER_GROUPS)
        groups = _as_groups((yield from self._records.get_all(GROUPS)) or earlier)
        wanted = {**_rows_of(state, groups, config), _EARLIER_GROUPS: {}}
        differ = yield from self._records.note_repairs(wanted, {_EARLIER_GROUPS: earlier})
        if differ or (yield from self.centre())[1] != len(state.chunk_layer.questions):
            differ = True
            yield from self._records.note_repairs({_CENTRE: _centre_rows(*state.chunk_layer.centre.sum)})
        return differ

    def names(self, collection: str) -> Steps[list[str]]:
        """The names in a collection, sorted.

        Parameters
        ----------
        collection : `SHORT` for own groups that are too small for their own themes; `GROUPS` for groups with chunks;
            `OF_GROUP` for groups with themes, with chunks or without; `UNWRITTEN` for themes without a text; `UNASKED`
            for themes whose text was written by rules, or whose questions could not be extracted
        """
        return sorted((yield from self._records.get_all(collection)))

    # -- chunks and their own groups ----------------------------------------------------------------

    def chunks(self, ids: Iterable[str]) -> Steps[Rows]:
        """`"own"` and `"themes"` of each of these chunks that exists."""
        return (yield from self._records.get_many(_CHUNKS, ids))

    def put_chunks(self, owns: Mapping[str, str]) -> Steps[None]:
        """Store new chunks with their own groups."""
        yield from self._records.put(_CHUNKS, [(name, {"own": own, "themes": []}) for name, own in owns.items()])

    def move_chunks(self, own: str, other: str) -> Steps[int]:
        """Move the chunks of one own group to another; returns their number."""
        if not (yield from self.own_sizes([own])):
            return 0
        rows = yield from self._records.get_all(_CHUNKS)
        moved = {name: {**row, "own": other} for name, row in rows.items() if row["own"] == own}
        yield from self._records.put(_CHUNKS, list(moved.items()))
        return len(moved)

    def delete_chunks(self, ids: Iterable[str]) -> Steps[None]:
        """Delete the rows of chunks."""
        yield from self._records.delete(_CHUNKS, ids)

    def own_sizes(self, names: Iterable[str]) -> Steps[dict[str, int]]:
        """The size of each of these own groups that exists."""
        names = list(names)
        short = yield from self._records.get_many(SHORT, names)
        found = short | (yield from self._records.get_many(_LONG, names))
        return {name: row["size"] for name, row in found.items()}

    def put_own_sizes(self, sizes: Mapping[str, int]) -> Steps[None]:
        """Store the sizes of own groups; groups of size 0 are deleted."""
        for collection, rows in _by_size(sizes).items():
            yield from self._records.update(collection, {**dict.fromkeys(sizes), **rows})

    # -- groups -------------------------------------------------------------------------------------

    def groups(self, names: Iterable[str]) -> Steps[dict[str, ChunkGroup]]:
        """The groups among these that have chunks."""
        return _as_groups((yield from self._records.get_many(GROUPS, names)))

    def put_groups(self, groups: Mapping[str, ChunkGroup], share: float) -> Steps[None]:
        """Store groups, which are due after changes of a share of their chunks; groups without chunks are deleted."""
        for collection, rows in _group_rows(groups, share).items():
            yield from self._records.update(collection, {**dict.fromkeys(groups), **rows})

    def pending(self) -> Steps[Rows]:
        """The groups that changed since their spectrum was computed: `"size"`, and whether each is `"due"`."""
        return dict(sorted((yield from self._records.get_all(_PENDING)).items()))

    # -- themes -------------------------------------------------------------------------------------

    def themes(self, names: Iterable[str]) -> Steps[dict[str, Theme]]:
        """The existing themes among these."""
        return _as_themes((yield from self._records.get_many(THEMES, names)))

    def all_themes(self) -> Steps[dict[str, Theme]]:
        """All themes."""
        return _as_themes((yield from self._records.get_all(THEMES)))

    def texts(self, names: Iterable[str]) -> Steps[Rows]:
        """The records of the themes among these that have a text."""
        return (yield from self._records.get_many(_SUMMARIES, names))

    def all_texts(self) -> Steps[Rows]:
        """The records of all themes that have a text."""
        return (yield from self._records.get_all(_SUMMARIES))

    def themes_of_groups(self, groups: Iterable[str]) -> Steps[list[str]]:
        """The themes of some groups."""
        found = yield from self._records.get_many(OF_GROUP, groups)
        return [name for row in found.values() for name in row["themes"]]

    def put_themes(self, themes: Mapping[str, Theme], known: Mapping[str, Theme]) -> Steps[None]:
        """Store themes, and list them with their members and their groups.

        The `known` ones were stored before, perhaps for another group, and keep their texts; others have none yet.
        """
        yield from self._records.put(THEMES, [(name, _theme_row(theme)) for name, theme in themes.items()])
        new = {name: theme for name, theme in themes.items() if name not in known}
        moved = {n: theme for n, theme in themes.items() if n in known and theme.group != known[n].group}
        yield from self._change_members({name: known[name] for name in moved}, add=False)
        yield from self._change_members({**new, **moved}, add=True)
        yield from self._records.put(UNWRITTEN, [(name, {}) for name in new])

    def delete_themes(self, themes: Mapping[str, Theme]) -> Steps[None]:
        """Delete themes and their texts, and remove the themes from all lists."""
        for collection in (_SUMMARIES, UNWRITTEN, UNASKED, THEMES):
            yield from self._records.delete(collection, themes)
        yield from self._change_members(themes, add=False)

    def _change_members(self, themes: Mapping[str, Theme], *, add: bool) -> Steps[None]:
        lists: tuple[tuple[str, list[tuple[str, str]]], ...] = (
            (_CHUNKS, [(member, name) for name, theme in themes.items() for member in theme.members]),
            (OF_GROUP, [(theme.group, name) for name, theme in themes.items()]),
        )
        for collection, pairs in lists:
            rows = yield from self._records.get_many(collection, dict.fromkeys(key for key, _ in pairs))
            for key, name in pairs:
                if key in rows or collection == OF_GROUP:
                    row = rows.setdefault(key, {"themes": []})
                    row["themes"] = sorted({*row["themes"], name} if add else {*row["themes"]} - {name})
            kept = {key: row if row["themes"] or collection == _CHUNKS else None for key, row in rows.items()}
            yield from self._records.update(collection, kept)

    def put_texts(self, records: Mapping[str, Record]) -> Steps[None]:
        """Store the texts of themes."""
        yield from self._records.put(_SUMMARIES, list(records.items()))
        yield from self._records.delete(UNWRITTEN, records)
        yield from self._records.update(UNASKED, {**dict.fromkeys(records), **_unasked(records)})

    def delete_texts(self, names: Collection[str]) -> Steps[None]:
        """Delete texts that belong to no theme, or lack their vector."""
        yield from self._records.delete(_SUMMARIES, names)

    # -- questions ----------------------------------------------------------------------------------

    def questions_of(self, space: str, owners: Iterable[str]) -> Steps[dict[str, list[str]]]:
        """The ids of the questions of each node that has any, by the space of their vectors."""
        found = yield from self._records.get_many(f"gem_{space}", owners)
        return {owner: list(row["ids"]) for owner, row in found.items()}

    def put_questions_of(self, space: str, questions: Mapping[str, Collection[str]]) -> Steps[None]:
        """Store the ids of the questions of nodes; the rows of nodes without questions are deleted."""
        rows = {owner: {"ids": sorted(ids)} if ids else None for owner, ids in questions.items()}
        yield from self._records.update(f"gem_{space}", rows)

    def centre(self) -> Steps[tuple[Doubles, int]]:
        """The sum of the unit vectors of all questions of chunks, shape (d,), and their number."""
        row = yield from self._records.get(_CENTRE, _CENTRE)
        if row is None:
            return np.zeros(0), 0
        return np.frombuffer(base64.b64decode(row["sum"]), "<f8"), row["count"]

    def put_centre(self, total: Doubles, count: int) -> Steps[None]:
        """Store the sum and the number; for 0 questions nothing is kept."""
        yield from self._records.update(_CENTRE, {_CENTRE: None, **_centre_rows(total, count)})


def _centre_rows(total: Doubles, count: int) -> Rows:
    data = base64.b64encode(total.astype("<f8").tobytes()).decode("ascii")
    return {_CENTRE: {"sum": data, "count": count}} if count else {}


def _rows_of(state: GEMRAGState, known: Mapping[str, ChunkGroup], config: MemoryConfig) -> dict[str, Rows]:
    """The rows of a whole index by collection, except themes, their texts and the centre of the questions."""
    owns = own_groups(state.chunks, config.group_by)
    own_sizes = Counter(owns)
    sizes = group_sizes(own_sizes, config)
    groups = {name: replace(known.get(name, ChunkGroup()), size=size) for name, size in sizes.items()}
    of_group: Rows = {}
    for name, theme in sorted(state.themes.items()):
        of_group.setdefault(theme.group, {"themes": []})["themes"].append(name)
    chunks = zip(state.chunks.ids, owns, strict=True)
    return {
        _CHUNKS: {name: {"own": own, "themes": list(state.themes_of.get(name, ()))} for name, own in chunks},
        **_by_size(own_sizes),
        **_group_rows(groups, config.refresh_share),
        OF_GROUP: of_group,
        UNWRITTEN: {name: {} for name in state.unwritten},
        UNASKED: _unasked(state.written),
        f"gem_{QUESTIONS}": _question_rows(state.chunk_layer),
        f"gem_{THEME_QUESTIONS}": _question_rows(state.theme_layer),
    }


def _by_size(own_sizes: Mapping[str, int]) -> dict[str, Rows]:
    rows: dict[str, Rows] = {SHORT: {}, _LONG: {}}
    for name, size in sorted(own_sizes.items()):
        if size:
            rows[SHORT if size < NODES_PER_THEME else _LONG][name] = {"size": size}
    return rows


def _group_rows(groups: Mapping[str, ChunkGroup], share: float) -> dict[str, Rows]:
    rows: dict[str, Rows] = {GROUPS: {}, _PENDING: {}}
    for name, group in groups.items():
        if group.size:
            rows[GROUPS][name] = {"size": group.size, "changed": group.changed, "lost": group.theme_deleted}
            if group != ChunkGroup(group.size):
                rows[_PENDING][name] = {"due": group.is_due(share), "size": group.size}
    return rows


def _as_groups(stored: Rows) -> dict[str, ChunkGroup]:
    return {name: ChunkGroup(r.get("size", 0), int(r["changed"]), bool(r["lost"])) for name, r in stored.items()}


def _question_rows(layer: Layer) -> Rows:
    rows: Rows = {}
    if len(layer.questions):
        column, codes = layer.questions.column(OWNER_KEY)
        for row_id, code in zip(layer.questions.ids, codes.tolist(), strict=True):
            rows.setdefault(column.values[code], {"ids": []})["ids"].append(row_id)
    for row in rows.values():
        row["ids"].sort()
    return rows


def _unasked(records: Mapping[str, Record]) -> Rows:
    return {name: {} for name, record in records.items() if record["error"] is not None or record.get("by")}


def _as_themes(stored: Rows) -> dict[str, Theme]:
    return {name: Theme(row["group"], tuple(row["members"]), tuple(row["weights"])) for name, row in stored.items()}


def _theme_row(theme: Theme) -> Record:
    return {"group": theme.group, "members": list(theme.members), "weights": list(theme.weights)}
