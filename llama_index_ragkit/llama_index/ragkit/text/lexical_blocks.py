"""The postings of some of the texts of a lexical index, as arrays.

A block is never changed. Without some texts, it is copied so that no trace of them remains.
"""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.text.packed_words import PackedWords
from llama_index.ragkit.text.stems import stems

__all__ = ["MOST_COUNTED", "PROGRAM_WORDS", "PostingBlock", "block_of_counts", "block_of_lists", "merged"]

MOST_COUNTED = int(np.iinfo(np.uint16).max)  # times that one word of a text counts

_PROGRAM_TEXT = """
args argv bool boolean const def dict elif enum func int kwargs len nil null obj param params printf println ptr repr
self str stdout struct tuple typeof uint undefined var void
"""
PROGRAM_WORDS = tuple(_PROGRAM_TEXT.split())
"""Words of program code that prose hardly uses, by which a corpus of code is recognised.

A chunk of code has two or more of them on average: Python functions 2.1, JavaScript 1.9, C++ 2.8, C 3.0. A chunk of
prose has .0, contracts have .1 ("void").
"""

_ARRAYS = ("by_id", "starts", "rows", "counts", "lengths")  # of a block
_MOST_RUNS = 8  # of removed rows, each of which costs a pass of comparisons
_COPIED = 256  # values that are copied one by one in the time that it takes to begin to copy a run
_LOOKED_UP = 32  # texts compared with a set of ids in the time that it takes to look up one id


@dataclass(frozen=True)
class _Stems:
    """Which words have which stem in a language."""

    names: PackedWords  # the stems, in ascending order
    starts: NDArray[np.int32]  # shape (n_stems + 1,), where the columns of each stem begin
    columns: NDArray[np.int32]  # shape (n_words,)

    @classmethod
    def of(cls, words: PackedWords, language: str) -> "_Stems":
        """The stems of the words of a block."""
        found = stems(list(words), language)
        names = sorted(set(found))
        place = {stem: i for i, stem in enumerate(names)}
        places = np.array([place[stem] for stem in found], np.int32)
        starts = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(names)))]).astype(np.int32)
        return cls(PackedWords(names), starts, np.argsort(places, kind="stable").astype(np.int32))

    def only(self, kept: NDArray[np.bool_]) -> "_Stems":
        """The stems of some of the words, by a mask of their columns."""
        if kept.all():
            return self
        here = kept[self.columns]
        starts = _moved(self.starts, np.flatnonzero(~here))
        there = np.diff(starts) > 0
        columns = np.cumsum(kept, dtype=np.int32)[self.columns[here]] - 1
        return _Stems(self.names.only(there), np.append(starts[:-1][there], starts[-1]).astype(np.int32), columns)

    def columns_of(self, stem: str) -> list[int]:
        """The columns of the words with a stem."""
        place = self.names.find(stem)
        columns: list[int] = [] if place < 0 else self.columns[self.starts[place] : self.starts[place + 1]].tolist()
        return columns


@dataclass(frozen=True)
class PostingBlock:
    """The postings of some texts, grouped by word.

    Attributes
    ----------
    ids : of the texts
    by_id : int32, shape (n_texts,), their rows in the order of their ids
    words : the place of a word is its column
    starts : int64, shape (n_words + 1,), where the postings of each word begin
    rows, counts : shape (n_postings,), the text of each posting and how often it has the word, in the smallest unsigned
        type that holds the largest
    lengths : float32, shape (n_texts,), words of each text
    counted : shape (n_texts,), False for a text that does not count
    by_stem : language -> stems, made when first needed, the same object for all copies with the same words
    of_program : the columns of `PROGRAM_WORDS`, as a single item once they are needed; shared in the same way
    """

    ids: tuple[str, ...]
    by_id: NDArray[np.int32]
    words: PackedWords
    starts: NDArray[np.int64]
    rows: NDArray[np.unsignedinteger]
    counts: NDArray[np.unsignedinteger]
    lengths: NDArray[np.float32]
    counted: NDArray[np.bool_]
    by_stem: dict[str, _Stems] = field(default_factory=dict)
    of_program: list[list[int]] = field(default_factory=list)

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "PostingBlock":
        """The block of :attr:`arrays`, over the same memory."""
        ids, words = (PackedWords.of_arrays(arrays[name], arrays[f"{name}_ends"]) for name in ("ids", "words"))
        counted = np.ones(len(ids), np.bool_)
        return cls(tuple(ids), words=words, counted=counted, **{name: arrays[name] for name in _ARRAYS})  # type: ignore[arg-type]

    @property
    def arrays(self) -> Arrays:
        """The block as arrays by name; all of its texts must count."""
        found = {name: getattr(self, name) for name in _ARRAYS}
        for name, words in (("ids", PackedWords(self.ids)), ("words", self.words)):
            found[name], found[f"{name}_ends"] = words.arrays
        return found

    @cached_property
    def size(self) -> int:
        """The number of texts that count."""
        return int(np.count_nonzero(self.counted))

    @cached_property
    def length(self) -> float:
        """The number of words of all texts together."""
        return float(self.lengths[self.counted].sum(dtype=np.float64))

    @cached_property
    def program(self) -> int:
        """How many of the `PROGRAM_WORDS` each text has, summed over the texts."""
        if not self.of_program:
            self.of_program.append(self.words.among(PROGRAM_WORDS))
        having = (self.rows[self.starts[column] : self.starts[column + 1]] for column in self.of_program[0])
        return sum(int(np.count_nonzero(self.counted[rows])) for rows in having)

    def without(self, ids: Collection[str]) -> "PostingBlock":
        """The block without some texts, if it has them, and without words that only they have."""
        kept = ~self.having(ids)
        if kept.all():
            return self
        rows, out = _renumbered(self.rows, kept)
        starts = _moved(self.starts, out)
        used = np.diff(starts) > 0
        new_row, new_column = np.cumsum(kept) - 1, np.cumsum(used) - 1
        return PostingBlock(
            ids=tuple(compress(self.ids, kept.tolist())),
            by_id=new_row[self.by_id[kept[self.by_id]]].astype(np.int32),
            words=self.words.only(used),
            starts=np.append(starts[:-1][used], starts[-1]),
            rows=rows,
            counts=_cut(self.counts, out),
            lengths=self.lengths[kept],
            counted=self.counted[kept],
            by_stem={language: found.only(used) for language, found in list(self.by_stem.items())},
            of_program=[[int(new_column[column]) for column in columns if used[column]] for columns in self.of_program],
        )

    def having(self, ids: Collection[str]) -> NDArray[np.bool_]:
        """Which rows have one of the ids, shape (n_texts,)."""
        if len(ids) * _LOOKED_UP > len(self.ids):
            wanted = set(ids)
            return np.fromiter(map(wanted.__contains__, self.ids), np.bool_, len(self.ids))
        mask = np.zeros(len(self.ids), np.bool_)
        rows = self.rows_of(ids)
        mask[rows[rows >= 0]] = True
        return mask

    def rows_of(self, ids: Collection[str]) -> NDArray[np.intp]:
        """The rows of texts, shape (len(ids),); -1 for those that are not in the block."""
        return np.fromiter(map(self._row_of, ids), np.intp, len(ids))

    def _row_of(self, name: str) -> int:
        """The row of a text; -1 if it is not in the block."""
        place = bisect_left(self.by_id, name, key=self.ids.__getitem__)
        row = int(self.by_id[place]) if place < len(self.by_id) else -1
        return row if row >= 0 and self.ids[row] == name else -1

    def within(self, mask: NDArray[np.bool_]) -> "PostingBlock":
        """The block with only the texts of the mask."""
        return self if mask.all() else replace(self, counted=self.counted & mask)

    def postings(self, stem: str, language: str) -> tuple[NDArray[np.integer], NDArray[np.float64]]:
        """The texts with a word of this stem, and how often they have such words."""
        parts = [slice(*self.starts[column : column + 2].tolist()) for column in self._stems(language).columns_of(stem)]
        if not parts:
            return self.rows[:0], np.empty(0)
        rows: NDArray[np.integer]
        if len(parts) == 1:
            rows, counts = self.rows[parts[0]], self.counts[parts[0]].astype(np.float64)
        else:
            rows = np.concatenate([self.rows[part] for part in parts])
            counts = np.concatenate([self.counts[part] for part in parts]).astype(np.float64)
        if self.size < len(self.ids):
            kept = self.counted[rows]
            rows, counts = rows[kept], counts[kept]
        if len(parts) > 1:
            total = np.bincount(rows, weights=counts, minlength=len(self.ids))
            rows = np.flatnonzero(total)
            counts = total[rows].astype(np.float64)
        return rows, counts

    def _stems(self, language: str) -> _Stems:
        found = self.by_stem.get(language)
        if found is None:  # threads may do it twice, with the same result
            found = self.by_stem[language] = _Stems.of(self.words, language)
        return found


def _moved(starts: NDArray[np.integer], out: NDArray[np.intp]) -> NDArray[np.int64]:
    """Where runs of items begin and the last one ends after the items at the places `out`, ascending, are removed."""
    return starts - np.searchsorted(out, starts)


def _renumbered(
    rows: NDArray[np.unsignedinteger], kept: NDArray[np.bool_]
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.intp]]:
    """The rows of postings after some rows are removed, and the places of their postings, ascending.

    There are many more postings than rows, and mostly a document is removed, whose rows are a run: comparisons of all
    postings take a fifth of the time of looking each up.
    """
    gone = np.flatnonzero(~kept)
    firsts, lasts = gone[np.diff(gone, prepend=-2) > 1].tolist(), gone[np.diff(gone, append=kept.size + 1) > 1].tolist()
    if len(firsts) > _MOST_RUNS:
        out = np.flatnonzero(~kept[rows])
        return (np.cumsum(kept) - 1).astype(rows.dtype)[_cut(rows, out)], out
    of_gone = np.zeros(rows.size, np.bool_)
    for first, last in zip(firsts, lasts, strict=True):
        of_gone |= (rows >= first) & (rows <= last)
    out = np.flatnonzero(of_gone)
    left = _cut(rows, out)
    for first, last in reversed(list(zip(firsts, lasts, strict=True))):
        left -= (left > last) * left.dtype.type(last - first + 1)
    return left, out


def _cut(values: NDArray[Any], out: NDArray[np.intp]) -> NDArray[Any]:
    """The values without those at the places `out`, ascending; for few of them, runs are copied."""
    if len(out) * _COPIED > len(values):
        return np.delete(values, out)
    return np.concatenate([values[start + 1 : end] for start, end in pairwise([-1, *out.tolist(), len(values)])])


def _block(
    ids: Sequence[str],
    words: Sequence[str],
    columns: NDArray[np.int64],
    rows: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> PostingBlock:
    """The block of these postings, in any order; words without postings are left out."""
    used, columns = np.unique(columns, return_inverse=True)
    order = np.lexsort((rows, columns))
    lengths = np.bincount(rows, weights=counts, minlength=len(ids)).astype(np.float32)
    counts = np.minimum(counts, MOST_COUNTED)
    return PostingBlock(
        ids=tuple(ids),
        by_id=np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int32),
        words=PackedWords([words[old] for old in used.tolist()]),
        starts=np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=len(used)))]).astype(np.int64),
        rows=rows[order].astype(np.min_scalar_type(max(len(ids) - 1, 0))),
        counts=counts[order].astype(np.min_scalar_type(counts.max(initial=0))),
        lengths=lengths,
        counted=np.ones(len(ids), dtype=np.bool_),
    )


def block_of_counts(counts_of: Mapping[str, Mapping[str, int]]) -> PostingBlock:
    """The block of texts given as how often each has each word."""
    column_of: dict[str, int] = {}
    columns: list[int] = []
    counts: list[int] = []
    for words in counts_of.values():
        columns += [column_of.setdefault(word, len(column_of)) for word in words]
        counts += words.values()
    rows = np.repeat(np.arange(len(counts_of)), [len(words) for words in counts_of.values()]).astype(np.int64)
    return _block(list(counts_of), list(column_of), np.array(columns, np.int64), rows, np.array(counts, np.int64))


def block_of_lists(words_of: Mapping[str, str]) -> PostingBlock:
    """The block of texts given as words separated by spaces, made without a dictionary for each text."""
    column_of: dict[str, int] = {}
    columns, lengths = array("q"), []
    for text in words_of.values():
        words = text.split(" ") if text else []
        columns.extend([column_of.setdefault(word, len(column_of)) for word in words])
        lengths.append(len(words))
    width = max(len(column_of), 1)
    rows = np.repeat(np.arange(len(words_of), dtype=np.int64), lengths)
    pairs, counts = np.unique(rows * width + np.frombuffer(columns, np.int64), return_counts=True)
    return _block(list(words_of), list(column_of), pairs % width, pairs // width, counts)


def merged(blocks: Sequence[PostingBlock]) -> PostingBlock:
    """One block of all texts."""
    column_of: dict[str, int] = {}
    ids: list[str] = []
    parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]] = []
    for block in blocks:
        new_column = np.array([column_of.setdefault(word, len(column_of)) for word in block.words], np.int64)
        parts.append(
            (
                np.repeat(new_column, np.diff(block.starts)),
                block.rows.astype(np.int64) + len(ids),
                block.counts.astype(np.int64),
            )
        )
        ids += block.ids
    columns, rows, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _block(ids, list(column_of), columns, rows, counts)
