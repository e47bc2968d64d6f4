"""A report without a language model: statements of a community, chosen so that they cover its entities.

Each entity e counts s(e), its salience plus one. Lines are chosen greedily. Next is the line that covers most per token

    (sum of s(e) over the entities e of the line that no chosen line has) / tokens ** 0.3

among those that fit (cost-scaled greedy of Lin and Bilmes, ACL 2011, section 4, for the weighted coverage of
entities). When nothing is left to cover, lines follow in the order of their importance.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush

from llama_index.graphrag.reports.lines import ReportLine, salience

__all__ = ["covering_lines"]

_COST_EXPONENT = 0.3


def covering_lines(lines: Sequence[ReportLine], budget: int, count: Callable[[str], int]) -> list[ReportLine]:
    """Lines that cover the entities within a budget, in the order given.

    Parameters
    ----------
    lines : by importance, as :func:`~llama_index.graphrag.reports.lines.ranked_lines`
    budget : tokens; each line costs one for its end
    count : tokens of a text

    Returns
    -------
    At least one line, even if none fits, unless none is given.
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
