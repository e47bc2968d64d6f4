"""A search under a budget of relevance tests: which chunk a model is asked about next.

The next chunk is the one of largest

    nearness_c + f sim(c, b)

among those not tested, with b the nearest chunk that was found relevant, sim the cosine of both, standardised over its
hundred best, and f the feedback; ties by place. Without a relevant chunk it is nearness alone. The published search
(microsoft/intelligence-toolkit) goes through communities in the order of their nearness and takes no feedback.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["RelevanceSearch"]

Floats = NDArray[np.float64]


class RelevanceSearch:
    """Chunks tested so far, and the next one.

    Parameters
    ----------
    nearness : shape (n,), chunks in canonical order
    budget : chunks that are tested, at least 1
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
        """The chunk to test next; None when the budget is spent or nothing is left."""
        if len(self._tested) >= self._budget:
            return None
        scores = self._nearness + self._feedback * self._similarity
        scores[list(self._tested)] = -np.inf
        return int(np.argmax(scores))

    def judged(self, chunk: int, relevant: bool) -> bool:
        """Note a judgement.

        Returns
        -------
        Whether the chunk is now the nearest relevant one, so that :meth:`compare` should be given its similarities.
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
        """The chunks found relevant, the nearest first."""
        return sorted((chunk for chunk, relevant in self._tested.items() if relevant), key=self._rank)

    @property
    def tests(self) -> int:
        """How many chunks were tested."""
        return len(self._tested)

    def _rank(self, chunk: int) -> tuple[float, int]:
        return -float(self._nearness[chunk]), chunk
