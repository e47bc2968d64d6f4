"""The memory graph as a linear operator in O(n d) memory, without an n x n array.

Nodes i have a unit vector b_i (their text) and m_i unit vectors u_ij (their questions, blended with the text).
The paper (section III.B.1, arXiv 2409.15566) weighs the edge from i to k by the cosines of i's questions with
k's text. With a_i the mean of the u_ij that is

    S = A B^T,    S_sym = (S + S^T) / 2,    W = S_sym without its diagonal,    L = D^-1/2 W D^-1/2

and L x costs four products with n x d matrices. D holds the row sums of W; with `literal=True` W is S_sym - I.

Deviations from the paper (docs/gemrag/differences.md):

- S is made symmetric: as defined it has complex eigenvalues.
- The diagonal is set to zero. The paper subtracts I, but S_ii is not 1, so the trace is not 0 as the paper claims
  (section III.B, "Analysis of Graph Spectrum"). `literal=True` subtracts I.
- The mean over questions replaces the sum. It gives the same L if all nodes have equally many questions, and otherwise
  does not give nodes with more questions a greater weight. `literal=True` uses the sum.
- If a degree is not above 0 (opposite vectors), or negative weights cause an eigenvalue above 1
  (:func:`themes.spectrum.solved`), (1 + cos) / 2 replaces cos in the whole graph. This only adds a matrix of rank one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.errors import EmbeddingError

__all__ = ["BLOCK", "MemoryGraph", "blended", "question_means", "strongest_edges", "unit_rows"]

Matrix = NDArray[Any]
_LEAST_DEGREE = 1e-6  # of the mean degree
BLOCK = 4096  # rows per block, since a full copy would be too large
_PAIRS = 1024  # rows that are compared with all others at once


def unit_rows(rows: Matrix) -> Matrix:
    """Rows scaled to unit length, in float32, or float64 if `rows` is; zero rows stay zero.

    Raises
    ------
    EmbeddingError
        If a value is not finite.
    """
    rows = np.asarray(rows)
    rows = rows if rows.dtype == np.float64 else rows.astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
    if not np.isfinite(norms).all():
        raise EmbeddingError(f"Row {int(np.flatnonzero(~np.isfinite(norms))[0])} contains NaN or infinity.")
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    unit: Matrix = rows * scale[:, None].astype(rows.dtype)
    return unit


def blended(questions: Matrix, texts: Matrix, blend: float) -> Matrix:
    """The paper's v_ij: question and text averaged, here as unit vectors with weights `blend` and 1 - `blend`.

    Both have the shape (m, d) and unit rows; texts[j] is the text of the node of question j. `blend` is in [0, 1]
    [paper: 0.5].
    """
    return unit_rows(blend * questions + (1 - blend) * texts)


def question_means(texts: Matrix, questions: Matrix, owners: NDArray[np.intp], blend: float, literal: bool) -> Matrix:
    """The matrix A: the mean (`literal`: the sum) of each node's blended questions; the text of a node without any.

    Parameters
    ----------
    texts : shape (n, d), unit rows
    questions : shape (m, d), unit rows
    owners : shape (m,), the node of each question, ascending
    """
    means: Matrix = np.array(texts)
    if not len(owners):
        return means
    nodes, starts, counts = np.unique(owners, return_index=True, return_counts=True)
    ends = np.append(starts[1:], len(owners))
    step = max(1, BLOCK // max(1, int(counts.max())))
    for k in range(0, len(nodes), step):  # in blocks of nodes, to limit memory
        some = slice(int(starts[k]), int(ends[min(k + step, len(nodes)) - 1]))
        rows = blended(questions[some].astype(texts.dtype), texts[owners[some]], blend)
        sums = np.add.reduceat(rows, starts[k : k + step] - starts[k], axis=0)
        means[nodes[k : k + step]] = sums if literal else sums / counts[k : k + step, None].astype(texts.dtype)
    return means


@dataclass(frozen=True)
class MemoryGraph:
    """The normalised adjacency L of the memory graph, in factors."""

    a: Matrix  # shape (n, d), the rows of A
    b: Matrix  # shape (n, d), the rows of B
    degrees: NDArray[np.float64]  # shape (n,), above 0 unless the vector of the node is zero
    diagonal: NDArray[np.float64]  # shape (n,), subtracted from the diagonal of S_sym
    times: NDArray[np.float64]  # shape (n,), of how many cosines an entry of a row of S is the sum; 1 for the mean
    literal: bool = False  # whether the diagonal is 1, and eigenvalues are ordered by magnitude
    shifted: bool = False  # whether (1 + cos) / 2 replaced cos

    @classmethod
    def of(cls, a: Matrix, b: Matrix, literal: bool = False, times: NDArray[np.float64] | None = None) -> "MemoryGraph":
        """The graph of A and B, shape (n, d); `literal` as the module describes, `times` as the attribute."""
        own = np.einsum("ij,ij->i", a, b, dtype=np.float64)
        diagonal = np.ones(len(b)) if literal else own
        sum_a, sum_b = a.sum(axis=0, dtype=np.float64), b.sum(axis=0, dtype=np.float64)
        degrees = (_product(a, sum_b) + _product(b, sum_a)) / 2 - diagonal
        graph = cls(a, b, degrees, diagonal, np.ones(len(b)) if times is None else times, literal)
        if len(b) and (degrees.min() < _LEAST_DEGREE * max(degrees.mean(), 0.0) or degrees.min() <= 0):
            return graph.without_negative_weights()
        return graph

    def without_negative_weights(self) -> "MemoryGraph":
        """The graph with (1 + cos) / 2 in place of cos."""
        diagonal = (1 + self.diagonal) / 2
        added = (len(self) * self.times + self.times.sum()) / 2
        degrees = (self.degrees + self.diagonal + added) / 2 - diagonal
        return replace(self, degrees=degrees, diagonal=diagonal, shifted=True)

    def __len__(self) -> int:
        return len(self.b)

    @property
    def scale(self) -> NDArray[np.float64]:
        """D^-1/2; 0 for a node without an edge."""
        degrees = np.maximum(self.degrees, 0)
        return np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)

    @property
    def scaled_diagonal(self) -> NDArray[np.float64]:
        """The values subtracted from the diagonal of L, shape (n,)."""
        taken: NDArray[np.float64] = self.diagonal * self.scale**2
        return taken

    @property
    def trace(self) -> float:
        """The sum of all eigenvalues: 0, unless the graph is `literal`."""
        own = np.einsum("ij,ij->i", self.a, self.b, dtype=np.float64)
        own = (self.times + own) / 2 if self.shifted else own
        return float((own * self.scale**2).sum() - self.scaled_diagonal.sum())

    @property
    def squares(self) -> float:
        """The sum of the squares of all eigenvalues, Lambda of the paper's Remark 3, in O(n d^2).

        With P = D^-1/2 A and Q = D^-1/2 B it is the squared Frobenius norm of (P Q^T + Q P^T) / 2 - diag:
        tr((P^T P)(Q^T Q)) / 2 + tr((P^T Q)^2) / 2 - 2 sum_i s_i t_i + sum_i t_i^2, where s is the diagonal of the first
        term and t holds the subtracted values.
        """
        width = self.b.shape[1] + self.shifted
        pp, qq, pq = (np.zeros((width, width)) for _ in range(3))
        own = np.zeros(len(self))
        for start, p, q in self.blocks():
            pp += p.T @ p
            qq += q.T @ q
            pq += p.T @ q
            own[start : start + len(p)] = np.einsum("ij,ij->i", p, q, dtype=np.float64)
        taken = self.scaled_diagonal
        whole = ((pp * qq).sum() + (pq * pq.T).sum()) / 2
        return float(whole - 2 * (own * taken).sum() + (taken**2).sum())

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[int, Matrix, Matrix]]:
        """Rows of D^-1/2 A and D^-1/2 B, `size` at a time, with the number of the first row.

        If the graph is shifted, each has an additional column for the rank-one term.
        """
        scale = self.scale.astype(self.b.dtype)[:, None]
        half = self.b.dtype.type(0.5)
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            p, q = self.a[rows] * scale[rows], self.b[rows] * scale[rows]
            if self.shifted:  # (p q^T + t s^T) / 2 = [p, t] [q, s]^T / 2, with t the scale s for each cosine
                times = self.times[rows, None].astype(self.b.dtype)
                p, q = np.hstack([p * half, scale[rows] * times * half]), np.hstack([q, scale[rows]])
            yield start, p, q

    def dense(self) -> NDArray[np.float64]:
        """L as an n x n array, for tests and small figures."""
        parts = list(self.blocks())
        p, q = (np.vstack([part[i] for part in parts]).astype(np.float64) for i in (1, 2))
        dense: NDArray[np.float64] = (p @ q.T + q @ p.T) / 2 - np.diag(self.scaled_diagonal)
        return dense


def _product(rows: Matrix, vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """rows @ vector in float64, block by block."""
    found = [rows[i : i + BLOCK].astype(np.float64) @ vector for i in range(0, len(rows), BLOCK)]
    return np.concatenate(found) if found else np.zeros(0)


def strongest_edges(a: NDArray[np.floating], b: NDArray[np.floating], k: int) -> list[tuple[int, int, float]]:
    """Pairs i < j of which at least one node is among the k strongest neighbours of the other, with their weights.

    The weight is (a_i.b_j + a_j.b_i) / 2, of mean blended questions and unit texts, both of shape (n, d). All pairs of
    rows are compared in blocks: time is quadratic in n, memory is linear.
    """
    n = len(b)
    k = min(k, n - 1)
    if k < 1:
        return []
    found: dict[tuple[int, int], float] = {}
    for start in range(0, n, _PAIRS):
        rows = np.arange(start, min(start + _PAIRS, n))
        weights = (a[rows] @ b.T + b[rows] @ a.T) / 2
        weights[rows - start, rows] = -np.inf
        near = np.argpartition(-weights, k - 1, axis=1)[:, :k]
        for i, others in zip(rows.tolist(), near.tolist(), strict=True):
            for j in others:
                found[min(i, j), max(i, j)] = float(weights[i - start, j])
    return [(i, j, weight) for (i, j), weight in sorted(found.items())]
