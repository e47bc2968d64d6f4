"""Export of the pseudo-graph to networkx."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from llama_index.pgrag.maps.mind_map import path_text
from llama_index.pgrag.state import PseudoGraph
from llama_index.ragkit.extras import need

__all__ = ["to_networkx"]


def to_networkx(graph: PseudoGraph, texts: Mapping[str, str]) -> Any:
    """A graph of chunks, the cells of their mind maps and the super nodes, with the edges between them.

    Parameters
    ----------
    texts : the text of every chunk that has one
    """
    networkx = need("networkx", "to_networkx()", "llama-index-pgrag[networkx]")
    found = networkx.Graph()
    for record in graph.chunks.records:
        found.add_node(record.id, kind="chunk", text=texts.get(record.id, ""), document=record.ref_doc_id or "")
    for topic_id, mind_map in sorted(graph.maps.items(), key=lambda item: item[1].key):
        found.add_node(topic_id, kind="topic", text=mind_map.topic)
        for route_id, path in mind_map.routes.items():
            found.add_node(route_id, kind="route", text=path_text(path))
        for fact in mind_map.facts:
            found.add_node(fact.id, kind="fact", text=fact.text)
            found.add_edge(fact.id, fact.node_id, kind="source", weight=1.0)
            for above, below in pairwise(cell for _, cell in mind_map.cells(fact)):
                found.add_edge(above, below, kind="cell", weight=1.0)
    for kind, super_nodes in (("topic", graph.super_topics), ("fact", graph.super_facts)):
        for members in super_nodes.nodes():
            name = f"super-{kind}-{members[0]}"
            found.add_node(name, kind=f"super-{kind}", text=found.nodes[members[0]]["text"])
            found.add_edges_from(((name, member) for member in members), kind="same", weight=1.0)
    return found
