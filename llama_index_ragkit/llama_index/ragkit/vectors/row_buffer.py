"""Append-only storage of vectors and their records, shared by snapshots, which hold leases on the rows they show."""

import json
import weakref
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from llama_index.ragkit.errors import ConfigurationError, EmbeddingError
from llama_index.ragkit.forks import ProcessLock
from llama_index.ragkit.vectors.kernels import Doubles, Floats, Rows, squared_norms
from llama_index.ragkit.vectors.row_records import OVERWRITTEN, NewestRows, Record, StoredRecords

__all__ = [
    "Codes",
    "Column",
    "Lease",
    "LeasedRows",
    "Leases",
    "Line",
    "Record",
    "Storage",
    "Vectors",
    "as_records",
    "as_vectors",
    "check_finite",
]

Codes = npt.NDArray[np.int32]
Storage = Literal["float32", "float16"]  # data type of stored vectors
Vectors = npt.NDArray[Any] | Sequence[Any]  # accepted input: an array (n, dim), or n sequences of numbers
_DOCUMENT_KEYS = frozenset({"ref_doc_id", "doc_id", "document_id"})


class Lease:
    """Held by a snapshot and by the arrays that it gave out; rows that it shows are not overwritten while it exists."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class LeasedRows:
    """The base of a read-only array over rows of a buffer: while the array exists, so does the lease."""

    __slots__ = ("_lease", "_rows")

    def __init__(self, rows: Floats, lease: Lease) -> None:
        self._rows, self._lease = rows, lease

    @property
    def __array_interface__(self) -> dict[str, Any]:
        address, _ = self._rows.__array_interface__["data"]
        return {**self._rows.__array_interface__, "data": (address, True)}


class Leases:
    """The leases on one line, in the order of their issue. It keeps numbers only, not the leases.

    A lease shows the rows below its count, without those that were hidden before it was issued. So a hidden row is
    shown by leases of an unbroken interval: from the first whose count exceeds the row to the one that was the newest
    when the row was hidden. Each hidden row waits at the newest lease that shows it. When that lease ends, the row
    moves on to the next older lease, if that shows it. The cost is constant for each row and lease.
    """

    def __init__(self) -> None:
        self._issued = 0
        self._numbers: list[int] = []  # of the leases that exist, ascending
        self._counts: dict[int, int] = {}
        self._waiting: dict[int, list[int]] = {}

    @property
    def newest(self) -> int:
        """The number that was issued last."""
        return self._issued

    def issue(self, count: int) -> int:
        """The number of a new lease on the first `count` rows."""
        number = self._issued + 1
        self._counts[number], self._waiting[number] = count, []
        self._numbers.append(number)
        self._issued = number
        return number

    def hide(self, number: int, rows: Iterable[int]) -> None:
        """Leases that are issued from now on do not show these rows; `number`, the newest lease, does."""
        self._waiting[number].extend(rows)

    def end(self, number: int) -> list[int]:
        """End a lease. Returns the hidden rows that no lease shows any more."""
        place = bisect_left(self._numbers, number)
        waiting = self._waiting[number]
        older = self._numbers[place - 1] if place else None
        count = 0 if older is None else self._counts[older]
        if older is not None:
            self._waiting[older].extend(row for row in waiting if row < count)
        del self._numbers[place], self._counts[number], self._waiting[number]
        return [row for row in waiting if row >= count]


def _values(records: Sequence[Record], key: str) -> list[Any]:
    """The value of a metadata filter's key in each row; None if the row has no such key.

    As in llama-index-core, the id of the document has three names, and is "None" if there is no document.
    """
    if key in _DOCUMENT_KEYS:
        return ["None" if record.ref_doc_id is None else record.ref_doc_id for record in records]
    if key == "_node_type":
        return [record.node_type for record in records]
    return [metadata.get(key) for metadata in json.loads(f"[{','.join(record.metadata for record in records)}]")]


class Column:
    """One metadata key of all rows: the distinct values, the code of each, and one code per row.

    The value of a code that no row has any more is None.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.code_of: dict[Any, int] = {}
        self.codes: Codes = np.empty(0, np.int32)
        self._uses: list[int] = []  # rows of each code

    def extend(self, values: Iterable[Any]) -> None:
        """Add the values of further rows. 1, 1.0 and True share a code: no filter distinguishes them."""
        codes = []
        for value in values:
            code = self.code_of.setdefault(_hashable(value), len(self.values))
            if code == len(self.values):
                self.values.append(value)
                self._uses.append(0)
            self._uses[code] += 1
            codes.append(code)
        self.codes = np.concatenate([self.codes, np.array(codes, np.int32)])

    def forget(self, rows: Rows) -> None:
        """Remove the values that only these rows have. Each row may be named once."""
        for code in self.codes[rows[rows < self.codes.size]].tolist():
            self._uses[code] -= 1
            if not self._uses[code]:
                self.code_of.pop(_hashable(self.values[code]), None)
                self.values[code] = None


def _hashable(value: Any) -> Any:
    return (type(value), repr(value)) if isinstance(value, (list, dict)) else value


class Line:
    """Append-only rows: those below a snapshot's count do not change while it shows them.

    One writer at a time; readers need no lock, since they read only rows below a count that was set after those rows
    were written. Hidden rows (vectors, records, values of metadata) are overwritten when the last lease that shows them
    ends: with the write that hides them, or when the last reader is done.
    """

    def __init__(self, vectors: Floats, inverse: Floats, records: list[Record] | StoredRecords) -> None:
        self.vectors = vectors
        self.inverse = inverse
        self.records = records
        self.newest: dict[str, int] | NewestRows = (
            records.newest()
            if isinstance(records, StoredRecords)
            else {record.id: row for row, record in enumerate(records)}
        )
        self.older: dict[int, int] = {}  # row -> the earlier row of the same id
        self._outgrown: list[weakref.ref[Floats]] = []  # earlier buffers, which arrays of snapshots may be views of
        self._columns: dict[str, Column] = {}
        self._tails: dict[int, Floats] = {}
        self._leases = Leases()
        self._ended: deque[int] = deque()
        self._lock = ProcessLock()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        finally:
            self._settle()

    def lease(self, count: int) -> Lease:
        """A lease on the first `count` rows, without those hidden so far."""
        with self._alone():
            lease = Lease(self._leases.issue(count))
        # The finalizer keeps the line alive while the lease exists, and the line does not refer to the lease. So there
        # is no cycle, and memory is freed at once.
        weakref.finalize(lease, self._end, lease.number).atexit = False
        return lease

    def is_newest(self, lease: Lease, count: int) -> bool:
        """Whether, since this lease, the line was not extended beyond this count and no row of it was hidden."""
        return self._leases.newest == lease.number and len(self.records) == count

    def hide(self, lease: Lease, rows: Rows) -> None:
        """Hide these rows from later leases; this one, the newest, still shows them."""
        with self._alone():
            self._leases.hide(lease.number, rows.tolist())

    def _end(self, number: int) -> None:
        self._ended.append(number)
        self._settle()

    def _settle(self) -> None:
        """Overwrite the rows of ended leases; if another caller has the lock, that caller will do it.

        It never waits, since a lease can end at any line of code, even in a thread that has the lock.
        """
        while self._ended and self._lock.acquire(blocking=False):
            try:
                while self._ended:
                    self._overwrite(self._leases.end(self._ended.popleft()))
            finally:
                self._lock.release()

    def _overwrite(self, hidden: list[int]) -> None:
        if not hidden:
            return
        rows = np.array(hidden, np.intp)
        buffers = [self.vectors, self.inverse, *self._tails.values()]
        for buffer in (*buffers, *(earlier() for earlier in self._outgrown)):
            if buffer is not None:
                buffer[rows[rows < len(buffer)]] = 0
        for column in self._columns.values():
            column.forget(rows)
        for row in hidden:
            row_id, self.records[row] = self.records[row].id, OVERWRITTEN
            if self.newest.get(row_id) == row:
                self._rename(row_id, row)

    def _rename(self, row_id: str, row: int) -> None:
        """The newest row of this id was overwritten: name an earlier one, which a lease may still show.

        `older` stays as it is, since it holds numbers only, and a concurrent reader may be following it.
        """
        while row >= 0 and self.records[row] is OVERWRITTEN:
            row = self.older.get(row, -1)
        if row < 0:
            del self.newest[row_id]
        else:
            self.newest[row_id] = row

    def extend(self, vectors: Floats, inverse: Floats, records: Sequence[Record]) -> None:
        """Append rows, in spare capacity if there is any."""
        with self._alone():
            start, stop = len(self.records), len(self.records) + len(records)
            if stop > len(self.vectors):
                capacity = max(stop, start + start // 2)
                self._outgrown = [earlier for earlier in self._outgrown if earlier() is not None]
                self._outgrown.append(weakref.ref(self.vectors))
                self.vectors, self.inverse = _grown(self.vectors, capacity), _grown(self.inverse, capacity)
            self.vectors[start:stop], self.inverse[start:stop] = vectors, inverse
            # From here on these rows are in use: after an interruption no snapshot has this many rows, and a new line
            # is started.
            self.records.extend(records)
            for row, record in enumerate(records, start):
                if record.id in self.newest:
                    self.older[row] = self.newest[record.id]  # before `newest`, for concurrent readers
                self.newest[record.id] = row

    def rows_of(self, ids: Sequence[str]) -> Rows:
        """The newest row of each id, whether or not a snapshot shows it; -1 if there is none."""
        if isinstance(self.newest, NewestRows):
            return self.newest.rows_of(ids)
        return np.fromiter(map(self.newest.get, ids, repeat(-1)), np.intp, len(ids))

    def tails(self, cut: int, count: int) -> Floats:
        """Norms of the first `count` vectors from coordinate `cut` on, computed once for each row."""
        with self._alone():
            known = self._tails.get(cut, np.empty(0, np.float32))
            if known.size < count:
                rest = np.ascontiguousarray(self.vectors[known.size : count, cut:])
                known = np.concatenate([known, np.sqrt(squared_norms(rest)).astype(np.float32)])
                self._tails[cut] = known
            return known[:count]

    def column(self, key: str, count: int) -> tuple[Column, Codes]:
        """The column of a metadata key for the first `count` rows, built on first use and extended later."""
        with self._alone():
            column = self._columns.setdefault(key, Column())
            if column.codes.size < count:
                column.extend(_values(self.records[column.codes.size : count], key))
            return column, column.codes[:count]


def _grown(array: Floats, capacity: int) -> Floats:
    larger = np.zeros((capacity, *array.shape[1:]), array.dtype)  # np.empty may have what others have freed
    larger[: len(array)] = array
    return larger


def as_records(
    ids: Sequence[str],
    ref_doc_ids: Sequence[str | None] | None,
    metadatas: Sequence[Mapping[str, Any]] | None,
    keys: Sequence[str] | None,
) -> list[Record]:
    """Records of rows without nodes; the defaults are no document, no metadata, and the id as key.

    Raises
    ------
    ConfigurationError
        If the lengths differ, an id or key is not a string, or metadata is not JSON.
    """
    keys = ids if keys is None else keys
    ref_doc_ids = [None] * len(ids) if ref_doc_ids is None else ref_doc_ids
    metadatas = [{}] * len(ids) if metadatas is None else metadatas
    lengths = {"ids": len(ids), "ref_doc_ids": len(ref_doc_ids), "metadatas": len(metadatas), "keys": len(keys)}
    if len(set(lengths.values())) > 1:
        raise ConfigurationError(f"One of each is needed per row, but there are {lengths}.")
    no_text = [value for value in (*ids, *keys) if not isinstance(value, str)]
    if no_text:
        raise ConfigurationError(f"The ids and keys of rows must be strings, not {no_text[0]!r}.")
    try:
        texts = [json.dumps(dict(metadata)) for metadata in metadatas]
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"Metadata must be JSON (texts, numbers, lists, None): {error}.") from error
    return list(map(Record, ids, ref_doc_ids, keys, texts))


def as_vectors(vectors: Vectors, dim: int | None, names: Sequence[str], dtype: Storage = "float32") -> Floats:
    """Vectors as rows of `dtype`, shape (n, dim); `dim` None stands for the length of the first.

    Raises
    ------
    EmbeddingError
        If some have another length or are not vectors; it names them.
    """
    if isinstance(vectors, np.ndarray) and vectors.ndim == 2:
        lengths = [vectors.shape[1]] * len(vectors)
    else:
        vectors = [_as_row(row) for row in vectors]
        lengths = [row.size if row.ndim == 1 else 0 for row in vectors]
    if not lengths:
        return np.empty((0, dim or 0), dtype)
    dim = dim or lengths[0]
    wrong = [f"{name!r} ({length})" for name, length in zip(names, lengths, strict=True) if length != dim or not length]
    if wrong:
        raise EmbeddingError(
            f"{len(wrong)} of {len(lengths)} vectors do not have the expected length {dim}: "
            f"{', '.join(wrong[:5])}. Embed everything with one model; use a separate store for another model."
        )
    with np.errstate(over="ignore"):  # values beyond the dtype become infinite, which check_finite reports
        return np.ascontiguousarray(vectors, dtype=dtype)


def _as_row(row: npt.ArrayLike) -> Floats:
    try:
        with np.errstate(over="ignore"):
            return np.asarray(row, dtype=np.float32)
    except (TypeError, ValueError):
        return np.empty(0, np.float32)  # not a vector: its length 0 is reported


def check_finite(vectors: Floats, names: Sequence[str]) -> Doubles:
    """Squared norms of the rows, shape (n,); EmbeddingError naming those with NaN or infinite values."""
    squares = squared_norms(vectors)
    wrong = [names[int(i)] for i in np.flatnonzero(~np.isfinite(squares))]
    if wrong:
        raise EmbeddingError(
            f"{len(wrong)} of {len(names)} vectors hold NaN or values beyond {vectors.dtype}: {wrong[:5]}. Nothing was "
            "stored; check what the embedding model returns for these texts."
        )
    return squares
