"""Updating the lists of similar phrases, from which synonym edges are derived."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from llama_index.hipporag.config import GraphConfig
from llama_index.hipporag.graph.synonym_search import PhrasePairs, as_pairs, extended_lists, keep_best, replaced_rows
from llama_index.hipporag.text.normalization import significant
from llama_index.ragkit.vectors.pairs import Candidates, pairs_within
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["ExtendedPhrases", "searched", "with_new"]

Ints = NDArray[np.int64]

_ROWS_AT_ONCE = 256  # lists recomputed by one search
_CELLS = 1 << 24  # cosines of new and old phrases in memory at once: 64 MiB of float32


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
