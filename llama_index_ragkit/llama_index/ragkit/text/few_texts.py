"""BM25 over a few texts for one question, without an index."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.lexical_index import MOST_COUNTED, length_norms, question_stems, stem_scores, stem_weight
from llama_index.ragkit.text.stems import stems

__all__ = ["scores_of_few"]


def scores_of_few(term_counts: Sequence[Mapping[str, int]], question: str) -> NDArray[np.float64]:
    """The BM25 scores of texts, shape (n,): the same as from a
    :class:`~llama_index.ragkit.text.lexical_index.LexicalIndex` of only these texts, at a third of its cost.

    Parameters
    ----------
    term_counts : how often each text has each term, see :func:`~llama_index.ragkit.text.lexical_terms.lexical_terms`

    >>> scores_of_few([{"silk": 1, "looms": 1}, {"harbour": 2}], "Who built the loom?").round(2).tolist()
    [0.69, 0.0]
    """
    scores = np.zeros(len(term_counts))
    times_of, language, _ = question_stems(question)
    words = list(dict.fromkeys(word for text in term_counts for word in text))
    stem_of = {word: stem for word, stem in zip(words, stems(words, language), strict=True) if stem in times_of}
    counts_of: dict[str, dict[int, int]] = {stem: {} for stem in times_of}
    for row, text in enumerate(term_counts):
        for word in text.keys() & stem_of.keys():
            counts = counts_of[stem_of[word]]
            counts[row] = counts.get(row, 0) + min(text[word], MOST_COUNTED)
    lengths = np.array([sum(text.values()) for text in term_counts], np.float32)
    norms = length_norms(lengths, float(lengths.sum(dtype=np.float64)) / max(len(term_counts), 1) or 1.0)
    for stem, counts in counts_of.items():
        rows, often = list(counts), np.array(list(counts.values()), np.float64)
        weight = stem_weight(times_of[stem], len(rows), len(term_counts))
        scores[rows] += stem_scores(weight, often, norms[rows])
    return scores
