"""`CommunityView`: the communities of an index served from stores, as a question reads them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.community_rows import CommunityRows, CommunityTable, read_lines
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement_edges import chunk_number, entity_number
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.reports.planning import Planner, ReportPlan
from llama_index.graphrag.reports.report import Report
from llama_index.graphrag.search.question_graph import QuestionGraph
from llama_index.graphrag.state import GraphView, WrittenReport
from llama_index.graphrag.statement_rows import StatementRows
from llama_index.ragkit import Steps
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.tokens import count_tokens

__all__ = ["CommunityView", "ReadPlanner"]

_NO_PLAN: Record = {"children": ()}


class ReadPlanner(Planner):
    """The plans of communities in stores; for a community that was not read, only the data in the table."""

    def __init__(self, table: CommunityTable, config: GraphRAGConfig, maker: str) -> None:
        nothing = EntityGraph.of((), (), ())
        super().__init__(StatementGraph(), nothing, table.hierarchy, config, maker, count_tokens)
        self._table = table
        self._read: dict[int, Report] = {}

    def take(self, texts: Mapping[int, Record]) -> None:
        """Add the records of communities, children before the plans that read them."""
        for community, record in sorted(texts.items(), reverse=True):
            self._read[community] = Report.from_record(record["report"])
            plan = record.get("plan")
            if plan is not None:
                self._plans[community] = ReportPlan(
                    community,
                    self._table.keys[community],
                    False,
                    read_lines(plan),
                    tuple(self.plan(child) for child in plan["children"]),
                    plan["left_out"],
                    tuple(plan["nodes"]),
                    int(self._table.tokens[community]),
                )

    def lacking(self, communities: Iterable[int]) -> list[int]:
        """The communities that were not read yet, out of some."""
        return [community for community in dict.fromkeys(communities) if community not in self._read]

    def plan(self, community: int) -> ReportPlan:
        """The plan of a community's report, without lines and nodes unless it was read and is long."""
        if community in self._plans:
            return self._plans[community]
        verbatim, tokens = self._table.is_verbatim(community), int(self._table.tokens[community])
        return ReportPlan(community, self._table.keys[community], verbatim, (), (), 0, (), tokens)

    def states(self, community: int) -> bool:
        """Whether a community has statements."""
        return self._table.states(community)

    def title(self, community: int) -> str:
        """The names of the most salient entities of a community that was read."""
        return self._read[community].title

    def report(self, community: int) -> Report:
        """The report of a community that was read, made without a model."""
        return self._read[community]


@dataclass(frozen=True, eq=False)
class CommunityView(GraphView):
    """Communities in stores.

    `sizes` are the tokens of each written report, by its key, and `known_entities` the entities around a question, if
    it reads statements about them.
    """

    table: CommunityTable = field(kw_only=True)
    communities: CommunityRows = field(kw_only=True)
    rows: StatementRows = field(kw_only=True)
    identity: str = field(kw_only=True)
    sizes: Mapping[str, int] = field(kw_only=True)
    known_entities: EntityGraph = field(default_factory=lambda: EntityGraph.of((), (), ()), kw_only=True)
    _written: dict[str, WrittenReport] = field(default_factory=dict, kw_only=True)

    @cached_property
    def entities(self) -> EntityGraph:
        """The entities around a question."""
        return self.known_entities

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """The communities."""
        return self.table.hierarchy

    @cached_property
    def planner(self) -> ReadPlanner:
        """The plans of the reports."""
        return ReadPlanner(self.table, self.config, self.maker)

    def load(self, communities: Iterable[int]) -> Steps[None]:
        """Read the plans of the reports of communities, or the written reports."""
        planner = self.planner
        found: dict[int, Record] = {}
        todo = planner.lacking(communities)
        while todo:  # the reports of children may be read before the lines
            new = yield from self.communities.texts(todo)
            found |= new
            children = {child for record in new.values() for child in record.get("plan", _NO_PLAN)["children"]}
            todo = [child for child in planner.lacking(sorted(children)) if child not in found]
        planner.take(found)
        keys = {planner.plan(community).key for community in found}
        self._written.update((yield from self.communities.reports(sorted(keys & self.sizes.keys()))))

    def places(self, keys: Iterable[str]) -> list[int]:
        """The places of the entities that are in a community."""
        return self.table.places(map(entity_number, keys))

    def places_of(self, chunks: Sequence[str]) -> dict[str, list[int]]:
        """The places of the entities of chunks."""
        with self.rows.graph.reader() as reader:
            graph = QuestionGraph(reader)
            graph.read(map(chunk_number, chunks))
            return {chunk: self.table.places(graph.entities(chunk_number(chunk))) for chunk in chunks}

    def has(self, node_id: str) -> bool:
        """Whether a chunk that a report names exists: always, since deleting a chunk deletes the reports on it."""
        return True

    def written(self, reports: Mapping[str, WrittenReport], plan: ReportPlan) -> WrittenReport | None:
        """The written report of a plan."""
        return reports.get(plan.key) or self._written.get(plan.key)

    def known(self, reports: Mapping[str, WrittenReport]) -> set[str]:
        """The keys of all written reports."""
        return {*reports, *self.sizes}

    def size(self, reports: Mapping[str, WrittenReport], plan: ReportPlan) -> int:
        """Tokens of a report: its size if it is written, else an upper bound."""
        return self.sizes.get(plan.key) or super().size(reports, plan)
