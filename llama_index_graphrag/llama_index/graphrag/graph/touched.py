"""`Touched`: the entities, pairs and chunks that a write may have changed."""

from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple

__all__ = ["Touched"]


class Touched(NamedTuple):
    """The parts of a graph that a write may have changed.

    Attributes
    ----------
    pairs : key of an entity that gained or lost chunks -> the keys of the entities whose pair with it changed
    chunks : ids of chunks that were added or removed, or name other entities than before
    """

    pairs: Mapping[str, Set[str]]
    chunks: frozenset[str]

    @classmethod
    def nothing(cls) -> "Touched":
        """No change."""
        return cls({}, frozenset())

    @classmethod
    def of(cls, changes: Iterable["Touched"]) -> "Touched":
        """All changes of several writes."""
        pairs: dict[str, set[str]] = {}
        chunks: set[str] = set()
        for change in changes:
            for key, others in change.pairs.items():
                pairs.setdefault(key, set()).update(others)
            chunks |= change.chunks
        return cls(pairs, frozenset(chunks))
