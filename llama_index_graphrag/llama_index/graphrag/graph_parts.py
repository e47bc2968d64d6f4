"""`GraphParts`: the part of a graph that one question needs, read from its rows if no state in memory has it all."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from llama_index.core.schema import NodeWithScore, TextNode
from numpy.typing import NDArray

from llama_index.graphrag.community_rows import CommunitiesGoneError, CommunityRows
from llama_index.graphrag.community_view import CommunityView
from llama_index.graphrag.config import PublishedOptions, SearchConfig
from llama_index.graphrag.found import GraphRAGFound, Similarities, report_node, similarities
from llama_index.graphrag.graph.entity_graph import GraphArrays, entity_graph
from llama_index.graphrag.graph.resolution import judged_same, visible_pairs
from llama_index.graphrag.graph.statement import bare
from llama_index.graphrag.graph.statement_edges import chunk_number
from llama_index.graphrag.graph.statement_graph import statement_graph
from llama_index.graphrag.reports.report import Report
from llama_index.graphrag.resolvers import EntityMerging
from llama_index.graphrag.search.linking import (
    COMPARED,
    Link,
    activations,
    chunk_shares,
    linked_entities,
    links_of,
    nearest_chunks,
    nearest_names,
)
from llama_index.graphrag.search.question_graph import QuestionGraph, entities_around, naming_of, read_around_entities
from llama_index.graphrag.state import NEAREST, GraphRAGState, GraphView, WrittenReport, name_id, names_of
from llama_index.graphrag.statement_rows import StatementRows, graph_of
from llama_index.ragkit import LastQuery, Query, Selection, Snapshot, Steps, offload
from llama_index.ragkit.index.contents import ViewContents
from llama_index.ragkit.index.matching import match_nodes
from llama_index.ragkit.steps import run_steps
from llama_index.ragkit.storage.graph.interface import GraphReader
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.stored_chunks import ChunkView

__all__ = ["ENTITIES", "GraphParts"]

ENTITIES = "entities"
"""The space of the vectors of names."""

_CHUNKS = 100  # chunks with the largest shares to score; the shares of others are too small for the best of the sum
_RANKED = 1000  # chunks among which given nodes are ranked; later ranks have next to no weight
_DRAWN = 200  # chunks on a page

Ints = NDArray[np.int64]


class GraphParts:
    """Reads the data that questions need; reads nothing if a state has the whole index, or all chunks that count."""

    def __init__(
        self, storage: IndexStorage, rows: StatementRows, communities: CommunityRows, merging: EntityMerging | None
    ) -> None:
        self._storage = storage
        self._rows = rows
        self._communities = communities
        self._merging = merging

    # -- chunks -------------------------------------------------------------------------------------

    def near_to(self, query: Query[GraphRAGState], vector: NDArray[np.float32]) -> Steps[Query[GraphRAGState]]:
        """The question with the chunks near to another vector."""
        contents = query.contents
        if not query.state.is_part or not isinstance(contents, ViewContents) or vector is (yield from query.vector()):
            return query
        near = yield from contents.stored.view(query.text, vector, max(NEAREST, query.wanted), contents.selection)
        return _over(query, near)

    def described(self, state: GraphRAGState, ids: Iterable[str]) -> Steps[Snapshot]:
        """A snapshot with the rows of chunks; its vectors are placeholders."""
        return (yield from self._storage.space().described(ids)) if state.is_part else state.chunks

    def all_of(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """The state that an index of only the chunks of a part would have."""
        ids = state.chunks.ids
        stated = yield from self._rows.of(ids)
        gone = {i for each in stated.values() for s in each.chunk.all_statements for i in s.merged_from} - stated.keys()
        chunks = [each.chunk.without_merged(gone) for each in stated.values()]
        same: Mapping[str, frozenset[tuple[str, str]]] = {}
        if self._merging is not None:
            documents = {chunk.document for chunk in chunks}
            same = judged_same((yield from self._merging.of(documents)))
            members = yield from self._rows.members(documents)
            hidden = yield from self._rows.of({i for given in members.values() for i in given} - stated.keys())
            same = visible_pairs(same, (each.chunk for each in hidden.values()))
        graph = yield from offload(statement_graph, chunks, same)
        entities = Snapshot.empty()
        if state.everything.config.entity_vectors:
            entities = yield from self._storage.space(ENTITIES).fetch(map(name_id, sorted(names_of(graph))))
        whole = yield from self._rows.are_all(chunks)
        view = replace(state.everything, graph=graph, whole=whole)
        has_reports = self._storage.struct.counters.get("reports", 0) > 0
        reports = (yield from self._communities.reports_on(ids)) if has_reports else {}
        return GraphRAGState(state.chunks, entities, view, reports)

    def everything(self, state: GraphRAGState) -> Steps[GraphRAGState]:
        """The whole index without vectors; it is in memory meanwhile."""
        if not state.is_part:
            return state
        view = replace(state.everything, graph=(yield from self._rows.everything()), whole=True)
        chunks = yield from self._storage.space().described()
        return GraphRAGState(chunks, Snapshot.empty(), view, (yield from self._communities.all_reports()))

    # -- a local search -----------------------------------------------------------------------------

    def around(
        self,
        query: Query[GraphRAGState],
        near: Similarities,
        text: str,
        vector: NDArray[np.float32],
        options: SearchConfig,
    ) -> Steps[tuple[Similarities, GraphView]]:
        """The graph around the entities that a question or a follow-up leads to, and the nearness of their chunks, too.

        It is read in a few rounds of one or two statements:

        1. The names in the question, and the entities of the chunks near to it.
        2. The neighbours of these entities, at most the 4,096 most active. A neighbour that more than 512 chunks name
           counts only in chunks that others find.
        3. The hundred chunks with the largest shares among all that name an active entity, besides those near to the
           question.
        """
        contents = query.contents
        if not query.state.is_part or not isinstance(contents, ViewContents):
            return near, (yield from offload(query.state.view, query.allowed))
        entities = Snapshot.empty()
        if options.entities_top_k:
            wanted = max(COMPARED, options.entities_top_k)
            entities = yield from self._storage.space(ENTITIES).near(vector[None], wanted)
        near_names = yield from offload(nearest_names, entities, vector, options)
        seeds = yield from offload(nearest_chunks, near.state.chunks, near.scores, options)
        ids, selection = near.state.chunks.ids, contents.selection

        def read() -> tuple[GraphArrays, dict[str, tuple[str, ...]], list[str]]:
            with self._rows.graph.reader() as reader:
                graph = self._question_graph(reader, selection)
                names = graph.read_names(text, ids, [bare(name) for name, _ in near_names])
                entities_of = graph.read_entities_of([chunk for _, chunk in seeds])
                links = links_of(text, names, near_names, seeds, entities_of, options)
                most = max(_CHUNKS, query.wanted)
                arrays, chunks = _arrays_around(graph, links, ids, options.published.spread, most)
                return arrays, names, chunks

        arrays, names, chunks = yield from offload(read)
        extended = yield from contents.stored.including(contents.near, query.text, chunks, selection)
        over = _over(query, extended, entities)
        near = yield from similarities(over, options.lexical_weight, vector)
        return near, replace(query.state.everything).over(arrays, names)

    def _question_graph(self, reader: GraphReader, selection: Selection) -> QuestionGraph:
        return QuestionGraph(reader, None if selection.is_whole else partial(self._allowed, reader, selection))

    def _allowed(self, reader: GraphReader, selection: Selection, numbers: Ints) -> NDArray[np.bool_]:
        """Which chunks may be returned, by the numbers of their nodes."""
        ids = reader.fetch(numbers).labels
        shown = run_steps(self._storage.space().described(filter(None, ids), selection)).ids
        numbered = np.array([chunk_number(node_id) for node_id in shown], np.int64)
        found: NDArray[np.bool_] = np.isin(numbers, numbered)
        return found

    def stating(self, found: GraphRAGFound, chunks: Iterable[str]) -> Steps[GraphRAGFound]:
        """The result, with the statements of some chunks."""
        if not found.links or found.near is None or not found.near.state.is_part:
            return found
        graph = graph_of((yield from self._rows.of(chunks)).values())
        return replace(found, view=replace(found.view, graph=graph).over(found.view.arrays, found.view.names))

    def drawn(self, state: GraphRAGState, query: LastQuery) -> Steps[tuple[GraphRAGState, LastQuery]]:
        """The state and the question that the page shows; for a part, only the chunks of the answer, and the question
        over these.

        The communities are those of these chunks, since the communities of a report may have very many chunks.
        """
        if not state.is_part:
            return state, query
        found: GraphRAGFound = query.found
        sources = {name: [child.node_id for child in node.child_nodes or ()] for name, node in found.derived.items()}
        chunks = dict.fromkeys(chunk for node_id, _ in query.answer for chunk in sources.get(node_id, [node_id]))
        stated = yield from self._rows.of(list(chunks)[:_DRAWN])
        view = replace(state.everything, graph=graph_of(stated.values()))
        rows = yield from self._storage.space().described(stated)
        links = [link for link in found.links if link.entity in view.graph.entities]
        shown = GraphRAGState(rows, Snapshot.empty(), view)
        return shown, replace(query, found=replace(found, view=view, links=links, cut=None))

    # -- communities --------------------------------------------------------------------------------

    def communities(self, state: GraphRAGState, allowed: NDArray[np.bool_] | None) -> Steps[GraphView]:
        """The graph of the allowed chunks with its communities, or, for a part, the communities as last found.

        If something was deleted since, it raises :class:`CommunitiesGoneError`, as does :meth:`context`.
        """
        if not state.is_part:
            return (yield from offload(state.view, allowed))
        return (yield from self._found(state))

    def _found(self, state: GraphRAGState) -> Steps[CommunityView]:
        current = yield from self._communities.current()
        if current is None or current["gone"]:
            raise CommunitiesGoneError("Something was deleted since the communities were found.")
        view = state.everything
        return CommunityView(
            view.graph,
            view.clustering,
            view.config,
            view.maker,
            current["by_model"],
            table=(yield from self._communities.table(current)),
            communities=self._communities,
            rows=self._rows,
            identity=current["id"],
            sizes=(yield from self._communities.sizes()),
        )

    def context(self, state: GraphRAGState, view: GraphView, keys: Sequence[str]) -> Steps[GraphView]:
        """All statements about some entities of a view, and the communities."""
        if not state.is_part:
            return view
        communities = yield from self._found(state)

        def read() -> tuple[list[str], dict[str, int]]:
            with self._rows.graph.reader() as reader:
                return read_around_entities(QuestionGraph(reader), keys)

        chunks, degrees = yield from offload(read)
        graph = graph_of((yield from self._rows.of(chunks)).values())
        found = entity_graph(graph)
        ends = np.array([degrees.get(name, 0) for name in found.names], np.int64)
        entities = replace(found, sums=found.strengths, ends=ends)
        return replace(communities, graph=graph, known_entities=entities)

    def report_nodes(
        self, state: GraphRAGState, view: GraphView, reports: Mapping[int, Report]
    ) -> Steps[dict[int, TextNode]]:
        """The reports of communities as nodes, without empty ones."""
        saying = {community: report for community, report in reports.items() if report.findings}
        sources = dict.fromkeys(node for report in saying.values() for node in report.nodes)
        chunks = yield from self.described(state, sources)
        metadata = {node: chunks.metadata_of(node) for node in sources}
        return {
            community: report_node(int(view.hierarchy.level[community]), report, [metadata[n] for n in report.nodes])
            for community, report in saying.items()
        }

    def still_there(
        self, state: GraphRAGState, view: GraphView, written: Mapping[str, WrittenReport]
    ) -> Steps[Mapping[str, WrittenReport]]:
        """The reports of a view whose chunks have not changed."""
        if isinstance(view, CommunityView):
            current = yield from self._communities.current()
            return written if current is not None and not current["gone"] and current["id"] == view.identity else {}
        now, then = state.graph.chunks, view.graph.chunks
        if state.is_part:
            stated = yield from self._rows.of({node_id for report in written.values() for node_id in report.nodes})
            now = {node_id: each.chunk for node_id, each in stated.items()}
        return {
            key: report
            for key, report in written.items()
            if all(node_id in now and now[node_id] == then.get(node_id) for node_id in report.nodes)
        }

    # -- nodes of any retriever ---------------------------------------------------------------------

    def ranked(
        self, state: GraphRAGState, nodes: Sequence[NodeWithScore], question: str, selection: Selection
    ) -> Steps[tuple[list[str | None], list[str], set[str]]]:
        """Ranks chunks by the entities of a question and of given nodes.

        Returns the id of each node in the index, None if it has none; chunks, best first, for a part only the best of
        those that are not among the nodes; and the nodes that count.
        """
        chunks = state.chunks
        if state.is_part:  # the rows of the nodes and of the chunks that they copy, and perhaps others
            chunks = yield from self._storage.rows_matching([each.node for each in nodes])
        matched = match_nodes(nodes, chunks)
        allowed = selection.allowed(chunks)
        passing = {name for name in matched if name is not None and (allowed is None or allowed[chunks.row_of(name)])}
        among = list(dict.fromkeys(name for name in matched if name in passing))
        view: GraphView | None = None if state.is_part else (yield from offload(state.view, allowed))
        spread = PublishedOptions().spread

        def shares() -> Mapping[str, float]:
            if view is not None:
                links = _links(among, view.names, view.entities_in(among), question)
                return view.shares(activations(view.entities, links, spread))
            with self._rows.graph.reader() as reader:
                graph = self._question_graph(reader, selection)
                names = graph.read_names(question, among)
                links = _links(among, names, graph.read_entities_of(among), question)
                arrays, _ = _arrays_around(graph, links, among, spread, _RANKED)
            return chunk_shares(arrays.naming, activations(arrays.entities, links, spread))

        found = dict((yield from offload(shares)))
        rows = yield from self.described(state, found)
        ranked = sorted(found, key=lambda node_id: (-found[node_id], rows.record_of(node_id).key, node_id))
        return matched, ranked, passing


def _over(query: Query[GraphRAGState], near: ChunkView, entities: Snapshot | None = None) -> Query[GraphRAGState]:
    """The question over other chunks, and, if given, other names."""
    contents: Any = query.contents
    state = replace(query.state, chunks=near.rows, entities=query.state.entities if entities is None else entities)
    return query.over(replace(contents, state=state, near=near))


def _links(
    ids: Sequence[str], names: Mapping[str, Sequence[str]], entities_of: Mapping[str, Sequence[str]], question: str
) -> list[Link]:
    """The entities of ranked chunks, and those of a question."""
    weights: dict[str, float] = {}
    for rank, node_id in enumerate(ids, start=1):
        keys = entities_of.get(node_id, ())
        for key in keys:
            weights[key] = weights.get(key, 0.0) + 1 / (rank * len(keys))
    for link in linked_entities(question, names):
        weights[link.entity] = weights.get(link.entity, 0.0) + link.weight
    return [Link(key, "chunk", "", weights[key]) for key in sorted(weights)]


def _arrays_around(
    graph: QuestionGraph, links: Sequence[Link], near: Iterable[str], spread: float, most: int
) -> tuple[GraphArrays, list[str]]:
    """The part of a graph around linked entities, which were read, and its best chunks.

    It has the chunks in `near`, which were read too, and at most `most` others.
    """
    entities = entities_around(graph, links, graph.read_neighbours(links, spread))
    found = graph.best_chunks(activations(entities, links, spread), most)
    return GraphArrays(entities, naming_of(graph, entities, [*near, *found]), {}), found
