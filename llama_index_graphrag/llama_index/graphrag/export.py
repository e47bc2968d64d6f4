"""Export of entities, relations and communities to networkx."""

from collections.abc import Mapping
from typing import Any

from llama_index.graphrag.state import GraphView
from llama_index.ragkit import Snapshot
from llama_index.ragkit.extras import need

__all__ = ["to_networkx"]


def to_networkx(view: GraphView, chunks: Snapshot, texts: Mapping[str, str]) -> Any:
    """Chunks, entities and communities, with the edges between them; see :meth:`GraphRAGIndex.to_networkx`.

    Parameters
    ----------
    texts : the text of every chunk that has one
    """
    networkx = need("networkx", "to_networkx()", "llama-index-graphrag[networkx]")
    found = networkx.Graph()
    for record in chunks.records:
        found.add_node(record.id, kind="chunk", text=texts.get(record.id, ""), document=record.ref_doc_id or "")
    graph, entities, hierarchy = view.graph, view.entities, view.hierarchy
    names = [("entity", key) for key in entities.names]
    for name, key in zip(names, entities.names, strict=True):
        found.add_node(name, kind="entity", text=graph.name_of(key), type=graph.type_of(key))
        found.add_edges_from(((name, chunk) for chunk in graph.entities[key]), kind="mention", weight=1)
    for row, name in enumerate(names):
        for place in range(entities.indptr[row], entities.indptr[row + 1]):
            other = int(entities.indices[place])
            if row < other:
                found.add_edge(name, names[other], kind="relation", weight=int(entities.weights[place]))
    inner = set(hierarchy.parent.tolist())
    for community, (parent, level) in enumerate(zip(hierarchy.parent.tolist(), hierarchy.level.tolist(), strict=True)):
        own = ("community", community)
        found.add_node(own, kind="community", text=view.planner.title(community), level=level)
        if parent >= 0:
            found.add_edge(own, ("community", parent), kind="part", weight=1)
        if community not in inner:
            members = (names[row] for row in hierarchy.members(community).tolist())
            found.add_edges_from(((member, own) for member in members), kind="member", weight=1)
    return found
