"""The immutable state that a query reads: chunks, names, statements, reports, and the graph that a query may see."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.clustering.hierarchy import Clustering, Hierarchy, clustered
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.entity_graph import EntityGraph, GraphArrays
from llama_index.graphrag.graph.resolution import Judgement, visible_pairs
from llama_index.graphrag.graph.sorted_rows import RowValues
from llama_index.graphrag.graph.statement import scope_of, scoped
from llama_index.graphrag.graph.statement_graph import StatementGraph, Touched, statement_graph
from llama_index.graphrag.reports.planning import Planner, ReportPlan
from llama_index.graphrag.reports.report import Report
from llama_index.graphrag.search.linking import KnownEntities, chunk_shares, known_names
from llama_index.ragkit import Snapshot, content_id
from llama_index.ragkit.masks import RecentMasks
from llama_index.ragkit.steps import immediate
from llama_index.ragkit.text.tokens import count_tokens
from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["NEAREST", "GraphRAGState", "GraphView", "WrittenReport", "name_id", "names_of"]

NEAREST = 200  # chunks by which communities are ranked; they certainly include the hundred nearest


def name_id(name: str) -> str:
    """The id of a name's row."""
    return content_id("entity", name)


def names_of(graph: StatementGraph) -> set[str]:
    """The normalised names that chunks state, each within its scope."""
    short = (scoped(scope_of(document), name) for document, forms in graph.short.items() for name in forms)
    return {*graph.entities, *short}


@dataclass(frozen=True)
class WrittenReport:
    """A report that a summarizer wrote, or that is made of statements because of an `error` of the summarizer.

    `nodes` are the ids of all nodes from which it was made, `cache_keys` the entries of the extraction cache that it
    uses, and `dropped` the numbers of citations of unknown statements, and of findings without sources.
    """

    report: Report
    nodes: tuple[str, ...]
    cache_keys: tuple[str, ...] = ()
    dropped: tuple[int, int] = (0, 0)
    error: str = ""

    @cached_property
    def tokens(self) -> int:
        """Tokens of the report."""
        return count_tokens(self.report.text)

    def record(self) -> dict[str, Any]:
        """The report as plain data, for storage; :meth:`from_record` reads it back."""
        return {
            "report": self.report.record(),
            "nodes": list(self.nodes),
            "cache_keys": list(self.cache_keys),
            "dropped": list(self.dropped),
            **({"error": self.error} if self.error else {}),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "WrittenReport":
        """Read what :meth:`record` gave."""
        citations, findings = record["dropped"]
        return cls(
            Report.from_record(record["report"]),
            tuple(record["nodes"]),
            tuple(record["cache_keys"]),
            (citations, findings),
            record.get("error", ""),
        )


@dataclass(frozen=True, eq=False)
class GraphView:
    """The graph of the chunks that a query may see, its communities and the plans of their reports."""

    graph: StatementGraph
    clustering: Clustering
    config: GraphRAGConfig
    maker: str
    whole: bool = True  # whether the chunks are all chunks of their scopes, so that the reports are those of the index
    # arrays of a graph before, and the changes of each write since then
    earlier: tuple[GraphArrays, tuple[Touched, ...]] | None = None

    @cached_property
    def arrays(self) -> GraphArrays:
        """The data that a search for chunks needs; after writes, those of an earlier graph with all of its changes."""
        if self.earlier is None:
            return GraphArrays.of(self.graph)
        arrays, changes = self.earlier
        found = arrays.updated(self.graph, Touched.of(changes))
        vars(self)["earlier"] = found, ()  # those before are not held any longer
        return found

    def following(self, earlier: "GraphView", touched: Touched) -> "GraphView":
        """This view; its arrays come from an earlier view and the changes since then, once a question needs them."""
        if "arrays" in vars(earlier):
            return replace(self, earlier=(earlier.arrays, (touched,)))
        if earlier.earlier is None:
            return self
        arrays, changes = earlier.earlier
        return replace(self, earlier=(arrays, (*changes, touched)))

    def without_earlier(self) -> "GraphView":
        """This view with arrays that are up to date, if it has any, so that it holds no removed name."""
        return self if self.earlier is None else self.over(self.arrays)

    def over(self, arrays: GraphArrays, names: Mapping[str, tuple[str, ...]] | None = None) -> "GraphView":
        """This view with given arrays, and perhaps given :attr:`names`, such as those that were read for a question."""
        vars(self).update({"arrays": arrays} if names is None else {"arrays": arrays, "names": names})
        return self

    @property
    def entities(self) -> EntityGraph:
        """The entities and pairs as arrays."""
        return self.arrays.entities

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The communities."""
        return clustered(self.entities, self.clustering)

    @cached_property
    def planner(self) -> Planner:
        """The plans of the reports."""
        return Planner(self.graph, self.entities, self.hierarchy, self.config, self.maker, count_tokens)

    @cached_property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Normalised name -> the entities for which it may stand."""
        if self.config.partition_by is None:
            return KnownEntities(self.entities.position, self.arrays.short)
        return known_names(self.graph)

    def named_in(self, entities: Snapshot) -> Mask:
        """Which rows are names of the view, shape (number of names,); kept for the last snapshot that was asked for."""
        last: tuple[Snapshot | None, Mask] = vars(self).get("_named_in", (None, np.zeros(0, np.bool_)))
        mask = last[1]
        if last[0] is not entities:
            mask = np.zeros(len(entities), np.bool_)
            rows = entities.rows_of([name_id(name) for name in names_of(self.graph)])
            mask[rows[rows >= 0]] = True
            vars(self)["_named_in"] = entities, mask
        return mask

    def entities_in(self, chunks: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The entities that chunks name, sorted."""
        return self.arrays.naming.entities_in(chunks)

    def shares(self, active: RowValues) -> RowValues:
        """The share of each chunk in the activations of entities."""
        return chunk_shares(self.arrays.naming, active)

    def places(self, keys: Iterable[str]) -> list[int]:
        """The places of entities in the order of the hierarchy, of which communities are runs."""
        return [self.entities.position[key] for key in keys if key in self.entities.position]

    def places_of(self, chunks: Sequence[str]) -> dict[str, list[int]]:
        """The places of the entities of chunks."""
        entities = self.entities_in(chunks)
        return {chunk: self.places(entities.get(chunk, ())) for chunk in chunks}

    def has(self, node_id: str) -> bool:
        """Whether a chunk exists."""
        return node_id in self.graph.chunks

    @immediate
    def load(self, communities: Iterable[int]) -> None:
        """Read the plans of the reports of communities if they are not in memory."""
        return None

    def written(self, reports: Mapping[str, WrittenReport], plan: ReportPlan) -> WrittenReport | None:
        """The written report of a plan, if it rests only on chunks of the view."""
        found = reports.get(plan.key)
        return found if found is not None and self.graph.chunks.keys() >= set(found.nodes) else None

    def known(self, reports: Mapping[str, WrittenReport]) -> set[str]:
        """The keys of the written reports that rest only on chunks of the view."""
        return {key for key, written in reports.items() if self.graph.chunks.keys() >= set(written.nodes)}

    def size(self, reports: Mapping[str, WrittenReport], plan: ReportPlan) -> int:
        """Tokens of a report: its size if it is written, else an upper bound."""
        found = self.written(reports, plan)
        return self.planner.size(plan) if found is None else found.tokens

    def plans(self) -> list[ReportPlan]:
        """The plan of the report of every community."""
        return [self.planner.plan(community) for community in range(len(self.hierarchy))]

    def restricted(self, allowed: Set[str]) -> "GraphView":
        """The graph of only these chunks, made anew; unknown ids have no effect."""
        chunks = self.graph.chunks
        kept = sorted(chunks.keys() & allowed)
        gone = chunks.keys() - allowed
        same, documents = self.graph.same, self.graph.documents
        pairs = visible_pairs(same, (chunks[chunk] for document in same for chunk in documents[document] & gone))
        graph = statement_graph((chunks[node_id].without_merged(gone) for node_id in kept), pairs)
        sizes = Counter(chunk.scope for chunk in chunks.values())
        seen = Counter(chunk.scope for chunk in graph.chunks.values())
        whole = all(sizes[scope] == number for scope, number in seen.items())
        return replace(self, graph=graph, whole=whole, earlier=None)


@dataclass(frozen=True, eq=False)
class GraphRAGState:
    """Chunks, their names and their statements: the whole index, or the part that a question needs."""

    chunks: Snapshot  # vectors and keys of the chunks
    entities: Snapshot  # vectors of the names; the key of a row is the name within its scope
    everything: GraphView  # the graph of all chunks
    # key -> the report, for reports that a summarizer wrote
    reports: Mapping[str, WrittenReport] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)  # key -> why writing failed, since the index was opened
    # document -> the judgements of a resolver on the names in it
    judgements: Mapping[str, tuple[Judgement, ...]] = field(default_factory=dict)
    # whether the graph, the names, the reports and other chunks are only in the stores, from which a question reads the
    # part that it needs (`GraphParts`)
    is_part: bool = False
    _filtered: RecentMasks[GraphView] = field(default_factory=RecentMasks)  # the graphs of recent filtered queries

    def view(self, allowed: Mask | None) -> GraphView:
        """The graph of only the allowed chunks, as an index of these would have it; the mask is None for all."""
        if allowed is None or allowed.all():
            return self.everything
        ids = self.chunks.ids
        return self._filtered.of(
            allowed, lambda mask: self.everything.restricted({ids[row] for row in np.flatnonzero(mask).tolist()})
        )

    def rows_of(self, chunks: Sequence[str]) -> NDArray[np.int64]:
        """The rows of chunks, -1 for others; those of all chunks are looked up once."""
        if not self.is_part and chunks is self.everything.arrays.naming.chunks:
            return self._rows
        return np.asarray(self.chunks.rows_of(chunks), np.int64)

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        return np.asarray(self.chunks.rows_of(self.everything.arrays.naming.chunks), np.int64)

    @property
    def graph(self) -> StatementGraph:
        """The statements of all chunks."""
        return self.everything.graph

    def name_mask(self, view: GraphView) -> NDArray[np.bool_] | None:
        """A mask of the rows of `entities` that are names of a view, shape (number of names,); None for all."""
        return None if view is self.everything or self.is_part else view.named_in(self.entities)

    def report(self, view: GraphView, community: int) -> Report:
        """The report of a community, or its statements if it is not written."""
        written = view.written(self.reports, view.planner.plan(community))
        return view.planner.report(community) if written is None else written.report

    def ordered(self, ids: Iterable[str]) -> list[str]:
        """Chunks in canonical order."""
        return sorted(ids, key=lambda node_id: (self.chunks.record_of(node_id).key, node_id))
