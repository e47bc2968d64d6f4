"""Selection of themes from eigenvectors: their number, sign and members. Pure functions on arrays.

The paper (section III.B.1) takes "the top e components" of each eigenvector. It does not specify the number of vectors,
their sign, e, or the treatment of the first one. Here (measurements in the docs):

- the first vector is D^1/2 times ones and selects hubs, not a theme: it is skipped;
- the number of themes is at the largest relative drop of the eigenvalues (Remark 2 of the paper requires a ratio close
  to 1, which a complete graph of cosines never has);
- the leading vectors are rotated by varimax, since eigenvectors are orthogonal but themes need not be;
- the sign is that of the heavier tail;
- members are the largest components, down to a share of the largest.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Members", "oriented", "theme_count", "top_components", "varimax"]

Doubles = NDArray[np.float64]
_TURNS = 100
_SETTLED = 1e-10
_LEAST_VALUE = 1e-9  # smaller eigenvalues are rounding errors


class Members(NamedTuple):
    """The nodes of a theme, strongest first, and their components."""

    rows: NDArray[np.intp]
    weights: Doubles


def theme_count(values: Doubles, most: int) -> int:
    """The number of themes of a spectrum: the d in 2..most with the largest (v_d - v_d+1) / v_d.

    Parameters
    ----------
    values : eigenvalues without the first, descending; the drop after the last one is unknown
    most : the largest number of themes

    Returns
    -------
    At most `most` and at most the number of positive values; 0 if there is none

    Examples
    --------
    >>> theme_count(np.array([.20, .18, .16, .12, .10, .054, .008, .007]), 7)
    6
    >>> theme_count(np.array([.2, -.1]), 5)
    1
    """
    positive = int((values > _LEAST_VALUE).sum())
    most = min(most, positive)
    if most < 2:
        return max(most, 0)
    last = min(most, len(values) - 1)
    if last < 2:
        return most
    drops = (values[1:last] - np.maximum(values[2 : last + 1], 0)) / values[1:last]
    return 2 + int(np.argmax(drops))


def varimax(vectors: Doubles) -> Doubles:
    """Rotate orthonormal columns so that each has few large components (Kaiser 1958), shape (n, k).

    Fixed-point iteration of the polar factor of V^T (Y^3 - Y diag(mean of Y^2)), Y = V R. The span of the columns does
    not change. Stops when the criterion converges, after at most `_TURNS` iterations.
    """
    n, k = vectors.shape
    if k < 2 or n < 2:
        return np.array(vectors, dtype=np.float64)
    turn = np.eye(k)
    reached = 0.0
    for _ in range(_TURNS):
        turned = vectors @ turn
        left, strengths, right = np.linalg.svd(vectors.T @ (turned**3 - turned * ((turned**2).sum(axis=0) / n)))
        turn = left @ right
        if strengths.sum() <= reached * (1 + _SETTLED):
            break
        reached = strengths.sum()
    rotated: Doubles = vectors @ turn
    return rotated


def oriented(vectors: Doubles) -> Doubles:
    """Columns with the sign that makes the sum of their cubes positive, or, if it is 0, their largest component."""
    cubes = (vectors**3).sum(axis=0)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)[0] if len(vectors) else cubes
    flat = np.abs(cubes) <= 1e-12
    signs = np.where(np.where(flat, largest, cubes) < 0, -1.0, 1.0)
    found: Doubles = vectors * signs
    return found


def top_components(vector: Doubles, size: int, share: float) -> Members:
    """The `size` largest components above 0 that are at least `share` of the largest; ties by row.

    Examples
    --------
    >>> top_components(np.array([.1, .8, -.9, .3]), 3, .25).rows.tolist()
    [1, 3]
    """
    # Rounded, so that differences in the last bits, which vary with the number of threads, have no effect.
    near: NDArray[np.intp] = np.argsort(-vector.round(10), kind="stable")[:size]
    least = share * vector[near[0]] if len(near) else 0.0
    kept = near[(vector[near] > 0) & (vector[near].round(10) >= least)]
    return Members(kept, vector[kept])
