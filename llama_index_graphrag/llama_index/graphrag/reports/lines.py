"""The statements of a community as lines, each text once, the most important first; and lines that make a report."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from llama_index.graphrag.graph.statement import Statement

__all__ = ["ReportLine", "covering_lines", "fitting", "grouped", "ranked_lines", "salience"]

_COST_EXPONENT = 0.3


class ReportLine(NamedTuple):
    """The text of one or more statements."""

    text: str  # one line
    entities: tuple[str, ...]  # keys of its entities, sorted
    statements: tuple[str, ...]  # ids of the statements, in canonical order, repeated if several chunks state the same
    nodes: tuple[str, ...]  # ids of the nodes that state it, in canonical order, each once
    is_claim: bool = False  # whether it is a claim


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


def covering_lines(lines: Sequence[ReportLine], budget: int, count: Callable[[str], int]) -> list[ReportLine]:
    """Lines that cover the entities within a budget of tokens, in the order given, which is by importance.

    Each entity e counts s(e), its salience plus one. Lines are chosen greedily. Next is the line that covers most per
    token

        (sum of s(e) over the entities e of the line that no chosen line has) / tokens ** 0.3

    among those that fit (cost-scaled greedy of Lin and Bilmes, ACL 2011, section 4, for the weighted coverage of
    entities). When nothing is left to cover, lines follow in the order of their importance. Each costs a token for its
    end. There is at least one line, even if none fits, unless none is given.
    """
    costs = [count(line.text) + 1 for line in lines]
    if lines and min(costs) > budget:
        return [lines[min(range(len(lines)), key=lambda i: (costs[i], i))]]
    worth = {entity: times + 1 for entity, times in salience(lines).items()}
    covered: set[str] = set()

    def gain(i: int) -> float:
        new = sum(worth[entity] for entity in lines[i].entities if entity not in covered)
        return float(new / costs[i] ** _COST_EXPONENT)

    # Gains only fall as lines are chosen, so an old gain bounds the new one (Minoux 1978).
    heap = [(-gain(i), i) for i in range(len(lines))]
    heapify(heap)
    chosen: list[int] = []
    spare: list[int] = []  # lines with nothing new
    while heap:
        bound, i = heappop(heap)
        now = -gain(i)
        if costs[i] > budget:
            continue  # what does not fit now never will
        if not now:
            spare.append(i)
        elif now > bound:
            heappush(heap, (now, i))
        else:
            chosen.append(i)
            covered.update(lines[i].entities)
            budget -= costs[i]
    for i in sorted(spare):
        if costs[i] <= budget:
            chosen.append(i)
            budget -= costs[i]
    return [lines[i] for i in sorted(chosen)]
