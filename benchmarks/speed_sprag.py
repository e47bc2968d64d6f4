"""Speed of spRAG's choice of segments beside the published loop, on the same values in one run; the choice is the same.

In dsRAG 0.2.0, chunks that were not retrieved have the value 0, so that they may begin and end segments ("free gaps");
with the later correction their value is negative.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import timed
from llama_index.sprag.config import PUBLISHED
from llama_index.sprag.segments.greedy import select_greedy
from llama_index.sprag.segments.windows import fixed_point

__all__ = ["measurements", "published_loop"]

SIZES = (1_000, 5_000, 20_000)
DOCUMENTS = 10
HITS = 200
GOAL_S = 0.05


def published_loop(
    values: Sequence[int], starts: Sequence[int], max_length: int, overall_max_length: int, minimum_value: int
) -> list[tuple[int, int]]:
    """The way of the published code for one query: all pairs of ends again for each segment.

    Parameters
    ----------
    values : whole numbers, so that sums do not depend on the order of addition
    starts : the first chunk of each document
    """
    chosen: list[tuple[int, int]] = []
    total = 0
    while total < overall_max_length:
        best_value, best = -(10**30), (0, 0)
        for start in range(len(values)):
            if values[start] < 0:
                continue
            for end in range(start + 1, min(start + max_length + 1, len(values) + 1)):
                if values[end - 1] < 0:
                    continue
                if any(start < other_end and other_start < end for other_start, other_end in chosen):
                    continue
                if any(start < border < end for border in starts):
                    continue
                if total + end - start > overall_max_length:
                    continue
                value = sum(values[start:end])
                if value > best_value:
                    best_value, best = value, (start, end)
        if best_value < minimum_value:
            break
        chosen.append(best)
        total += best[1] - best[0]
    return chosen


def _values(n: int, penalty: float, free_gaps: bool) -> NDArray[np.float64]:
    """Hits of one query in groups of neighbours, as in long documents."""
    random = np.random.default_rng(0)
    centers = random.integers(0, n, HITS // 4)
    hits = random.permutation(
        np.unique(np.clip(centers[:, None] + random.integers(-6, 7, (len(centers), 4)), 0, n - 1))
    )
    values = np.full(n, 0.0 if free_gaps else -penalty)
    values[hits] = np.exp(-np.arange(len(hits)) / 30) - penalty
    return values


def measurements() -> Iterator[dict[str, Any]]:
    """Seconds of both, by size, preset and kind of gap."""
    for n in SIZES:
        starts = np.linspace(0, n, DOCUMENTS, endpoint=False).astype(int)
        documents = np.searchsorted(starts, np.arange(n), side="right") - 1
        for preset in ("balanced", "find_all"):
            config = PUBLISHED[preset]
            for free_gaps in (False, True):
                values = _values(n, config.irrelevant_chunk_penalty, free_gaps)
                limits = {"max_length": config.segment_length, "overall_max_length": config.overall_max_length}
                ours, ours_s, _ = timed(
                    lambda: select_greedy(
                        values,  # noqa: B023 - called at once
                        documents,  # noqa: B023
                        minimum_value=config.minimum_value,  # noqa: B023
                        **limits,  # noqa: B023
                    )
                )
                whole = fixed_point(values).tolist()
                least = int(fixed_point(config.minimum_value))
                theirs, theirs_s, _ = timed(lambda: published_loop(whole, starts.tolist(), *limits.values(), least))  # noqa: B023
                yield {
                    "name": "choice of segments",
                    "chunks": n,
                    "preset": preset,
                    "gaps": "free" if free_gaps else "priced",
                    "ours_s": ours_s,
                    "published_loop_s": theirs_s,
                    "ratio": theirs_s / ours_s,
                    "same_choice": [(each.start, each.end) for each in ours] == theirs,
                    "to_reach": {"ours_s": GOAL_S},
                }
