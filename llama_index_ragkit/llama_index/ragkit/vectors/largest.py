"""The largest of some numbers, of which most may be equal, as the scores of chunks without a word of the question."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest"]

_BLOCKS = 8  # for each value that is looked for: few values above the floor. Shorter blocks cost more than they save


def largest(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """The places of the `count` largest values, in any order; of equal ones, any.

    `np.argpartition` takes up to a hundred times as long where most values are equal, and longer than a scan for a
    maximum in any case. So it is given only the values above a floor: the `count`-th largest of the maxima of blocks,
    which at least `count` values reach.

    Parameters
    ----------
    values : shape (n,)
    count : from 0 to n

    >>> sorted(largest(np.array([0.0, 3.0, 0.0, 1.0, 0.0]), 2).tolist())
    [1, 3]
    """
    if not count:
        return np.empty(0, np.intp)
    floor = _floor(values, count)
    above = np.flatnonzero(values > floor)
    if len(above) > count:
        return above[np.argpartition(values[above], len(above) - count)[-count:]]
    return np.concatenate([above, np.flatnonzero(values == floor)[: count - len(above)]])


def _floor(values: NDArray[Any], count: int) -> Any:
    """A value that at least `count` of the values reach."""
    width = len(values) // (_BLOCKS * count)
    if width < _BLOCKS:
        return values.min()
    maxima = np.maximum.reduceat(values, np.arange(0, len(values), width))
    return np.partition(maxima, len(maxima) - count)[len(maxima) - count]
