"""The paper's two algorithms, step by step and slow: what the fast ones are held against."""

from collections import Counter

import numpy as np


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    a, b = a.astype(np.float64), b.astype(np.float64)
    scale = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / scale if scale else 0.0


def importance_by_pairs(vectors: np.ndarray) -> np.ndarray:
    """Algorithm 1 as coded: all ordered pairs, those of a vector with itself too. Shape (n, heads, d) to (heads,)."""
    n, heads, _ = vectors.shape
    out = []
    for head in range(heads):
        mine = vectors[:, head]
        length = sum(float(np.linalg.norm(v.astype(np.float64))) for v in mine) / n
        # A vector is at distance 0 from itself; one of zeros has no direction, and is at distance 1 from all.
        spread = sum(1 - cosine(a, b) for a in mine for b in mine) / n**2
        out.append(length * spread)
    return np.array(out)


def votes_by_hand(
    vectors: np.ndarray, query: np.ndarray, scores: np.ndarray, count: int, vote: str
) -> dict[int, float]:
    """Algorithm 2 with the votes of a document added up, as coded: document -> votes."""
    total: Counter[int] = Counter()
    for head in range(vectors.shape[1]):
        cosines = [cosine(v, query[head]) for v in vectors[:, head]]
        ranking = sorted(range(len(vectors)), key=lambda i: (-cosines[i], i))[:count]
        for place, document in enumerate(ranking):
            weight = {
                "mrag": scores[head] * 2.0**-place,
                "decay": 2.0**-place,
                "distance": 1 / max(1 - cosines[document], 1e-6),
            }[vote]
            total[document] += weight  # type: ignore[assignment]
    return dict(total)
