"""Lexical search: BM25 over texts that come and go; no text is read twice.

Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond. For a question with stems t, a
text with counts c(t) and length l, n texts of mean length m, of which n(t) have a word with the stem:

    score = sum over t of  idf(t) * c(t) (k1 + 1) / (c(t) + k1 (1 - b + b l / m)),
    idf(t) = log(1 + (n - n(t) + 0.5) / (n(t) + 0.5))

Postings are of words as written. A question is stemmed in its own language and finds all words with the same stem in
that language, so texts of several languages can share an index.

Postings lie in blocks. A write adds a block of its own texts. If a block holds removed texts, the write copies it
without them, so that no trace of them remains. Blocks of similar size are merged, up to a size at which two bytes hold
the row of a posting. So each posting is copied a logarithmic number of times.
"""

import math
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.nested_arrays import Arrays, nested, part_of
from llama_index.ragkit.text.lexical_terms import lexical_terms, question_terms
from llama_index.ragkit.text.packed_words import PackedWords
from llama_index.ragkit.text.program_words import PROGRAM_WORDS
from llama_index.ragkit.text.sentences import split_sentences
from llama_index.ragkit.text.stems import stems

__all__ = [
    "BM25_B",
    "BM25_K1",
    "MOST_COUNTED",
    "NOT_KNOWN",
    "FullScore",
    "LexicalIndex",
    "QuestionStems",
    "full_score",
    "length_norms",
    "question_stems",
    "stem_scores",
    "stem_weight",
]

BM25_K1 = 1.2
BM25_B = 0.75
MOST_COUNTED = int(np.iinfo(np.uint16).max)  # times that one word of a text counts

_LARGEST_BLOCK = 2**16  # texts, so that two bytes hold the row of a posting
_ARRAYS = ("by_id", "starts", "rows", "counts", "lengths")  # of a block
_MOST_RUNS = 8  # of removed rows, each of which costs a pass of comparisons
_COPIED = 256  # values that are copied one by one in the time that it takes to begin to copy a run
_LOOKED_UP = 32  # texts compared with a set of ids in the time that it takes to look up one id


class FullScore(NamedTuple):
    """Score and length of a text of mean length that has each word of a sentence of a question once.

    Few texts have all words of a story or of a case. So the mean over the sentences of a question counts.

    Attributes
    ----------
    score : its BM25 score, the mean over sentences; 0 if there are no texts, or if it is not known
    length : how many words it has; 0 if there are no texts, or if it is not known
    program : how many words of programs (:mod:`~llama_index.ragkit.text.program_words`) a text has on average
    advantage : how much better words find texts than cosines do (:mod:`~llama_index.ragkit.vectors.self_retrieval`)
    """

    score: float
    length: float = 0.0
    program: float = 0.0
    advantage: float = 0.0


NOT_KNOWN = FullScore(0.0)


@dataclass(frozen=True)
class _Stems:
    """Which words have which stem in a language.

    Attributes
    ----------
    names : the stems, in ascending order
    starts : int32, shape (n_stems + 1,), where the columns of each stem begin
    columns : int32, shape (n_words,)
    """

    names: PackedWords
    starts: NDArray[np.int32]
    columns: NDArray[np.int32]

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
class _Block:
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
    def of_arrays(cls, arrays: Arrays) -> "_Block":
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

    def without(self, ids: Collection[str]) -> "_Block":
        """The block without some texts, if it has them, and without words that only they have."""
        kept = ~self.having(ids)
        if kept.all():
            return self
        rows, out = _renumbered(self.rows, kept)
        starts = _moved(self.starts, out)
        used = np.diff(starts) > 0
        new_row = np.cumsum(kept) - 1
        return _Block(
            ids=tuple(compress(self.ids, kept.tolist())),
            by_id=new_row[self.by_id[kept[self.by_id]]].astype(np.int32),
            words=self.words.only(used),
            starts=np.append(starts[:-1][used], starts[-1]),
            rows=rows,
            counts=_cut(self.counts, out),
            lengths=self.lengths[kept],
            counted=self.counted[kept],
            by_stem={language: found.only(used) for language, found in list(self.by_stem.items())},
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

    def within(self, mask: NDArray[np.bool_]) -> "_Block":
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
) -> _Block:
    """The block of these postings, in any order; words without postings are left out."""
    used, columns = np.unique(columns, return_inverse=True)
    order = np.lexsort((rows, columns))
    lengths = np.bincount(rows, weights=counts, minlength=len(ids)).astype(np.float32)
    counts = np.minimum(counts, MOST_COUNTED)
    return _Block(
        ids=tuple(ids),
        by_id=np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int32),
        words=PackedWords([words[old] for old in used.tolist()]),
        starts=np.concatenate([[0], np.cumsum(np.bincount(columns, minlength=len(used)))]).astype(np.int64),
        rows=rows[order].astype(np.min_scalar_type(max(len(ids) - 1, 0))),
        counts=counts[order].astype(np.min_scalar_type(counts.max(initial=0))),
        lengths=lengths,
        counted=np.ones(len(ids), dtype=np.bool_),
    )


def _of_counts(texts: Mapping[str, Mapping[str, int]]) -> _Block:
    column_of: dict[str, int] = {}
    columns: list[int] = []
    counts: list[int] = []
    for words in texts.values():
        columns += [column_of.setdefault(word, len(column_of)) for word in words]
        counts += words.values()
    rows = np.repeat(np.arange(len(texts)), [len(words) for words in texts.values()]).astype(np.int64)
    return _block(list(texts), list(column_of), np.array(columns, np.int64), rows, np.array(counts, np.int64))


def _of_lists(texts: Mapping[str, str]) -> _Block:
    """The block of texts given as words separated by spaces, made without a dictionary for each text."""
    column_of: dict[str, int] = {}
    columns, lengths = array("q"), []
    for text in texts.values():
        words = text.split(" ") if text else []
        columns.extend([column_of.setdefault(word, len(column_of)) for word in words])
        lengths.append(len(words))
    width = max(len(column_of), 1)
    rows = np.repeat(np.arange(len(texts), dtype=np.int64), lengths)
    pairs, counts = np.unique(rows * width + np.frombuffer(columns, np.int64), return_counts=True)
    return _block(list(texts), list(column_of), pairs % width, pairs // width, counts)


def _merged(blocks: Sequence[_Block]) -> _Block:
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


def _joinable(block: _Block, following: _Block) -> bool:
    return block.size < 2 * following.size and block.size + following.size <= _LARGEST_BLOCK


class LexicalIndex:
    """An index of texts by their words. Immutable: a change gives a new index, which shares the unchanged blocks."""

    def __init__(self, blocks: Sequence[_Block] = ()) -> None:
        self._blocks = tuple(blocks)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> "LexicalIndex":
        """The index of many texts at once.

        Parameters
        ----------
        texts : id -> its terms, each as often as the text has it, separated by spaces
        """
        ids = list(texts)
        parts = [ids[start : start + _LARGEST_BLOCK] for start in range(0, len(ids), _LARGEST_BLOCK)]
        return cls([_of_lists({text_id: texts[text_id] for text_id in part}) for part in parts])

    @classmethod
    def of_arrays(cls, arrays: Arrays) -> "LexicalIndex":
        """The index of :attr:`arrays`, over the same memory, which must not change."""
        parts = dict.fromkeys(name.split("/")[0] for name in arrays)
        return cls([_Block.of_arrays(part_of(arrays, part)) for part in parts])

    @property
    def arrays(self) -> Arrays:
        """The whole index as arrays by name."""
        return nested({str(number): block.arrays for number, block in enumerate(self._blocks)})

    def __len__(self) -> int:
        return sum(block.size for block in self._blocks)

    @property
    def ids(self) -> list[tuple[str, ...]]:
        """The ids of the rows of each block."""
        return [block.ids for block in self._blocks]

    def changed(self, removed: Collection[str], added: Mapping[str, Mapping[str, int]]) -> "LexicalIndex":
        """The index without some texts and with others, which replace those of the same id.

        Parameters
        ----------
        added : id -> how often the text has each term, see
            :func:`~llama_index.ragkit.text.lexical_terms.lexical_terms`
        """
        gone = {*removed, *added}
        blocks = [block for block in (block.without(gone) for block in self._blocks) if block.size]
        if added:
            blocks.append(_of_counts(added))
        while len(blocks) > 1 and _joinable(*blocks[-2:]):
            blocks[-2:] = [_merged(blocks[-2:])]
        return LexicalIndex(blocks)

    def rows_of(self, ids: Collection[str]) -> list[NDArray[np.intp]]:
        """The rows of texts in each block, shape (len(ids),); -1 for texts that are not in the block."""
        return [block.rows_of(ids) for block in self._blocks]

    def masks_of(self, ids: Collection[str]) -> list[NDArray[np.bool_]]:
        """For each block, which rows are those of the texts."""
        return [block.having(ids) for block in self._blocks]

    def scored(
        self, question: str, allowed: Sequence[NDArray[np.bool_]] | None = None
    ) -> tuple[list[NDArray[np.float64]], FullScore]:
        """The BM25 scores of the rows of each block, 0 for texts without a word of the question; and the
        full score of the question, see :meth:`full_scores`.

        Parameters
        ----------
        allowed : for each block, which rows count; other rows score 0 and do not change the scores of these
        """
        blocks = self._counted(allowed)
        found = [np.zeros(len(block.ids)) for block in blocks]
        n, words = sum(block.size for block in blocks), sum(block.length for block in blocks)
        if not n:
            return found, NOT_KNOWN
        norms = [length_norms(block.lengths, words / n or 1.0) for block in blocks]
        asked = question_stems(question)
        texts = []
        for stem, times in asked.times.items():
            postings = [block.postings(stem, asked.language) for block in blocks]
            having = sum(len(rows) for rows, _ in postings)
            texts.append(having)
            if not having:
                continue
            weight = stem_weight(times, having, n)
            for norm, (rows, counts), score in zip(norms, postings, found, strict=True):
                score[rows] += stem_scores(weight, counts, norm[rows])
        return found, full_score(asked, texts, n, words, sum(block.program for block in blocks))

    def scores(self, question: str, allowed: Sequence[NDArray[np.bool_]] | None = None) -> list[NDArray[np.float64]]:
        """The scores of :meth:`scored`."""
        return self.scored(question, allowed)[0]

    def full_scores(
        self, questions: Sequence[str], allowed: Sequence[NDArray[np.bool_]] | None = None
    ) -> list[FullScore]:
        """For each question, the score of a text of mean length that has each word of a sentence of it once: the sum
        of the weights of the stems, including those that no text has, by the number of sentences; with that length,
        and how many words of program code a text has.

        Parameters
        ----------
        allowed : see :meth:`scores`
        """
        blocks = self._counted(allowed)
        n, words = sum(block.size for block in blocks), sum(block.length for block in blocks)
        program = sum(block.program for block in blocks)

        def of(asked: QuestionStems) -> FullScore:
            having = (sum(len(block.postings(stem, asked.language)[0]) for block in blocks) for stem in asked.times)
            return full_score(asked, having, n, words, program)

        return [of(question_stems(question)) for question in questions]

    def _counted(self, allowed: Sequence[NDArray[np.bool_]] | None) -> Sequence[_Block]:
        if allowed is None:
            return self._blocks
        return [block.within(mask) for block, mask in zip(self._blocks, allowed, strict=True)]


class QuestionStems(NamedTuple):
    """What a question asks.

    Attributes
    ----------
    times : stem -> how often the question has it
    language : in which it was stemmed
    sentences : how many of its sentences have one of the stems, at least 1
    """

    times: dict[str, int]
    language: str
    sentences: int


def question_stems(question: str) -> QuestionStems:
    """The stems of a question."""
    terms, language = question_terms(question)
    times_of: dict[str, int] = {}
    for stem, times in zip(stems(list(terms), language), terms.values(), strict=True):
        times_of[stem] = times_of.get(stem, 0) + times
    telling = sum(not terms.keys().isdisjoint(lexical_terms(part)) for part in split_sentences(question))
    return QuestionStems(times_of, language, max(1, telling))


def stem_weight(times: int, having: int, n: int) -> float:
    """The weight of a stem that a question has `times` times and `having` of n texts have: `times` times its idf."""
    return times * math.log(1 + (n - having + 0.5) / (having + 0.5))


def full_score(asked: QuestionStems, having: Iterable[int], n: int, words: float, program: int) -> FullScore:
    """See :meth:`LexicalIndex.full_scores`.

    Parameters
    ----------
    having : how many texts have each stem of the question
    words : of all n texts together
    program : how many of `PROGRAM_WORDS` each text has, summed over the texts
    """
    if not n:
        return NOT_KNOWN
    score = sum(stem_weight(often, some, n) for often, some in zip(asked.times.values(), having, strict=True))
    return FullScore(score / asked.sentences, words / n, program / n)


def length_norms(lengths: NDArray[np.float32], mean: float) -> NDArray[np.float32]:
    """The part of BM25 that depends on a text alone, k1 (1 - b + b l / m), shape (m,).

    Parameters
    ----------
    lengths : words of each text, shape (m,)
    mean : mean number of words of a text, more than 0
    """
    return BM25_K1 * (1 - BM25_B + BM25_B * lengths / mean)


def stem_scores(weight: float, counts: NDArray[np.float64], norms: NDArray[np.float32]) -> NDArray[np.float64]:
    """What a stem adds to the scores of texts that have it.

    Parameters
    ----------
    weight : of the stem, see :func:`stem_weight`
    counts : how often each text has it, shape (m,)
    norms : their :func:`length_norms`, shape (m,)
    """
    scores: NDArray[np.float64] = weight * counts * (BM25_K1 + 1) / (counts + norms)
    return scores
