"""The data of rows besides their vectors: as objects, or as the bytes of a file, made into objects on request.

Both are written to in the same way. Rows that are added to those of a file are objects.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import eq
from typing import Any, Generic, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.packed_words import PackedNames, PackedWords

__all__ = ["OVERWRITTEN", "NewestRows", "Record", "RowsView", "StoredRecords"]

T = TypeVar("T")


class Record(NamedTuple):
    """The data of a row besides its vector.

    `key` orders rows of equal score. `metadata` and `node` are JSON text, which takes half the memory of objects, is
    immutable, and is fast to persist and load.
    """

    id: str
    ref_doc_id: str | None
    key: str
    metadata: str
    node_type: str | None = None
    node: str | None = None


_OFTEN = 2  # look-ups per row after which a dictionary is worth its memory

OVERWRITTEN = Record("", None, "", "{}")


class StoredRecords:
    """The records of a file, without nodes, and records added later.

    Parameters
    ----------
    names : the ids
    rest : the other fields of each record, as JSON
    """

    def __init__(self, names: PackedNames, rest: PackedWords) -> None:
        self._names, self._rest = names, rest
        self._further: list[Record] = []

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "StoredRecords":
        """The records of :meth:`to_arrays`."""
        names = PackedNames(PackedWords.of_arrays(arrays["ids"], arrays["id_ends"]), arrays["sums"], arrays["places"])
        return cls(names, PackedWords.of_arrays(arrays["rest"], arrays["rest_ends"]))

    @staticmethod
    def to_arrays(records: Sequence[Record]) -> dict[str, NDArray[Any]]:
        """The form in which records are stored."""
        names = PackedNames.of(PackedWords([record.id for record in records]))
        rest = PackedWords([json.dumps(record[1:5]) for record in records])
        (ids, id_ends), (sums, places), (letters, ends) = names.names.arrays, names.arrays, rest.arrays
        return {"ids": ids, "id_ends": id_ends, "sums": sums, "places": places, "rest": letters, "rest_ends": ends}

    def newest(self) -> "NewestRows":
        """Which row has which id."""
        return NewestRows(self._names)

    def __len__(self) -> int:
        return len(self._rest) + len(self._further)

    @overload
    def __getitem__(self, row: int) -> Record: ...

    @overload
    def __getitem__(self, row: slice) -> list[Record]: ...

    def __getitem__(self, row: int | slice) -> Record | list[Record]:
        if isinstance(row, slice):
            return [self[i] for i in range(*row.indices(len(self)))]
        if row >= len(self._rest):
            return self._further[row - len(self._rest)]
        rest = self._rest.encoded(row)
        return OVERWRITTEN if rest[0] == 0 else Record(self._names.names[row], *json.loads(rest))

    def id_of(self, row: int) -> str:
        """The id of a row."""
        return self._names.names[row] if row < len(self._rest) else self._further[row - len(self._rest)].id

    def __setitem__(self, row: int, record: Record) -> None:
        """Overwrite a record; a record of the file can only become `OVERWRITTEN`."""
        if row >= len(self._rest):
            self._further[row - len(self._rest)] = record
        else:
            self._rest.erase(row)
            self._names.names.erase(row)  # it is not found from here on

    def extend(self, records: Sequence[Record]) -> None:
        """Add further records."""
        self._further.extend(records)


class NewestRows:
    """The newest row of each id: stored ids are kept as bytes, others in a dictionary.

    A dictionary takes ten times the memory and a fifth of the time. It gets the stored ids as well after many look-ups,
    as in a method whose questions look up thousands each.
    """

    def __init__(self, stored: PackedNames) -> None:
        self._stored = stored
        self._own: dict[str, int] = {}
        self._looked_up = 0

    def get(self, row_id: str, default: int = -1) -> int:
        """The row of an id."""
        row = self._own.get(row_id, -1)
        if row < 0:
            row = int(self.rows_of([row_id])[0])
        return default if row < 0 else row

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.intp]:
        """The row of each id; -1 if there is none."""
        most = _OFTEN * len(self._stored.names)
        if self._looked_up <= most < self._looked_up + len(ids):
            for row, row_id in enumerate(self._stored.names):
                self._own.setdefault(row_id, row)  # no snapshot shows a row that is overwritten meanwhile
        self._looked_up += len(ids)
        if self._looked_up > most:
            return np.fromiter(map(self._own.get, ids, repeat(-1)), np.intp, len(ids))
        rows = self._stored.places_of(ids)
        if self._own:
            for i, row_id in enumerate(ids):
                rows[i] = self._own.get(row_id, rows[i])
        return rows

    def __contains__(self, row_id: str) -> bool:
        return self.get(row_id) >= 0

    def __getitem__(self, row_id: str) -> int:
        row = self.get(row_id)
        if row < 0:
            raise KeyError(row_id)
        return row

    def __setitem__(self, row_id: str, row: int) -> None:
        self._own[row_id] = row

    def __delitem__(self, row_id: str) -> None:
        self._own.pop(row_id, None)


class RowsView(Sequence[T], Generic[T]):
    """One field of some rows, made on request.

    Parameters
    ----------
    item : row -> its field
    rows : the rows
    lease : kept so that the rows are not overwritten
    """

    def __init__(self, item: Callable[[int], T], rows: Sequence[int] | NDArray[np.intp], lease: object) -> None:
        self._item, self._rows, self._lease = item, rows, lease

    def __eq__(self, other: object) -> bool:  # as the list that it stands for
        return self is other or (
            isinstance(other, list | RowsView) and len(self) == len(other) and all(map(eq, self, other))
        )

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: SupportsIndex) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: SupportsIndex | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self._item(int(row)) for row in self._rows[place]]
        return self._item(int(self._rows[place.__index__()]))

    def __iter__(self) -> Iterator[T]:
        return map(self._item, map(int, self._rows))
