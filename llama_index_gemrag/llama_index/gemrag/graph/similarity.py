"""Scores of nodes for a prompt, from their texts and the questions they answer. Pure functions on arrays.

With t the cosine of the prompt and the text, s the largest cosine of the prompt and one of the node's questions, and h
the mean cosine of the text and all questions of the index,

    score = z(t - c h) + w max(0, z(s) - z(t - c h))          w = 0.6, c = 0.2       (fused)

where z is a value less the mean of the hundred best chunks, divided by their standard deviation. A chunk also answers
questions that were not extracted, so a question can raise the score of its node but never lower it. Questions are short
and often nearer to a prompt than any text, which says nothing about a single question. So questions are compared with
questions, and texts with texts; for a chunk without questions its text takes their place. h is the node's degree in the
memory graph divided by the number of nodes: a hub is near to every question, so its similarity to the prompt is less
informative (hubness: Radovanovic et al., JMLR 11, 2010). The first eigenvector represents the same effect, and D^-1/2
removes it from the graph. Shifting or stretching all cosines changes no score. None of this is in the paper.

The paper (section III.B, "Text Embeddings", and Algorithm 1) has

    score = max_j cos(prompt, v_j),   v_j = unit((1 - a) text + a question_j).                        (blended)

With a = 1/2 it ranks worse than the plain text on real questions (docs, "Combining text and question scores"). It is
also standardised.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.question_scores import standardised

__all__ = ["NodeCosines", "Rule"]

Array = NDArray[np.float64]


class NodeCosines(NamedTuple):
    """The parts of the scores of nodes, each of shape (n,).

    Attributes
    ----------
    text : cosine of the prompt and the text
    question : the largest value of :meth:`Rule.question_scores`; -inf for a node without questions
    hub : mean cosine of the text and all questions
    """

    text: Array
    question: Array
    hub: Array

    @property
    def nearest(self) -> Array:
        """`question`, and `text` for a node without questions."""
        return np.where(np.isfinite(self.question), self.question, self.text)

    def only(self, kept: NDArray[np.bool_] | None) -> "NodeCosines":
        """The cosines of some nodes, by a mask of shape (n,); of all nodes for None."""
        return self if kept is None else NodeCosines(*(values[kept] for values in self))


@dataclass(frozen=True)
class Rule:
    """Weights of the score.

    Attributes
    ----------
    question_weight : w, in [0, 1]
    hub_penalty : c, in [0, 2]
    blend : a, in [0, 1], for the paper's score; None for the fused one
    """

    question_weight: float = 0.6
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

    def scores(self, nodes: NodeCosines, chunks: NodeCosines) -> Array:
        """The score of each node, shape (n,).

        Parameters
        ----------
        chunks : the chunks whose hundred best give means and deviations
        """
        question = standardised(nodes.nearest, chunks.nearest)
        if self.blend is not None:
            return question
        own, others = (cosines.text - self.hub_penalty * cosines.hub for cosines in (nodes, chunks))
        score = standardised(own, others)
        if question.any():  # else all questions are equally near and tell nothing
            lift = np.where(np.isfinite(nodes.question), np.maximum(question - score, 0), 0)
            score = score + self.question_weight * lift
        return score
