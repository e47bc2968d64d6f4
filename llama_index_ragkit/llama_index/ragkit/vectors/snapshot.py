"""`Snapshot`: an immutable state of the embedded vector store, over one growing matrix of float32 or float16.

Rows are only appended. The snapshots of one line share its arrays, and each sees the rows below its own count: a new
row is written to spare capacity that no earlier snapshot reads, so an insert copies nothing and does not affect
readers. A delete is a new mask, which also hides rows that were replaced by another with the same id. Hidden rows are
overwritten as soon as neither a snapshot nor an array of one shows them. When more than a quarter of the rows is
hidden, the others are copied to a new line.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from llama_index.ragkit.errors import ConfigurationError, StorageError
from llama_index.ragkit.short_repr import ShortRepr
from llama_index.ragkit.vectors.kernels import (
    Doubles,
    Floats,
    Rows,
    all_cosines,
    approximate,
    inverse_norms,
    mmr,
    squared_norms,
    top_k,
)
from llama_index.ragkit.vectors.pairs import Candidates, head_length, pairs_between
from llama_index.ragkit.vectors.row_buffer import (
    Codes,
    Column,
    LeasedRows,
    Line,
    Record,
    Storage,
    Vectors,
    as_vectors,
    check_finite,
)
from llama_index.ragkit.vectors.row_records import RowsView, StoredRecords

__all__ = ["Hits", "Mask", "Snapshot"]

Mask = npt.NDArray[np.bool_]

_BLOCK = 4096  # rows


class Hits(NamedTuple):
    """The results of one query, best first: ids, their scores, and their rows in the snapshot's arrays."""

    ids: list[str]
    scores: list[float]
    rows: Rows


class Snapshot(ShortRepr):
    """The state of a store at one moment, which later writes do not change.

    `ids[i]`, `matrix[i]` and every mask or row number refer to the same live row i; the order is unspecified.
    """

    def __init__(self, line: Line, count: int, alive: Mask | None = None) -> None:
        self._line = line
        self._count = count  # physical rows, hidden ones too
        self._alive = alive  # of the physical rows; None: all
        self._lease = line.lease(count)

    @classmethod
    def of(cls, vectors: Floats, records: Sequence[Record], squares: Doubles | None = None) -> "Snapshot":
        """A snapshot of these rows. The ids must be distinct and the vectors finite.

        An array that owns its memory is not copied: it then belongs to the snapshot, which may overwrite it.
        """
        if not (vectors.flags.owndata and vectors.flags.writeable):
            vectors = vectors.copy()
        inverse = inverse_norms(squared_norms(vectors) if squares is None else squares)
        return cls(Line(vectors, inverse, list(records)), len(records))

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> "Snapshot":
        """The snapshot of :meth:`to_arrays`, over the same memory, which then belongs to the snapshot."""
        records = StoredRecords.of_arrays(arrays)
        return cls(Line(arrays["vectors"], arrays["inverse"], records), len(records))

    def to_arrays(self) -> dict[str, npt.NDArray[Any] | Iterator[Floats]]:
        """The rows as arrays by name; the vectors come in blocks, so the matrix is not copied."""
        inverse = self._line.inverse[: self._count]
        return {
            "vectors": self.blocks(_BLOCK),
            "inverse": inverse if self._live is None else inverse[self._live],
            **StoredRecords.to_arrays(self.records),
        }

    @classmethod
    def empty(cls, dtype: Storage = "float32") -> "Snapshot":
        """No rows, and no dimension yet."""
        return cls.of(np.empty((0, 0), dtype), [])

    def __reduce__(self) -> tuple[Any, ...]:  # a copy has its own line and locks
        return (Snapshot.of, (self.matrix, list(self.records)))

    def _described(self) -> dict[str, Any]:
        return {"rows": len(self), "dim": self.dim}

    def __len__(self) -> int:
        return self._size

    def __contains__(self, row_id: str) -> bool:
        return self._locate(row_id) >= 0

    @property
    def dim(self) -> int | None:
        """Length of the vectors; None while there are none."""
        return self._line.vectors.shape[1] if self._count else None

    @property
    def dtype(self) -> Storage:
        """The data type of the vectors."""
        return "float16" if self._line.vectors.dtype == np.float16 else "float32"

    @cached_property
    def _size(self) -> int:
        return self._count if self._alive is None else int(np.count_nonzero(self._alive))

    @cached_property
    def _live(self) -> Rows | None:
        return None if self._alive is None else np.flatnonzero(self._alive)

    @property
    def _vectors(self) -> Floats:
        """The physical rows, read-only; the array keeps the lease."""
        return np.asarray(LeasedRows(self._line.vectors[: self._count], self._lease))

    @cached_property
    def matrix(self) -> Floats:
        """The vectors, shape (n, dim), read-only: a view, or after a delete one copy per snapshot."""
        matrix = self._vectors if self._live is None else self._vectors[self._live]
        matrix.flags.writeable = False
        return matrix

    @cached_property
    def squares(self) -> Doubles:
        """Squared length of each vector, shape (n,), for exact cosines with many questions. Must not be changed."""
        return squared_norms(self.matrix)

    def blocks(self, size: int) -> Iterator[Floats]:
        """The vectors in blocks of `size` rows, without a copy of the whole matrix."""
        vectors = self._vectors
        for start in range(0, len(self), size):
            stop = start + size
            yield vectors[start:stop] if self._live is None else vectors[self._live[start:stop]]

    def columns(self, start: int, stop: int) -> Floats:
        """Coordinates `start` to `stop` of every vector, shape (n, stop - start), in float32. Must not be changed."""
        part = self._vectors[:, start:stop]
        # Gathering before the conversion takes a quarter less time than both at once.
        return np.ascontiguousarray(part if self._live is None else part[self._live]).astype(np.float32, copy=False)

    @cached_property
    def records(self) -> list[Record] | RowsView[Record]:
        """The records of the rows. Must not be changed."""
        records = self._line.records
        if isinstance(records, StoredRecords):
            return RowsView(records.__getitem__, self._shown, self._lease)
        return records[: self._count] if self._live is None else [records[row] for row in self._live]

    @cached_property
    def ids(self) -> list[str] | RowsView[str]:
        """The ids of the rows. Must not be changed."""
        records = self._line.records
        if isinstance(records, StoredRecords):
            return RowsView(records.id_of, self._shown, self._lease)
        return [record.id for record in self.records]

    @property
    def _shown(self) -> Sequence[int] | Rows:
        return range(self._count) if self._live is None else self._live

    def _locate(self, row_id: str) -> int:
        row = self._line.newest.get(row_id, -1)
        while row >= 0 and (row >= self._count or (self._alive is not None and not self._alive[row])):
            row = self._line.older.get(row, -1)
        return row

    def _physical(self, ids: Sequence[str]) -> Rows:
        rows = self._line.rows_of(ids)
        hidden = rows >= self._count
        if self._alive is not None:
            hidden |= (rows >= 0) & ~self._alive[np.where(hidden, 0, rows)]
        for i in np.flatnonzero(hidden).tolist():
            rows[i] = self._locate(ids[i])
        return rows

    def rows_of(self, ids: Sequence[str]) -> Rows:
        """Row of each id; -1 if there is none."""
        rows = self._physical(ids)
        return rows if self._live is None else np.where(rows < 0, -1, np.searchsorted(self._live, rows))

    def rows_before(self, earlier: "Snapshot") -> Rows:
        """The row of each row in an earlier snapshot, shape (n,); -1 for one that was added since.

        A row that was replaced since has -1 or the row of its id. For snapshots of the same store no id is looked up.
        """
        if self._line is not earlier._line:
            return earlier.rows_of(self.ids)
        place = np.full(max(self._count, earlier._count), -1, np.intp)
        place[slice(earlier._count) if earlier._live is None else earlier._live] = np.arange(len(earlier))
        return place[: self._count] if self._live is None else place[self._live]

    def _known(self, ids: Sequence[str]) -> Rows:
        rows = self._physical(ids)
        if rows.size and rows.min() < 0:
            missing = [ids[i] for i in np.flatnonzero(rows < 0)[:5]]
            raise StorageError(
                f"This store of {len(self)} rows has no rows with the ids {missing}; test `id in snapshot` first."
            )
        return rows

    def _known_row(self, row_id: str) -> int:
        row = self._locate(row_id)
        return row if row >= 0 else int(self._known([row_id])[0])

    def row_of(self, row_id: str) -> int:
        """Row of an id; StorageError if there is none."""
        row = self._known_row(row_id)
        return row if self._live is None else int(np.searchsorted(self._live, row))

    def vectors_of(self, ids: Sequence[str]) -> Floats:
        """Vectors of the ids in their order, a float32 copy, shape (len(ids), dim); StorageError if one is missing."""
        return self._line.vectors[self._known(ids)].astype(np.float32, copy=False)

    def record_of(self, row_id: str) -> Record:
        """The record of an id; StorageError if there is no such row."""
        return self._line.records[self._known_row(row_id)]

    def metadata_of(self, row_id: str) -> dict[str, Any]:
        """A copy of the metadata of an id; StorageError if there is no such row."""
        metadata: dict[str, Any] = json.loads(self.record_of(row_id).metadata)
        return metadata

    def column(self, key: str) -> tuple[Column, Codes]:
        """One metadata key, factorised: its distinct values, and the code of each row, shape (n,)."""
        column, codes = self._line.column(key, self._count)
        return column, codes if self._live is None else codes[self._live]

    def append(self, vectors: Floats, records: Sequence[Record]) -> "Snapshot":
        """A snapshot with these rows added, replacing those with the same ids; the last of duplicate ids wins.

        Raises
        ------
        EmbeddingError
            If vectors are not finite.
        """
        if not records:
            return self
        squares = check_finite(vectors, [record.id for record in records])
        last = {record.id: row for row, record in enumerate(records)}
        if len(last) < len(records):
            rows = list(last.values())
            vectors, squares, records = vectors[rows], squares[rows], [records[row] for row in rows]
        if not self._count:
            return Snapshot.of(vectors.copy(), records, squares)
        if not self._is_newest:
            return self.compacted().append(vectors, records)
        replaced = self._physical([record.id for record in records])
        self._line.extend(vectors, inverse_norms(squares), records)
        alive = None if self._alive is None else np.concatenate([self._alive, np.ones(len(records), np.bool_)])
        return Snapshot(self._line, self._count + len(records), alive)._hiding(replaced[replaced >= 0])

    def part(self, rows: Rows) -> "Snapshot":
        """A snapshot of some rows, which are copied."""
        physical = rows if self._live is None else self._live[rows]
        return Snapshot.of(self._line.vectors[physical], [self._line.records[row] for row in physical.tolist()])

    def joined(self, others: "Snapshot") -> "Snapshot":
        """A snapshot that also has the rows of another, which must share no id with it; either may be empty."""
        if not len(self):
            return others
        return self.append(others.matrix, others.records) if len(others) else self

    def only(self, mask: Mask) -> "Snapshot":
        """A snapshot with the rows of a mask, shape (n,), which are copied; this one and its store keep the others."""
        return Snapshot.of(self.matrix[mask], [self.records[row] for row in np.flatnonzero(mask).tolist()])

    def without(self, rows: Rows) -> "Snapshot":
        """A snapshot without these rows."""
        if not self._is_newest:
            return self.compacted().without(rows)
        return self._hiding(rows if self._live is None else self._live[rows])

    def _hiding(self, physical: Rows) -> "Snapshot":
        if not physical.size:
            return self
        alive = np.ones(self._count, np.bool_) if self._alive is None else self._alive.copy()
        alive[physical] = False
        self._line.hide(self._lease, physical)
        rest = Snapshot(self._line, self._count, alive)
        return rest.compacted() if 4 * len(rest) < 3 * self._count else rest

    @property
    def _is_newest(self) -> bool:
        """Whether this is the newest snapshot of its line. Others are not changed in place, but copied."""
        return self._line.is_newest(self._lease, self._count)

    def compacted(self) -> "Snapshot":
        """The same rows in a new line, without hidden ones."""
        vectors = self._line.vectors[: self._count]
        return Snapshot.of(vectors.copy() if self._live is None else vectors[self._live], self.records)

    @property
    def _arrays(self) -> tuple[Floats, Floats]:
        return self._line.vectors[: self._count], self._line.inverse[: self._count]

    def _order(self, physical: int) -> tuple[str, str]:
        record = self._line.records[physical]
        return record.key, record.id

    def _chosen(self, mask: Mask | None) -> Rows | None:
        if mask is not None and mask.shape != (len(self),):
            raise ConfigurationError(f"The mask has the shape {mask.shape}; this snapshot has {len(self)} rows.")
        if mask is None or mask.all():
            return self._live
        rows = np.flatnonzero(mask)
        return rows if self._live is None else self._live[rows]

    def _hits(self, found: Rows, scores: Doubles) -> Hits:
        rows = found if self._live is None else np.searchsorted(self._live, found)
        return Hits([self._line.records[row].id for row in found], scores.tolist(), rows)

    def search(self, vectors: Vectors, k: int, mask: Mask | None = None) -> list[Hits]:
        """The k rows nearest to each vector by cosine, exact and deterministic; see
        :mod:`llama_index.ragkit.vectors.kernels`.

        Parameters
        ----------
        vectors : shape (q, dim)
        k : at least 0
        mask : shape (n,), the rows to search; None for all

        Raises
        ------
        EmbeddingError
            If the vectors are not of the store's dimension, or not finite.
        """
        queries = self._queries(vectors)
        if not len(self):
            return [Hits([], [], np.empty(0, np.intp)) for _ in queries]
        found = top_k(*self._arrays, queries, k, self._chosen(mask), self._order)
        return [self._hits(rows, scores) for rows, scores in found]

    def cosines(self, vectors: Vectors) -> Floats:
        """Cosine of every row with each of q vectors, shape (n, q), float32.

        For callers that need all scores. Their error is up to :func:`~llama_index.ragkit.vectors.kernels.error_bound`,
        while those of :meth:`search` are exact. Where that matters, recompute the best ones from :meth:`vectors_of` by
        :func:`~llama_index.ragkit.vectors.kernels.cosines`.

        Raises
        ------
        EmbeddingError
            As :meth:`search`.
        """
        queries = self._queries(vectors)
        if not len(self):
            return np.empty((0, len(queries)), np.float32)
        if len(queries) == 1:
            return next(approximate(*self._arrays, queries, self._live))[:, np.newaxis]
        scores = all_cosines(*self._arrays, queries)
        return scores if self._live is None else scores[self._live]

    def near(self, vectors: Vectors, threshold: float) -> Candidates:
        """Every pair (row, vector, cosine) whose cosine reaches the threshold > 0.

        The cosines are approximate, like those of :meth:`cosines`, and pairs just below the threshold may be included:
        see :mod:`~llama_index.ragkit.vectors.pairs`.
        """
        queries = self._queries(vectors)
        if not len(self) or not len(queries):
            return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0, np.float32)
        cut = head_length(queries.shape[1], threshold)
        rows, columns, scores = pairs_between(*self._arrays, self._line.tails(cut, self._count), queries, threshold)
        if self._alive is None or self._live is None:
            return rows, columns, scores
        keep = self._alive[rows]
        return np.searchsorted(self._live, rows[keep]), columns[keep], scores[keep]

    def search_mmr(self, vector: npt.ArrayLike, k: int, threshold: float, mask: Mask | None = None) -> Hits:
        """Up to k rows by maximal marginal relevance: see :func:`~llama_index.ragkit.vectors.kernels.mmr`."""
        (query,) = self._queries([vector])
        if not len(self):
            return Hits([], [], np.empty(0, np.intp))
        found = mmr(*self._arrays, query, k, threshold, self._chosen(mask), self._order)
        return self._hits(*found)

    def _queries(self, vectors: Vectors) -> Floats:
        names = [f"query {i}" for i in range(len(vectors))]
        queries = as_vectors(vectors, self.dim, names)
        check_finite(queries, names)
        return queries
