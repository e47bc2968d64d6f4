"""What a lexical index in a database packs into its rows: postings by word, and words by text; functions on arrays.

Texts are numbered in the order in which they were written, and a number is never used again. The postings of a word are
cut into blocks in the order of these numbers, so that a write touches the last block of each of its words alone. No
block crosses a multiple of `SPAN`: the postings of a span of texts can be read, whatever the words.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_index import MOST_COUNTED

__all__ = [
    "BLOCK",
    "POSTING",
    "SPAN",
    "TERM",
    "Block",
    "Postings",
    "StemTable",
    "blocks_of",
    "numbers_in",
    "packed_terms",
    "postings_of",
    "shared_stems",
    "terms_in",
    "without",
]

Ints = NDArray[np.int64]

BLOCK = 384
"""Postings of a block at most: with its keys a row of less than 4 KB, half a page of PostgreSQL, one of SQLite."""

SPAN = 1 << 20
"""Texts whose scores are added up at once."""

POSTING = np.dtype([("offset", "<u4"), ("times", "<u2"), ("words", "<u4")])
"""A text that has a word: its number less that of the block, how often it has it, the number of its words; 10 bytes."""

TERM = np.dtype([("word", "<i8"), ("times", "<u2")])
"""A word that a text has, and how often."""


class Block(NamedTuple):
    """Some postings of a word.

    Attributes
    ----------
    word : its hash
    first : the number that the offsets are counted from, at most that of its first text
    packed : of type `POSTING`, ascending
    """

    word: int
    first: int
    packed: bytes


class Postings(NamedTuple):
    """Postings in any order, one row each; all arrays of shape (m,).

    Attributes
    ----------
    word, text : the word, the number of the text
    times : how often the text has the word
    words : how many words the text has
    """

    word: Ints
    text: Ints
    times: NDArray[np.int64]
    words: NDArray[np.int64]


class StemTable(NamedTuple):
    """The stems of words, one row for each word and stem, sorted by word; all arrays of shape (m,).

    Attributes
    ----------
    word, stem : hashes
    languages : those in which the word has the stem, as a mask of bits
    """

    word: Ints
    stem: Ints
    languages: Ints


def postings_of(
    texts: Sequence[Mapping[str, int]], lengths: Sequence[int], numbers: Ints, hashes: Mapping[str, int]
) -> Postings:
    """The postings of texts, in their order.

    Parameters
    ----------
    texts : word -> how often, of each text
    lengths, numbers : of the texts, both of shape (n,)
    hashes : word -> its hash
    """
    sizes = [len(counts) for counts in texts]
    return Postings(
        np.array([hashes[word] for counts in texts for word in counts], np.int64),
        np.repeat(numbers, sizes),
        np.minimum(np.array([times for counts in texts for times in counts.values()], np.int64), MOST_COUNTED),
        np.repeat(np.array(lengths, np.int64), sizes),
    )


def packed_terms(postings: Postings, numbers: Ints) -> list[bytes]:
    """The words of each text, of type `TERM`.

    Parameters
    ----------
    postings : sorted by text
    numbers : the texts, ascending
    """
    packed = _packed(TERM, word=postings.word, times=postings.times)
    ends = np.searchsorted(postings.text, [*numbers.tolist(), np.iinfo(np.int64).max]) * TERM.itemsize
    return [bytes(packed[start:end]) for start, end in zip(ends.tolist(), ends[1:].tolist(), strict=False)]


def terms_in(packed: Sequence[bytes]) -> tuple[Ints, NDArray[np.void]]:
    """The place of the text that each term belongs to, and the terms."""
    sizes = [len(each) // TERM.itemsize for each in packed]
    return np.repeat(np.arange(len(packed)), sizes), np.frombuffer(b"".join(packed), TERM)


def numbers_in(blocks: Sequence[Block]) -> tuple[Ints, NDArray[np.void]]:
    """The numbers of the texts in blocks, one block after the other, and their postings."""
    sizes = [len(block.packed) // POSTING.itemsize for block in blocks]
    records = np.frombuffer(b"".join([block.packed for block in blocks]), POSTING)
    return np.repeat(np.array([block.first for block in blocks], np.int64), sizes) + records["offset"], records


def blocks_of(postings: Postings, last: Sequence[Block] = ()) -> Iterator[Block]:
    """Blocks of postings, where the last blocks of words are filled up first.

    Parameters
    ----------
    last : at most one for each word, with numbers below those of the postings
    """
    last = [block for block in last if len(block.packed) < BLOCK * POSTING.itemsize]  # full ones stay as they are
    numbers, records = numbers_in(last)
    owners = np.repeat(np.arange(len(last)), [len(block.packed) // POSTING.itemsize for block in last])
    word = np.concatenate([np.array([block.word for block in last], np.int64)[owners], postings.word])
    text = np.concatenate([numbers, postings.text])
    base = np.concatenate([np.array([block.first for block in last], np.int64)[owners], postings.text])
    times = np.concatenate([records["times"], postings.times])
    words = np.concatenate([records["words"], postings.words])
    order = np.lexsort((text, word))
    word, text, base = word[order], text[order], base[order]
    group = np.flatnonzero(_new(word, text // SPAN))
    place = np.arange(len(order)) - np.repeat(group, np.diff(group, append=len(order)))
    starts = np.flatnonzero(place % BLOCK == 0)
    sizes = np.diff(starts, append=len(order))
    offset = text - np.repeat(base[starts], sizes)
    packed = _packed(POSTING, offset=offset, times=times[order], words=words[order])
    for start, count in zip(starts.tolist(), sizes.tolist(), strict=True):
        part = packed[start * POSTING.itemsize : (start + count) * POSTING.itemsize]
        yield Block(int(word[start]), int(base[start]), bytes(part))


def without(block: Block, texts: Ints) -> Block:
    """A block without the postings of some of its texts; it may be empty then.

    Parameters
    ----------
    texts : numbers of texts in the block
    """
    records = np.frombuffer(block.packed, POSTING)
    left = np.delete(records, np.searchsorted(records["offset"], texts - block.first))
    return block._replace(packed=left.tobytes())


def shared_stems(texts: Ints, words: Ints, table: StemTable) -> dict[tuple[int, int], int]:
    """How often texts have several words with the same stem: (stem, languages) -> number of words beyond the first.

    The number of texts with a stem is the sum of those with each of its words, less these.

    Parameters
    ----------
    texts, words : (m,) the distinct words of each text
    table : of all these words
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
    """Which rows of sorted columns differ from those before."""
    new = np.ones(len(columns[0]), np.bool_)
    new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return new


def _packed(kind: np.dtype[np.void], **columns: NDArray[np.int64]) -> memoryview:
    """Records as bytes."""
    records = np.empty(len(next(iter(columns.values()))), kind)
    for name, column in columns.items():
        records[name] = column
    return memoryview(records.tobytes())
