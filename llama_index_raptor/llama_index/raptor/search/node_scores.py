"""The scores of chunks and summaries for one question, on one scale.

    chunk      (1 - w) * z(cosine) + w * z(BM25)
    summary    (1 - w) * min(z(cosine), z of the best chunk) + w * mean of the scores of its two best chunks,
               where z standardises by the cosines of chunks, and w is the weight of words for this question

The cosine of a summary counts only up to that of the chunk with the best score. If the embedding model does not know
the language of a question, all cosines say little, and summaries, which are texts of another kind, have larger ones
than chunks. The best chunk is then the one that has the words of the question, and its cosine is an ordinary one.

Shifting or stretching all cosines of an embedding model changes no ranking. Summaries have no BM25 score: the index of
words holds chunks, and a summary repeats their words. The scores of the chunks below it are used instead. With w = 0
the order is that of the cosines, as in the paper.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.question_scores import Nearness, question_cosines, result_scores, standardised
from llama_index.ragkit.vectors.snapshot import Mask
from llama_index.raptor.state import RaptorState, ScoredNode

__all__ = ["SPEAKERS", "NodeScores", "as_results"]

Doubles = NDArray[np.float64]
_DECIMALS = 9
SPEAKERS = 2  # chunks whose scores count for the summary above them


@dataclass(frozen=True)
class NodeScores:
    """Scores of the nodes that pass a filter.

    Attributes
    ----------
    state : the tree
    vector : the vector of the question, shape (d,)
    nearness : the nearness of the chunks; scores are -inf for chunks that do not pass
    allowed : shape (number of chunks,), mask of chunks that pass; a summary passes if all its leaves do; None for all
    """

    state: RaptorState
    vector: NDArray[np.float32]
    nearness: Nearness
    allowed: Mask | None = None

    @cached_property
    def _summary_cosines(self) -> Doubles:
        return question_cosines(self.state.summaries, self.vector)

    @cached_property
    def _chunk_cosines(self) -> Doubles:
        return self.nearness.cosines if self.allowed is None else self.nearness.cosines[self.allowed]

    @cached_property
    def standard_cosines(self) -> Doubles:
        """z(cosine) of each written summary, shape (m,); -inf for summaries that do not pass."""
        scores = standardised(self._summary_cosines, self._chunk_cosines)
        mask = self.state.summary_mask(self.allowed)
        return scores if mask is None else np.where(mask, scores, -np.inf)

    @cached_property
    def nearest_chunk(self) -> float:
        """The largest cosine of a chunk, standardised; -inf without chunks."""
        return float(standardised(self._chunk_cosines).max(initial=-np.inf))

    @cached_property
    def best_chunk(self) -> float:
        """The standardised cosine of the chunk with the best score, the largest of equal ones; -inf without chunks."""
        if not len(self._chunk_cosines):
            return -np.inf
        scores = np.round(self.nearness.scores, _DECIMALS)
        best = self.nearness.cosines[scores == scores.max()]
        return float(standardised(best, self._chunk_cosines).max())

    @cached_property
    def standard_words(self) -> Doubles:
        """z(BM25) of each chunk, shape (number of chunks,); 0 for all if words do not count, or if no chunk that passes
        has a word of the question.
        """
        lexical, allowed = self.nearness.lexical, self.allowed
        counted = lexical if allowed is None else lexical[allowed]
        if not self.nearness.lexical_weight or not counted.any():
            return np.zeros(len(lexical))
        scores = standardised(lexical, counted)
        return scores if allowed is None else np.where(allowed, scores, -np.inf)

    @cached_property
    def _least(self) -> float:
        return float(self.nearness.scores.min(initial=np.inf))

    def cosine(self, node: str) -> float | None:
        """The cosine of question and node; None for a summary that is not written."""
        state = self.state
        if node in state.summaries:
            return float(self._summary_cosines[state.summaries.row_of(node)])
        return float(self.nearness.cosines[state.chunks.row_of(node)]) if node in state.chunks else None

    def lexical(self, node: str) -> float:
        """The BM25 score of a chunk; 0 for a summary."""
        chunks = self.state.chunks
        return float(self.nearness.lexical[chunks.row_of(node)]) if node in chunks else 0.0

    def ranked(self, nodes: Iterable[str]) -> list[ScoredNode]:
        """Nodes that pass, with their scores in standard deviations, best first."""
        scored = [(node, score) for node in nodes if (score := self._score(node)) > -np.inf]
        return sorted(scored, key=lambda pair: (-round(pair[1], _DECIMALS), self.state.key(pair[0])))

    def _score(self, node: str) -> float:
        state = self.state
        if node in state.chunks:
            return float(self.nearness.scores[state.chunks.row_of(node)])
        score = float(self.standard_cosines[state.summaries.row_of(node)]) if node in state.summaries else -np.inf
        weight = self.nearness.lexical_weight
        if score == -np.inf or not weight:
            return score
        below = np.sort(self.nearness.scores[state.leaf_rows[node]])[-SPEAKERS:]
        # If the tree is in stores, chunks that were not read are no nearer than those that were.
        speaking = [*below.tolist(), *[self._least] * (SPEAKERS - len(below))]
        dense = min(score, self.best_chunk)
        return (1 - weight) * dense + weight * float(np.mean(speaking))


def as_results(ranking: list[ScoredNode], scores: NodeScores) -> list[ScoredNode]:
    """The same ranking with scores in [0, 1]."""
    values = result_scores(np.array([score for _, score in ranking]), scores.nearness.scores).tolist()
    return [(node, score) for (node, _), score in zip(ranking, values, strict=True)]
