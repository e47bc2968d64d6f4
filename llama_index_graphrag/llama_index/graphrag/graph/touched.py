"""`Touched`: which entities, pairs and chunks a write may have changed."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Touched"]


class Touched(NamedTuple):
    """What a write may have changed.

    Attributes
    ----------
    pairs : key of an entity that chunks came to or went from -> those of the entities whose pair with it changed
    chunks : ids of chunks that came, went, or name other entities than before
    """

    pairs: Mapping[str, frozenset[str]]
    chunks: frozenset[str]

    @classmethod
    def nothing(cls) -> "Touched":
        """What no write has changed."""
        return cls({}, frozenset())

    def also(self, other: "Touched") -> "Touched":
        """What either has changed."""
        keys = self.pairs.keys() | other.pairs.keys()
        none = frozenset[str]()
        pairs = {key: self.pairs.get(key, none) | other.pairs.get(key, none) for key in keys}
        return Touched(pairs, self.chunks | other.chunks)
