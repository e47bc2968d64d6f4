"""The choice of segments, slow and obvious: every window tried for each pick, every choice tried for the optimum."""

from collections.abc import Iterator, Sequence
from functools import cache

__all__ = ["slow_greedy", "slow_optimum"]

Found = tuple[int, int, float, int]  # start, end, value, query


def windows(
    values: Sequence[float], documents: Sequence[int], costs: Sequence[int], max_length: int
) -> Iterator[tuple[int, int]]:
    """All windows that the rules allow, by start, then by length."""
    for start in range(len(values)):
        for end in range(start + 1, len(values) + 1):
            if documents[end - 1] != documents[start]:
                break
            if end - start > 1 and sum(costs[start:end]) > max_length:
                break
            if values[start] >= 0 and values[end - 1] >= 0:
                yield start, end


def slow_greedy(
    values: Sequence[Sequence[float]],
    documents: Sequence[int],
    costs: Sequence[int],
    max_length: int,
    overall_max_length: int,
    minimum_value: float,
) -> list[Found]:
    """Round-robin over the queries, as the published code goes."""
    chosen: list[Found] = []
    finished = [False] * len(values)
    used = 0
    while used < overall_max_length and not all(finished):
        for query in range(len(values)):
            if finished[query] or used >= overall_max_length:
                continue
            best: Found | None = None
            for start, end in windows(values[query], documents, costs, max_length):
                overlaps = any(start < other[1] and other[0] < end for other in chosen)
                if overlaps or used + sum(costs[start:end]) > overall_max_length:
                    continue
                value = sum(values[query][start:end])
                if best is None or value > best[2]:
                    best = (start, end, value, query)
            if best is None or best[2] < minimum_value:
                finished[query] = True
                continue
            chosen.append(best)
            used += sum(costs[best[0] : best[1]])
    return chosen


def slow_optimum(
    values: Sequence[Sequence[float]],
    documents: Sequence[int],
    costs: Sequence[int],
    max_length: int,
    overall_max_length: int,
    minimum_value: float,
) -> float:
    """The largest total value of any allowed choice."""
    allowed: dict[int, list[tuple[int, float, int]]] = {}
    for query in values:
        for start, end in windows(query, documents, costs, max_length):
            value = sum(query[start:end])
            if value >= minimum_value:
                allowed.setdefault(start, []).append((end, value, sum(costs[start:end])))

    @cache
    def best(position: int, left: int) -> float:
        if position == len(documents):
            return 0.0
        found = best(position + 1, left)
        for end, value, cost in allowed.get(position, []):
            if cost <= left:
                found = max(found, value + best(end, left - cost))
        return found

    return best(0, overall_max_length)
