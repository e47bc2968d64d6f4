"""Arrays by name, where those of a part have its name before their own: `words/lengths`."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

__all__ = ["Arrays", "nested", "part_of"]

Arrays = Mapping[str, NDArray[Any]]


def nested(parts: Mapping[str, Arrays]) -> dict[str, NDArray[Any]]:
    """The arrays of all parts, which :func:`part_of` takes apart again.

    >>> nested({"words": {"lengths": 1}, "state": {"lengths": 2}})
    {'words/lengths': 1, 'state/lengths': 2}
    """
    return {f"{part}/{name}": array for part, arrays in parts.items() for name, array in arrays.items()}


def part_of(arrays: Arrays, part: str) -> dict[str, NDArray[Any]]:
    """The arrays of one part by their own names; none if it is not there."""
    start = f"{part}/"
    return {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}
