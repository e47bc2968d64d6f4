"""The largest of some numbers, of which most may be equal, as the scores of chunks without a word of the question."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["largest"]


def largest(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """The places of the `count` largest values, in any order; of equal ones, any.

    `np.argpartition` takes up to a hundred times as long where most values are equal, so it is not given those that
    equal the least one.

    Parameters
    ----------
    values : shape (n,)
    count : from 0 to n

    >>> sorted(largest(np.array([0.0, 3.0, 0.0, 1.0, 0.0]), 2).tolist())
    [1, 3]
    """
    if not count:
        return np.empty(0, np.intp)
    is_above = values > values.min()
    above = np.flatnonzero(is_above)
    if len(above) > count:
        return above[np.argpartition(values[above], len(above) - count)[-count:]]
    return np.concatenate([above, np.flatnonzero(~is_above)[: count - len(above)]])
