"""Template matrices: the cells of candidate maps as matrices (section 2.4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.search.allowed import Allowed
from llama_index.pgrag.search.candidates import Candidate, Vector
from llama_index.pgrag.state import KINDS, FactPath, PseudoGraph

__all__ = ["Template", "make_template"]


@dataclass(frozen=True)
class Template:
    """The fact paths of the candidate maps as matrices.

    Attributes
    ----------
    facts : one per row
    ids : shape (rows, columns), cell ids; -1 is padding
    vectors : shape (cells, d), unit length, in the order of the ids
    """

    facts: list[FactPath]
    ids: NDArray[np.int64]
    vectors: NDArray[np.float64]

    def similarities(self, key_points: Sequence[Vector]) -> NDArray[np.float64]:
        """Cosine of each key point with each cell, shape (key points, rows, columns); padding is 0."""
        points = _units(np.stack(key_points))
        if not self.facts:
            return np.zeros((len(points), 0, 0))
        cosines = points @ self.vectors.T
        filled: NDArray[np.float64] = np.where(self.ids >= 0, cosines[:, self.ids], 0.0)
        return filled


def make_template(graph: PseudoGraph, candidates: Sequence[Candidate], allowed: Allowed) -> Template:
    """The template of the facts that pass the filter, with rows in the order of the candidates, then of their maps."""
    facts: list[FactPath] = []
    rows: list[list[int]] = []
    places: dict[tuple[str, str], int] = {}
    for candidate in candidates:
        found = graph.maps[candidate.topic_id]
        for fact in found.facts:
            if allowed.fact(fact):
                facts.append(fact)
                rows.append([places.setdefault(cell, len(places)) for cell in found.cells(fact)])
    ids = np.full((len(rows), max(map(len, rows), default=0)), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    vectors = np.zeros((len(places), graph.facts.dim or 0), dtype=np.float32)
    for kind in KINDS:
        mine = [(place, cell_id) for (own, cell_id), place in places.items() if own == kind]
        if mine:
            vectors[[place for place, _ in mine]] = getattr(graph, kind).vectors_of([cell_id for _, cell_id in mine])
    return Template(facts, ids, _units(vectors))


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    norms = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    unit: NDArray[np.float64] = np.divide(wide, norms, out=np.zeros_like(wide), where=norms > 0)
    return unit
