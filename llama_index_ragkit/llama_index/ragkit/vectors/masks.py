"""Filter masks of derived rows, which pass if all their sources pass, and a cache for the last few masks."""

from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.snapshot import Mask

__all__ = ["recent", "shown"]

T = TypeVar("T")
_MOST = 4


def recent(made: dict[bytes, T], mask: Mask, make: Callable[[Mask], T]) -> T:
    """Return `make(mask)`, cached for the last four masks, so that a recently used filter costs nothing.

    Parameters
    ----------
    made : the cache, by the bytes of the masks
    """
    key = mask.tobytes()
    found = made.get(key)
    if found is None:
        for old in list(made)[: max(0, len(made) + 1 - _MOST)]:
            made.pop(old, None)
        found = made[key] = make(mask)
    return found


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
