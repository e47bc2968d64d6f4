"""`Judgement`: what a resolver said of two names in a document."""

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Judgement", "Judgements", "judged_same"]


@dataclass(frozen=True)
class Judgement:
    """What a resolver said of two names in a document.

    Attributes
    ----------
    one, other : normalised names, sorted
    key : hash of what it was made from
    same : whether they are one entity; None where there is no judgement yet
    reason : why there is none
    cache_keys : entries of the extraction cache that it uses
    """

    one: str
    other: str
    key: str
    same: bool | None
    reason: str = ""
    cache_keys: tuple[str, ...] = ()


Judgements = Mapping[str, tuple[Judgement, ...]]


def judged_same(judgements: Judgements) -> dict[str, frozenset[tuple[str, str]]]:
    """The pairs of each document that are one entity."""
    return {document: frozenset((j.one, j.other) for j in given if j.same) for document, given in judgements.items()}
