"""The scores of chunks and themes for one prompt, on one scale, and the ranking by them.

    chunk    (1 - s) * dense + s * z(BM25)
    theme    min(dense, dense of the chunk with the best score) - margin - lacking, by the means and deviations of
             chunks
    lacking  z(BM25) of the chunk with most words of the prompt, less that of the theme's member with most

where `dense` is the score of text and questions (:mod:`llama_index.gemrag.graph.similarity`), in standard deviations,
and z a score less the mean of the hundred best chunks, divided by their standard deviation. The words of a chunk are
those of its text, and the words of its questions that the text lacks (after Nogueira et al., Document Expansion by
Query Prediction, 2019, arXiv 1904.08375, where all words of the questions are appended). Their weight s is w for a
usual prompt, more if the words of the prompt tell more and less if the cosines of the texts do
(:mod:`llama_index.ragkit.vectors.trust`). Shifting or stretching all cosines of an embedding model changes no
ranking. With w = 0 only the dense score counts.

Themes have no BM25 score: the index of words holds only the chunks, whose words a theme repeats. If the embedding model
does not know a language, themes, being texts of another kind, are nearer to every prompt than any chunk, and the chunk
with the words of the prompt is no nearer than others. So a theme is no nearer than the chunk with the best score, and a
penalty for the words that its members lack is subtracted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llama_index.gemrag.graph.similarity import Rule
from llama_index.gemrag.layer import Layer, Match
from llama_index.gemrag.state import GEMRAGState
from llama_index.ragkit.text.lexical_index import NOT_KNOWN, FullScore
from llama_index.ragkit.vectors.question_scores import best_rows, standardised, with_words
from llama_index.ragkit.vectors.snapshot import Mask
from llama_index.ragkit.vectors.trust import lexical_share

__all__ = ["MemoryScores", "rank_nodes"]

Doubles = NDArray[np.float64]
_DECIMALS = 9
_EQUAL = 10.0**-_DECIMALS  # scores that differ by less are equal


@dataclass(frozen=True)
class MemoryScores:
    """Scores in standard deviations, -inf for nodes that do not pass the filter.

    Attributes
    ----------
    state : the memory
    vector : of the prompt, shape (d,)
    rule : the weights of the dense score
    chunks, themes : shapes (n,) and (m,)
    lexical : shape (n,), BM25 scores
    lexical_weight : their weight s for this prompt, in [0, 1]
    """

    state: GEMRAGState
    vector: NDArray[np.float32]
    rule: Rule
    chunks: Doubles
    themes: Doubles
    lexical: Doubles
    lexical_weight: float

    @classmethod
    def of(
        cls,
        state: GEMRAGState,
        vector: NDArray[np.float32],
        rule: Rule,
        lexical: Doubles,
        lexical_weight: float,
        allowed: Mask | None = None,
        margin: float = 0.0,
        full_score: FullScore = NOT_KNOWN,
    ) -> "MemoryScores":
        """The scores for a prompt.

        Parameters
        ----------
        lexical : shape (n,), BM25 scores of the chunks
        lexical_weight : w, in [0, 1]
        allowed : shape (n,), mask of the chunks that pass the filter; a theme passes if all its members do
        margin : subtracted from the scores of themes, in standard deviations
        full_score : see :func:`~llama_index.ragkit.vectors.question_scores.hybrid_nearness`
        """
        cosines = state.chunk_layer.cosines(vector, rule)
        usual = cosines.only(allowed)
        dense = rule.scores(cosines, usual)
        # Not by the dense scores: of an index in stores, most questions of the chunks with words are unread.
        counted = np.ones(len(dense), np.bool_) if allowed is None else allowed
        share = lexical_share(cosines.text[counted], lexical[counted], lexical_weight, full_score)
        chunks = with_words(dense, lexical, share, allowed)
        themes = rule.scores(state.theme_layer.cosines(vector, rule), usual)
        if lexical_weight and len(chunks):
            best = chunks >= chunks.max() - _EQUAL  # the order of rows must not choose among equal chunks
            themes = np.minimum(themes, dense[best].max()) - _lacking(state, lexical, allowed)
        shown = state.theme_mask(allowed)
        themes = themes if shown is None else np.where(shown, themes, -np.inf)
        return cls(state, vector, rule, chunks, themes - margin, lexical, share)

    @property
    def all_nodes(self) -> Doubles:
        """The scores of chunks, then of themes, shape (n + m,)."""
        return np.concatenate([self.chunks, self.themes])

    def _place(self, node_id: str) -> tuple[Layer, int]:
        layer = self.state.layer_of(node_id)
        return layer, layer.texts.row_of(node_id)

    def match(self, node_id: str) -> Match:
        """The parts of the dense score of a node."""
        layer, row = self._place(node_id)
        return layer.match(row, self.vector, self.rule)

    def score(self, node_id: str) -> float:
        """The score of a node."""
        layer, row = self._place(node_id)
        return float((self.themes if layer is self.state.theme_layer else self.chunks)[row])

    def lexical_of(self, node_id: str) -> float:
        """The BM25 score of a chunk; 0 for a theme."""
        layer, row = self._place(node_id)
        return 0.0 if layer is self.state.theme_layer else float(self.lexical[row])


def rank_nodes(
    scores: MemoryScores, k: int, *, keep_covered: bool = True, max_summaries: int | None = None
) -> list[tuple[str, float]]:
    """The paper's Algorithm 1: the k nodes with the best scores, without edges, each once, best first.

    Parameters
    ----------
    k : at least 1
    keep_covered : whether a theme is kept if one of its members ranks higher
    max_summaries : largest number of themes; None for no limit

    Returns
    -------
    Ids with scores in standard deviations; equal scores in the canonical order.
    """
    state, texts = scores.state, scores.state.theme_layer.texts
    found = [(state.chunks.ids[row], float(scores.chunks[row])) for row in best_rows(scores.chunks, k, state.chunks)]
    # Chunks are never left out, so a theme below k of them is not shown.
    least = min(score for _, score in found) - 2 * _EQUAL if len(found) == k else -np.inf
    themes = {texts.ids[row]: float(scores.themes[row]) for row in np.flatnonzero(scores.themes > least)}
    found = sorted([*found, *themes.items()], key=lambda item: (-round(item[1], _DECIMALS), state.key(item[0])))
    kept: list[tuple[str, float]] = []
    summaries = 0
    above: set[str] = set()
    for name, score in found:
        if name in themes:
            covered = not keep_covered and not above.isdisjoint(state.themes[name].members)
            if covered or (max_summaries is not None and summaries >= max_summaries):
                continue
            summaries += 1
        above.add(name)
        kept.append((name, score))
    return kept[:k]


def _lacking(state: GEMRAGState, lexical: Doubles, allowed: Mask | None) -> Doubles:
    """The BM25 score of the best chunk less that of each theme's best member, standardised, shape (m,)."""
    counted = lexical if allowed is None else lexical[allowed]
    if not counted.any():
        return np.zeros(len(state.member_rows))
    words = standardised(lexical, counted)
    # In a memory in stores, members that were not read have no more of the words than the chunks that were.
    least, best = float(words.min()), float(standardised(counted).max())
    return best - state.member_rows.largest(words, least)
