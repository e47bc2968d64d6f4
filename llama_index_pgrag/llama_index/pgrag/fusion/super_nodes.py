"""Super nodes: groups of topics, or facts, with the same content, updated as rows are added and removed.

A component is named by its smallest id, so that its members determine its name. Nothing here depends on the order in
which rows were added: after any inserts and deletes the components are those of
:func:`~llama_index.pgrag.fusion.linkage.components` over the remaining rows.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from llama_index.pgrag.config import Fusion
from llama_index.pgrag.fusion.linkage import components, leader_clusters
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["Ids", "SuperNodes", "restore", "update"]

Ids = tuple[str, ...]

_FIRST_HITS = 32  # neighbours in the first search; doubled while all of them are linked
_WHOLE_SHARE = 0.25  # above this share of new rows all rows are fused again in one pass


@dataclass(frozen=True)
class SuperNodes:
    """The super nodes over the rows of one space. Rows without a link belong to none.

    Attributes
    ----------
    threshold : cosine from which two rows are linked
    fusion : "components", or "leaders" for the published clustering within each component, in canonical order
    component_of : id -> name of its component; every row has one, possibly of itself alone
    members : name -> sorted ids, of components of two rows or more
    groups : name -> the super nodes of the component, each as its sorted ids
    """

    threshold: float
    fusion: Fusion = "components"
    component_of: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Ids] = field(default_factory=dict)
    groups: Mapping[str, tuple[Ids, ...]] = field(default_factory=dict)

    def together(self, row_id: str) -> Ids:
        """The ids that share a super node with a row, itself included; only the row if it has none."""
        for group in self.groups.get(self.component_of.get(row_id, row_id), ()):
            place = bisect_left(group, row_id)
            if place < len(group) and group[place] == row_id:
                return group
        return (row_id,)

    def among(self, rows: Snapshot, kept: Mask, of: Iterable[str]) -> "SuperNodes":
        """The super nodes of some rows as they would be if there were no others than the kept ones.

        Rows may be together because of one that is not kept, so what is left of their component is fused again.

        Parameters
        ----------
        rows : those of the kept rows, and perhaps others
        kept : shape (number of rows,)
        of : ids of kept rows
        """
        component_of: dict[str, str] = {}
        members: dict[str, Ids] = {}
        groups: dict[str, tuple[Ids, ...]] = {}
        for name in dict.fromkeys(self.component_of.get(row_id, row_id) for row_id in of):
            ids = self.members.get(name, ())
            left = [i for i, place in zip(ids, rows.rows_of(ids).tolist(), strict=True) if place >= 0 and kept[place]]
            if len(left) == len(ids):
                component_of.update(dict.fromkeys(ids, name))
                members.update({name: ids} if ids else {})
                groups.update({name: self.groups[name]} if ids else {})
                continue
            own = _named(left, components(rows.vectors_of(left), self.threshold).tolist())
            component_of.update(own)
            found: dict[str, Ids] = {}
            _collect(found, own, left)
            members.update(found)
            groups.update(_grouped(found, rows, self.threshold, self.fusion))
        return SuperNodes(self.threshold, self.fusion, component_of, members, groups)

    def nodes(self) -> list[Ids]:
        """The members of every super node, ordered by their first member."""
        return sorted(group for groups in self.groups.values() for group in groups)


def update(
    old: SuperNodes, rows: Snapshot, new: Sequence[str], removed: Collection[str]
) -> tuple[SuperNodes, dict[str, str]]:
    """The super nodes after rows were added and removed.

    Parameters
    ----------
    rows : all current rows
    new, removed : disjoint ids of the rows that were added and removed

    Returns
    -------
    super_nodes : the new state
    changed : id -> component, where it differs from before. Since they are written in this order, an interrupted write
        leaves components whose name is not their smallest id, which :func:`restore` detects
    """
    component_of, members = dict(old.component_of), dict(old.members)
    touched = {component_of.pop(row_id) for row_id in removed if row_id in component_of}
    added = [row_id for row_id in dict.fromkeys(new) if row_id in rows]
    if len(added) > _WHOLE_SHARE * len(rows):
        ids = sorted(rows.ids)
        component_of = _named(ids, components(rows.vectors_of(ids), old.threshold).tolist())
        touched, members = {*old.members, *component_of.values()}, {}
        _collect(members, component_of, ids)
        renamed = ids
    else:
        pieces: list[str] = []
        for name in sorted(touched):
            left = [row_id for row_id in members.pop(name, (name,)) if row_id not in removed]
            pieces += left
            component_of.update(_named(left, components(rows.vectors_of(left), old.threshold).tolist()))
        component_of.update((row_id, row_id) for row_id in added)
        touched.update(component_of[row_id] for row_id in pieces)
        _collect(members, component_of, pieces)
        renamed = [*pieces, *added, *_join(component_of, members, added, rows, old.threshold, touched)]
    changed = {
        row_id: component_of[row_id] for row_id in renamed if old.component_of.get(row_id) != component_of[row_id]
    }
    # First those that gave an old component its name: see the docstring.
    changed = dict(sorted(changed.items(), key=lambda item: (old.component_of.get(item[0]) != item[0], item)))
    touched.update(component_of[row_id] for row_id in changed)
    groups = {name: group for name, group in old.groups.items() if name not in touched}
    groups.update(_grouped({n: members[n] for n in touched if n in members}, rows, old.threshold, old.fusion))
    return SuperNodes(old.threshold, old.fusion, component_of, members, groups), changed


def restore(
    stored: Mapping[str, str], rows: Snapshot, threshold: float, fusion: Fusion
) -> tuple[SuperNodes, dict[str, str], list[str]]:
    """Restore the super nodes from storage, and complete an interrupted write.

    Parameters
    ----------
    stored : id -> component

    Returns
    -------
    super_nodes : the state
    changed : id -> component, where the stored value must change; see :func:`update`
    removed : stored ids that have no row
    """
    members: dict[str, list[str]] = defaultdict(list)
    for row_id, name in stored.items():
        members[name].append(row_id)
    damaged = {row_id for name, ids in members.items() if min(ids) != name for row_id in ids}
    intact = {name: tuple(sorted(ids)) for name, ids in members.items() if len(ids) > 1 and min(ids) == name}
    component_of = {row_id: name for row_id, name in stored.items() if row_id not in damaged}
    removed = [row_id for row_id in stored if row_id not in rows]
    new = [row_id for row_id in rows.ids if row_id not in component_of]
    state = SuperNodes(threshold, fusion, component_of, intact)
    if new or removed:
        state, changed = update(state, rows, new, removed)
        changed = {row_id: name for row_id, name in changed.items() if stored.get(row_id) != name}
    else:
        changed = {}
    return SuperNodes(
        threshold, fusion, state.component_of, state.members, _grouped(state.members, rows, threshold, fusion)
    ), changed, removed  # fmt: skip


def _join(
    component_of: dict[str, str],
    members: dict[str, Ids],
    added: Sequence[str],
    rows: Snapshot,
    threshold: float,
    touched: set[str],
) -> list[str]:
    """Link rows to their near rows, in place; returns the ids of rows whose component was renamed."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    todo, wanted = list(added), _FIRST_HITS
    while todo:
        more = []
        for row_id, hits in zip(todo, rows.search(rows.vectors_of(todo), wanted), strict=True):
            for other, score in zip(hits.ids, hits.scores, strict=True):
                if score >= threshold and other != row_id:
                    one, two = find(component_of[row_id]), find(component_of[other])
                    parent[max(one, two)] = min(one, two)
            if len(hits.scores) < len(rows) and hits.scores and hits.scores[-1] >= threshold:
                more.append(row_id)
        todo, wanted = more, 2 * wanted
    renamed: list[str] = []
    for name in sorted(parent):
        root = find(name)
        if root != name:
            ids = members.pop(name, (name,))
            members[root] = (*members.get(root, (root,)), *ids)
            component_of.update(dict.fromkeys(ids, root))
            touched.update((name, root))
            renamed += ids
    for name in touched & members.keys():
        members[name] = tuple(sorted(members[name]))
    return renamed


def _collect(members: dict[str, Ids], component_of: Mapping[str, str], ids: Iterable[str]) -> None:
    """Add the components of two or more members, all of them among `ids`."""
    found: dict[str, list[str]] = defaultdict(list)
    for row_id in ids:
        found[component_of[row_id]].append(row_id)
    members.update((name, tuple(sorted(own))) for name, own in found.items() if len(own) > 1)


def _named(ids: Sequence[str], labels: Iterable[int]) -> dict[str, str]:
    """Components by their smallest id; `ids` are sorted, and a label is the position of its first row."""
    return {row_id: ids[label] for row_id, label in zip(ids, labels, strict=True)}


def _grouped(
    members: Mapping[str, Ids], rows: Snapshot, threshold: float, fusion: Fusion
) -> dict[str, tuple[Ids, ...]]:
    """The super nodes of components of two rows or more."""
    if fusion == "components":
        return {name: (ids,) for name, ids in members.items()}
    groups = {}
    for name, ids in members.items():
        ordered = sorted(ids, key=lambda row_id: (rows.record_of(row_id).key, row_id))
        clusters: dict[int, list[str]] = defaultdict(list)
        for row_id, label in zip(ordered, leader_clusters(rows.vectors_of(ordered), threshold).tolist(), strict=True):
            clusters[label].append(row_id)
        groups[name] = tuple(sorted(tuple(sorted(cluster)) for cluster in clusters.values() if len(cluster) > 1))
    return groups
