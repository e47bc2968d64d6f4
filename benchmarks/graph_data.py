"""Planted graphs: entities in small groups, groups in larger ones, as the edges of a file that two processes read."""

from pathlib import Path

import numpy as np

__all__ = ["planted", "read", "write"]

MEAN_DEGREE = 4
GROUP, GROUPS = 12, 15  # entities of a group, groups of a larger one
INSIDE, BESIDE = 0.75, 0.15  # share of edges within a group, and within a larger one

Edges = tuple[np.ndarray, np.ndarray, np.ndarray]


def planted(edges: int, seed: int = 0) -> tuple[int, Edges]:
    """The number of entities, and `edges` different pairs with weights of 1 to 3."""
    rng = np.random.default_rng(seed)
    n = 2 * edges // MEAN_DEGREE
    found = np.empty(0, np.int64)
    while len(found) < edges:
        one = rng.integers(n, size=2 * edges)
        kind = rng.random(2 * edges)
        span = np.where(kind < INSIDE, GROUP, np.where(kind < INSIDE + BESIDE, GROUP * GROUPS, n))
        other = one // span * span + rng.integers(span)
        use = (other < n) & (one != other)
        low, high = np.minimum(one, other)[use], np.maximum(one, other)[use]
        found = np.unique(np.concatenate([found, low * n + high]))
    chosen = rng.permutation(found)[:edges]
    return n, (chosen // n, chosen % n, rng.choice([1, 1, 1, 2, 3], size=edges))


def write(path: Path, n: int, edges: Edges) -> None:
    """Store a graph."""
    np.savez(path, n=n, one=edges[0], other=edges[1], weights=edges[2])


def read(path: Path) -> tuple[int, Edges]:
    """Read what :func:`write` stored."""
    with np.load(path) as stored:
        return int(stored["n"]), (stored["one"], stored["other"], stored["weights"])
