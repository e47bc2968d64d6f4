"""Reads the output of the command-line pipeline as statements, communities and reports.

Source: microsoft/graphrag 1.0 to 3.1, `output/*.parquet`: the tables text_units, entities, relationships, communities
and community_reports, and covariates, the claims, if the run has them. The table documents is not read: text units have
the texts and the ids of their documents. Descriptions are merged over all text units of an entity or a pair, so each
statement carries the units from which it was merged and is forgotten with the first of them. A claim comes from one
unit.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from llama_index.graphrag.graph.statement import ChunkStatements, ClaimStatement, EntityStatement, RelationStatement
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.extras import need

__all__ = [
    "PublishedCommunity",
    "PublishedReport",
    "PublishedRow",
    "PublishedRun",
    "citations",
    "read_parquet",
    "read_published",
    "without_citations",
]

_TABLES = ("text_units", "entities", "relationships", "communities", "community_reports")
_CLAIMS = "covariates"  # a table that only some runs have
_NO_NAME = frozenset(("", "NONE", "NULL", "UNKNOWN"))  # as the tool writes a claim without an object
_CITED = re.compile(r"(?:(?<!\s)\s+)?\[Data:([^\[\]]*)\]")
_NUMBER = re.compile(r"\d+")
_LIST = re.compile(r"(?<!\w)(\w+)\s*\(([^()]*)\)")


class PublishedRow(NamedTuple):
    """An entity, a relation or a claim, which reports cite by its number.

    It has the name of the entity, of the two ends, or of the subject and the object, if any, and the ids of the text
    units that state it.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]


@dataclass(frozen=True)
class PublishedCommunity:
    """A community as written; the parent of a root is -1, and reports cite entities and relations by these numbers."""

    number: int
    parent: int
    level: int
    names: tuple[str, ...]
    entities: frozenset[int]
    relations: frozenset[int]


@dataclass(frozen=True)
class PublishedReport:
    """A report as written; a finding is a summary and an explanation, and the rating is from 0 to 10."""

    community: int
    title: str
    summary: str
    findings: tuple[tuple[str, str], ...]
    rating: float
    text: str


@dataclass(frozen=True)
class PublishedRun:
    """A whole run: what each text unit states, the texts of the units by their ids, and all else by number."""

    chunks: tuple[ChunkStatements, ...]
    texts: Mapping[str, str]
    entities: Mapping[int, PublishedRow]
    relations: Mapping[int, PublishedRow]
    communities: Mapping[int, PublishedCommunity]
    reports: Mapping[int, PublishedReport]
    claims: Mapping[int, PublishedRow] = field(default_factory=dict)


def opened(run: "PublishedRun | str | Path") -> "PublishedRun":
    """A run as read, or read from its `output` folder by :func:`read_parquet`."""
    return run if isinstance(run, PublishedRun) else read_parquet(run)


def read_parquet(folder: str | Path) -> PublishedRun:
    """Read the `output` folder of a run.

    Raises
    ------
    ImportError
        If pyarrow is not installed.
    ConfigurationError
        If a table is missing or does not have the known form.
    """
    parquet = need("pyarrow.parquet", "read_parquet()", "llama-index-graphrag[parquet]")
    tables = {}
    for name in (*_TABLES, _CLAIMS):
        path = Path(folder) / f"{name}.parquet"
        if name == _CLAIMS and not path.is_file():
            continue
        if not path.is_file():
            raise ConfigurationError(f"{folder} has no {name}.parquet; name the output folder of a finished run.")
        tables[name] = parquet.read_table(path).to_pylist()
    return read_published(tables)


def read_published(tables: Mapping[str, Iterable[Mapping[str, Any]]]) -> PublishedRun:
    """Read the tables of a run, given as rows.

    Parameters
    ----------
    tables : text_units, entities, relationships, communities and community_reports; covariates if there are any

    Raises
    ------
    ConfigurationError
        If a table or a column is missing.
    """
    try:
        given = {name: list(tables[name]) for name in _TABLES}
        return _read({**given, _CLAIMS: list(tables.get(_CLAIMS, ()))})
    except (KeyError, TypeError) as error:
        raise ConfigurationError(
            f"The tables must be {', '.join(_TABLES)}, with the columns of microsoft/graphrag 1.0 or later: {error!r}."
        ) from error


def _read(tables: Mapping[str, list[Mapping[str, Any]]]) -> PublishedRun:
    units = {str(row["id"]): row for row in tables["text_units"]}
    entities: dict[str, list[EntityStatement]] = {unit: [] for unit in units}
    relations: dict[str, list[RelationStatement]] = {unit: [] for unit in units}
    for row in tables["entities"]:
        named = _units(row, units)
        entity = EntityStatement(row["title"], row["type"] or "", row["description"] or "", _merged(named))
        for unit in named:
            entities[unit].append(entity)
    for row in tables["relationships"]:
        named = _units(row, units)
        strength = float(row["weight"]) / max(1, len(named))  # the weight is the sum over the units
        relation = RelationStatement(row["source"], row["target"], row["description"] or "", strength, _merged(named))
        for unit in named:
            relations[unit].append(relation)
    claims: dict[str, list[ClaimStatement]] = {unit: [] for unit in units}
    cited: dict[int, PublishedRow] = {}
    for row in tables[_CLAIMS]:
        claim, unit = _claim(row), str(row["text_unit_id"])
        if claim.subject and unit in units:
            claims[unit].append(claim)
            cited[_number(row)] = PublishedRow(claim.names, (unit,))
    chunks = tuple(
        ChunkStatements(
            unit,
            sha256(row["text"].encode()).hexdigest(),
            str(row.get("document_id") or (row.get("document_ids") or [""])[0]),
            _number(row),
            tuple(entities[unit]),
            tuple(relations[unit]),
            claims=tuple(dict.fromkeys(claims[unit])),
        )
        for unit, row in units.items()
    )
    numbers = [{row["id"]: _number(row) for row in tables[t]} for t in ("entities", "relationships")]
    titles = {row["id"]: row["title"] for row in tables["entities"]}
    return PublishedRun(
        chunks,
        {unit: row["text"] for unit, row in units.items()},
        {_number(row): PublishedRow((row["title"],), _units(row, units)) for row in tables["entities"]},
        {_number(r): PublishedRow((r["source"], r["target"]), _units(r, units)) for r in tables["relationships"]},
        {int(row["community"]): _community(row, titles, *numbers) for row in tables["communities"]},
        {int(row["community"]): _report(row) for row in tables["community_reports"]},
        cited,
    )


def _claim(row: Mapping[str, Any]) -> ClaimStatement:
    """A row of covariates."""
    names = ("subject_id", "object_id")
    rest = ("type", "status", "start_date", "end_date", "description", "source_text")
    subject, other = ("" if (name := str(row[key] or "").strip()).upper() in _NO_NAME else name for key in names)
    values = [" ".join(str(row[key] or "").split()) for key in rest]
    kind, status, *values = ("" if value.upper() in _NO_NAME else value for value in values)
    return ClaimStatement(subject, other, kind, status.casefold(), *values)


def _units(row: Mapping[str, Any], units: Mapping[str, Any]) -> tuple[str, ...]:
    """The known text units of a row."""
    return tuple(unit for unit in dict.fromkeys(row["text_unit_ids"]) if unit in units)


def _merged(units: tuple[str, ...]) -> tuple[str, ...]:
    """The text units to note as sources of a description."""
    return units if len(units) > 1 else ()


def _number(row: Mapping[str, Any]) -> int:
    return int(row["human_readable_id"])


def _community(
    row: Mapping[str, Any], titles: Mapping[str, str], entities: Mapping[str, int], relations: Mapping[str, int]
) -> PublishedCommunity:
    return PublishedCommunity(
        int(row["community"]),
        int(row["parent"]),
        int(row["level"]),
        tuple(titles[entity] for entity in row["entity_ids"]),
        frozenset(entities[entity] for entity in row["entity_ids"]),
        frozenset(relations[relation] for relation in row["relationship_ids"]),
    )


def _report(row: Mapping[str, Any]) -> PublishedReport:
    given = row["findings"]
    findings = json.loads(given) if isinstance(given, str) else given
    return PublishedReport(
        int(row["community"]),
        row["title"],
        row["summary"],
        tuple((finding["summary"], finding["explanation"]) for finding in findings),
        float(row["rank"]),
        row["full_content"],
    )


def citations(text: str) -> list[tuple[str, int]]:
    """The records that a published text cites, (table, number), in order.

    >>> citations("He changes [Data: Entities (4, 17); Relationships (2, +more)].")
    [('entities', 4), ('entities', 17), ('relationships', 2)]
    """
    return [
        (table.lower(), int(number))
        for cited in _CITED.findall(text)
        for table, numbers in _LIST.findall(cited)
        for number in _NUMBER.findall(numbers)
    ]


def without_citations(text: str) -> str:
    """A published text without the numbers of records that it cites.

    >>> without_citations("He changes [Data: Entities (4, 17)]. It snows.")
    'He changes. It snows.'
    """
    return _CITED.sub("", text).strip()
