"""Mind maps as arrays of a file; objects are made from them on demand.

A question reads the facts of few nodes, and the links of names. All maps, which only writes, pages and searches with
vectors need, are computed from all facts.
"""

from functools import cached_property

from llama_index.pgrag.map_rows import NodeRow
from llama_index.pgrag.maps.name_links import MapNames, NameLinks
from llama_index.pgrag.state import FactPath, Facts, NamesLater, PseudoGraph
from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.layered_mapping import LaterMapping
from llama_index.ragkit.text.packed_mapping import PackedMapping
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["pack_maps", "unpack_maps"]


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
