"""Rows of numbers under sorted names, and the changes of a write to them."""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowValues", "SortedPlaces", "edited", "renamed", "renewed"]

Integers = NDArray[np.int64]


class SortedPlaces(Mapping[str, int]):
    """The place of each name in a sorted sequence, without a dictionary.

    >>> places = SortedPlaces(("loom", "shed", "silk"))
    >>> places["silk"], "flax" in places
    (2, False)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __getitem__(self, name: str) -> int:
        place = bisect_left(self._names, name)
        if place == len(self._names) or self._names[place] != name:
            raise KeyError(name)
        return place

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class RowValues(Mapping[str, float]):
    """A number for each name in a sorted sequence; a name with the number 0 counts as absent.

    >>> dict(RowValues(("loom", "shed", "silk"), np.array([0.5, 0.0, 1.0])))
    {'loom': 0.5, 'silk': 1.0}
    """

    def __init__(self, names: Sequence[str], numbers: NDArray[np.float64]) -> None:
        self.names, self.numbers = names, numbers
        self._places = SortedPlaces(names)

    def __getitem__(self, name: str) -> float:
        found = float(self.numbers[self._places[name]])
        if not found:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (self.names[place] for place in np.flatnonzero(self.numbers).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self.numbers))


def renamed(
    names: tuple[str, ...], removed: Collection[str], added: Collection[str]
) -> tuple[tuple[str, ...], Integers]:
    """Sorted names after a change, and the new place of each old name, -1 for a removed one.

    Names are distinct; the removed ones are in `names`, the added ones are not.

    >>> found, places = renamed(("loom", "shed", "silk"), ["shed"], ["flax"])
    >>> found, places.tolist()
    (('flax', 'loom', 'silk'), [1, -1, 2])
    """
    if not removed and not added:
        return names, np.arange(len(names))
    out = [(bisect_left(names, name), True, name) for name in removed]
    into = [(bisect_left(names, name), False, name) for name in added]
    found: list[str] = []
    start = 0
    for place, is_removed, name in sorted([*out, *into]):  # a new name comes before the old one at its place
        found += names[start:place]
        found += [] if is_removed else [name]
        start = place + is_removed
    shift = np.zeros(len(names) + 1, np.int64)
    np.add.at(shift, [place for place, _, _ in into], 1)
    np.add.at(shift, [place + 1 for place, _, _ in out], -1)
    places = np.arange(len(names)) + np.cumsum(shift)[:-1]
    places[[place for place, _, _ in out]] = -1
    return (*found, *names[start:]), places


def edited(row: Sequence[Integers], out: Sequence[int], entries: Sequence[tuple[int, ...]]) -> list[Integers]:
    """The columns of a row after a change of its entries, in the order of the first column.

    Entries are left out whose first value is below 0 or in `out`.

    >>> [column.tolist() for column in edited([np.array([2, 5, 7]), np.array([1, 1, 1])], [5], [(3, 9)])]
    [[2, 3, 7], [1, 9, 1]]
    """
    kept = (row[0] >= 0) & ~np.isin(row[0], np.array(out, np.int64))
    new = np.array(entries, np.int64).reshape(len(entries), len(row))
    columns = [np.concatenate([column[kept], new[:, at]]) for at, column in enumerate(row)]
    order = np.argsort(columns[0], kind="stable")
    return [column[order] for column in columns]


def renewed(
    starts: Integers, columns: Sequence[Integers], places: Integers, count: int, new: Mapping[int, Sequence[Integers]]
) -> tuple[Integers, list[Integers]]:
    """`starts` and `columns` of all rows after a write.

    Parameters
    ----------
    starts : shape (n + 1,), where the entries of each old row begin and the last ends
    columns : each of shape (m,), one value of each entry
    places : shape (n,), the new place of each old row, ascending, -1 for a removed one
    count : number of new rows
    new : place of a row that is new or has changed -> its columns
    """
    is_new = np.zeros(count, np.bool_)
    is_new[list(new)] = True
    stays = places >= 0
    stays[stays] = ~is_new[places[stays]]
    sizes, lengths = np.diff(starts), np.zeros(count, np.int64)
    lengths[places[stays]] = sizes[stays]
    for row, own in new.items():
        lengths[row] = len(own[0])
    kept, given = np.repeat(stays, sizes), np.repeat(is_new, lengths)
    order, found = sorted(new), []
    for at, column in enumerate(columns):
        values = np.empty(int(lengths.sum()), np.int64)
        values[~given] = column[kept]
        values[given] = np.concatenate([new[row][at] for row in order]) if order else []
        found.append(values)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), found
