"""The leading eigenvalues and eigenvectors of the memory graph, by two methods.

The largest eigenvalues lead; for a `literal` graph the eigenvalues of largest magnitude, as in the paper
(section III.B.1).

- :func:`lanczos`: ARPACK on the operator, exact to floating-point precision. Used below `STREAMED_FROM` nodes.
- :func:`streamed`: L is a matrix of rank at most 2d less a diagonal whose entries are O(1 / n). The eigenvectors of the
  first part come from the 2d x 2d Gram matrix of [D^-1/2 A, D^-1/2 B], which is summed block by block. A Rayleigh-Ritz
  step in k + `EXTRA` of them accounts for the diagonal. It makes three passes over the rows and takes O(n d^2) time for
  any spectrum, and O(d^2) memory in addition to A, B and the vectors. The error decreases with n.
"""

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.graph.memory_graph import MemoryGraph
from llama_index.ragkit.blas import one_blas_thread

__all__ = ["STREAMED_FROM", "lanczos", "leading", "solved", "streamed"]

Doubles = NDArray[np.float64]
STREAMED_FROM = 10_000
EXTRA = 10
_ABOVE = 1e-4  # above the largest float32 rounding error of an eigenvalue of 1
_SMALL = 64  # nodes; up to this number a dense solver is faster
_SEED = 20240915
_NOT_ORTHONORMAL = 0.01  # rounding alone stays far below


def leading(graph: MemoryGraph, k: int) -> tuple[Doubles, Doubles]:
    """The k leading eigenvalues of L, in their order, and their eigenvectors, shape (n, k).

    There are fewer if the graph has fewer nodes. The sign of a vector is arbitrary.
    """
    n = len(graph)
    k = min(k, n)
    if k < 1:
        return np.zeros(0), np.zeros((n, 0))
    with one_blas_thread:  # small dense steps are ten times slower with several threads
        if n <= max(_SMALL, k + 2):
            values, vectors = np.linalg.eigh(graph.dense())
            order = _order(graph, values)[:k]
            return values[order], vectors[:, order]
        if n >= STREAMED_FROM and n > 4 * graph.b.shape[1]:
            return streamed(graph, k)
        return lanczos(graph, k)


def solved(graph: MemoryGraph, k: int) -> tuple[MemoryGraph, Doubles, Doubles]:
    """The graph used for themes, its k leading eigenvalues and their eigenvectors: see :func:`leading`.

    With nonnegative weights the largest eigenvalue is 1, and its vector depends only on the degrees. With negative
    weights (two groups of opposite vectors) another eigenvalue may be larger. Then the graph without negative weights
    is used instead, except for a `literal` graph, whose eigenvalues have no such bound.
    """
    values, vectors = leading(graph, k)
    if len(values) and values[0] > 1 + _ABOVE and not graph.shifted and not graph.literal:
        graph = graph.without_negative_weights()
        values, vectors = leading(graph, k)
    return graph, values, vectors


def lanczos(graph: MemoryGraph, k: int) -> tuple[Doubles, Doubles]:
    """As :func:`leading`, by implicitly restarted Lanczos (ARPACK) on products with the factors; needs k < n.

    It works in the precision of the graph's arrays. The start vector is near the first eigenvector,
    sqrt(degree), plus noise of a fixed seed.
    """
    # Deferred, as in streamed: importing SciPy costs a quarter of a second, which a search never needs.
    from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

    kind = graph.b.dtype
    parts = list(graph.blocks(len(graph)))
    p, q = np.ascontiguousarray(parts[0][1]), np.ascontiguousarray(parts[0][2])
    taken = graph.scaled_diagonal.astype(kind)
    half = kind.type(0.5)

    def product(x: NDArray[np.floating]) -> NDArray[np.floating]:
        x = x.ravel().astype(kind, copy=False)
        made: NDArray[np.floating] = half * (p @ (q.T @ x) + q @ (p.T @ x)) - taken * x
        return made

    start = np.sqrt(np.maximum(graph.degrees, 0)) / np.sqrt(max(graph.degrees.mean(), 1e-300))
    start += 0.1 * np.random.default_rng(_SEED).standard_normal(len(graph))
    operator = LinearOperator((len(graph), len(graph)), matvec=product, dtype=kind)
    try:
        which = "LM" if graph.literal else "LA"
        values, vectors = eigsh(operator, k=k, which=which, v0=start.astype(kind), ncv=min(len(graph), 2 * k + 20))
    except (ArpackNoConvergence, ArpackError):  # a flat spectrum, for which ARPACK may not converge
        return streamed(graph, k)
    order = _order(graph, values)
    return values[order].astype(np.float64), vectors[:, order].astype(np.float64)


def streamed(graph: MemoryGraph, k: int) -> tuple[Doubles, Doubles]:
    """As :func:`leading`, by the Gram matrix of the factors and Rayleigh-Ritz."""
    from scipy.linalg import eigh

    width = graph.b.shape[1] + graph.shifted
    gram = np.zeros((2 * width, 2 * width))
    for _, p, q in graph.blocks():
        both = np.hstack([p, q])
        gram += both.T @ both
    # Low rank part: W C W^T with W = [P, Q] and C = [[0, 1/2], [1/2, 0]]. With G = W^T W = R R^T its eigenvalues are
    # those of R^T C R, and its eigenvectors W y, where y = R^-T z (R by the eigenvectors of G, since G may be
    # singular).
    weights, basis = np.linalg.eigh(gram)
    kept = weights > max(weights.max(), 0.0) * 1e-10
    root = basis[:, kept] * np.sqrt(weights[kept])
    swapped = np.vstack([root[width:], root[:width]]) / 2
    values, small = np.linalg.eigh(root.T @ swapped)
    order = _order(graph, values)[: k + EXTRA]
    maps = (basis[:, kept] / np.sqrt(weights[kept])) @ small[:, order]
    vectors = np.empty((len(graph), len(order)), dtype=graph.b.dtype)
    maps_as = maps.astype(graph.b.dtype)
    for start, p, q in graph.blocks():
        vectors[start : start + len(p)] = p @ maps_as[:width] + q @ maps_as[width:]
    # Rayleigh-Ritz with the diagonal: L in this basis is diag(values) less V^T T V. The basis is orthonormal up to
    # rounding, which the second Gram matrix corrects.
    taken = graph.scaled_diagonal
    norms, less = np.zeros((len(order), len(order))), np.zeros((len(order), len(order)))
    for start in range(0, len(graph), 1 << 16):
        rows = vectors[start : start + (1 << 16)].astype(np.float64)
        norms += rows.T @ rows
        less += rows.T @ (rows * taken[start : start + len(rows), None])
    missing = min(k, len(graph)) - len(order)
    if missing > 0:
        return _ritz(graph, np.pad(vectors, ((0, 0), (0, missing))), k)
    if np.abs(norms - np.eye(len(order))).max() > _NOT_ORTHONORMAL:
        return _ritz(graph, vectors, k)
    ritz, turn = eigh(norms @ np.diag(values[order]) @ norms - less, norms)
    best = _order(graph, ritz)[:k]
    return ritz[best], vectors @ turn[:, best]


def _ritz(graph: MemoryGraph, vectors: NDArray[np.floating], k: int) -> tuple[Doubles, Doubles]:
    """Rayleigh-Ritz in the span of any vectors, by one more pass; of many equal texts, some are rounding errors."""
    basis = np.linalg.qr(vectors.astype(np.float64))[0]
    from_p, from_q = (np.zeros((graph.b.shape[1] + graph.shifted, basis.shape[1])) for _ in range(2))
    for start, p, q in graph.blocks():
        from_p += p.T @ basis[start : start + len(p)]
        from_q += q.T @ basis[start : start + len(q)]
    half = from_p.T @ from_q
    ritz, turn = np.linalg.eigh((half + half.T) / 2 - basis.T @ (basis * graph.scaled_diagonal[:, None]))
    best = _order(graph, ritz)[:k]
    return ritz[best], basis @ turn[:, best]


def _order(graph: MemoryGraph, values: Doubles) -> NDArray[np.intp]:
    """Places of the eigenvalues, the leading one first."""
    order: NDArray[np.intp] = np.argsort(-(np.abs(values) if graph.literal else values), kind="stable")
    return order
