"""Decides which names are the same entity: by rules on names, and by pairs that a resolver judged to be the same.

1. Names that are equal after :func:`~llama_index.ragkit.text.characters.normalise` are one entity, even if their types
   differ.
2. Within one document, the name of a person inside exactly one longer name of a person is a short form of it:
   "Scrooge" of "Ebenezer Scrooge", unless the document also names "Uncle Scrooge". A longer name that adds a function
   word or a genitive is about another entity: "Scrooge's nephew", "Mother of Scrooge". The rule is not for other types:
   a "door" is not a "street door", and "Project Gutenberg" not a "Project Gutenberg Literary Archive Foundation".
3. Further pairs of one document are judged by vectors or by a language model. Two names are candidates if the first two
   rules do not join them, if most statements of the document give them the same type, or none, if the cosine of their
   vectors reaches a threshold, and if they have the same numbers: "Chapter 3" is not "Chapter 4".

Source: the published pipeline joins only names that are equal in upper case. The assumption that communities unite the
names of one entity does not hold on its own recorded run.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.statement import ChunkStatements, digest, majority
from llama_index.ragkit.text.function_words import FUNCTION_WORDS, is_name
from llama_index.ragkit.vectors.kernels import pair_cosines
from llama_index.ragkit.vectors.pairs import pairs_within

__all__ = [
    "CandidatePair",
    "DocumentNames",
    "Judgement",
    "Judgements",
    "judged_same",
    "representative",
    "representatives",
    "short_forms",
    "types_in",
    "visible_pairs",
]

_MOST_WORDS = 12  # words of a name that may have short forms
_PERSON = frozenset(("person", "per", "people"))  # as extractors and taggers name the type
_GENITIVE = "s"  # the form of 's after `normalise`
_APART = FUNCTION_WORDS | {_GENITIVE}
Floats = NDArray[np.float32]

_LINES = 3  # statements about a name that a resolver sees
_NUMBER = re.compile(r"\d+")
Pairs = frozenset[tuple[str, str]]


def short_forms(types: Mapping[str, str]) -> dict[str, str]:
    """The names of one document that are short forms, each with the name that it stands for.

    Parameters
    ----------
    types : normalised name -> type in lower case, for every entity that the document names

    Returns
    -------
    short -> longest name; names that stand for themselves are left out. The result depends on the mapping's content,
    not on its order.

    >>> short_forms({"scrooge": "person", "ebenezer scrooge": "person", "scrooge s nephew": "person"})
    {'scrooge': 'ebenezer scrooge'}
    >>> short_forms({"cratchit": "person", "bob cratchit": "person", "peter cratchit": "person"})
    {}
    """
    longer: dict[str, list[str]] = defaultdict(list)
    people = {name for name, kind in types.items() if kind in _PERSON}
    for name in sorted(people):
        for part in _parts(name.split()) & people:
            longer[part].append(name)
    stands_for: dict[str, str] = {}
    for short in sorted(longer, key=lambda name: (-len(name.split()), name)):
        full = {stands_for.get(name, name) for name in longer[short]}
        if len(full) == 1 and is_name(short):
            stands_for[short] = full.pop()
    return dict(sorted(stands_for.items()))


def _parts(words: list[str]) -> set[str]:
    """Runs of words inside a name to which the name adds only words of a name."""
    if not 1 < len(words) <= _MOST_WORDS:
        return set()
    apart = [word in _APART for word in words]
    runs = ((first, last) for first in range(len(words)) for last in range(first + 1, len(words) + 1))
    return {
        " ".join(words[first:last])
        for first, last in runs
        if last - first < len(words) and not any(apart[:first]) and not any(apart[last:])
    }


def representative(names: Iterable[str]) -> str:
    """The name that stands for several: the one with the most words, then the most characters, then the first."""
    return min(names, key=lambda name: (-len(name.split()), -len(name), name))


def representatives(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The name that stands for each name, given pairs of names of the same entity; pairs are transitive.

    Parameters
    ----------
    pairs : normalised names

    Returns
    -------
    name -> its representative; names that stand for themselves are left out

    >>> representatives([("tim", "tiny tim"), ("tiny tim", "timothy cratchit")])
    {'tim': 'timothy cratchit', 'tiny tim': 'timothy cratchit'}
    """
    groups: dict[str, list[str]] = {}
    for pair in pairs:
        small, large = sorted((groups.setdefault(name, [name]) for name in pair), key=len)
        if small is not large:
            large.extend(small)
            groups.update((name, large) for name in small)
    distinct = {id(group): group for group in groups.values()}.values()
    stands_for = {name: best for group in distinct for best in [representative(group)] for name in group}
    return {name: best for name, best in sorted(stands_for.items()) if name != best}


class CandidatePair(NamedTuple):
    """Two names that may be the same entity, and everything that a resolver may know about them.

    Names are normalised and sorted, spellings those of most statements, the kind is in lower case, empty for none, and
    the lines are the first statements about each.
    """

    names: tuple[str, str]
    spellings: tuple[str, str]
    kind: str
    lines: tuple[tuple[str, ...], tuple[str, ...]]

    @property
    def key(self) -> str:
        """Hash of the pair, the key of its judgement."""
        return digest(*self)


def types_in(chunks: Iterable[ChunkStatements]) -> dict[str, str]:
    """Each normalised name in some chunks, with the type, in lower case, that most of its statements give it."""
    given: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        for name, kind in chunk.typed_names:
            given[name].append(kind.casefold())
    return {name: majority(kinds) for name, kinds in given.items()}


@dataclass(frozen=True)
class DocumentNames:
    """The names in one document, normalised.

    For each: its type (:func:`types_in`), its spelling in most statements, and the first statements about it.
    """

    types: Mapping[str, str]
    spellings: Mapping[str, str]
    lines: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, chunks: Iterable[ChunkStatements]) -> "DocumentNames":
        """The names in the chunks of a document, given in any order."""
        ordered = sorted(chunks, key=lambda chunk: chunk.order)
        spelled: dict[str, list[str]] = defaultdict(list)
        lines: dict[str, list[str]] = defaultdict(list)
        for chunk in ordered:
            given = zip(chunk.normal_names, chunk.all_statements, strict=True)
            kept = [(names, statement) for names, statement in given if all(names)]
            for (names, statement), (_, text) in zip(kept, chunk.identified, strict=True):
                for name, spelling in zip(names, statement.names, strict=True):
                    spelled[name].append(spelling)
                    if text != spelling and text not in lines[name] and len(lines[name]) < _LINES:
                        lines[name].append(text)
        return cls(
            types_in(ordered),
            {name: majority(spellings) for name, spellings in spelled.items()},
            {name: tuple(lines[name]) for name in spelled},
        )

    def pair(self, one: str, other: str) -> CandidatePair | None:
        """Two names as candidates, regardless of their vectors; None if they cannot be candidates."""
        first, second = sorted((one, other))
        if first not in self.types or second not in self.types or self.types[first] != self.types[second]:
            return None
        if sorted(_NUMBER.findall(first)) != sorted(_NUMBER.findall(second)):
            return None
        return CandidatePair(
            (first, second),
            (self.spellings[first], self.spellings[second]),
            self.types[first],
            (self.lines[first], self.lines[second]),
        )

    def candidates(self, names: Collection[str], vectors: Floats, threshold: float) -> list[CandidatePair]:
        """The candidates among n names of the document, sorted by name.

        Their vectors, of shape (n, d), must have at least the cosine `threshold`.
        """
        listed = list(names)
        short = short_forms(self.types)
        found = []
        for some, others, _ in pairs_within(vectors, threshold):
            near = pair_cosines(vectors[some], vectors[others]) >= threshold
            for i, j in zip(some[near].tolist(), others[near].tolist(), strict=True):
                one, other = listed[i], listed[j]
                pair = self.pair(one, other) if short.get(one, one) != short.get(other, other) else None
                if pair is not None:
                    found.append(pair)
        return sorted(found)


@dataclass(frozen=True)
class Judgement:
    """The judgement of a resolver on two names in a document."""

    # two normalised names, sorted
    one: str
    other: str
    key: str  # hash of the pair from which it was made
    same: bool | None  # whether they are one entity; None if there is no judgement yet
    reason: str = ""  # why there is no judgement
    cache_keys: tuple[str, ...] = ()  # entries of the extraction cache that it uses


Judgements = Mapping[str, tuple[Judgement, ...]]


def judged_same(judgements: Judgements) -> dict[str, Pairs]:
    """The pairs of each document that were judged to be one entity."""
    return {document: frozenset((j.one, j.other) for j in given if j.same) for document, given in judgements.items()}


def visible_pairs(same: Mapping[str, Pairs], hidden: Iterable[ChunkStatements]) -> dict[str, Pairs]:
    """The pairs of each document that were judged to be one entity and have no name of some chunks."""
    names: dict[str, set[str]] = defaultdict(set)
    for chunk in hidden:
        names[chunk.document].update(name for name, _ in chunk.typed_names)
    return {
        document: frozenset(pair for pair in pairs if names[document].isdisjoint(pair))
        for document, pairs in same.items()
    }
