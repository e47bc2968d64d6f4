"""`Touched`: the entities, pairs and chunks that a write may have changed."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Touched"]


class Touched(NamedTuple):
    """The parts of a graph that a write may have changed.

    Attributes
    ----------
    pairs : key of an entity that gained or lost chunks -> the keys of the entities whose pair with it changed
    chunks : ids of chunks that were added or removed, or name other entities than before
    """

    pairs: Mapping[str, frozenset[str]]
    chunks: frozenset[str]

    @classmethod
    def nothing(cls) -> "Touched":
        """No change."""
        return cls({}, frozenset())

    def also(self, other: "Touched") -> "Touched":
        """The changes of both."""
        keys = self.pairs.keys() | other.pairs.keys()
        none = frozenset[str]()
        pairs = {key: self.pairs.get(key, none) | other.pairs.get(key, none) for key in keys}
        return Touched(pairs, self.chunks | other.chunks)
