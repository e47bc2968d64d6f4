"""`FusionRows` stores the super nodes of an index as records."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.fusion.super_nodes import SuperNodes, restore, update
from llama_index.ragkit import Snapshot, Steps, offload
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record

__all__ = ["FusionRows"]

_AT_ONCE = 100  # rows whose neighbours are read together
_FIRST_HITS = 8  # neighbours of a row in the first search
_MORE = 4  # times as many in the next search, while all found ones are linked
_MOST = 2_000
_NEAR = 1e-5  # below the threshold, so that rounding does not decide what is read

Floats = NDArray[np.float32]


class FusionRows:
    """Reads and writes the super nodes over one space; `empty` are those over no rows.

    Only components of at least two rows are stored. Each of their rows has a record with the name of the component;
    each component has a record with its members and, with `fusion="leaders"`, its super nodes. A write reads the
    components that it touches, with the vectors of their members. Earlier versions stored only the names of the
    components of all rows of an index in memory.
    """

    def __init__(self, kind: str, storage: IndexStorage, empty: SuperNodes) -> None:
        self._space = storage.space(kind)
        self._records = storage.records
        self.empty = empty
        self._of_row, self._members, self._earlier = f"pg_super_of_{kind}", f"pg_super_{kind}", f"super_{kind}"

    # -- reading ------------------------------------------------------------------------------------

    def read(self, row_ids: Iterable[str]) -> Steps[SuperNodes]:
        """The super nodes of the components of some rows; rows without a link belong to none."""
        row_ids = list(row_ids)
        of_row = yield from self._records.get_many(self._of_row, row_ids)
        names = list(dict.fromkeys(record["c"] for record in of_row.values()))
        found = yield from self._records.get_many(self._members, names)
        members = {name: tuple(record["members"]) for name, record in found.items()}
        component_of = {row_id: row_id for row_id in row_ids}
        component_of |= {row_id: name for name, ids in members.items() for row_id in ids}
        groups = {name: _groups(record) for name, record in found.items()}
        return replace(self.empty, component_of=component_of, members=members, groups=groups)

    def restored(self, rows: Snapshot) -> Steps[SuperNodes]:
        """All super nodes, over all rows of the space.

        The remains of a write that ended early are repaired in the store; the next write converts the records of an
        earlier version.
        """
        members = {name: tuple(r["members"]) for name, r in (yield from self._records.get_all(self._members)).items()}
        of_row = _names((yield from self._records.get_all(self._of_row)))
        earlier = _names((yield from self._records.get_all(self._earlier)))
        if earlier:
            yield from self._records.delete(self._earlier, [row_id for row_id in earlier if row_id not in rows])
            members, of_row = _of_earlier(earlier, rows.ids)
        found, damaged = yield from offload(restore, members, of_row, rows, self.empty)
        if earlier:
            of_rows = {row_id: {"c": name} for row_id, name in _of_row(found).items()}
            records = {name: _record(found, name) for name in found.members}
            wanted: dict[str, dict[str, Record]] = {self._members: records, self._of_row: of_rows, self._earlier: {}}
            yield from self._records.note_repairs(wanted)
        elif damaged:
            yield from self._store(self.empty, found, damaged)
        return found

    def linked(self, vectors: Floats) -> Steps[list[set[str]]]:
        """For each vector, the stored rows whose cosine to it reaches the threshold, and perhaps some more."""
        found: list[set[str]] = [set() for _ in vectors]
        for start in range(0, len(vectors), _AT_ONCE):
            todo, wanted = list(range(start, min(start + _AT_ONCE, len(vectors)))), _FIRST_HITS
            while todo:
                near = yield from self._space.near(vectors[todo], wanted)
                hits = yield from offload(near.search, vectors[todo], wanted)
                least = self.empty.threshold - _NEAR
                for i, hit in zip(todo, hits, strict=True):
                    found[i].update(row for row, score in zip(hit.ids, hit.scores, strict=True) if score >= least)
                all_linked = [len(hit.scores) >= wanted and hit.scores[-1] >= least for hit in hits]
                todo = [i for i, more in zip(todo, all_linked, strict=True) if more and wanted < _MOST]
                wanted *= _MORE
        return found

    # -- writing ------------------------------------------------------------------------------------

    def replace(
        self, new: Snapshot, linked: Iterable[str], removed: Sequence[str]
    ) -> Steps[tuple[SuperNodes, SuperNodes]]:
        """Store the super nodes after rows were added and removed; call it within a transaction.

        `linked` is the result of :meth:`linked`; the vectors of removed rows are already deleted. Returns the super
        nodes of the components that may have changed, before and after.
        """
        old = yield from self.read(dict.fromkeys([*linked, *removed]))
        if not len(new) and not old.members:
            return old, old
        gone = set(removed)
        there = yield from self._space.fetch([row_id for row_id in old.component_of if row_id not in gone])
        rows = there.joined(new)
        known = {row_id: name for row_id, name in old.component_of.items() if row_id in rows or row_id in gone}
        old = replace(old, component_of=known)
        after = yield from offload(update, old, rows, new.ids, gone)
        yield from self._store(old, after)
        return old, after

    def _store(self, old: SuperNodes, after: SuperNodes, damaged: Sequence[str] = ()) -> Steps[None]:
        """Store the differences, and everything that is damaged."""
        changed = {
            name: _record(after, name)
            for name, ids in sorted(after.members.items())
            if old.members.get(name) != ids or old.groups.get(name) != after.groups[name]
        }
        lost = sorted({*old.members, *damaged} - after.members.keys())
        yield from self._records.update(self._members, {**dict.fromkeys(lost), **changed})
        was, now = _of_row(old), _of_row(after)
        moved = {row_id: {"c": name} for row_id, name in sorted(now.items()) if was.get(row_id) != name}
        yield from self._records.update(self._of_row, {**dict.fromkeys(sorted({*was, *damaged} - now.keys())), **moved})


def _names(records: Mapping[str, Record]) -> dict[str, str]:
    return {row_id: record["c"] for row_id, record in records.items()}


def _of_earlier(names: Mapping[str, str], row_ids: Sequence[str]) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Members and names of components in the present form, from the name of each row's component."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for row_id, name in names.items():
        members[name].append(row_id)
    # Rows without a name, left by a write that ended early, are fused again.
    found = {name: tuple(sorted(ids)) for name, ids in members.items() if len(ids) > 1}
    unnamed = {row_id: "" for row_id in row_ids if row_id not in names}
    return found, {row_id: names[row_id] for ids in found.values() for row_id in ids} | unnamed


def _of_row(nodes: SuperNodes) -> dict[str, str]:
    return {row_id: name for name, ids in nodes.members.items() for row_id in ids}


def _record(nodes: SuperNodes, name: str) -> Record:
    members, groups = nodes.members[name], nodes.groups[name]
    record: Record = {"members": list(members)}
    if groups != (members,):
        record["groups"] = [list(group) for group in groups]
    return record


def _groups(record: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    given = record.get("groups")
    return (tuple(record["members"]),) if given is None else tuple(tuple(group) for group in given)
