"""`Judgement`: the judgement of a resolver on two names in a document."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from llama_index.graphrag.graph.statement import ChunkStatements

__all__ = ["Judgement", "Judgements", "judged_same", "visible_pairs"]

Pairs = frozenset[tuple[str, str]]


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
