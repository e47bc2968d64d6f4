"""`MemoryRows`: what an index that is served from stores knows of its chunks, groups and themes, as rows."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.state import Theme
from llama_index.gemrag.theme_records import SUMMARIES, THEMES, GroupChanges, theme_of
from llama_index.gemrag.themes.eigenthemes import NODES_PER_THEME
from llama_index.ragkit import IndexStorage, Record, Steps

__all__ = ["GroupRow", "MemoryRows"]

_CHUNKS, _SHORT, _LONG = "gem_chunks", "gem_short", "gem_long"
_GROUPS, _PENDING, _OF_GROUP = "gem_groups", "gem_pending", "gem_of_group"
_UNWRITTEN, _UNASKED, _CENTRE = "gem_unwritten", "gem_unasked", "gem_centre"

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class GroupRow:
    """A group of chunks: how many it has, and what changed since its spectrum was computed."""

    size: int = 0
    changes: GroupChanges = field(default_factory=GroupChanges)


class MemoryRows:
    """The rows of one index.

    The row of a chunk holds its own group and the themes that it is a member of; there are rows of the sizes of own
    groups, of groups with their changes, of the themes of each group, and of the questions of each node. Further rows
    list the groups that changed, the themes without a text and those without questions.

    Parameters
    ----------
    storage : of the index
    """

    def __init__(self, storage: IndexStorage) -> None:
        self._records = storage.records

    # -- chunks and their own groups ----------------------------------------------------------------

    def chunks(self, ids: Iterable[str]) -> Steps[dict[str, Record]]:
        """`"own"` and `"themes"` of those chunks that there are."""
        return (yield from self._records.get_many(_CHUNKS, ids))

    def put_chunks(self, rows: Mapping[str, Record]) -> Steps[None]:
        """Store the rows of chunks."""
        yield from self._records.put(_CHUNKS, list(rows.items()))

    def delete_chunks(self, ids: Iterable[str]) -> Steps[None]:
        """Delete the rows of chunks."""
        yield from self._records.delete(_CHUNKS, ids)

    def own_sizes(self, names: Iterable[str]) -> Steps[dict[str, int]]:
        """The sizes of those own groups that there are."""
        names = list(names)
        short = yield from self._records.get_many(_SHORT, names)
        found = short | (yield from self._records.get_many(_LONG, names))
        return {name: row["size"] for name, row in found.items()}

    def put_own_sizes(self, sizes: Mapping[str, int]) -> Steps[None]:
        """Store the sizes of own groups; those of 0 are deleted."""
        for collection, belongs in ((_SHORT, True), (_LONG, False)):
            mine = {name for name, size in sizes.items() if size and (size < NODES_PER_THEME) == belongs}
            yield from self._records.put(collection, [(name, {"size": sizes[name]}) for name in sorted(mine)])
            yield from self._records.delete(collection, [name for name in sizes if name not in mine])

    def short(self) -> Steps[list[str]]:
        """The own groups that are too small for themes of their own."""
        return sorted((yield from self._records.get_all(_SHORT)))

    # -- groups -------------------------------------------------------------------------------------

    def groups(self, names: Iterable[str]) -> Steps[dict[str, GroupRow]]:
        """Those groups that have chunks."""
        found = yield from self._records.get_many(_GROUPS, names)
        return {name: GroupRow(r["size"], GroupChanges(r["changed"], r["lost"])) for name, r in found.items()}

    def all_groups(self) -> Steps[list[str]]:
        """All groups that have chunks, sorted."""
        return sorted((yield from self._records.get_all(_GROUPS)))

    def put_groups(self, groups: Mapping[str, GroupRow], share: float) -> Steps[None]:
        """Store groups; those without chunks are deleted.

        Parameters
        ----------
        share : of the chunks that may change before the spectrum is computed again
        """
        kept = {name: group for name, group in groups.items() if group.size}
        rows = [
            (name, {"size": group.size, "changed": group.changes.chunks, "lost": group.changes.theme_deleted})
            for name, group in kept.items()
        ]
        pending = {name for name, group in kept.items() if group.changes != GroupChanges()}
        yield from self._records.put(_GROUPS, rows)
        yield from self._records.delete(_GROUPS, [name for name in groups if name not in kept])
        due = [(n, {"due": kept[n].changes.is_due(kept[n].size, share), "size": kept[n].size}) for n in sorted(pending)]
        yield from self._records.put(_PENDING, due)
        yield from self._records.delete(_PENDING, [name for name in groups if name not in pending])

    def pending(self) -> Steps[dict[str, Record]]:
        """The groups that changed since their spectrum was computed: their `"size"`, and whether they are `"due"`."""
        found = yield from self._records.get_all(_PENDING)
        return {name: found[name] for name in sorted(found)}

    # -- themes -------------------------------------------------------------------------------------

    def themes(self, names: Iterable[str]) -> Steps[dict[str, Theme]]:
        """Those themes that there are."""
        found = yield from self._records.get_many(THEMES, names)
        return {name: theme_of(record) for name, record in found.items()}

    def texts(self, names: Iterable[str]) -> Steps[dict[str, Record]]:
        """The records of those themes that have a text."""
        return (yield from self._records.get_many(SUMMARIES, names))

    def themes_of_groups(self, groups: Iterable[str]) -> Steps[list[str]]:
        """The themes of some groups."""
        found = yield from self._records.get_many(_OF_GROUP, groups)
        return [name for row in found.values() for name in row["themes"]]

    def groups_with_themes(self) -> Steps[list[str]]:
        """All groups that have themes, with chunks or without."""
        return sorted((yield from self._records.get_all(_OF_GROUP)))

    def add_themes(self, themes: Mapping[str, Theme]) -> Steps[None]:
        """Note new themes, without a text, with their members and their groups."""
        yield from self._change_members(themes, add=True)
        yield from self._records.put(_UNWRITTEN, [(name, {}) for name in themes])

    def remove_themes(self, themes: Mapping[str, Theme]) -> Steps[None]:
        """Take back what was noted of themes."""
        yield from self._change_members(themes, add=False)
        yield from self._records.delete(_UNWRITTEN, themes)
        yield from self._records.delete(_UNASKED, themes)

    def _change_members(self, themes: Mapping[str, Theme], *, add: bool) -> Steps[None]:
        lists: tuple[tuple[str, list[tuple[str, str]]], ...] = (
            (_CHUNKS, [(member, name) for name, theme in themes.items() for member in theme.members]),
            (_OF_GROUP, [(theme.group, name) for name, theme in themes.items()]),
        )
        for collection, pairs in lists:
            rows = yield from self._records.get_many(collection, dict.fromkeys(key for key, _ in pairs))
            for key, name in pairs:
                if key in rows or collection == _OF_GROUP:
                    row = rows.setdefault(key, {"themes": []})
                    row["themes"] = sorted({*row["themes"], name} if add else {*row["themes"]} - {name})
            empty = [key for key, row in rows.items() if collection == _OF_GROUP and not row["themes"]]
            yield from self._records.put(collection, [(key, row) for key, row in rows.items() if key not in empty])
            yield from self._records.delete(collection, empty)

    def put_texts(self, records: Mapping[str, Record]) -> Steps[None]:
        """Store the texts of themes."""
        yield from self._records.put(SUMMARIES, list(records.items()))
        yield from self._records.delete(_UNWRITTEN, records)
        failed = [name for name, record in records.items() if record["error"] is not None]
        yield from self._records.put(_UNASKED, [(name, {}) for name in failed])
        yield from self._records.delete(_UNASKED, [name for name in records if name not in failed])

    def unwritten(self) -> Steps[list[str]]:
        """The themes without a text, sorted."""
        return sorted((yield from self._records.get_all(_UNWRITTEN)))

    def unasked(self) -> Steps[list[str]]:
        """The themes with a text whose questions could not be extracted, sorted."""
        return sorted((yield from self._records.get_all(_UNASKED)))

    # -- questions ----------------------------------------------------------------------------------

    def questions_of(self, space: str, owners: Iterable[str]) -> Steps[dict[str, list[str]]]:
        """The ids of the questions of those nodes that have some.

        Parameters
        ----------
        space : of their vectors
        """
        found = yield from self._records.get_many(f"gem_{space}", owners)
        return {owner: list(row["ids"]) for owner, row in found.items()}

    def put_questions_of(self, space: str, questions: Mapping[str, Sequence[str]]) -> Steps[None]:
        """Store the ids of the questions of nodes; nodes without any are deleted."""
        rows = [(owner, {"ids": list(ids)}) for owner, ids in questions.items() if ids]
        yield from self._records.put(f"gem_{space}", rows)
        yield from self._records.delete(f"gem_{space}", [owner for owner, ids in questions.items() if not ids])

    def centre(self) -> Steps[tuple[Doubles, int]]:
        """The sum of the unit vectors of all questions of chunks, shape (d,), and their number."""
        row = yield from self._records.get(_CENTRE, _CENTRE)
        if row is None:
            return np.zeros(0), 0
        return np.frombuffer(base64.b64decode(row["sum"]), "<f8"), row["count"]

    def put_centre(self, total: Doubles, count: int) -> Steps[None]:
        """Store the sum and the number; nothing is kept for 0."""
        if not count:
            yield from self._records.delete(_CENTRE, [_CENTRE])
            return
        data = base64.b64encode(total.astype("<f8").tobytes()).decode("ascii")
        yield from self._records.put(_CENTRE, [(_CENTRE, {"sum": data, "count": count})])
