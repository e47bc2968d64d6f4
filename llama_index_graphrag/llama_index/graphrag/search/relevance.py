"""A search under a budget of relevance tests: which chunk a model tests next.

The next chunk is the untested one with the largest

    nearness_c + f sim(c, b)

where b is the nearest chunk found relevant, sim the cosine of both, standardised over its hundred best values, and f
the feedback; ties by place. Without a relevant chunk only nearness counts. The published search
(microsoft/intelligence-toolkit) goes through communities in the order of their nearness and uses no feedback.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["RelevanceSearch"]

Floats = NDArray[np.float64]


class RelevanceSearch:
    """Chunks tested so far, and the next one.

    Parameters
    ----------
    nearness : shape (n,), for chunks in canonical order
    budget : number of chunks to test, at least 1
    feedback : f, at least 0
    """

    def __init__(self, nearness: Floats, budget: int, feedback: float) -> None:
        self._nearness = np.asarray(nearness, np.float64)
        self._budget = min(budget, len(self._nearness))
        self._feedback = feedback
        self._similarity = np.zeros_like(self._nearness)
        self._tested: dict[int, bool] = {}
        self._best = -1

    def next(self) -> int | None:
        """The chunk to test next; None if the budget is spent or nothing is left."""
        if len(self._tested) >= self._budget:
            return None
        scores = self._nearness + self._feedback * self._similarity
        scores[list(self._tested)] = -np.inf
        return int(np.argmax(scores))

    def judged(self, chunk: int, relevant: bool) -> bool:
        """Note a judgement, and return whether the chunk is now the nearest relevant one.

        If so, pass its similarities to :meth:`compare`.
        """
        self._tested[chunk] = relevant
        if relevant and (self._best < 0 or self._rank(chunk) < self._rank(self._best)):
            self._best = chunk
            return True
        return False

    def compare(self, similarity: Floats) -> None:
        """Take the similarity of every chunk to the nearest relevant one, shape (n,)."""
        self._similarity = np.asarray(similarity, np.float64)

    @property
    def relevant(self) -> list[int]:
        """The chunks found relevant, nearest first."""
        return sorted((chunk for chunk, relevant in self._tested.items() if relevant), key=self._rank)

    @property
    def tests(self) -> int:
        """The number of tested chunks."""
        return len(self._tested)

    def _rank(self, chunk: int) -> tuple[float, int]:
        return -float(self._nearness[chunk]), chunk
