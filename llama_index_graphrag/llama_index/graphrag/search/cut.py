"""A cut of the hierarchy: communities that together hold each entity once, within a budget of tokens.

Source: the published pipeline reads all reports down to a level, including the upper ones, at any cost; its dynamic
selection has a model rate reports from the roots down. Here the communities nearest to the question are opened first,
as long as the reports of the cut fit the budget.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.clustering.hierarchy import Hierarchy

__all__ = ["Cut", "budget_cut", "community_nearness", "level_cut", "rated_cut"]

Floats = NDArray[np.float64]

_BEST_CHUNKS = 5
_DECIMALS = 10  # hides the order of a sum, so that equal communities stay in their order


@dataclass(frozen=True)
class Cut:
    """Communities to read.

    Attributes
    ----------
    communities : the communities, nearest first; no entity is in two of them
    opened : communities that were replaced by their children, in the order in which they were opened
    refused : communities whose children would not fit, in order
    left_out : roots that do not fit, nearest first
    tokens : tokens of all communities together
    """

    communities: tuple[int, ...]
    opened: tuple[int, ...] = ()
    refused: tuple[int, ...] = ()
    left_out: tuple[int, ...] = ()
    tokens: int = 0


def community_nearness(hierarchy: Hierarchy, chunks: Iterable[tuple[float, Sequence[int]]], lowest: float) -> Floats:
    """The nearness of each community to a question, shape (c,): the mean nearness of its 5 best chunks.

    Parameters
    ----------
    chunks : (nearness, rows of the entities that the chunk names), nearest first; a chunk is in every community that
        has one of its entities
    lowest : the nearness of chunks that are not given
    """
    sums = np.zeros(len(hierarchy))
    counts = np.zeros(len(hierarchy), np.int64)
    for nearness, rows in chunks:
        around: set[int] = set()
        for leaf in {int(hierarchy.leaf[row]) for row in rows}:
            around.update((leaf, *hierarchy.ancestors(leaf)))
        for community in around:
            if counts[community] < _BEST_CHUNKS:
                counts[community] += 1
                sums[community] += nearness
    found: Floats = np.round((sums + lowest * (_BEST_CHUNKS - counts)) / _BEST_CHUNKS, _DECIMALS)
    return found


def level_cut(hierarchy: Hierarchy, level: int) -> tuple[int, ...]:
    """The deepest communities that are no deeper than a level: each entity once."""
    return tuple(np.unique(hierarchy.partition(level)).tolist())


def rated_cut(hierarchy: Hierarchy, ratings: Mapping[int, float], threshold: float) -> tuple[int, ...]:
    """The communities rated at a threshold or above, by rating, then in order; one takes the place of its parent.

    It is the published dynamic selection, which rates the children of a community once it has reached the threshold.
    """
    relevant = {community for community, rating in ratings.items() if rating >= threshold}
    replaced = {int(hierarchy.parent[community]) for community in relevant}
    return tuple(sorted(relevant - replaced, key=lambda community: (-ratings[community], community)))


def budget_cut(
    hierarchy: Hierarchy,
    costs: Callable[[int], int],
    nearness: Floats,
    token_budget: int,
    can_open: Callable[[int], bool] = lambda community: True,
) -> Cut:
    """The cut that opens the nearest communities while their children fit a budget of tokens.

    If not even all roots fit, the cut is the nearest roots that do. A community for which `can_open` is False, such as
    a verbatim one, is not opened.
    """
    order = sorted(hierarchy.roots.tolist(), key=lambda root: (-nearness[root], root))
    kept: set[int] = set()
    left_out, spent = [], 0
    for root in order:
        if spent + costs(root) <= token_budget:
            kept.add(root)
            spent += costs(root)
        else:
            left_out.append(root)
    opened, refused = [], []
    queue = [(-nearness[community], community) for community in kept]
    heapify(queue)
    while queue:
        _, community = heappop(queue)
        children = hierarchy.children(community).tolist()
        if not children or not can_open(community):
            continue
        after = spent - costs(community) + sum(costs(child) for child in children)
        if after > token_budget:
            refused.append(community)
            continue
        kept.remove(community)
        kept.update(children)
        opened.append(community)
        spent = after
        for child in children:
            heappush(queue, (-nearness[child], child))
    ranked = sorted(kept, key=lambda community: (-nearness[community], community))
    return Cut(tuple(ranked), tuple(opened), tuple(refused), tuple(left_out), spent)
