"""`TreeRows`: the tree of an index as records, one row for each node."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from llama_index.ragkit import Steps
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.raptor.tree import Summary, Tree

__all__ = ["SUMMARIES", "Rows", "TreeRows", "closed_tree", "marks_of", "tree_of"]

Rows = dict[str, Record]

SUMMARIES = "summaries"
"""The collection of the texts of summaries, and the space of their vectors."""

_TREE = "tree"

_ROOTS = "tree_roots"
_UNWRITTEN = "tree_unwritten"
_BY_RULES = "tree_by_rules"
_WAITING = "tree_waiting"


class TreeRows:
    """The nodes of the tree by id, chunks and summaries.

    The row of a node holds its level, its children, its parents, and the number of chunks below it (a chunk below two
    children counts twice). Other collections hold the nodes without a parent, the summaries without a text, the
    summaries that rules wrote, and the chunks that wait for the last part of a write to get a parent.
    A write reads and writes the rows of the summaries that it changes and of their children.
    """

    def __init__(self, storage: IndexStorage) -> None:
        self._records = storage.records

    # -- reading ------------------------------------------------------------------------------------

    def of(self, nodes: Iterable[str]) -> Steps[Rows]:
        """The rows of the nodes that have one."""
        return _read((yield from self._records.get_many(_TREE, nodes)))

    def all(self) -> Steps[Rows]:
        """All rows."""
        return _read((yield from self._records.get_all(_TREE)))

    def above(self, nodes: Iterable[str]) -> Steps[Rows]:
        """The rows of nodes and of all summaries above them: one read for each layer."""
        return (yield from self._reached(nodes, "parents"))

    def below(self, nodes: Iterable[str]) -> Steps[Rows]:
        """The rows of nodes and of everything below them: one read for each layer."""
        return (yield from self._reached(nodes, "children"))

    def _reached(self, nodes: Iterable[str], by: Literal["parents", "children"]) -> Steps[Rows]:
        rows: Rows = {}
        frontier = list(nodes)
        while frontier:
            found = yield from self.of(frontier)
            rows |= found
            frontier = sorted({other for row in found.values() for other in row[by]} - rows.keys())
        return rows

    def around(self, nodes: Iterable[str]) -> Steps[Rows]:
        """The rows that a change of the children of nodes needs: those of the nodes, all summaries above them, the
        children of all these, and the other parents of these children.
        """
        rows = yield from self.above(nodes)
        children = yield from self.of(sorted({c for row in rows.values() for c in row["children"]} - rows.keys()))
        rows |= children
        others = {parent for row in children.values() for parent in row["parents"]}
        return rows | (yield from self.of(sorted(others - rows.keys())))

    def within(self, chunks: Iterable[str]) -> Steps[Rows]:
        """The rows of chunks, and of the summaries all of whose chunks are among them."""
        known = yield from self.of(chunks)
        passing = dict(known)
        pending: set[str] = set()
        new = set(passing)
        while new:
            pending |= {parent for node in new for parent in known[node]["parents"]} - passing.keys()
            known |= yield from self.of(sorted(pending - known.keys()))
            new = {node for node in pending if passing.keys() >= set(known[node]["children"])}
            passing |= {node: known[node] for node in sorted(new)}
            pending -= new
        return passing

    def roots(self) -> Steps[dict[str, int]]:
        """The nodes without a parent, with their levels."""
        return {node: row["level"] for node, row in (yield from self._records.get_all(_ROOTS)).items()}

    def unwritten(self) -> Steps[list[str]]:
        """The summaries that have no text yet, sorted."""
        return sorted((yield from self._records.get_all(_UNWRITTEN)))

    def by_rules(self) -> Steps[Rows]:
        """The summaries that rules wrote, sorted, each with the reason why the summarizer failed."""
        return dict(sorted((yield from self._records.get_all(_BY_RULES)).items()))

    def waiting(self) -> Steps[list[str]]:
        """The chunks that wait for the last part of a write to get a parent, sorted."""
        return sorted((yield from self._records.get_all(_WAITING)))

    def texts(self, summaries: Iterable[str]) -> Steps[Rows]:
        """The records of the summaries that have a text."""
        return (yield from self._records.get_many(SUMMARIES, summaries))

    def note_repairs(self, tree: Tree, chunks: Iterable[str], written: Collection[str], stored: Rows) -> Steps[bool]:
        """Note it if the `stored` rows are not those of a whole tree and of its written summaries.

        They are not if a write ended early in a store without transactions, nor in an index in memory by an earlier
        version, which stored only children.
        """
        rows = _rows_of(tree, chunks)
        unwritten: Rows = {name: {} for name in tree.summaries if name not in written}
        wanted = {_TREE: _bare(rows), _ROOTS: _roots(rows), _UNWRITTEN: unwritten}
        return (yield from self._records.note_repairs(wanted, {_TREE: _bare(stored)}))

    def all_texts(self) -> Steps[Rows]:
        """The records of all summaries that have a text."""
        return (yield from self._records.get_all(SUMMARIES))

    # -- writing ------------------------------------------------------------------------------------

    def change(self, new: Mapping[str, Summary], removed: Mapping[str, Summary]) -> Steps[None]:
        """Store summaries that have no text yet, and delete others, whose texts are already deleted.

        The rows of their children name the stored ones as parents, and no longer the deleted ones.
        """
        children = {child for part in (new, removed) for summary in part.values() for child in summary.children}
        rows = yield from self.of(sorted(children.union(new) - removed.keys()))
        roots = [node for node, row in rows.items() if not row["parents"]]
        for name, summary in new.items():
            rows[name] = _row(summary.level, list(summary.children), rows[name]["parents"] if name in rows else [])
        above = Tree.of(new).parents
        rows |= {child: _row(0, [], []) for child in above if child not in rows}
        for node, row in rows.items():
            row["parents"] = sorted({*row["parents"], *above.get(node, ())} - removed.keys())
        for name, summary in sorted(new.items(), key=lambda item: item[1].level):
            rows[name]["chunks"] = sum(rows[child]["chunks"] for child in summary.children)
        yield from self._records.update(_TREE, _bare(rows))
        yield from self._records.update(_ROOTS, {**dict.fromkeys(roots), **_roots(rows)})
        yield from self.forget(removed)
        yield from self._records.update(_UNWRITTEN, {**dict.fromkeys(removed), **{name: {} for name in new}})

    def put_alone(self, chunks: Iterable[str]) -> Steps[None]:
        """Store chunks that are below no summary."""
        rows = {chunk: _row(0, [], []) for chunk in chunks}
        yield from self._records.update(_TREE, _bare(rows))
        yield from self._records.update(_ROOTS, _roots(rows))

    def put_waiting(self, chunks: Iterable[str]) -> Steps[None]:
        """Note that chunks wait for the last part of a write to get a parent."""
        yield from self._records.put(_WAITING, [(chunk, {}) for chunk in chunks])

    def delete_waiting(self, chunks: Collection[str]) -> Steps[None]:
        """Note that chunks no longer wait."""
        yield from self._records.delete(_WAITING, chunks)

    def forget(self, nodes: Collection[str]) -> Steps[None]:
        """Delete the rows of nodes that no longer have anything below or above them."""
        yield from self._records.delete(_TREE, nodes)
        yield from self._records.delete(_ROOTS, nodes)
        yield from self.delete_waiting(nodes)

    def put_texts(self, records: Mapping[str, Record]) -> Steps[None]:
        """Store the texts of summaries."""
        yield from self._records.put(SUMMARIES, list(records.items()))
        yield from self._records.delete(_UNWRITTEN, records)
        yield from self._records.update(_BY_RULES, {**dict.fromkeys(records), **marks_of(records)})

    def delete_texts(self, names: Sequence[str]) -> Steps[None]:
        """Delete the texts of summaries, and note that they have none."""
        yield from self._records.delete(_BY_RULES, names)
        yield from self._records.delete(SUMMARIES, names)
        yield from self._records.put(_UNWRITTEN, [(name, {}) for name in names])


def marks_of(records: Mapping[str, Record]) -> Rows:
    """For each summary that rules wrote, why the summarizer failed and the class that wrote instead."""
    return {name: {"failed": r["failed"], "by": r["by"]} for name, r in records.items() if r.get("by")}


def tree_of(rows: Mapping[str, Record]) -> Tree:
    """The tree of some rows; rows of children or parents may be missing."""
    summaries = {node: Summary(row["level"], tuple(row["children"])) for node, row in rows.items() if row["level"]}
    return Tree(summaries, {node: tuple(row["parents"]) for node, row in rows.items() if row["parents"]})


def closed_tree(rows: Mapping[str, Record]) -> Tree:
    """The tree of some rows, without parents that are not among them."""
    tree = tree_of(rows)
    parents = {node: tuple(name for name in above if name in rows) for node, above in tree.parents.items()}
    return Tree(tree.summaries, {node: above for node, above in parents.items() if above})


def _rows_of(tree: Tree, chunks: Iterable[str]) -> Rows:
    """The rows of a whole tree."""
    rows = {chunk: _row(0, [], list(tree.parents.get(chunk, ()))) for chunk in chunks}
    for name, summary in sorted(tree.summaries.items(), key=lambda item: item[1].level):
        rows[name] = _row(summary.level, list(summary.children), list(tree.parents.get(name, ())))
        rows[name]["chunks"] = sum(rows[child]["chunks"] for child in summary.children)
    return rows


def _roots(rows: Rows) -> Rows:
    """The records of the rows without a parent."""
    return {node: {"level": row["level"]} for node, row in rows.items() if not row["parents"]}


def _bare(rows: Rows) -> Rows:
    """Rows as they are stored; those of chunks hold only their parents."""
    return {node: row if row["level"] else {"parents": row["parents"]} for node, row in rows.items()}


def _read(stored: Rows) -> Rows:
    """The rows of :func:`_bare`, whole."""
    return {node: row if "level" in row else {**_row(0, [], []), **row} for node, row in stored.items()}


def _row(level: int, children: list[str], parents: list[str]) -> dict[str, Any]:
    return {"level": level, "children": children, "parents": parents, "chunks": int(not level)}
