"""Half of a grid of tests, in which each pair of values of two of its axes is left.

The axes are the test function and its parameters. Of two axes there is only the grid itself, so functions of two
parameters need at least two in a module of both parities.
"""

from collections.abc import Sequence
from zlib import crc32

__all__ = ["is_left"]


def is_left(function: str, places: Sequence[int]) -> bool:
    """Whether a test is one of its half of the grid.

    Parameters
    ----------
    function : its name
    places : of its parameters among their values; with one there is no grid
    """
    return len(places) < 2 or (crc32(function.encode()) + sum(places)) % 2 == 0
