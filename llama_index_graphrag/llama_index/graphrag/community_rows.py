"""`CommunityRows`: the reports of an index, and its communities if no state in memory has them."""

import base64
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.graph.statement_edges import entity_number
from llama_index.graphrag.reports.lines import ReportLine
from llama_index.graphrag.reports.planning import ReportPlan
from llama_index.graphrag.state import GraphView, WrittenReport
from llama_index.ragkit import Records, Steps, offload
from llama_index.ragkit.errors import StorageError
from llama_index.ragkit.storage.records import Record

__all__ = ["CommunitiesGoneError", "CommunityRows", "CommunityTable", "read_lines"]

_COMMUNITIES = "communities"
_CURRENT = "current"
_TABLE = "community_table"
_TEXTS = "community_texts"
_REPORTS = "reports"
_TOKENS = "report_tokens"
_OF_CHUNK = "chunk_reports"
_BLOCK = 1 << 20  # bytes of the table in one record
_AT_ONCE = 500  # communities in one statement

Integers = NDArray[np.int64]

_KEY = 16  # bytes of the key of a report
_VERBATIM, _STATES = 1, 2


class _Row(NamedTuple):
    """The values of a community in the table."""

    tokens: int
    is_verbatim: bool
    states: bool
    key: str


@dataclass(frozen=True, eq=False)
class CommunityTable:
    """c communities of n entities."""

    hierarchy: Hierarchy  # of the entities in the order of their keys
    numbers: Integers  # int64, shape (n,): the numbers of the entities' nodes, in that order
    tokens: Integers  # int64, shape (c,): tokens of the lines of each report's plan
    flags: NDArray[np.uint8]  # shape (c,): whether the lines are the report, and whether there are any
    keys: Sequence[str]  # the keys of the reports, each of 32 hexadecimal digits

    @classmethod
    def of(cls, hierarchy: Hierarchy, names: Iterable[str], rows: Sequence[_Row]) -> "CommunityTable":
        """The table of a hierarchy over entities, given by sorted keys, from a row for each community."""
        numbers = np.array([entity_number(name) for name in names], np.int64)
        tokens = np.array([row.tokens for row in rows], np.int64)
        flags = np.array([_VERBATIM * row.is_verbatim + _STATES * row.states for row in rows], np.uint8)
        return cls(hierarchy, numbers, tokens, flags, tuple(row.key for row in rows))

    def __len__(self) -> int:
        """Number of communities."""
        return len(self.hierarchy)

    def is_verbatim(self, community: int) -> bool:
        """Whether the statements of a community are its report."""
        return bool(self.flags[community] & _VERBATIM)

    def states(self, community: int) -> bool:
        """Whether a community has statements."""
        return bool(self.flags[community] & _STATES)

    def places(self, entities: Iterable[int]) -> list[int]:
        """The places of the entities that are in a community, by the numbers of their nodes."""
        order, found = self._order, []
        for entity in entities:
            place = int(np.searchsorted(self._ascending, entity))
            if place < len(order) and self._ascending[place] == entity:
                found.append(int(order[place]))
        return found

    @cached_property
    def _order(self) -> Integers:
        order: Integers = np.argsort(self.numbers, kind="stable")
        return order

    @cached_property
    def _ascending(self) -> Integers:
        ascending: Integers = self.numbers[self._order]
        return ascending

    def packed(self) -> bytes:
        """The whole table as bytes; :meth:`unpacked` reads it."""
        hierarchy = self.hierarchy
        head = np.array([len(self.numbers), len(self)], "<i8")
        parts = [self.numbers.astype("<i8"), hierarchy.order.astype("<i4")]
        of_communities = (hierarchy.first, hierarchy.last, hierarchy.parent, self.tokens)
        parts += [values.astype("<i4") for values in of_communities]
        keys = b"".join(bytes.fromhex(key) for key in self.keys)
        return b"".join([head.tobytes(), *(part.tobytes() for part in parts), self.flags.tobytes(), keys])

    @classmethod
    def unpacked(cls, data: bytes) -> "CommunityTable":
        """Read the bytes of :meth:`packed`."""
        n, c = np.frombuffer(data, "<i8", 2).tolist()
        place = 16

        def taken(kind: str, count: int) -> NDArray[np.int64]:
            nonlocal place
            values = np.frombuffer(data, kind, count, place)
            place += values.nbytes
            return values.astype(np.int64)

        numbers, order = taken("<i8", n), taken("<i4", n)
        first, last, parent, tokens = (taken("<i4", c) for _ in range(4))
        flags = taken("u1", c).astype(np.uint8)
        keys = [data[at : at + _KEY].hex() for at in range(place, place + c * _KEY, _KEY)]
        return cls(Hierarchy(order, first, last, parent), numbers, tokens, flags, keys)


class CommunitiesGoneError(StorageError):
    """Another process deleted something between the step that finds communities and the question that reads them."""


class CommunityRows:
    """Reads and writes the communities of one index.

    One record says which communities are current. A table (:class:`CommunityTable`) has them as arrays; it is read once
    and kept until they change. A record for each community has its title and its statements, or those that cover its
    entities, and, if a model writes reports, the plan of its report. Written reports are records by their keys. Other
    records hold the tokens of each report and why a model failed at it, and, for each chunk, the keys of the reports
    that rest on it.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._table: tuple[str, CommunityTable] | None = None

    # -- communities ----------------------------------------------------------------------------------

    def current(self) -> Steps[Record | None]:
        """The record of the communities: "id", and whether a write has made them "stale" or their texts "gone"."""
        return (yield from self._records.get(_COMMUNITIES, _CURRENT))

    def table(self, current: Record) -> Steps[CommunityTable]:
        """The table of communities."""
        known = self._table
        if known is None or known[0] != current["id"]:
            blocks = yield from self._records.get_many(_TABLE, [str(i) for i in range(current["blocks"])])
            data = b"".join(base64.b64decode(block["data"]) for block in blocks.values())
            self._table = known = (current["id"], (yield from offload(CommunityTable.unpacked, data)))
        return known[1]

    def texts(self, communities: Iterable[int]) -> Steps[dict[int, Record]]:
        """The records of communities."""
        found = yield from self._records.get_many(_TEXTS, [str(community) for community in communities])
        return {int(community): record for community, record in found.items()}

    def replace(self, view: GraphView, by_model: bool) -> Steps[dict[str, WrittenReport]]:
        """Store the communities of a graph that is in memory, and replace earlier ones.

        Returns the written reports of communities that no longer exist; they were deleted.
        """
        hierarchy = yield from offload(lambda: view.hierarchy)
        count = len(hierarchy)
        old = (yield from self.current()) or {"count": 0, "blocks": 0}
        rows: list[_Row] = []  # the last community first: children before their parents
        for start in range(0, count, _AT_ONCE):
            some = range(count - 1 - start, max(-1, count - 1 - start - _AT_ONCE), -1)
            texts, more = yield from offload(_texts, view, some, by_model)
            rows += more
            yield from self._records.put(_TEXTS, texts)
        yield from self._records.delete(_TEXTS, [str(i) for i in range(count, old["count"])])
        table = CommunityTable.of(hierarchy, view.entities.names, rows[::-1])
        data = table.packed()
        blocks = [data[start : start + _BLOCK] for start in range(0, len(data), _BLOCK)]
        yield from self._records.put(
            _TABLE, [(str(i), {"data": base64.b64encode(block).decode("ascii")}) for i, block in enumerate(blocks)]
        )
        yield from self._records.delete(_TABLE, [str(i) for i in range(len(blocks), old["blocks"])])
        current = {
            "id": uuid4().hex,
            "stale": False,
            "gone": False,
            "count": count,
            "blocks": len(blocks),
            "by_model": by_model,
        }
        yield from self._records.put(_COMMUNITIES, [(_CURRENT, current)])
        sizes = yield from self.sizes()
        return (yield from self.delete_reports(sizes.keys() - set(table.keys)))

    def outdate(self, removed: bool) -> Steps[None]:
        """Note that the graph has changed; if chunks were `removed`, delete the texts, which have their words."""
        current = yield from self.current()
        if current is None:
            return
        if removed and not current["gone"]:
            yield from self._records.delete(_TEXTS, [str(i) for i in range(current["count"])])
        gone = current["gone"] or removed
        if (True, gone) != (current["stale"], current["gone"]):
            yield from self._records.put(_COMMUNITIES, [(_CURRENT, {**current, "stale": True, "gone": gone})])

    # -- written reports ------------------------------------------------------------------------------

    def sizes(self) -> Steps[dict[str, int]]:
        """The tokens of every written report, by its key."""
        return {key: record["tokens"] for key, record in (yield from self._records.get_all(_TOKENS)).items()}

    def by_rules(self) -> Steps[dict[str, str]]:
        """For each report that is made of statements instead, by sorted key, why the summarizer failed."""
        found = yield from self._records.get_all(_TOKENS)
        return {key: found[key]["error"] for key in sorted(found) if found[key].get("error")}

    def reports(self, keys: Iterable[str]) -> Steps[dict[str, WrittenReport]]:
        """Written reports."""
        found = yield from self._records.get_many(_REPORTS, keys)
        return {key: WrittenReport.from_record(record) for key, record in found.items()}

    def all_reports(self) -> Steps[dict[str, WrittenReport]]:
        """All written reports."""
        found = yield from self._records.get_all(_REPORTS)
        return {key: WrittenReport.from_record(found[key]) for key in sorted(found)}

    def reports_on(self, chunks: Iterable[str]) -> Steps[dict[str, WrittenReport]]:
        """The written reports that rest on at least one of some chunks."""
        found = yield from self._records.get_many(_OF_CHUNK, chunks)
        return (yield from self.reports(sorted({key for record in found.values() for key in record["reports"]})))

    def put_reports(self, reports: Mapping[str, WrittenReport]) -> Steps[None]:
        """Store written reports."""
        yield from self._records.put(_REPORTS, [(key, report.record()) for key, report in reports.items()])
        yield from self._records.put(_TOKENS, [(key, _beside(report)) for key, report in reports.items()])
        yield from self._link(reports, lambda keys, new: sorted({*keys, *new}))

    def note_repairs(self, reports: Mapping[str, WrittenReport]) -> Steps[bool]:
        """Note it if the data stored with the reports do not belong to exactly these reports.

        They do not after a write without transactions that was interrupted, nor in an index in memory of a version that
        stored no such data.
        """
        stored = yield from self._records.get_all(_TOKENS)
        tokens = {key: stored.get(key) or _beside(report) for key, report in reports.items()}
        links = {node_id: {"reports": sorted(keys)} for node_id, keys in _of_chunks(reports).items()}
        return (yield from self._records.note_repairs({_TOKENS: tokens, _OF_CHUNK: links}, {_TOKENS: stored}))

    def delete_reports(self, keys: Collection[str]) -> Steps[dict[str, WrittenReport]]:
        """Delete written reports, and return them."""
        return (yield from self._delete((yield from self.reports(sorted(keys)))))

    def delete_reports_on(self, chunks: Collection[str]) -> Steps[dict[str, WrittenReport]]:
        """Delete the written reports that rest on some chunks, and return them."""
        return (yield from self._delete((yield from self.reports_on(chunks))))

    def _delete(self, reports: dict[str, WrittenReport]) -> Steps[dict[str, WrittenReport]]:
        yield from self._records.delete(_REPORTS, reports)
        yield from self._records.delete(_TOKENS, reports)
        yield from self._link(reports, lambda keys, gone: [key for key in keys if key not in gone])
        return reports

    def _link(self, reports: Mapping[str, WrittenReport], changed: Any) -> Steps[None]:
        """Change which reports are recorded for the chunks of some reports."""
        of_chunk = _of_chunks(reports)
        known = yield from self._records.get_many(_OF_CHUNK, sorted(of_chunk))
        after = {i: changed(known.get(i, {"reports": []})["reports"], keys) for i, keys in of_chunk.items()}
        yield from self._records.update(_OF_CHUNK, {i: {"reports": k} if k else None for i, k in after.items()})


def _beside(report: WrittenReport) -> Record:
    """The data that are stored with a report and can be read without it."""
    return {"tokens": report.tokens, **({"error": report.error} if report.error else {})}


def _of_chunks(reports: Mapping[str, WrittenReport]) -> dict[str, set[str]]:
    """Chunk -> the keys of the reports that rest on it."""
    found: dict[str, set[str]] = defaultdict(set)
    for key, report in reports.items():
        for node_id in report.nodes:
            found[node_id].add(key)
    return found


def _texts(view: GraphView, communities: Iterable[int], by_model: bool) -> tuple[list[tuple[str, Record]], list[_Row]]:
    """The records of communities, and their rows in the table; children come before their parents.

    A plan is dropped together with that of its parent, so each statement is in memory once, not once for each level.
    """
    texts, rows = [], []
    for community in communities:
        plan = view.planner.plan(community)
        texts.append((str(community), _text(view, plan, by_model)))
        rows.append(_Row(plan.tokens, plan.verbatim, bool(plan.nodes), plan.key))
        view.planner.forget(view.hierarchy.children(community).tolist())
    return texts, rows


def _text(view: GraphView, plan: ReportPlan, by_model: bool) -> Record:
    """The record of a community."""
    record: Record = {"report": view.planner.report(plan.community).record()}
    if by_model and not plan.verbatim:
        record["plan"] = {
            "lines": [[line.text, list(line.nodes), line.is_claim] for line in plan.lines],
            "children": [child.community for child in plan.children],
            "left_out": plan.left_out,
            "nodes": list(plan.nodes),
        }
    return record


def read_lines(plan: Record) -> tuple[ReportLine, ...]:
    """The lines of a plan as the writer of a report sees them."""
    return tuple(ReportLine(text, (), (), tuple(nodes), is_claim) for text, nodes, is_claim in plan["lines"])
