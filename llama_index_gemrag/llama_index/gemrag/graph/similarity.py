"""Scores of nodes for a prompt, from their texts and the questions they answer. Pure functions on arrays.

With t the cosine of the prompt and the text, s the largest cosine of the prompt and one of the node's m questions, and
h the mean cosine of the text and all questions of the index,

    score = t + (1 - (1 - w)^m) * r(s) * max(0, s - t) - c * h          w = 0.5, c = 0.2       (fused)
    r(s)  = (s - usual) / (best - usual), from 0 to 1

with `best` the largest cosine of the prompt and any question, and `usual` the mean of the hundred largest. A question
can raise the score of its node but never lower it, since a chunk also answers questions that were not extracted; the
more questions it has, the fewer are missing, so the weight grows with m from w towards 1. A question contributes the
amount by which it is nearer than the text, times r, how far it stands out from all questions: for a vague prompt many
questions are slightly nearer than their texts, which is not informative. h is the node's degree in the memory graph
divided by the number of nodes: a hub is near to every question, so its similarity to the prompt is less informative
(hubness: Radovanovic et al., JMLR 11, 2010). The first eigenvector represents the same effect, and D^-1/2 removes it
from the graph. Shifting or stretching all cosines shifts or stretches all scores. None of this is in the paper.

The paper (section III.B, "Text Embeddings", and Algorithm 1) has

    score = max_j cos(prompt, v_j),   v_j = unit((1 - a) text + a question_j)                         (blended)

which with a = 1/2 ranks worse than the plain text on real questions (docs, "The rule that never loses").
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["QuestionScale", "Rule"]

Array = NDArray[np.float64]
_BEST = 100  # questions that are the usual ones


@dataclass(frozen=True)
class QuestionScale:
    """How near the questions of the memory are to a prompt.

    Attributes
    ----------
    usual, best : mean of the hundred largest cosines, and the largest
    """

    usual: float = 0.0
    best: float = 0.0

    @classmethod
    def of(cls, questions: Array) -> "QuestionScale":
        """The scale of these cosines, shape (m,)."""
        if not len(questions):
            return cls()
        count = min(_BEST, len(questions))
        largest = np.partition(questions, len(questions) - count)[-count:]
        return cls(float(largest.mean()), float(largest.max()))

    def relevance(self, questions: Array) -> Array:
        """r of the module's docstring; 0 where all questions are alike."""
        spread = self.best - self.usual
        if spread <= 1e-9:
            return np.zeros(len(questions))
        found: Array = np.clip((questions - self.usual) / spread, 0, 1)
        return found


@dataclass(frozen=True)
class Rule:
    """Weights of the score.

    Attributes
    ----------
    question_weight : w, in [0, 1], the weight of a single question
    hub_penalty : c, in [0, 2]
    blend : a, in [0, 1], for the paper's score; None for the fused one
    """

    question_weight: float = 0.5
    hub_penalty: float = 0.2
    blend: float | None = None

    def question_scores(self, text: Array, question: Array, agreement: Array) -> Array:
        """The score of each question, all arrays of shape (m,).

        Parameters
        ----------
        text, question : cosines of the prompt with the text of the question's node, and with the question
        agreement : cosine of the question with that text

        Returns
        -------
        `question` (fused), or the cosine with the blended vector
        """
        if self.blend is None:
            return question
        a, b = self.blend, 1 - self.blend
        length = np.sqrt(np.maximum(a * a + b * b + 2 * a * b * agreement, 1e-12))
        found: Array = (a * question + b * text) / length
        return found

    def combined(self, text: Array, best: Array, hub: Array, counts: NDArray[np.intp], scale: QuestionScale) -> Array:
        """The score of each node, all arrays of shape (n,).

        Parameters
        ----------
        best : the largest of :meth:`question_scores`; -inf for a node without questions
        hub, counts, scale : h, m, and what r is computed from, of the module's docstring
        """
        if self.blend is not None:
            return np.where(np.isfinite(best), best, text)
        lifted = scale.relevance(best) * np.where(np.isfinite(best), np.maximum(best - text, 0), 0)
        weight = 1 - np.power(1 - self.question_weight, counts, dtype=np.float64)
        score: Array = text + weight * lifted - self.hub_penalty * hub
        return score
