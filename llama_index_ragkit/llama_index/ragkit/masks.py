"""Filter masks of derived rows, which pass if all their sources pass, and a cache for recent masks."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEW", "RecentMasks", "shown"]

T = TypeVar("T")
Mask = NDArray[np.bool_]
FEW = 4  # masks


class RecentMasks(Generic[T]):
    """What was made for recent masks, so that a filter in use costs nothing.

    Kept are the last four, and of more the last that together allow no more rows than there are. So filters that divide
    the rows among them, such as those of tenants, are all kept, and take the memory of one that allows all rows.

    Parameters
    ----------
    most : how many are kept at most; `FEW` where what is made is as large as the index, whatever the mask allows
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._made: dict[bytes, tuple[T, int]] = {}  # the last one first, each with the number of rows it allows

    def of(self, mask: Mask, make: Callable[[Mask], T]) -> T:
        """Return `make(mask)`, made now or kept from before."""
        key = mask.tobytes()
        made = self._made
        found = made.get(key) or (make(mask), int(np.count_nonzero(mask)))
        kept: dict[bytes, tuple[T, int]] = {}
        allowed = 0
        for i, (other, entry) in enumerate([(key, found), *(each for each in made.items() if each[0] != key)]):
            allowed += entry[1]
            if i < FEW or (i < self._most and allowed <= mask.size):
                kept[other] = entry
        self._made = kept  # at once, for other threads
        return found[0]


def shown(sources: Iterable[NDArray[np.intp]], allowed: Mask | None) -> Mask | None:
    """Which derived rows may be returned: those whose sources all exist and are allowed; None for all.

    Parameters
    ----------
    sources : for each derived row the rows of its sources, -1 for one that was deleted
    allowed : mask of the sources' rows
    """
    if allowed is None:
        return None
    return np.array([bool((rows >= 0).all() and allowed[rows].all()) for rows in sources], dtype=np.bool_)
