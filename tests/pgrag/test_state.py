"""The state after any writes is that of all nodes that are left."""

from hypothesis import given
from hypothesis import strategies as st

from llama_index.pgrag.state import PseudoGraph, fact_paths

PATHS = [("Lamp", "oil"), ("Lamp", "fuel", "oil"), ("Loom", "fuel", "oil"), ("Loom", "silk")]
some_nodes = st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from(range(4)), min_size=1), max_size=6)


def facts_of(nodes):
    """Two nodes each are of one document, and each node has facts of one topic."""
    found = {}
    for node_id, places in nodes.items():
        paths = [PATHS[place] for place in sorted(places)]
        own = [path for path in paths if path[0] == paths[0][0]]
        found[node_id] = fact_paths(node_id, {"a": "x", "b": "x"}.get(node_id), f"key of {node_id}", own)
    return found


def cells(graph):
    """The ids of cells by kind."""
    routes = {route_id for found in graph.maps.values() for route_id in found.routes}
    return {"topics": set(graph.maps), "routes": routes, "facts": set(graph.map_of)}


@given(st.lists(some_nodes, min_size=1, max_size=4))
def test_maps_follow_every_change(states):
    graph, before = PseudoGraph(), {}
    for nodes in states:
        facts = facts_of(nodes)
        was = graph
        graph, dropped = graph.changed(
            {i: own for i, own in facts.items() if before.get(i) != own}, sorted(before.keys() - facts.keys())
        )
        before = facts
        ids = {kind: cells(was)[kind] - cells(graph)[kind] for kind in dropped}
        assert {kind: set(gone) for kind, gone in dropped.items()} == ids
    at_once = PseudoGraph.of(before)
    assert (graph.maps, graph.map_of, graph.of_node) == (at_once.maps, at_once.map_of, at_once.of_node)
    assert graph.names.now.nodes == at_once.names.now.nodes
