"""Selects reports to read by a model's ratings, from the roots down, like the published dynamic selection."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from llama_index.graphrag.clustering.hierarchy import Hierarchy

__all__ = ["RatedSelection"]


@dataclass(frozen=True)
class RatedSelection:
    """Communities rated so far, and those that wait for a rating.

    A community rated at `threshold` or above is read, and its children are rated next; a child that is read takes the
    place of its parent.

    Attributes
    ----------
    threshold : 0 to 5
    waiting : communities to rate, in order; the roots at first
    ratings : community -> rating
    """

    hierarchy: Hierarchy
    threshold: float
    waiting: tuple[int, ...]
    ratings: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def start(cls, hierarchy: Hierarchy, threshold: float = 1) -> "RatedSelection":
        """A selection with the roots to rate."""
        return cls(hierarchy, threshold, tuple(hierarchy.roots.tolist()))

    def rated(self, ratings: Mapping[int, float]) -> "RatedSelection":
        """The selection after ratings of some waiting communities; the others keep waiting."""
        new = {community: ratings[community] for community in self.waiting if community in ratings}
        opened = [community for community, rating in new.items() if rating >= self.threshold]
        below = tuple(child for community in opened for child in self.hierarchy.children(community).tolist())
        waiting = tuple(community for community in self.waiting if community not in new)
        return RatedSelection(self.hierarchy, self.threshold, waiting + below, {**self.ratings, **new})

    @property
    def chosen(self) -> tuple[int, ...]:
        """The communities to read, by rating, then in order."""
        relevant = {community for community, rating in self.ratings.items() if rating >= self.threshold}
        replaced = {int(self.hierarchy.parent[community]) for community in relevant}
        return tuple(sorted(relevant - replaced, key=lambda community: (-self.ratings[community], community)))
