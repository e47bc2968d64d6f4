"""`MapRows`: the rows by which a part of the maps is found and read if not all maps are in memory."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.maps.name_links import CellNames, MapNames, NameLinks, NodeNames, cell_name
from llama_index.pgrag.search.name_edges import chunk_number, name_change, pair_numbers, phrases_in
from llama_index.pgrag.state import FactPath, Facts, NamesLater, PseudoGraph, fact_paths
from llama_index.ragkit import Steps, offload
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.storage.graph.interface import GraphReader
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.layered_mapping import LaterMapping
from llama_index.ragkit.text.packed_words import PackedMapping
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["MapRows", "NodeRow", "pack_maps", "unpack_maps"]

_NODES, _MAPS, _TOPICS, _NUMBERS = "pg_nodes", "pg_maps", "pg_topics", "pg_numbers"


@dataclass(frozen=True)
class NodeRow:
    """The facts that a node adds to one map, and the topics of the index that its long facts mention, sorted."""

    facts: tuple[FactPath, ...]
    present: tuple[str, ...] = ()

    @property
    def topic_id(self) -> str:
        """The id of its map."""
        return self.facts[0].topic_id

    def names_among(self, topics: Collection[str]) -> NodeNames:
        """Its names in an index with these topics."""
        return NodeNames.of([fact.path for fact in self.facts], CellNames(topics))

    def phrases(self) -> set[str]:
        """See :func:`~llama_index.pgrag.search.name_edges.phrases_in`."""
        return phrases_in([fact.path for fact in self.facts])

    def record(self) -> Record:
        """The row as a record."""
        first = self.facts[0]
        paths = [list(fact.path) for fact in self.facts]
        record = {"document": first.document, "key": first.order[0], "paths": paths, "present": list(self.present)}
        others = {str(row): list(fact.others) for row, fact in enumerate(self.facts) if fact.others}
        return {**record, "others": others} if others else record

    @classmethod
    def of(cls, node_id: str, record: Record) -> "NodeRow":
        """The row of a record."""
        paths = [tuple(path) for path in record["paths"]]
        others = {int(row): ids for row, ids in record.get("others", {}).items()}
        return cls(fact_paths(node_id, record["document"], record["key"], paths, others), tuple(record["present"]))


class MapRows:
    """Reads and writes parts of the maps of one index.

    Each node has a record with its facts, each map a record with its nodes, and each name of a topic a record with the
    number of maps that have it. The graph links nodes and names (:mod:`llama_index.pgrag.search.name_edges`). If all
    maps are in memory, none of this is needed or kept (`are_kept`).
    """

    def __init__(self, storage: IndexStorage) -> None:
        self._graph = storage.stores.graph()
        self._records = storage.records
        self.are_kept = self._graph.whole() is None

    # -- reading ------------------------------------------------------------------------------------

    def reader(self) -> AbstractContextManager[GraphReader]:
        """A reader that sees one state of the links of names."""
        return self._graph.reader()

    def nodes(self, node_ids: Iterable[str]) -> Steps[dict[str, NodeRow]]:
        """The nodes among these that have facts."""
        found = yield from self._records.get_many(_NODES, node_ids)
        return {node_id: NodeRow.of(node_id, record) for node_id, record in found.items()}

    def all_facts(self) -> Steps[dict[str, tuple[FactPath, ...]]]:
        """The facts of all nodes."""
        found = yield from self._records.get_all(_NODES)
        return {node_id: NodeRow.of(node_id, record).facts for node_id, record in found.items()}

    def nodes_of_maps(self, topic_ids: Iterable[str]) -> Steps[dict[str, list[str]]]:
        """The nodes with facts of each of these maps that exists."""
        found = yield from self._records.get_many(_MAPS, topic_ids)
        return {topic_id: list(record["nodes"]) for topic_id, record in found.items()}

    def node_ids(self, numbers: Iterable[int]) -> Steps[dict[int, str]]:
        """The ids of nodes, by the numbers of their rows."""
        found = yield from self._records.get_many(_NUMBERS, map(str, numbers))
        return {int(number): record["id"] for number, record in found.items()}

    def around(
        self, state: PseudoGraph, facts: Facts, removed: Iterable[str]
    ) -> Steps[tuple[PseudoGraph, dict[str, NodeRow]]]:
        """The maps that a write changes, and the rows of the nodes that it replaces.

        If all maps are in memory, this returns all maps and no rows.
        """
        if not self.are_kept:
            return state, {}
        replaced = yield from self.nodes([*removed, *facts])
        topic_ids = {row.topic_id for row in replaced.values()} | {f.topic_id for own in facts.values() for f in own}
        nodes = yield from self.nodes_of_maps(sorted(topic_ids))
        others = yield from self.nodes(sorted({i for ids in nodes.values() for i in ids} - replaced.keys()))
        return PseudoGraph.of({i: row.facts for i, row in {**others, **replaced}.items()}), replaced

    # -- writing ------------------------------------------------------------------------------------

    def replace(
        self, replaced: Mapping[str, NodeRow], facts: Facts, before: PseudoGraph, after: PseudoGraph
    ) -> Steps[None]:
        """Store the rows of nodes after a write; call it within a transaction.

        An added or removed topic changes the links of the nodes that mention its name, so these are also read.
        `replaced` are the rows of removed or replaced nodes, `facts` those of new nodes, `before` and `after` the maps
        of :meth:`around`.
        """
        if not self.are_kept:
            return
        maps = {i: {"nodes": sorted({fact.node_id for fact in found.facts})} for i, found in after.maps.items()}
        yield from self._records.update(_MAPS, {**dict.fromkeys(before.maps), **maps})
        come, gone = yield from self._count_topics(before, after)
        rows = {node_id: NodeRow(tuple(own)) for node_id, own in facts.items() if own}
        phrases = yield from offload(lambda: {node_id: row.phrases() for node_id, row in rows.items()})
        asked = sorted({phrase for found in phrases.values() for phrase in found})
        known = (yield from self._records.get_many(_TOPICS, asked)).keys()
        rows = {i: replace(row, present=tuple(sorted(phrases[i] & known))) for i, row in rows.items()}
        mentioning = yield from self._mentioning([*come, *gone], replaced.keys() | rows.keys())
        changed = yield from offload(_with_topics, mentioning, come, gone)
        was = {**replaced, **{i: mentioning[i] for i in changed}}
        yield from self._put(was, {**rows, **changed})

    def _count_topics(self, before: PseudoGraph, after: PseudoGraph) -> Steps[tuple[set[str], set[str]]]:
        """Count the maps with each name of a topic; returns the names that are added, and those that are removed."""
        more = Counter(cell_name(found.topic) for found in after.maps.values())
        more.subtract(cell_name(found.topic) for found in before.maps.values())
        names = sorted(name for name, count in more.items() if name and count)
        stored = yield from self._records.get_many(_TOPICS, names)
        counts = {name: (stored[name]["maps"] if name in stored else 0) + more[name] for name in names}
        gone = {name for name, count in counts.items() if not count}
        yield from self._records.update(_TOPICS, {name: {"maps": n} if n else None for name, n in counts.items()})
        return set(counts) - gone - stored.keys(), gone & stored.keys()

    def _mentioning(self, names: Sequence[str], but: Collection[str]) -> Steps[dict[str, NodeRow]]:
        """The other nodes that may mention these names."""
        numbers = yield from offload(self._found_by_pairs, names)
        ids = yield from self.node_ids(numbers)
        return (yield from self.nodes(sorted(set(ids.values()) - set(but))))

    def _found_by_pairs(self, names: Sequence[str]) -> list[int]:
        pairs = np.array(pair_numbers(names), np.int64)
        if not len(pairs):
            return []
        with self.reader() as reader:
            rows = reader.fetch(pairs)
            cut: NDArray[np.int64] = rows.nodes[rows.further > 0]
            found = [rows.records["neighbor"]]
            if len(cut):
                found.append(reader.fetch(cut[:0], cut).records["neighbor"])
        return sorted(set(np.concatenate(found).tolist()))

    def _put(self, before: Mapping[str, NodeRow], after: Mapping[str, NodeRow]) -> Steps[None]:
        same = {node_id for node_id, row in before.items() if after.get(node_id) == row}
        before, after = ({i: row for i, row in rows.items() if i not in same} for rows in (before, after))
        yield from offload(self._change, before, after)
        ids = dict.fromkeys([*before, *after])
        yield from self._records.update(_NODES, {i: after[i].record() if i in after else None for i in ids})
        numbers = {str(chunk_number(i)): {"id": i} if i in after else None for i in ids}
        yield from self._records.update(_NUMBERS, numbers)

    def _change(self, before: Mapping[str, NodeRow], after: Mapping[str, NodeRow]) -> None:
        was, now = ({i: row.names_among(row.present) for i, row in rows.items()} for rows in (before, after))
        self._graph.change(*name_change(was, now))


def _with_topics(rows: Mapping[str, NodeRow], come: Collection[str], gone: Collection[str]) -> dict[str, NodeRow]:
    """The rows among these that change as topics are added and removed, in their new form."""
    found = {}
    for node_id, row in rows.items():
        present = tuple(sorted((set(row.present) | (row.phrases() & set(come))) - set(gone)))
        if present != row.present:
            found[node_id] = replace(row, present=present)
    return found


class _WholeMaps:
    """The maps of all nodes, made on demand."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def graph(self) -> PseudoGraph:
        return PseudoGraph.of(dict(self._facts.items()))


def pack_maps(graph: PseudoGraph) -> Arrays:
    """The arrays of a whole graph without vectors of cells."""
    facts = PackedMapping.to_arrays(graph.of_node, lambda own: NodeRow(own).record())
    return nested({"facts": facts, "links": graph.name_links.arrays()})


def unpack_maps(arrays: Arrays, chunks: Snapshot) -> PseudoGraph:
    """The graph of :func:`pack_maps`, over the same memory, with the vectors of the nodes."""
    facts: PackedMapping[tuple[FactPath, ...]] = PackedMapping.of_arrays(part_of(arrays, "facts"), _facts)
    whole = _WholeMaps(facts)
    return PseudoGraph(
        chunks,
        maps=LaterMapping(whole, "graph.maps"),
        map_of=LaterMapping(whole, "graph.map_of"),
        of_node=facts,
        names=NamesLater((MapNames(), facts)),
        links=NameLinks.of_arrays(part_of(arrays, "links")),
    )


def _facts(node_id: str, record: Record) -> tuple[FactPath, ...]:
    return NodeRow.of(node_id, record).facts
