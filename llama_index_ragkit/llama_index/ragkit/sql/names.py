"""Names in a question, looked up in a database: the same as :class:`~llama_index.ragkit.text.known_names.KnownNames`.

A name is stored as edges of the graph's rows (:mod:`llama_index.ragkit.sql.graph_rows`), so that exact counts add and
remove it:

- from each of its *keys* to the name. A key is made of a first word, a last word and a number of words: those of the
  name, of each beginning and end by which a text may name it, and, in scripts without capitals, of each run of words.
  Scripts without spaces use characters instead of words;
- from each stem of each of its words to the word, with the languages that stem it so.

A name that mixes scripts with and without spaces is found as a whole, but not always by its parts: these are parts of
one of the two kinds.

For a question one statement reads the words that share its words' stems, and another the names with the keys made of
these words. Such names are few, and `KnownNames` decides among them.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.storage.graph.edges import SEGMENT, content_number
from llama_index.ragkit.storage.graph.interface import GraphReader, NodeRows
from llama_index.ragkit.text.characters import CASELESS, UNSPACED
from llama_index.ragkit.text.known_names import MORE_CHARACTERS, MORE_WORDS, MOST_PHRASES, Lookups
from llama_index.ragkit.text.stems import all_stems, language_bit, stems

__all__ = ["NameCandidates", "candidates", "name_edges"]

Ints = NDArray[np.int64]
Edge = tuple[int, int, int, int, int]  # node, neighbor, source, kind, count

_KEY, _WORD = 2, 3  # kinds of numbers
_WHOLE, _END, _BEGINNING, _RUN = "whole", "end", "beginning", "run"
_CASELESS = re.compile(f"[{CASELESS}]")
_UNSPACED = re.compile(f"[{UNSPACED}]")


class NameCandidates(NamedTuple):
    """The numbers of the names that a question may contain, ascending; parts that too many names have."""

    nodes: Ints
    unspecific: frozenset[str]


def name_edges(name: str, node: int, count: int = 1) -> Iterator[Edge]:
    """The edges by which a normalised name is found, to add it, or with a `count` of -1 to remove it."""
    words = name.split()
    for key in dict.fromkeys(_keys(name, [_word(word) for word in words])):
        yield _key(*key), node, 0, 0, count
    for word in words:
        for stem, number, languages in _stem_edges(word):
            yield stem, number, languages, 0, count


def candidates(reader: GraphReader, asked: Lookups, restricted: bool = False) -> NameCandidates:
    """The names that a question may contain, read by two statements.

    Parameters
    ----------
    restricted : whether some names may not be found. Then few of the many names with a part may be allowed; up to
        `SEGMENT` names are looked at, and beyond that the part is unspecific
    """
    forms = _Forms(reader, asked)
    wholes = dict.fromkeys(key for phrase in asked.phrases for key in forms.keys(_WHOLE, phrase))
    parts = {part: [*forms.part_keys(part, at_start)] for part, at_start in asked.parts}
    keys = np.unique(np.array([*wholes, *(key for made in parts.values() for key in made)], np.int64))
    rows = reader.fetch(keys)
    place = {int(key): i for i, key in enumerate(rows.nodes)}
    most = SEGMENT if restricted else MOST_PHRASES
    found = [_names(rows, place[key]) for key in wholes]
    unspecific = []
    for part, made in parts.items():
        places = [place[key] for key in made]
        names = [_names(rows, i) for i in places]
        if rows.further[places].any() or len(set(np.concatenate([_NONE, *names]).tolist())) > most:
            unspecific.append(part)
        else:
            found += names
    return NameCandidates(np.unique(np.concatenate([_NONE, *found])), frozenset(unspecific))


_NONE = np.empty(0, np.int64)


@lru_cache(1 << 16)
def _stem_edges(word: str) -> tuple[tuple[int, int, int], ...]:
    """For each stem of a word: its number, the number of the word, and the languages."""
    return tuple((content_number(_WORD, "stem", stem), _word(word), mask) for stem, mask in all_stems(word).items())


def _names(rows: NodeRows, place: int) -> Ints:
    found: Ints = rows.records["neighbor"][rows.indptr[place] : rows.indptr[place + 1]]
    return found


def _word(word: str) -> int:
    return content_number(_WORD, "word", word)


def _key(kind: str, first: int, last: int, length: int) -> int:
    return content_number(_KEY, kind, str(first), str(last), str(length))


def _keys(name: str, words: list[int]) -> Iterator[tuple[str, int, int, int]]:
    """(kind, first word, last word, length) of a name."""
    n = len(words)
    if not n:
        return
    yield _WHOLE, words[0], words[-1], n
    if _UNSPACED.search(name):
        for more in range(1, min(MORE_CHARACTERS + 1, len(name))):
            yield (_END, *_characters(name[more:]))
            yield (_BEGINNING, *_characters(name[: len(name) - more]))
    for length in range(max(1, n - MORE_WORDS), n):
        yield _END, words[n - length], words[-1], length
        yield _BEGINNING, words[0], words[length - 1], length
        for start in range(n - length + 1) if _CASELESS.search(name) else ():
            yield _RUN, words[start], words[start + length - 1], length


def _characters(part: str) -> tuple[int, int, int]:
    """A key of characters: the text itself, as a word."""
    number = _word(part.strip())
    return number, number, 0


class _Forms:
    """The stored words that share a stem with a word of a question."""

    def __init__(self, reader: GraphReader, asked: Lookups) -> None:
        texts: Iterable[str] = [*asked.phrases, *(part for part, _ in asked.parts)]
        words = list(dict.fromkeys(word for text in texts for word in text.split()))
        numbers = [content_number(_WORD, "stem", stem) for stem in stems(words, asked.language)]
        rows = reader.fetch(np.unique(np.array(numbers, np.int64)))
        place = {int(number): i for i, number in enumerate(rows.nodes)}
        self._of: dict[str, list[int]] = {}
        for word, number in zip(words, numbers, strict=True):
            first, last = rows.indptr[place[number]], rows.indptr[place[number] + 1]
            records = rows.records[first:last]
            fits = (records["source"] & language_bit(word, asked.language)) != 0
            self._of[word] = np.unique(records["neighbor"][fits]).tolist()

    def keys(self, kind: str, phrase: str) -> Iterator[int]:
        """The keys of a run of words, for every form of its first and last word."""
        words = phrase.split()
        if not words or not all(self._of[word] for word in words):
            return  # no name has this word
        firsts, lasts = self._of[words[0]], self._of[words[-1]]
        for first in firsts:
            for last in lasts if len(words) > 1 else [first]:
                yield _key(kind, first, last, len(words))

    def part_keys(self, part: str, at_start: bool) -> Iterator[int]:
        """The keys of a part of names, at their end, or also at their beginning."""
        kinds = [_WHOLE, _END, *([_BEGINNING] if at_start else [])]
        if _UNSPACED.search(part):
            for kind in kinds:
                yield _key(kind, *_characters(part))
        for kind in [*kinds, *([_RUN] if _CASELESS.search(part) else [])]:
            yield from self.keys(kind, part)
