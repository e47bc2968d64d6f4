"""The tree of summaries as a graph of ids, without texts and vectors.

Leaves are chunks. The id of a summary is derived from the set of its children, so the same set always has the same id.
A rebuild recognises existing summaries, and a change below a summary changes the ids up to the root. A node may have
several parents (soft clusters); a summary never has fewer than two children.
"""

import heapq
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from llama_index.ragkit.nested_arrays import Arrays, part_of
from llama_index.ragkit.text.layered_mapping import with_changes
from llama_index.ragkit.text.packed_words import PackedMapping

__all__ = ["Summary", "Tree", "summary_id"]

_NAMESPACE = uuid.UUID("0c6a8a52-5c0e-5f0b-8d53-6a2f5f5d9b0e")


def summary_id(children: Iterable[str]) -> str:
    """The id of the summary of a set of nodes: a UUID (version 5) of their sorted ids."""
    return str(uuid.uuid5(_NAMESPACE, "\n".join(sorted(set(children)))))


@dataclass(frozen=True)
class Summary:
    """A summary node."""

    level: int  # 1 + the highest level among the children; leaves have level 0
    children: tuple[str, ...]  # ids of leaves and lower summaries, sorted, at least two


@dataclass(frozen=True)
class Tree:
    """An immutable tree (a directed acyclic graph, with soft clusters); every change returns a new one."""

    summaries: Mapping[str, Summary] = field(default_factory=dict)  # by id
    parents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # sorted ids by child; none has no entry

    @classmethod
    def of(cls, summaries: Mapping[str, Summary]) -> "Tree":
        """The tree of these summaries; parents are derived."""
        parents: dict[str, set[str]] = {}
        for name, summary in summaries.items():
            for child in summary.children:
                parents.setdefault(child, set()).add(name)
        return cls(dict(summaries), {child: tuple(sorted(above)) for child, above in parents.items()})

    @classmethod
    def of_packed(cls, arrays: Arrays) -> "Tree":
        """The tree of :meth:`packed`, made into objects when they are needed."""
        summaries, parents = (part_of(arrays, name) for name in ("summaries", "parents"))
        made = PackedMapping.of_arrays(summaries, lambda name, value: Summary(value[0], tuple(value[1])))
        return cls(made, PackedMapping.of_arrays(parents, lambda name, value: tuple(value)))

    def packed(self) -> dict[str, Arrays]:
        """The tree as arrays in two parts."""
        summaries = PackedMapping.to_arrays(self.summaries, lambda summary: (summary.level, summary.children))
        return {"summaries": summaries, "parents": PackedMapping.to_arrays(self.parents)}

    @property
    def height(self) -> int:
        """The level of the highest summary; 0 without summaries."""
        return max((summary.level for summary in self.summaries.values()), default=0)

    def level(self, node: str) -> int:
        """Level of a node; 0 for a leaf and any other id that is not a summary."""
        summary = self.summaries.get(node)
        return 0 if summary is None else summary.level

    def children(self, node: str) -> tuple[str, ...]:
        """Children of a node; none for a leaf."""
        summary = self.summaries.get(node)
        return () if summary is None else summary.children

    def roots(self, leaves: Iterable[str] = ()) -> list[str]:
        """Nodes without a parent, sorted: summaries, and nodes from `leaves`."""
        return sorted(node for node in {*self.summaries, *leaves} if node not in self.parents)

    def ancestors(self, nodes: Iterable[str]) -> set[str]:
        """All summaries above the nodes."""
        found: set[str] = set()
        todo = list(nodes)
        while todo:
            for parent in self.parents.get(todo.pop(), ()):
                if parent not in found:
                    found.add(parent)
                    todo.append(parent)
        return found

    def descendants(self, node: str) -> set[str]:
        """All nodes below a node, leaves and summaries."""
        found: set[str] = set()
        todo = [node]
        while todo:
            for child in self.children(todo.pop()):
                if child not in found:
                    found.add(child)
                    todo.append(child)
        return found

    def leaves(self, node: str) -> set[str]:
        """The leaves below a node; for a leaf, the leaf itself."""
        return {below for below in self.descendants(node) | {node} if below not in self.summaries}

    def join(self, groups: Iterable[Collection[str]]) -> "Tree":
        """Add one summary above each group of nodes; groups of one node are skipped."""
        new: dict[str, Summary] = {}
        for group in groups:
            children = tuple(sorted(set(group)))
            if len(children) > 1:
                level = 1 + max(self.level(child) for child in children)
                new[summary_id(children)] = Summary(level, children)
        return self._edited((), new)

    def changed(self, nodes: Mapping[str, Summary | None]) -> "Tree":
        """A copy with changed summaries; None removes a summary, and is ignored for an unknown one."""
        removed = [name for name, summary in nodes.items() if summary is None and name in self.summaries]
        return self._edited(removed, {name: summary for name, summary in nodes.items() if summary is not None})

    def _edited(self, removed: Iterable[str], new: Mapping[str, Summary]) -> "Tree":
        """A copy without the removed summaries and with the new ones; a summary in both is kept."""
        gone = {name: self.summaries[name] for name in removed}
        made = {name: summary for name, summary in new.items() if name in gone or name not in self.summaries}
        above, parents = Tree.of(made).parents, dict[str, tuple[str, ...] | None]()
        for child in {child: None for part in (gone, made) for summary in part.values() for child in summary.children}:
            kept = {name for name in self.parents.get(child, ()) if name not in gone}
            parents[child] = tuple(sorted(kept.union(above.get(child, ())))) or None
        return Tree(
            with_changes(self.summaries, {**dict.fromkeys(gone), **made}, forget=False),  # ids
            with_changes(self.parents, parents, forget=False),
        )

    def replace(
        self, changes: Mapping[str, Collection[str]], additions: Mapping[str, Collection[str]] | None = None
    ) -> "Tree":
        """Replace nodes by others below all their parents, and add leaves to the children of summaries.

        The summaries above get new ids, up to the roots, since their sets of children change. A summary left without
        children is removed; one left with a single child is replaced by that child. An empty collection of replacements
        deletes a node. Replacements that are summaries must already be in the tree (:meth:`join`); summaries that are
        replaced are removed.

        >>> tree = Tree().join([["a", "b", "c"]])
        >>> tree.replace({"c": ["d"]}).roots() == [summary_id(["a", "b", "d"])]
        True
        >>> tree.replace({"a": [], "b": []}).summaries
        {}
        >>> tree.replace({}, {tree.roots()[0]: ["d"]}).roots() == [summary_id("abcd")]
        True
        """
        into: dict[str, tuple[str, ...]] = {node: tuple(news) for node, news in changes.items()}
        more = additions or {}
        made: dict[str, Summary] = {}
        todo = {parent for node in into for parent in self.parents.get(node, ())} | set(more)
        heap = [(self.level(name), name) for name in todo]
        heapq.heapify(heap)
        while heap:  # bottom-up, so that all changes below a summary are known when it is processed
            _, name = heapq.heappop(heap)
            if name in into:
                continue
            kept = {new for child in self.summaries[name].children for new in into.get(child, (child,))}
            children = tuple(sorted(kept.union(more.get(name, ()))))
            into[name] = children
            if len(children) > 1:
                level = 1 + max(made[child].level if child in made else self.level(child) for child in children)
                into[name] = (summary_id(children),)
                made[summary_id(children)] = Summary(level, children)
            for parent in self.parents.get(name, ()):
                if parent not in todo:
                    todo.add(parent)
                    heapq.heappush(heap, (self.level(parent), parent))
        staying = {new for news in into.values() for new in news}
        return self._edited([name for name in into if name in self.summaries and name not in staying], made)
