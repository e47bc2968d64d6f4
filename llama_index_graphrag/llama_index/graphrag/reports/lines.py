"""The statements of a community as lines: each text once, the most important first."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from llama_index.graphrag.graph.statement import Statement

__all__ = ["ReportLine", "fitting", "grouped", "ranked_lines", "salience"]


class ReportLine(NamedTuple):
    """The text of one or more statements.

    Attributes
    ----------
    text : one line
    entities : keys of its entities, sorted
    statements : ids of the statements, in canonical order, repeated if several chunks state the same
    nodes : ids of the nodes that state it, in canonical order, each once
    is_claim : whether it is a claim
    """

    text: str
    entities: tuple[str, ...]
    statements: tuple[str, ...]
    nodes: tuple[str, ...]
    is_claim: bool = False


def ranked_lines(statements: Iterable[Statement]) -> list[ReportLine]:
    """The lines of some statements, by (weight, degree), then in canonical order.

    The weight of a statement is the number of chunks that state anything only about its entity, or its pair of
    entities. Its degree is the sum, over its entities, of their numbers of pairs. Both are counted among the given
    statements, so the order depends only on these. The published pipeline ranks relations by degree and shows one for
    each entity.
    """
    given = sorted(statements, key=lambda statement: statement.order)
    chunks: dict[frozenset[str], set[str]] = defaultdict(set)
    for statement in given:
        chunks[frozenset(statement.entities)].add(statement.chunk_id)
    degree: dict[str, int] = defaultdict(int)
    for about in chunks:
        for entity in about if len(about) > 1 else ():
            degree[entity] += 1

    same: dict[str, list[Statement]] = defaultdict(list)
    for statement in given:
        same[statement.text].append(statement)

    def importance(text: str) -> tuple[int, int]:
        found = ((len(chunks[frozenset(s.entities)]), sum(degree[e] for e in s.entities)) for s in same[text])
        weight, degrees = max(found)
        return -weight, -degrees

    return [
        ReportLine(
            text,
            tuple(sorted({entity for statement in same[text] for entity in statement.entities})),
            tuple(statement.id for statement in same[text]),
            tuple(dict.fromkeys(statement.chunk_id for statement in same[text])),
            any(statement.is_claim for statement in same[text]),
        )
        for text in sorted(same, key=lambda text: (importance(text), same[text][0].order))
    ]


def grouped(lines: Iterable[ReportLine]) -> list[ReportLine]:
    """The same lines, claims after the others."""
    return sorted(lines, key=lambda line: line.is_claim)


def salience(lines: Iterable[ReportLine]) -> dict[str, int]:
    """For each entity, its number of statements in lines about several entities, largest first, then by key."""
    counts: dict[str, int] = defaultdict(int)
    for line in lines:
        for entity in line.entities:
            counts[entity] += len(line.statements) if len(line.entities) > 1 else 0
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def fitting(lines: Collection[ReportLine], budget: int, count: Callable[[str], int]) -> tuple[list[ReportLine], int]:
    """The first lines that together fit a budget of tokens, and the number of the others.

    A line that does not fit is skipped; later ones may fit. Each costs a token for its end.
    """
    kept: list[ReportLine] = []
    for line in lines:
        cost = count(line.text) + 1
        if cost <= budget:
            kept.append(line)
            budget -= cost
    return kept, len(lines) - len(kept)
