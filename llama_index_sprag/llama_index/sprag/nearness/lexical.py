"""Lexical search: BM25 over chunks that come and go, without tokenising anything again.

Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond. For a question with terms t, a
chunk with counts c(t) and length l, n chunks of mean length m, of which n(t) have the term:

    score = sum over t of  idf(t) * c(t) (k1 + 1) / (c(t) + k1 (1 - b + b l / m)),
    idf(t) = log(1 + (n - n(t) + 0.5) / (n(t) + 0.5))

The postings lie in blocks. A write adds a block of its own chunks and hides those that it removes; blocks of similar
size are merged, so that each posting is copied a logarithmic number of times.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.mentions import normalise
from llama_index.ragkit.text.scripts import UNSPACED

__all__ = ["LexicalIndex", "lexical_terms"]

_K1 = 1.2
_B = 0.75
_RUN = re.compile(f"[{UNSPACED}]+|[^\\s{UNSPACED}]+")
_UNSPACED = re.compile(f"[{UNSPACED}]")


def lexical_terms(text: str) -> Counter[str]:
    """How often a text has each term: words without case and punctuation; in scripts without spaces characters and
    pairs of neighbouring ones.

    >>> sorted(lexical_terms("Net income: 3M's net. 东京都").items())
    [('3m', 1), ('income', 1), ('net', 2), ('s', 1), ('东', 1), ('东京', 1), ('京', 1), ('京都', 1), ('都', 1)]
    """
    counts: Counter[str] = Counter()
    for run in _RUN.findall(normalise(text)):
        if _UNSPACED.match(run):
            counts.update(run)
            counts.update(run[i : i + 2] for i in range(len(run) - 1))
        else:
            counts[run] += 1
    return counts


@dataclass(frozen=True)
class _Block:
    """The postings of some chunks, grouped by term.

    Attributes
    ----------
    ids : of the chunks
    row_of : id -> row
    column_of : term -> column
    starts : int64, shape (n_terms + 1,), where the postings of each term begin
    rows, counts : int32, shape (n_postings,)
    lengths : float64, shape (n_chunks,), terms of each chunk
    alive : shape (n_chunks,), False for a chunk that was removed
    """

    ids: tuple[str, ...]
    row_of: Mapping[str, int]
    column_of: Mapping[str, int]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    lengths: NDArray[np.float64]
    alive: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return int(np.count_nonzero(self.alive))

    def without(self, ids: Collection[str]) -> "_Block":
        gone = [self.row_of[name] for name in ids if name in self.row_of]
        if not gone:
            return self
        alive = self.alive.copy()
        alive[gone] = False
        return _Block(
            self.ids, self.row_of, self.column_of, self.starts, self.rows, self.counts, self.lengths, alive
        )  # fmt: skip


def _block(
    ids: Sequence[str],
    terms: Sequence[str],
    columns: NDArray[np.int64],
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> _Block:
    """The block of these postings, in any order; terms that have none are left out."""
    used, columns = np.unique(columns, return_inverse=True)
    order = np.lexsort((rows, columns))
    return _Block(
        ids=tuple(ids),
        row_of={name: row for row, name in enumerate(ids)},
        column_of={terms[old]: column for column, old in enumerate(used.tolist())},
        starts=np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=len(used)))]).astype(np.int64),
        rows=rows[order].astype(np.int32),
        counts=counts[order].astype(np.int32),
        lengths=np.bincount(rows, weights=counts, minlength=len(ids)).astype(np.float64),
        alive=np.ones(len(ids), dtype=np.bool_),
    )


def _of_counts(chunks: Mapping[str, Mapping[str, int]]) -> _Block:
    column_of: dict[str, int] = {}
    columns: list[int] = []
    counts: list[int] = []
    for words in chunks.values():
        columns += [column_of.setdefault(word, len(column_of)) for word in words]
        counts += words.values()
    rows = np.repeat(np.arange(len(chunks)), [len(words) for words in chunks.values()]).astype(np.int64)
    return _block(list(chunks), list(column_of), np.array(columns, np.int64), rows, np.array(counts, np.int64))


def _merged(blocks: Sequence[_Block]) -> _Block:
    """One block of all chunks that were not removed."""
    column_of: dict[str, int] = {}
    ids: list[str] = []
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    for block in blocks:
        new_column = np.array([column_of.setdefault(term, len(column_of)) for term in block.column_of], np.int64)
        new_row = np.cumsum(block.alive) - 1 + len(ids)
        kept = block.alive[block.rows]
        columns = np.repeat(np.arange(len(block.column_of)), np.diff(block.starts))
        parts.append((new_column[columns[kept]], new_row[block.rows[kept]], block.counts[kept].astype(np.int64)))
        ids += [name for name, alive in zip(block.ids, block.alive.tolist(), strict=True) if alive]
    columns, rows, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _block(ids, list(column_of), columns, rows, counts)


class LexicalIndex:
    """Chunks by their terms. Immutable: a change gives a new index, which shares the blocks that stayed the same."""

    def __init__(self, blocks: Sequence[_Block] = ()) -> None:
        self._blocks = tuple(blocks)

    def __len__(self) -> int:
        return sum(block.size for block in self._blocks)

    @property
    def ids(self) -> list[tuple[str, ...]]:
        """The ids of the rows of each block, those of removed chunks among them."""
        return [block.ids for block in self._blocks]

    def changed(self, removed: Collection[str], added: Mapping[str, Mapping[str, int]]) -> "LexicalIndex":
        """The index without some chunks and with others, which replace those of the same id.

        Parameters
        ----------
        added : id -> how often the chunk has each term
        """
        gone = {*removed, *added}
        blocks = [block for block in (block.without(gone) for block in self._blocks) if block.size]
        if added:
            blocks.append(_of_counts(added))
        while len(blocks) > 1 and blocks[-2].size < 2 * blocks[-1].size:
            blocks[-2:] = [_merged(blocks[-2:])]
        if len(blocks) == 1 and 2 * blocks[0].size < len(blocks[0].ids):
            blocks = [_merged(blocks)]
        return LexicalIndex(blocks)

    def scores(self, question: Mapping[str, int]) -> list[NDArray[np.float64]]:
        """The BM25 scores of the rows of each block, 0 for chunks without a term of the question and removed ones.

        Parameters
        ----------
        question : how often the question has each term
        """
        found = [np.zeros(len(block.ids)) for block in self._blocks]
        n = len(self)
        if not n:
            return found
        mean = sum(float(block.lengths[block.alive].sum()) for block in self._blocks) / n or 1.0
        for term, times in question.items():
            postings = [_postings(block, term) for block in self._blocks]
            having = sum(len(rows) for rows, _ in postings)
            if not having:
                continue
            idf = times * math.log(1 + (n - having + 0.5) / (having + 0.5))
            for block, (rows, counts), score in zip(self._blocks, postings, found, strict=True):
                norm = _K1 * (1 - _B + _B * block.lengths[rows] / mean)
                score[rows] += idf * counts * (_K1 + 1) / (counts + norm)
        return found


def _postings(block: _Block, term: str) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    column = block.column_of.get(term)
    if column is None:
        return block.rows[:0], block.counts[:0]
    part = slice(int(block.starts[column]), int(block.starts[column + 1]))
    kept = block.alive[block.rows[part]]
    return block.rows[part][kept], block.counts[part][kept]
