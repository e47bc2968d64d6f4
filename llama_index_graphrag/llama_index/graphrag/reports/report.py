"""A report about a community as plain data, and the check of a model's findings against their sources."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

__all__ = ["CheckedFindings", "Finding", "Report", "ReportForm", "check_findings", "rested"]

K = TypeVar("K")

# "statements": verbatim; "extract": chosen statements; "written": by a language model.
ReportForm = Literal["statements", "extract", "written"]

_NUMBER = re.compile(r"\d+")
_CITED = re.compile(r"(?:(?<!\s)\s+)?\[([\d\s,;+]+)\]")


class Finding(NamedTuple):
    """A sentence or a paragraph, and the ids of the nodes on which it rests, at least one."""

    text: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """A report."""

    key: str  # hash of its sources
    title: str
    summary: str  # may be empty
    findings: tuple[Finding, ...]  # in order of importance
    form: ReportForm
    rating: float | None = None  # importance as rated by a model, 0 to 10; None if no model rated it
    left_out: int = 0  # number of statements that did not fit into its sources

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ids of the nodes on which the findings rest, each once, in the order of the findings."""
        return tuple(dict.fromkeys(node for finding in self.findings for node in finding.nodes))

    @property
    def text(self) -> str:
        """The whole report."""
        parts = [self.title, self.summary, *(finding.text for finding in self.findings)]
        return "\n".join(part for part in parts if part)

    def record(self) -> dict[str, Any]:
        """The report as plain data, for storage; :meth:`from_record` reads it back."""
        findings = [[finding.text, list(finding.nodes)] for finding in self.findings]
        return {**vars(self), "findings": findings}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Report":
        """Read the data of :meth:`record`."""
        findings = tuple(Finding(text, tuple(nodes)) for text, nodes in record["findings"])
        return cls(**{**record, "findings": findings})


class CheckedFindings(NamedTuple):
    """Findings that rest on sources, in the given order; the numbers of citations and of findings without a source."""

    findings: tuple[Finding, ...]
    dropped_citations: int
    dropped_findings: int


def check_findings(given: Iterable[tuple[str, Iterable[Any]]], sources: Mapping[int, Sequence[str]]) -> CheckedFindings:
    """Check the findings of a model against the sources that it saw.

    Citations are numbers of sources. They are read from the list of a finding and from brackets in its text, "[3]" or
    "[1, 4]". The brackets are removed, since the numbers mean nothing outside the prompt.

    Parameters
    ----------
    given : text of each finding, and its citations: numbers, or texts with numbers
    sources : number -> ids of the nodes on which the source rests

    >>> check_findings([("Scrooge changes [1, 9].", [2]), ("It snows.", [])], {1: ["n1"], 2: ["n2", "n1"]})
    CheckedFindings(findings=(Finding(text='Scrooge changes.', nodes=('n2', 'n1')),), dropped_citations=1, \
dropped_findings=1)
    """

    def numbers(text: str, cited: Iterable[Any]) -> list[int]:
        values = [*cited, *_CITED.findall(text)]
        return [int(number) for value in values for number in _NUMBER.findall(str(value))]

    return rested(((_CITED.sub("", text).strip(), numbers(text, cited)) for text, cited in given), sources)


def rested(given: Iterable[tuple[str, Iterable[K]]], sources: Mapping[K, Sequence[str]]) -> CheckedFindings:
    """The findings that rest on a source; `given` are their texts and what each cites, `sources` as nodes by that."""
    findings = []
    dropped_citations = dropped_findings = 0
    for text, cited in given:
        distinct = list(dict.fromkeys(cited))
        dropped_citations += sum(key not in sources for key in distinct)
        nodes = tuple(dict.fromkeys(node for key in distinct for node in sources.get(key, ())))
        if nodes and text:
            findings.append(Finding(text, nodes))
        else:
            dropped_findings += 1
    return CheckedFindings(tuple(findings), dropped_citations, dropped_findings)
