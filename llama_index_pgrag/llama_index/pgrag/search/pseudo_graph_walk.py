"""The pseudo-graph walk on matrices (section 2.4, Eq. 5 to 9, Algorithm 1): which fact paths support one another.

The candidates are a *template*: one row for each fact path, one column for each depth, so that column 0 is the topic
and the last cell of a row its fact. Rows of different length are padded with -1. Let s_k(c) be the cosine of key point
k with cell c, and v that of a seed (a fact that is near to the key point):

1. Control. A cell whose difference to v is at most `support` contributes s; a cell with at most `fuzzy` contributes
   half of s. Any other cell is rejected and contributes nothing.
2. Pathway. The walk goes from the seed to the left, up to the first rejected cell; the last cell before it is the
   boundary. All rows below the cell at the boundary are reachable, each to the right, up to its first rejected cell.
3. Staining. The contributions of the reachable cells, summed over all seeds of all key points, are the aggregate
   matrix. The score of a path is the sum of its row.

Differences from the paper and the published code, with an option for the published behaviour if possible:

- The difference is v - s (`signed`): a cell that is nearer to the key point than the seed supports it. With `absolute`,
  as published, the walk stops at the ancestors that match best.
- Rows below one cell are found by its id. The published code requires them to be adjacent, which nothing ensures.
- Cells with a negative cosine to the key point contribute nothing; in the published code they lower the sum.
- Only paths with a positive score are results; the published code fills the list with rows of score 0.
- The right boundary of a row is its last cell (Eq. 7 as printed gives the first).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.config import SIGNED_CONTROL, Control

__all__ = ["Walk", "walk"]

Ids = NDArray[np.int64]
Sims = NDArray[np.float64]


class Walk(NamedTuple):
    """The result of a walk.

    Attributes
    ----------
    scores : shape (rows,), the sums of the aggregate matrix, at least 0; comparable within one walk
    seeds : shape (key points, seeds), the rows that were seeds, best first
    stained : shape (key points, seeds, rows), the contribution of each seed to each row
    """

    scores: Sims
    seeds: NDArray[np.intp]
    stained: Sims


def walk(ids: Ids, sims: Sims, num_seeds: int, control: Control = SIGNED_CONTROL) -> Walk:
    """Score the fact paths of a template; the contributions of several key points or seeds to a row add up.

    Parameters
    ----------
    ids : shape (rows, columns), cell ids; equal ids in a column are one cell; -1 is padding, only at the end of a row.
        A row with only padding scores 0
    sims : shape (key points, rows, columns), cosines; the values of padding are not read
    num_seeds : number of rows from which each key point starts (the nearest facts; ties by row), at least 1
    """
    rows, columns = ids.shape
    filled = ids >= 0
    leaf = filled.sum(axis=1) - 1
    usable = np.flatnonzero(leaf >= 0)
    count = min(num_seeds, len(usable))
    keys = np.arange(len(sims))
    leaves = sims[:, usable, leaf[usable]]
    seeds = usable[np.argsort(-leaves, axis=1, kind="stable")[:, :count]].reshape(len(sims), count)
    stained = np.zeros((len(sims), count, rows))
    for k in keys if count else ():
        own = seeds[k]
        level = sims[k, own, leaf[own]]  # the cosines of the seeds
        weights = control.weights(sims[k][np.newaxis], level[:, np.newaxis, np.newaxis]) * filled
        kept = weights > 0  # shape (seeds, rows, columns)
        bounds = _boundaries(kept[np.arange(count), own], leaf[own])
        start = ids[own, bounds]
        reachable = (ids[:, bounds] == start).T  # shape (seeds, rows)
        before = np.arange(columns) < bounds[:, np.newaxis, np.newaxis]
        unbroken = np.logical_and.accumulate(kept | before, axis=2) & ~before
        parts = np.maximum(sims[k], 0.0) * weights * unbroken
        stained[k] = np.where(filled, parts, 0.0).sum(axis=2) * reachable
    return Walk(stained.sum(axis=(0, 1)), seeds, stained)


def _boundaries(kept: NDArray[np.bool_], leaf: NDArray[np.intp]) -> NDArray[np.intp]:
    """For each seed, the column where its walk to the left ends: one after the last cell that is not kept, or 0."""
    columns = kept.shape[1]
    beyond = np.arange(columns) >= leaf[:, np.newaxis]  # the seed itself is always kept
    rejected = ~(kept | beyond)
    # One more than the last rejected column before the leaf; 0 if there is none.
    last: NDArray[np.intp] = (columns - np.argmax(rejected[:, ::-1], axis=1)) * rejected.any(axis=1)
    return last
