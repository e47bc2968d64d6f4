"""Half of a grid of tests, in which each value is left, and each pair of values of two of its axes.

The axes are the test function and its parameters. A function whose only parameter is the method is run with half of the
methods, and a method with half of these functions. Of two parameters each pair is left if a module has functions of
both parities.
"""

from collections.abc import Mapping
from zlib import crc32

__all__ = ["is_left"]

_METHOD = {"case", "_case"}


def is_left(function: str, places: Mapping[str, int]) -> bool:
    """Whether a test is one of its half of the grid.

    Parameters
    ----------
    function : its name
    places : of its parameters among their values, by name; a single one that is not the method is no grid
    """
    if len(places) < 2 and not places.keys() & _METHOD:
        return True
    return (crc32(function.encode()) + sum(places.values())) % 2 == 0
