"""The context of a local search: reports, entities and relations, and chunks, each within its share of the tokens."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from llama_index.graphrag.clustering.hierarchy import Hierarchy
from llama_index.graphrag.graph.entity_graph import EntityGraph
from llama_index.graphrag.graph.statement_graph import StatementGraph

__all__ = ["Section", "assembled", "ranked_chunks", "ranked_communities", "ranked_relations"]


class Section(NamedTuple):
    """A part of a context.

    Attributes
    ----------
    sizes : tokens of its texts, the most important first
    share : share of the budget, in [0, 1]
    """

    sizes: Sequence[int]
    share: float


def assembled(sections: Sequence[Section], budget: int, *, pass_on: bool = True) -> list[list[int]]:
    """The texts of each section that fit.

    Parameters
    ----------
    budget : tokens of all sections
    pass_on : whether texts that do not fit are skipped and the remaining room of a section goes to the next; if not, a
        section ends at the first text that does not fit, as published

    Returns
    -------
    positions of the texts, for each section

    >>> assembled([Section([4, 3, 9, 1], 0.5), Section([6, 7], 0.5)], 20)
    [[0, 1, 3], [0]]
    >>> assembled([Section([4, 3, 9, 1], 0.5), Section([6, 7], 0.5)], 20, pass_on=False)
    [[0, 1], [0]]
    """
    found = []
    left = 0
    for section in sections:
        room = int(budget * section.share) + (left if pass_on else 0)
        kept = []
        for position, size in enumerate(section.sizes):
            if size <= room:
                kept.append(position)
                room -= size
            elif not pass_on:
                break
        found.append(kept)
        left = room
    return found


def ranked_communities(
    hierarchy: Hierarchy, rows: Collection[int], ratings: Mapping[int, float] | None = None
) -> list[int]:
    """Communities with linked entities, by the number of these, then by rating, then smaller ones first.

    Parameters
    ----------
    rows : rows of the linked entities
    ratings : community -> rating of its report
    """
    counts: dict[int, int] = defaultdict(int)
    for row in rows:
        leaf = int(hierarchy.leaf[row])
        for community in (leaf, *hierarchy.ancestors(leaf)):
            counts[community] += 1
    rated = ratings or {}
    return sorted(counts, key=lambda c: (-counts[c], -rated.get(c, 0.0), int(hierarchy.sizes[c]), c))


def ranked_relations(entities: EntityGraph, rows: Sequence[int], outside: int) -> list[tuple[int, int]]:
    """Pairs with a linked entity, as rows: first those between two linked entities, then those that lead outside.

    The first are sorted by the sum of the degrees of both ends. The others are sorted by the number of linked entities
    with which their outer end is joined, then by this sum.

    Parameters
    ----------
    rows : rows of the linked entities, surest first
    outside : the largest number of pairs that lead outside, for each linked entity
    """
    linked = set(rows)
    pairs = {tuple(sorted((row, int(other)))) for row in linked for other in entities.neighbours(row)}

    def degree(pair: tuple[int, ...]) -> int:
        return int(entities.degrees[list(pair)].sum())

    inside = sorted((pair for pair in pairs if linked.issuperset(pair)), key=lambda pair: (-degree(pair), pair))
    ends: dict[int, int] = defaultdict(int)
    leading = [pair for pair in pairs if not linked.issuperset(pair)]
    for pair in leading:
        ends[next(row for row in pair if row not in linked)] += 1
    leading.sort(key=lambda pair: (-max(ends.get(row, 0) for row in pair), -degree(pair), pair))
    return [(pair[0], pair[1]) for pair in inside + leading[: outside * len(linked)]]


def ranked_chunks(graph: StatementGraph, keys: Sequence[str]) -> list[str]:
    """The chunks that name linked entities, those of the surest first, then by the stated pairs of linked entities.

    Parameters
    ----------
    keys : keys of the linked entities, surest first
    """
    stated: dict[str, int] = defaultdict(int)
    for i, key in enumerate(keys):
        for other in keys[i + 1 :]:
            for chunk in graph.links.get(key, {}).get(other, ()):
                stated[chunk] += 1
    found: dict[str, None] = {}
    for key in keys:
        where = sorted(graph.entities.get(key, ()), key=lambda chunk: (-stated[chunk], graph.chunks[chunk].order))
        found.update(dict.fromkeys(where))
    return list(found)
