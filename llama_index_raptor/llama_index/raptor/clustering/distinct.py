"""Normalised distinct vectors in an order independent of the input order."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from llama_index.ragkit.errors import EmbeddingError
from llama_index.ragkit.vectors.kernels import opaque_rows, unit_rows

__all__ = ["Distinct", "directions"]


def directions(vectors: np.ndarray) -> np.ndarray:
    """Check vectors and scale them to unit length, as float32 without negative zeros; zero rows stay zero.

    Raises
    ------
    EmbeddingError
        If they are not an array of shape (n, d), d >= 1, of finite numbers.
    """
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise EmbeddingError(f"Vectors must be an array of shape (n, d) with d >= 1, not {vectors.shape}.")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise EmbeddingError(
            f"{len(bad)} of {len(vectors)} vectors have NaN or infinite values, the first at row {bad[0]}."
        )
    unit: np.ndarray = unit_rows(vectors) + np.float32(0)
    return unit


@dataclass(frozen=True)
class Distinct:
    """The distinct directions among vectors, in an order that does not depend on the order of the vectors.

    Clustering these rows makes the partition independent of the input order and treats equal texts as one point.

    rows : float32, shape (u, d), unit length, no two equal, ordered by their bytes
    copies : for each row, the positions of the vectors equal to it
    empty : the positions of zero vectors, which have no direction
    """

    rows: np.ndarray
    copies: list[np.ndarray]
    empty: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> "Distinct":
        """Normalise, check and sort ``vectors``, shape (n, d); errors as in :func:`directions`."""
        unit = directions(vectors)
        filled = unit.any(axis=1)
        positions, empty = np.flatnonzero(filled), np.flatnonzero(~filled)
        if not len(positions):
            return cls(unit[:0], [], empty)
        _, first, inverse = np.unique(opaque_rows(unit[positions]), return_index=True, return_inverse=True)
        ends = np.cumsum(np.bincount(inverse))
        copies = np.split(positions[np.argsort(inverse, kind="stable")], ends[:-1])
        return cls(unit[positions[first]], copies, empty)

    def clusters(self, parts: Iterable[np.ndarray]) -> list[np.ndarray]:
        """Translate clusters of rows into clusters of positions; zero vectors join the smallest cluster."""
        clusters = [np.concatenate([self.copies[row] for row in part]) for part in parts]
        if not clusters:
            return [self.empty] if len(self.empty) else []
        smallest = min(range(len(clusters)), key=lambda i: len(clusters[i]))
        clusters[smallest] = np.concatenate([clusters[smallest], self.empty])
        return clusters
