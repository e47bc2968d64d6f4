"""Pairs of names in one document that may be the same entity, to be judged by a resolver.

Two names are candidates if most statements of the document give them the same type, or none, if the cosine of their
vectors reaches a threshold, and if they have the same numbers: "Chapter 3" is not "Chapter 4". Names that the rules of
:mod:`llama_index.graphrag.graph.resolution` join are not candidates.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.graphrag.graph.resolution import short_forms
from llama_index.graphrag.graph.statement import ChunkStatements, digest
from llama_index.graphrag.graph.statement_graph import majority
from llama_index.ragkit.vectors.kernels import pair_cosines
from llama_index.ragkit.vectors.pairs import pairs_within

__all__ = ["CandidatePair", "DocumentNames", "Judgement", "Judgements", "judged_same", "types_in", "visible_pairs"]

Floats = NDArray[np.float32]

_LINES = 3  # statements about a name that a resolver sees
_NUMBER = re.compile(r"\d+")
Pairs = frozenset[tuple[str, str]]


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
    """The judgement of a resolver on two names in a document.

    Attributes
    ----------
    one, other : normalised names, sorted
    key : hash of the pair from which it was made
    same : whether they are one entity; None if there is no judgement yet
    reason : why there is no judgement
    cache_keys : entries of the extraction cache that it uses
    """

    one: str
    other: str
    key: str
    same: bool | None
    reason: str = ""
    cache_keys: tuple[str, ...] = ()


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
