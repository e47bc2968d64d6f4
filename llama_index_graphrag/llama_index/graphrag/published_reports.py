"""Reports of the command-line tool for the matching communities of an index.

A report is taken over for a community with the same entities if its sources are complete: its text units are in the
index, unchanged, and no other chunk states anything inside the community. Entities that only relations or claims name
do not count, since the tool has them in no community. A report rests on all text units of its entities, of their
relations and of the claims whose subjects they are, cited or not, so it is deleted with the first of these.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple

from llama_index.graphrag.published.run import PublishedReport, PublishedRow, PublishedRun, citations, without_citations
from llama_index.graphrag.reports.planning import ReportPlan
from llama_index.graphrag.reports.report import CheckedFindings, Report, rested
from llama_index.graphrag.state import GraphView, WrittenReport

__all__ = ["ImportedReports", "published_reports"]


class ImportedReports(NamedTuple):
    """Counts of an import of the reports of a run.

    Attributes
    ----------
    taken : reports that were taken over for a community
    needless : reports of communities that already have one, or whose statements are shorter than a report
    unmatched : reports without a community of the same entities and statements
    dropped_citations : citations, in the taken reports, of records from which these were not written
    dropped_findings : findings, in the taken reports, that cite nothing else
    """

    taken: int
    needless: int
    unmatched: int
    dropped_citations: int
    dropped_findings: int


def published_reports(
    run: PublishedRun, view: GraphView, present: Collection[str], known: Collection[str]
) -> tuple[dict[str, WrittenReport], ImportedReports]:
    """The reports of a run, by the keys of the matching communities, and what was counted.

    `present` are the text units that are nodes of the index, with the same text, `known` the reports that it has.
    """
    planner = view.planner
    named = {key for row in run.entities.values() for key in _keys(view, row)}
    dangling = {key for row in (*run.relations.values(), *run.claims.values()) for key in _keys(view, row)} - named
    by_entities: dict[frozenset[str], list[int]] = defaultdict(list)
    for community in range(len(view.hierarchy)):
        by_entities[frozenset(planner.names(community)) - dangling].append(community)
    touching: dict[str, list[int]] = defaultdict(list)
    for number, row in run.relations.items():
        for name in dict.fromkeys(row.names):
            touching[name].append(number)
    claims_of: dict[str, list[int]] = defaultdict(list)
    for number, row in run.claims.items():
        claims_of[row.names[0]].append(number)

    written: dict[str, WrittenReport] = {}
    taken = needless = 0
    for number in sorted(run.reports.keys() & run.communities.keys()):
        published = run.communities[number]
        keys = frozenset(key for i in published.entities for key in _keys(view, run.entities[i]))
        shown = {("entities", i): run.entities[i] for i in published.entities}
        shown |= {("relationships", i): run.relations[i] for name in published.names for i in touching[name]}
        shown |= {("claims", i): run.claims[i] for name in published.names for i in claims_of[name]}
        units = {unit for row in shown.values() for unit in row.units}
        plans = [planner.plan(ours) for ours in by_entities.get(keys, ())]
        plans = [plan for plan in plans if units.union(plan.nodes) <= set(present)]
        wanted = [plan for plan in plans if not plan.verbatim and plan.key not in known and plan.key not in written]
        needless += bool(plans and not wanted)
        checked = _checked(run.reports[number], shown)
        if wanted and checked.findings:
            taken += 1
            for plan in wanted:
                written[plan.key] = _written(plan, run.reports[number], checked, units)
    dropped = [sum(each.dropped[i] for each in written.values()) for i in (0, 1)]
    return written, ImportedReports(taken, needless, len(run.reports) - taken - needless, *dropped)


def _keys(view: GraphView, row: PublishedRow) -> set[str]:
    """The entities of a row, as the index resolves its names in the documents that state it."""
    documents = {view.graph.chunks[unit].document for unit in row.units if unit in view.graph.chunks}
    return {view.graph.key(name, document) for name in row.names for document in documents} - {""}


def _checked(report: PublishedReport, shown: Mapping[tuple[str, int], PublishedRow]) -> CheckedFindings:
    """The findings of a report, with the text units of the records that they cite.

    `shown` are the records from which the report was written, by (table, number) as in citations.
    """
    given = (
        (": ".join(filter(None, map(without_citations, finding))), citations(" ".join(finding)))
        for finding in report.findings
    )
    return rested(given, {record: row.units for record, row in shown.items()})


def _written(
    plan: ReportPlan, report: PublishedReport, checked: CheckedFindings, units: Collection[str]
) -> WrittenReport:
    made = Report(plan.key, report.title, without_citations(report.summary), checked.findings, "written", report.rating)
    nodes = tuple(sorted({*units, *plan.nodes}))
    return WrittenReport(made, nodes, dropped=(checked.dropped_citations, checked.dropped_findings))
