"""What the page shows of an index that is served from stores: the graph of the chunks that the last answer rests on."""

from dataclasses import replace

from llama_index.graphrag.state import GraphRAGState, GraphView, GraphViews
from llama_index.graphrag.statement_rows import StatementRows, graph_of
from llama_index.ragkit import LastQuery, Snapshot, Steps, StoredChunks

__all__ = ["drawn"]

_MOST = 200  # chunks


def drawn(query: LastQuery, rows: StatementRows, stored: StoredChunks) -> Steps[tuple[GraphRAGState, LastQuery]]:
    """A state of the chunks of an answer and of nothing else, and the query as one to it.

    The communities are those of these chunks, since the ones that a report was about may have very many.

    Parameters
    ----------
    stored : all chunks
    """
    found = query.found
    sources = {name: [child.node_id for child in node.child_nodes or ()] for name, node in found.derived.items()}
    chunks = dict.fromkeys(chunk for node_id, _ in query.answer for chunk in sources.get(node_id, [node_id]))
    stated = yield from rows.of(list(chunks)[:_MOST])
    graph = graph_of(stated.values())
    asked: GraphView = found.view
    view = GraphView(graph, asked.clustering, asked.config, asked.maker, whole=False)
    state = GraphRAGState((yield from stored.space.described(stated)), Snapshot.empty(), GraphViews(view))
    links = [link for link in found.links if link.entity in graph.entities]
    return state, replace(query, found=replace(found, view=view, links=links, cut=None))
