"""Exact lists of similar phrases, built at once or updated.

The list of a phrase p holds the `cap` phrases q != p of largest cosine among those with cos(p, q) >=
threshold; equal cosines are ordered by the phrase. It depends only on the set of phrases, not on the order of
insertion, so lists that are updated phrase by phrase equal those that are built at once.

Candidates come from float32 products, each pair once, with no pair missed (:mod:`llama_index.ragkit.vectors.pairs`);
the final cosine is computed in float64 and depends only on the two vectors.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.text.normalization import significant
from llama_index.ragkit.vectors.kernels import error_bound, pair_cosines
from llama_index.ragkit.vectors.pairs import Candidates, pairs_within
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["ExtendedPhrases", "PhrasePairs", "as_pairs", "extended_lists", "mutual", "resized", "searched", "with_new"]

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Order = Callable[[Ints], NDArray[np.str_]]
Vectors = Callable[[Ints], Floats]

_GATHER = 1 << 13  # pairs whose vectors are gathered at once
_PRUNE = 4_000_000  # candidate pairs in memory before those that cannot be among the best are dropped
_ROWS_AT_ONCE = 256  # lists recomputed by one search
_CELLS = 1 << 24  # cosines of new and old phrases in memory at once: 64 MiB of float32


class PhrasePairs(NamedTuple):
    """Directed entries: `rows[i]` has `columns[i]` as a neighbour, with its cosine."""

    rows: Ints
    columns: Ints
    cosines: NDArray[np.float64]


def as_pairs(found: Iterable[Candidates], vectors: Vectors, threshold: float, cap: int, dim: int) -> PhrasePairs:
    """Candidates, each given once, in both directions with their exact cosines, without those below the threshold.

    Entries that cannot be among the `cap` best of their row may be missing.
    """
    rows, columns, _ = _pruned(found, cap, dim)
    exact = _exact(vectors, np.maximum(rows, columns), np.minimum(rows, columns))
    keep = exact >= threshold
    return PhrasePairs(rows[keep], columns[keep], exact[keep])


def _exact(vectors: Vectors, rows: Ints, columns: Ints) -> NDArray[np.float64]:
    found = np.empty(len(rows))
    for start in range(0, len(rows), _GATHER):
        part = slice(start, start + _GATHER)
        found[part] = pair_cosines(vectors(rows[part]), vectors(columns[part]))
    return found


def _pruned(found: Iterable[Candidates], cap: int, dim: int) -> Candidates:
    """All tiles together, in both directions, without entries that have `cap` better ones in their row."""
    parts: list[Candidates] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    count, limit = 0, _PRUNE
    for i, j, near in found:
        parts += [(i, j, near), (j, i, near)]
        count += 2 * i.size
        if count > limit:
            parts = [_without_hopeless(parts, cap, dim)]
            count = parts[0][0].size
            limit = max(_PRUNE, 2 * count)  # do not filter the remaining entries again each time
    return _without_hopeless(parts, cap, dim)


def _without_hopeless(parts: list[Candidates], cap: int, dim: int) -> Candidates:
    rows, columns, near = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((-near, rows))
    rows, columns, near = rows[order], columns[order], near[order]
    starts, counts = _runs(rows)
    last = near[starts + np.minimum(counts, cap) - 1] if rows.size else near
    keep = near >= np.repeat(last - np.float32(2 * error_bound(dim)), counts)
    return rows[keep], columns[keep], near[keep]


def _runs(rows: Ints) -> tuple[Ints, Ints]:
    """Where each run of equal values of a sorted array starts, and how long it is."""
    starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]]) if rows.size else np.empty(0, np.int64)
    return starts, np.diff(np.r_[starts, rows.size])


def keep_best(pairs: PhrasePairs, cap: int, order: Order) -> PhrasePairs:
    """The `cap` entries of largest cosine of each row, sorted by row and column.

    `order` of columns breaks ties; it is called only for rows with more than `cap` entries.
    """
    by_row = np.argsort(pairs.rows, kind="stable")
    rows, columns, cosines = pairs.rows[by_row], pairs.columns[by_row], pairs.cosines[by_row]
    _, counts = _runs(rows)
    full = np.repeat(counts > cap, counts)
    if full.any():
        there = np.flatnonzero(full)
        known, place = np.unique(columns[there], return_inverse=True)
        rank = np.empty(known.size, np.int64)
        rank[np.argsort(order(known), kind="stable")] = np.arange(known.size)
        there = there[np.lexsort((rank[place], -cosines[there], rows[there]))]
        starts, lengths = _runs(rows[there])
        place_in_row = np.arange(there.size) - np.repeat(starts, lengths)
        keep = ~full
        keep[there[place_in_row < cap]] = True
        rows, columns, cosines = rows[keep], columns[keep], cosines[keep]
    by_place = np.lexsort((columns, rows))
    return PhrasePairs(rows[by_place], columns[by_place], cosines[by_place])


def extended_lists(lists: csr_matrix, size: int, pairs: PhrasePairs, cap: int, order: Order) -> tuple[csr_matrix, Ints]:
    """Lists with new entries merged in, shape (size, size), and the rows with new entries.

    `lists` has the shape (m, m), row p the list of phrase p; `pairs` are not yet in it, of rows that may have a list.
    """
    touched = np.unique(pairs.rows)
    old = touched[touched < lists.shape[0]]
    moved = lists[old].tocoo()
    best = keep_best(
        PhrasePairs(
            np.concatenate([old[moved.row], pairs.rows]),
            np.concatenate([moved.col.astype(np.int64), pairs.columns]),
            np.concatenate([moved.data, pairs.cosines]),
        ),
        cap,
        order,
    )
    return replaced_rows(lists, size, touched, best), touched


def replaced_rows(lists: csr_matrix, size: int, rows: Ints, entries: PhrasePairs) -> csr_matrix:
    """Lists in which some rows are replaced by `entries`, shape (size, size)."""
    fresh = np.zeros(lists.shape[0], np.bool_)
    fresh[rows[rows < lists.shape[0]]] = True
    counts = np.diff(lists.indptr)
    stays = np.repeat(~fresh, counts)
    indptr = np.concatenate([[0], np.cumsum(np.where(fresh, 0, counts))])
    rest = resized(csr_matrix((lists.data[stays], lists.indices[stays], indptr), shape=lists.shape), size)
    new = csr_matrix((entries.cosines, (entries.rows, entries.columns)), shape=(size, size))
    joined: csr_matrix = rest + new
    return joined


def resized(lists: csr_matrix, size: int) -> csr_matrix:
    """Lists of shape (size, size): with further empty ones, or without the last ones, which must be unused."""
    indptr = lists.indptr[: size + 1]
    indptr = np.concatenate([indptr, np.full(size + 1 - len(indptr), indptr[-1])])
    return csr_matrix((lists.data, lists.indices, indptr), shape=(size, size))


def mutual(lists: csr_matrix) -> csr_matrix:
    """Symmetric cosines of the pairs that are on each other's lists, shape (n, n)."""
    both: csr_matrix = lists.minimum(lists.T.tocsr())
    both.eliminate_zeros()
    return both


class ExtendedPhrases:
    """Phrases of a snapshot followed by new ones, without a copy of the old."""

    def __init__(self, old: Snapshot, ids: Sequence[str], phrases: Sequence[str], vectors: NDArray[np.float32]) -> None:
        self._old = old
        self._ids = ids
        self._phrases = phrases
        self.new_vectors = vectors

    def __len__(self) -> int:
        return len(self._old) + len(self._ids)

    def id_of(self, row: int) -> str:
        """The id of a row."""
        n = len(self._old)
        return self._old.records[row].id if row < n else self._ids[row - n]

    def phrase_of(self, row: int) -> str:
        """The phrase of a row."""
        n = len(self._old)
        return self._old.records[row].key if row < n else self._phrases[row - n]

    def phrases_of(self, rows: Ints) -> NDArray[np.str_]:
        """The phrases of some rows."""
        return np.array([self.phrase_of(row) for row in rows.tolist()])

    def vectors_of(self, rows: Ints) -> NDArray[np.float32]:
        """The vectors of some rows, shape (len(rows), d)."""
        n = len(self._old)
        old = rows < n
        found = np.empty((len(rows), self.new_vectors.shape[1]), np.float32)
        found[~old] = self.new_vectors[rows[~old] - n]
        if old.any():
            found[old] = self._old.vectors_of([self.id_of(row) for row in rows[old].tolist()])
        return found

    def candidates(self, threshold: float) -> Iterator[Candidates]:
        """Pairs with at least one new phrase whose cosine may reach the threshold, each once."""
        n, new = len(self._old), self.new_vectors
        for i, j, near in pairs_within(new, threshold):
            yield i + n, j + n, near
        step = max(1, _CELLS // max(1, n))
        for start in range(0, len(new) if n else 0, step):
            j, i, near = self._old.near(new[start : start + step], threshold)
            yield i + (start + n), j, near


def with_new(lists: csr_matrix, extended: ExtendedPhrases, config: GraphConfig) -> tuple[csr_matrix, Ints]:
    """Lists of similar phrases extended by new phrases, and the rows whose list changed."""
    dim, threshold = extended.new_vectors.shape[1], config.synonym_threshold
    pairs = as_pairs(extended.candidates(threshold), extended.vectors_of, threshold, config.max_synonyms, dim)
    rows = np.unique(pairs.rows)
    long_enough = np.array(
        [significant(extended.phrase_of(row)) >= config.min_synonym_length for row in rows], np.bool_
    )
    kept = np.isin(pairs.rows, rows[long_enough])
    pairs = PhrasePairs(pairs.rows[kept], pairs.columns[kept], pairs.cosines[kept])
    return extended_lists(lists, len(extended), pairs, config.max_synonyms, extended.phrases_of)


def searched(phrases: Snapshot, lists: csr_matrix, rows: Ints, config: GraphConfig) -> csr_matrix:
    """The lists, with those of some rows recomputed by a search over all phrases."""
    if not len(rows):
        return lists
    cap = config.max_synonyms
    found: list[tuple[int, int, float]] = []
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE].tolist()
        vectors = phrases.vectors_of([phrases.records[row].id for row in block])
        # One more than the cap, since each phrase finds itself.
        for row, hits in zip(block, phrases.search(vectors, cap + 1), strict=True):
            near = zip(hits.rows.tolist(), hits.scores, strict=True)
            found += [(row, column, score) for column, score in near if column != row]
    table = np.array([entry for entry in found if entry[2] >= config.synonym_threshold]).reshape(-1, 3)
    anew = PhrasePairs(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2])
    names = phrases.records
    best = keep_best(anew, cap, lambda columns: np.array([names[column].key for column in columns]))
    return replaced_rows(lists, lists.shape[0], rows, best)
