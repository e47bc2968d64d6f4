"""The plan of each report: its sources and its key.

The lines of a community are its report, verbatim, if they fit into `report_tokens`: on the recorded run 94 of 122
reports are longer than their statements. With `verbatim=False`, as published, this holds only for communities of one
entity, which the published pipeline leaves out. Any other community has a report made from its lines. If these do not
fit into `context_tokens` either, the reports of its largest children replace their lines, as many as are needed. The
least important lines that still do not fit are left out and counted.

The key of a report is the hash of all its sources: entities, statements, the keys of the children used, the maker and
the budgets. Equal keys are equal reports, so a report is written once, and a delete changes every key above the
document. Keys do not depend on ids of nodes.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby, islice
from operator import attrgetter

from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.config import GraphRAGConfig
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement import Statement, bare, digest
from llama_index.graphrag.graph.statement_graph import StatementGraph
from llama_index.graphrag.reports.lines import ReportLine, covering_lines, fitting, grouped, ranked_lines, salience
from llama_index.graphrag.reports.report import Finding, Report, ReportForm
from llama_index.ragkit.text.characters import normalise

__all__ = ["Planner", "ReportPlan", "numbered_sources", "unwritten"]

_TITLE_NAMES = 3


@dataclass(frozen=True)
class ReportPlan:
    """The sources of the report of a community."""

    community: int
    key: str  # hash of the sources and of the maker
    verbatim: bool  # whether the lines are the report of the community
    # the lines that the writer reads, by importance, without those inside a child whose report is read
    lines: tuple[ReportLine, ...]
    children: tuple["ReportPlan", ...]  # the children whose reports are read before the lines, largest first
    left_out: int  # number of lines that did not fit
    nodes: tuple[str, ...]  # ids of all nodes that state something inside the community, in the order of the lines
    tokens: int  # tokens of the lines and of the children's reports


@dataclass
class Planner:
    """Plans the reports of a hierarchy, each when it is needed.

    `maker` is everything besides the budgets that decides how reports are made: prompt, model, language.
    """

    graph: StatementGraph
    entities: EntityGraph
    hierarchy: Hierarchy
    config: GraphRAGConfig
    maker: str
    count: Callable[[str], int]
    _costs: dict[str, int] = field(default_factory=dict, init=False, repr=False)
    _lines: dict[int, tuple[ReportLine, ...]] = field(default_factory=dict, init=False, repr=False)
    _plans: dict[int, ReportPlan] = field(default_factory=dict, init=False, repr=False)

    def names(self, community: int) -> list[str]:
        """The keys of the entities of a community, sorted."""
        return [self.entities.names[row] for row in self.hierarchy.members(community)]

    def lines(self, community: int) -> tuple[ReportLine, ...]:
        """All lines of a community, by importance, without statements that are only a name."""
        if community not in self._lines:
            statements = self.graph.statements_in(self.names(community))
            self._lines[community] = tuple(ranked_lines(s for s in statements if not _is_name(s)))
        return self._lines[community]

    def plan(self, community: int) -> ReportPlan:
        """The plan of a community's report."""
        if community not in self._plans:
            self._plans[community] = self._made(community)
        return self._plans[community]

    def forget(self, communities: Iterable[int]) -> None:
        """Drop the plans of communities; they are made again when needed."""
        for community in communities:
            self._lines.pop(community, None)
            self._plans.pop(community, None)

    def title(self, community: int) -> str:
        """The names of the most salient entities of a community.

        A name that begins in lower case, such as a quotation, is part of the title only if there is no other.
        """
        ranked = list(salience(self.lines(community)) or self.names(community))
        nodes = frozenset(self.plan(community).nodes) or None  # nothing is said about its entities: any chunk
        named = (self.graph.name_of(key, nodes) for key in ranked)
        best = list(islice((name for name in named if not name[:1].islower()), _TITLE_NAMES))
        return ", ".join(best or [self.graph.name_of(key, nodes) for key in ranked[:_TITLE_NAMES]])

    def states(self, community: int) -> bool:
        """Whether a community has statements."""
        return bool(self.plan(community).nodes)

    def report(self, community: int) -> Report:
        """The report of a community, made without a model: its statements, or those that best cover its entities."""
        plan, lines = self.plan(community), self.lines(community)
        chosen = lines if plan.verbatim else covering_lines(lines, self.config.report_tokens, self.count)
        findings = tuple(Finding(line.text, line.nodes) for line in grouped(chosen))
        form: ReportForm = "statements" if plan.verbatim else "extract"
        return Report(plan.key, self.title(community), "", findings, form, left_out=len(lines) - len(chosen))

    def _made(self, community: int) -> ReportPlan:
        everything = self.lines(community)
        tokens = self._tokens(everything)
        children: list[ReportPlan] = []
        lines, left_out = list(everything), 0
        if tokens > self.config.context_tokens:
            children = self._children_read(community, tokens)
            child_of = {name: child.community for child in children for name in self.names(child.community)}
            lines = [line for line in everything if not _inside(line, child_of)]
            room = self.config.context_tokens - sum(self.size(child) for child in children)
            lines, left_out = fitting(lines, room, self._cost)
        fits = tokens <= self.config.report_tokens
        verbatim = fits and (self.config.verbatim or not everything or len(self.names(community)) == 1)
        statements = sorted(statement for line in everything for statement in line.statements)
        key = digest(
            self.names(community),
            statements,
            [child.key for child in children],
            verbatim,
            self.maker,
            self.config.report_tokens,
            self.config.context_tokens,
        )
        nodes = tuple(dict.fromkeys(node for line in everything for node in line.nodes))
        size = self._tokens(lines) + sum(self.size(child) for child in children)
        return ReportPlan(community, key, verbatim, tuple(lines), tuple(children), left_out, nodes, size)

    def _children_read(self, community: int, tokens: int) -> list[ReportPlan]:
        """The children whose reports are read: the largest, until the remaining lines fit."""
        plans = [self.plan(int(child)) for child in self.hierarchy.children(community)]
        sizes = {plan.community: self._tokens(self.lines(plan.community)) for plan in plans}
        read: list[ReportPlan] = []
        for plan in sorted(plans, key=lambda plan: (-sizes[plan.community], plan.community)):
            if tokens <= self.config.context_tokens or sizes[plan.community] <= self.size(plan):
                break
            tokens += self.size(plan) - sizes[plan.community]
            read.append(plan)
        return read

    def size(self, plan: ReportPlan) -> int:
        """Upper bound of the tokens of a report."""
        return plan.tokens if plan.verbatim else self.config.report_tokens

    def _tokens(self, lines: Iterable[ReportLine]) -> int:
        return sum(self._cost(line.text) + 1 for line in lines)

    def _cost(self, text: str) -> int:
        if text not in self._costs:
            self._costs[text] = self.count(text)
        return self._costs[text]


def _is_name(statement: Statement) -> bool:
    """Whether a statement is only the name of its entity."""
    (key, *others) = statement.entities
    return not others and len(statement.text) <= 2 * len(key) + 20 and normalise(statement.text) == bare(key)


def _inside(line: ReportLine, child_of: Mapping[str, int]) -> bool:
    """Whether all entities of a line are in one child."""
    children = {child_of.get(entity) for entity in line.entities}
    return len(children) == 1 and None not in children


def numbered_sources(plan: ReportPlan, reports: Mapping[str, Report]) -> tuple[list[str], dict[int, tuple[str, ...]]]:
    """The lines that the writer of a report sees, and the nodes for each number in them.

    Each line is preceded by its number: the findings of the children's reports under their titles, then the lines of
    the community, claims under a separate title.
    """
    shown: list[str] = []
    sources: dict[int, tuple[str, ...]] = {}

    def show(text: str, nodes: tuple[str, ...]) -> None:
        sources[len(sources) + 1] = nodes
        shown.append(f"[{len(sources)}] {text}")

    for child in plan.children:
        shown.append(reports[child.key].title)
        for finding in reports[child.key].findings:
            show(*finding)
    for is_claim, lines in groupby(grouped(plan.lines), attrgetter("is_claim")):
        if is_claim:
            shown.append("Claims:")
        for line in lines:
            show(line.text, line.nodes)
    return shown, sources


def unwritten(plans: Iterable[ReportPlan], written: Container[str]) -> list[ReportPlan]:
    """The plans of reports that must be written for some communities, each once, children before their parents."""
    found: dict[str, ReportPlan] = {}

    def visit(plan: ReportPlan) -> None:
        if plan.key not in found and plan.key not in written:
            for child in plan.children:
                visit(child)
            if not plan.verbatim:
                found[plan.key] = plan

    for plan in plans:
        visit(plan)
    return list(found.values())
