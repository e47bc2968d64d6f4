"""Super nodes: groups of topics, or facts, with the same content, for knowledge fusion (section 2.3, Algorithm 2).

Two rows are linked if their cosine reaches a threshold. The paper only states that similar sets are clustered. Here a
super node is by default a connected component of the links, since components depend only on the vectors. The published
greedy procedure is :func:`leader_clusters`.

Results are exact: float32 products find the pairs that could reach the threshold, and float64 decides pairs within
rounding error of it (:mod:`llama_index.ragkit.vectors.pairs`). No n x n array is allocated.

Super nodes are updated as rows are added and removed. A component is named by its smallest id, so its members determine
its name. The order in which rows were added does not matter: after any inserts and deletes the components are those of
:func:`components` over the remaining rows.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from llama_index.pgrag.config import Fusion
from llama_index.ragkit.text.layered_mapping import LayeredMapping
from llama_index.ragkit.vectors.kernels import cosines, error_bound, opaque_rows, pair_cosines
from llama_index.ragkit.vectors.pairs import Candidates, pairs_within
from llama_index.ragkit.vectors.snapshot import Mask, Snapshot

__all__ = ["MAX_CLUSTER", "Ids", "SuperNodes", "components", "leader_clusters", "restore", "update"]

Ids = tuple[str, ...]
Floats = NDArray[np.float32]
Labels = NDArray[np.int64]

MAX_CLUSTER = 100  # largest cluster of the published procedure
_FIRST_HITS = 32  # neighbours in the first search; doubled while all found ones are linked
_WHOLE_SHARE = 0.25  # above this share of new rows all rows are fused again in one pass
_GATHER = 1 << 12  # pairs whose vectors are copied at once


def components(vectors: Floats, threshold: float) -> Labels:
    """Connected components of the graph of all pairs with a cosine of at least `threshold`, in (-1, 1].

    Takes n^2 d / 2 multiplications; bitwise equal rows count once, and a zero row is linked to nothing. The labels, of
    shape (n,), are the numbers of the first rows of the components.
    """
    first, inverse = _distinct(vectors)
    rows = vectors[first]
    labels = np.arange(len(rows))
    for candidates in pairs_within(rows, threshold):
        labels = _merged(labels, rows, candidates, threshold)
    return _canonical(labels[inverse])


def leader_clusters(vectors: Floats, threshold: float, max_cluster: int = MAX_CLUSTER) -> Labels:
    """The published clustering: each unassigned row in turn starts a cluster of its nearest unassigned rows.

    A cluster has at most `max_cluster` rows, including its leader: the nearest that reach the threshold. The published
    code also includes rows of other clusters, so that clusters overlap. The result depends on the order of the rows; a
    cluster never spans several :func:`components`. The labels, of shape (n,), are the numbers of the leading rows.
    """
    labels = np.full(len(vectors), -1, dtype=np.int64)
    for leader in range(len(vectors)):
        if labels[leader] >= 0:
            continue
        labels[leader] = leader
        free = np.flatnonzero(labels < 0)
        scores = cosines(vectors[free], vectors[leader])
        near = np.flatnonzero(scores >= threshold)
        labels[free[near[np.argsort(-scores[near], kind="stable")[: max_cluster - 1]]]] = leader
    return labels


def _distinct(rows: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions of the first of each set of equal rows, in order, and for every row the one that it equals."""
    if not len(rows):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    _, first, inverse = np.unique(opaque_rows(rows), return_index=True, return_inverse=True)
    inverse = inverse.ravel()
    empty = np.count_nonzero(rows[first], axis=1) == 0
    if empty[inverse].sum() > 1:  # zero rows have no direction, so no two are equal
        zero = np.flatnonzero(empty[inverse])
        first = np.concatenate([first, zero[1:]])
        inverse[zero[1:]] = np.arange(len(first) - len(zero) + 1, len(first))
    return first, inverse


def _merged(labels: Labels, rows: Floats, candidates: Candidates, threshold: float) -> Labels:
    """Labels after the links among some candidates are added."""
    # Deferred: it imports the solvers of scipy.linalg, which takes a tenth of a second.
    from scipy.sparse.csgraph import connected_components

    i, j, near = candidates
    apart = labels[i] != labels[j]
    i, j, near = i[apart], j[apart], near[apart]
    if not len(i):
        return labels
    linked: NDArray[np.bool_] = np.greater(near, np.float32(threshold + 2 * error_bound(rows.shape[1])))
    unsure = np.flatnonzero(~linked)
    for at in range(0, len(unsure), _GATHER):
        part = unsure[at : at + _GATHER]
        linked[part] = pair_cosines(rows[i[part]], rows[j[part]]) >= threshold
    ends = labels[i[linked]], labels[j[linked]]
    graph = sp.coo_matrix((np.ones(len(ends[0]), dtype=np.bool_), ends), shape=(len(labels), len(labels)))
    _, groups = connected_components(graph, directed=False)
    merged: Labels = groups.astype(np.int64)[labels]
    return merged


def _canonical(labels: Labels) -> Labels:
    """The same partition, each part labelled by its first row."""
    if not len(labels):
        return labels
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    named: Labels = first[inverse.ravel()].astype(np.int64)
    return named


@dataclass(frozen=True)
class SuperNodes:
    """The super nodes over the rows of one space. Rows without a link belong to none."""

    threshold: float  # least cosine of two linked rows
    # "components", or "leaders" for the published clustering within each component, in canonical order
    fusion: Fusion = "components"
    # id -> name of its component; a missing row is a component of its own
    component_of: Mapping[str, str] = field(default_factory=dict)
    members: Mapping[str, Ids] = field(default_factory=dict)  # name -> sorted ids, of components of at least two rows
    # name -> the super nodes of the component, each as its sorted ids
    groups: Mapping[str, tuple[Ids, ...]] = field(default_factory=dict)

    @classmethod
    def of_texts(cls, texts: Mapping[str, str]) -> "SuperNodes":
        """The super nodes of equal texts, id -> text; an empty text equals no other."""
        by_text: dict[str, list[str]] = defaultdict(list)
        for row_id, text in texts.items():
            by_text[text or row_id].append(row_id)
        members = {min(ids): tuple(sorted(ids)) for ids in by_text.values() if len(ids) > 1}
        component_of = {row_id: name for name, ids in members.items() for row_id in ids}
        return cls(1.0, component_of=component_of, members=members, groups={n: (ids,) for n, ids in members.items()})

    def together(self, row_id: str) -> Ids:
        """The ids that share a super node with a row, itself included; only the row if it has none."""
        for group in self.groups.get(self.component_of.get(row_id, row_id), ()):
            place = bisect_left(group, row_id)
            if place < len(group) and group[place] == row_id:
                return group
        return (row_id,)

    def among(self, rows: Snapshot, kept: Mask, of: Iterable[str]) -> "SuperNodes":
        """The super nodes of some kept rows, as if only the kept ones of the given rows existed.

        A row that is not kept may be the link between others, so the rest of its component is fused again.
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

    def changed(self, before: "SuperNodes", after: "SuperNodes") -> "SuperNodes":
        """All super nodes after those of some components have changed from `before` to `after`."""
        component_of = LayeredMapping.over(self.component_of, forget=False)  # ids
        members = LayeredMapping.over(self.members, forget=False)
        groups = LayeredMapping.over(self.groups, forget=False)
        for name, ids in before.members.items():
            del members[name], groups[name]
            for row_id in ids:
                del component_of[row_id]
        for name, ids in after.members.items():
            members[name], groups[name] = ids, after.groups[name]
            component_of.update(dict.fromkeys(ids, name))
        return SuperNodes(self.threshold, self.fusion, component_of, members, groups)

    @property
    def count(self) -> int:
        """The number of super nodes."""
        return sum(map(len, self.groups.values()))

    def nodes(self) -> list[Ids]:
        """The members of every super node, ordered by their first member."""
        return sorted(group for groups in self.groups.values() for group in groups)


def update(old: SuperNodes, rows: Snapshot, new: Sequence[str], removed: Collection[str]) -> SuperNodes:
    """The super nodes after rows were added and removed.

    `old` must have a component for every row that is near to a new one; `rows` are all current rows.
    """
    component_of, members = dict(old.component_of), dict(old.members)
    touched = {component_of.pop(row_id) for row_id in removed if row_id in component_of}
    added = [row_id for row_id in dict.fromkeys(new) if row_id in rows]
    if len(added) > _WHOLE_SHARE * len(rows):
        ids = sorted(rows.ids)
        component_of = _named(ids, components(rows.vectors_of(ids), old.threshold).tolist())
        touched, members = {*old.members, *component_of.values()}, {}
        _collect(members, component_of, ids)
    else:
        pieces: list[str] = []
        for name in sorted(touched):
            left = [row_id for row_id in members.pop(name, (name,)) if row_id not in removed]
            pieces += left
            component_of.update(_named(left, components(rows.vectors_of(left), old.threshold).tolist()))
        component_of.update((row_id, row_id) for row_id in added)
        _collect(members, component_of, pieces)
        touched.update(component_of[row_id] for row_id in pieces)
        _join(component_of, members, added, rows, old.threshold, touched)
        touched.update(component_of[row_id] for row_id in (*pieces, *added))
    groups = {name: group for name, group in old.groups.items() if name not in touched}
    groups.update(_grouped({n: members[n] for n in touched if n in members}, rows, old.threshold, old.fusion))
    return SuperNodes(old.threshold, old.fusion, component_of, members, groups)


def restore(
    stored: Mapping[str, Ids], component_of: Mapping[str, str], rows: Snapshot, empty: SuperNodes
) -> tuple[SuperNodes, list[str]]:
    """The super nodes of all rows, from the stored ones.

    The remains of a write that ended early are fused again: components that lack rows or overlap, and components whose
    rows are stored with another component. Also returns the damaged ones: names of components, and ids of rows, whose
    stored form differs from the result.
    """
    intact = {
        name: ids
        for name, ids in stored.items()
        if name == ids[0] and all(component_of.get(row_id) == name and row_id in rows for row_id in ids)
    }
    labels = {row_id: name for name, ids in intact.items() for row_id in ids}
    damaged = {*stored.keys() - intact.keys(), *component_of.keys() - labels.keys()}
    torn = {row_id for name in damaged & stored.keys() for row_id in stored[name]} | damaged
    again = sorted(row_id for row_id in torn if row_id in rows and row_id not in labels)
    members: Mapping[str, Ids] = intact
    if again:
        alone = {row_id: row_id for row_id in rows.ids if row_id not in torn}
        members = update(replace(empty, component_of={**alone, **labels}, members=intact), rows, again, ()).members
        labels = {row_id: name for name, ids in members.items() for row_id in ids}
    groups = _grouped(members, rows, empty.threshold, empty.fusion)
    return SuperNodes(empty.threshold, empty.fusion, labels, members, groups), sorted(damaged)


def _join(
    component_of: dict[str, str],
    members: dict[str, Ids],
    added: Sequence[str],
    rows: Snapshot,
    threshold: float,
    touched: set[str],
) -> None:
    """Link added rows to the rows near to them, in place."""
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
    for name in sorted(parent):
        root = find(name)
        if root != name:
            ids = members.pop(name, (name,))
            members[root] = (*members.get(root, (root,)), *ids)
            component_of.update(dict.fromkeys(ids, root))
            touched.update((name, root))
    for name in touched & members.keys():
        members[name] = tuple(sorted(members[name]))


def _collect(members: dict[str, Ids], component_of: Mapping[str, str], ids: Iterable[str]) -> None:
    """Add the components of at least two members, which must all be in `ids`."""
    found: dict[str, list[str]] = defaultdict(list)
    for row_id in ids:
        found[component_of[row_id]].append(row_id)
    members.update((name, tuple(sorted(own))) for name, own in found.items() if len(own) > 1)


def _named(ids: Sequence[str], labels: Iterable[int]) -> dict[str, str]:
    """The component of each id, named by its smallest id; `ids` are sorted, and a label is its first row's position."""
    return {row_id: ids[label] for row_id, label in zip(ids, labels, strict=True)}


def _grouped(
    members: Mapping[str, Ids], rows: Snapshot, threshold: float, fusion: Fusion
) -> dict[str, tuple[Ids, ...]]:
    """The super nodes of components of at least two rows."""
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
