"""The packed rows of a lexical index in a database: postings by word, and words by text; functions on arrays.

Texts are numbered in the order in which they were written, and a number is never used again. The postings of a word are
cut into blocks in the order of these numbers, so that a write touches only the last block of each of its words. No
block crosses a multiple of `SPAN`, so that the postings of a span of texts can be read, whatever the words.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_blocks import MOST_COUNTED

__all__ = [
    "BLOCK",
    "POSTING",
    "SPAN",
    "TERM",
    "Block",
    "Postings",
    "StemTable",
    "blocks_of",
    "packed_terms",
    "postings_in",
    "postings_of",
    "shared_stems",
    "terms_in",
    "without",
]

Ints = NDArray[np.int64]

BLOCK = 384
"""Maximum postings of a block: with its keys a row of less than 4 KB, half a page of PostgreSQL, one of SQLite."""

SPAN = 1 << 20
"""Texts whose scores are added up at once."""

POSTING = np.dtype([("row", "<u4"), ("times", "<u2"), ("words", "<u4")])
"""A text that has a word: its number modulo `SPAN`, how often it has the word, its number of words; 10 bytes."""

_BYTES = POSTING.itemsize

TERM = np.dtype([("word", "<i8"), ("times", "<u2")])
"""A word of a text, and how often the text has it."""


class Block(NamedTuple):
    """Some postings of a word, of type `POSTING`, ascending; `first` is the first text when the block was made."""

    word: int
    first: int
    packed: bytes


class Postings(NamedTuple):
    """Postings, one row each; all arrays of shape (m,).

    Attributes
    ----------
    word, text : the word, the number of the text
    times : how often the text has the word
    words : how many words the text has
    """

    word: Ints
    text: Ints
    times: Ints
    words: Ints

    def by_word(self) -> "Postings":
        """Sorted by word; they must be in the order of texts."""
        order = np.argsort(self.word, kind="stable")
        return Postings(*(column[order] for column in self))

    def of_words(self, first: int, last: int) -> "Postings":
        """Those of the words from `first` to `last`; the postings must be sorted by word."""
        start, end = np.searchsorted(self.word, first, "left"), np.searchsorted(self.word, last, "right")
        return Postings(*(column[start:end] for column in self))


class StemTable(NamedTuple):
    """The stems of words, one row for each word and stem, sorted by word; all arrays of shape (m,).

    Attributes
    ----------
    word, stem : hashes
    languages : those in which the word has the stem, as a bit mask
    """

    word: Ints
    stem: Ints
    languages: Ints


def postings_of(
    texts: Sequence[Mapping[str, int]], lengths: Sequence[int], numbers: Ints, hashes: Mapping[str, int]
) -> Postings:
    """The postings of texts, in their order."""
    sizes = [len(counts) for counts in texts]
    return Postings(
        np.array([hashes[word] for counts in texts for word in counts], np.int64),
        np.repeat(numbers, sizes),
        np.minimum(np.array([times for counts in texts for times in counts.values()], np.int64), MOST_COUNTED),
        np.repeat(np.array(lengths, np.int64), sizes),
    )


def packed_terms(postings: Postings, numbers: Ints) -> list[bytes]:
    """The words of each text, of type `TERM`, from postings sorted by text; numbers of texts ascending."""
    packed = _packed(TERM, word=postings.word, times=postings.times)
    ends = np.searchsorted(postings.text, [*numbers.tolist(), np.iinfo(np.int64).max]) * TERM.itemsize
    return [bytes(packed[start:end]) for start, end in zip(ends.tolist(), ends[1:].tolist(), strict=False)]


def terms_in(packed: Sequence[bytes]) -> tuple[Ints, NDArray[np.void]]:
    """The place of the text of each term, and the terms."""
    sizes = [len(each) // TERM.itemsize for each in packed]
    return np.repeat(np.arange(len(packed)), sizes), np.frombuffer(b"".join(packed), TERM)


def postings_in(blocks: Sequence[Block]) -> NDArray[np.void]:
    """The postings in blocks, of type `POSTING`, one block after the other."""
    return np.frombuffer(b"".join([block.packed for block in blocks]), POSTING)


def blocks_of(postings: Postings, last: Mapping[int, Block]) -> Iterator[Block]:
    """Blocks of postings; the last blocks of words are filled up first.

    Parameters
    ----------
    postings : sorted by word and text
    last : word -> its last block, if it has one, with numbers below those of the postings
    """
    packed = _packed(POSTING, row=postings.text % SPAN, times=postings.times, words=postings.words)
    starts = np.flatnonzero(_new(postings.word, postings.text // SPAN))
    firsts = zip(postings.word[starts].tolist(), postings.text[starts].tolist(), strict=True)
    ends = np.append(starts[1:], len(postings.word)).tolist()
    for (word, first), start, end in zip(firsts, starts.tolist(), ends, strict=False):
        block = last.get(word)
        if block is None or block.first // SPAN != first // SPAN or len(block.packed) >= _BYTES * BLOCK:
            block = Block(word, first, b"")
        cut = start + BLOCK - len(block.packed) // _BYTES
        yield block._replace(packed=block.packed + packed[start * _BYTES : min(cut, end) * _BYTES])
        for at in range(cut, end, BLOCK):
            yield Block(word, int(postings.text[at]), bytes(packed[at * _BYTES : min(at + BLOCK, end) * _BYTES]))


def without(block: Block, texts: Ints) -> Block:
    """A block without the postings of some of its texts, by their numbers; it may be empty then."""
    records = postings_in([block])
    return block._replace(packed=np.delete(records, np.searchsorted(records["row"], texts % SPAN)).tobytes())


def shared_stems(texts: Ints, words: Ints, table: StemTable) -> dict[tuple[int, int], int]:
    """How often texts have several words with the same stem: (stem, languages) -> number of words after the first.

    The number of texts with a stem is the sum over its words, less this number.
    """
    _, which, count = np.unique(table.stem, return_inverse=True, return_counts=True)
    several = count[which] > 1  # a stem of one word cannot be shared
    table = StemTable(*(column[several] for column in table))
    starts, ends = np.searchsorted(table.word, words, "left"), np.searchsorted(table.word, words, "right")
    sizes = ends - starts
    rows = np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
    text, stem, languages = np.repeat(texts, sizes), table.stem[rows], table.languages[rows]
    order = np.lexsort((stem, text))
    text, stem, languages = text[order], stem[order], languages[order]
    same = ~_new(text, stem)
    paired = same.copy()
    paired[:-1] |= same[1:]
    found: dict[tuple[int, int], int] = {}
    seen = 0
    for again, key, mask in zip(same[paired].tolist(), stem[paired].tolist(), languages[paired].tolist(), strict=True):
        both = seen & mask if again else 0
        seen = seen | mask if again else mask
        if both:
            found[key, both] = found.get((key, both), 0) + 1
    return found


def _new(*columns: Ints) -> NDArray[np.bool_]:
    """Which rows of sorted columns differ from the row before."""
    new = np.ones(len(columns[0]), np.bool_)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return new


def _packed(kind: np.dtype[np.void], **columns: NDArray[np.int64]) -> memoryview:
    """Records as bytes."""
    records = np.empty(len(next(iter(columns.values()))), kind)
    for name, column in columns.items():
        records[name] = column
    return memoryview(records.tobytes())
