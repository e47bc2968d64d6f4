"""Sentences as vectors of their words, so that none needs to be embedded.

The column of a stem holds ``(1 + log c) log(1 + n / d)`` for a sentence with c words of this stem, if d of n sentences
have one. These are the vectors that LexRank compares (Erkan & Radev, JAIR 22, 2004, section 3), with logarithms of
counts.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.text.function_words import FUNCTION_WORDS, function_words, written_language
from llama_index.ragkit.text.lexical_terms import lexical_terms
from llama_index.ragkit.text.stems import stems

__all__ = ["word_vectors"]

_MOST_STEMS = 4096  # columns; the stems in the fewest sentences are left out


def word_vectors(sentences: Sequence[str], language: str | None = None) -> NDArray[np.float32]:
    """Vectors of sentences, shape (len(sentences), number of stems), without function words if there are others.

    Parameters
    ----------
    language : ISO 639-1 code of the stems and function words; None to find it by the function words of the sentences

    >>> rows = word_vectors(["The lamps burned.", "It burned a lamp.", "A boat."])
    >>> [round(float(rows[0] @ row), 2) for row in rows]
    [1.68, 1.68, 0.0]
    """
    language = language or written_language("\n".join(sentences))
    small = function_words(language) | FUNCTION_WORDS
    terms = [lexical_terms(sentence) for sentence in sentences]
    words = list(dict.fromkeys(word for found in terms for word in found))
    stem_of = dict(zip(words, stems(words, language), strict=True))
    counts = [_stem_counts(found, stem_of, small) for found in terms]
    spread = Counter(stem for found in counts for stem in found)
    names = sorted(spread, key=lambda stem: (-spread[stem], stem))[:_MOST_STEMS]
    column = {stem: (i, math.log(1 + len(sentences) / spread[stem])) for i, stem in enumerate(names)}
    rows = np.zeros((len(sentences), len(names)), np.float32)
    for row, found in zip(rows, counts, strict=True):
        for stem, times in found.items():
            if stem in column:
                i, rarity = column[stem]
                row[i] = (1 + math.log(times)) * rarity
    return rows


def _stem_counts(terms: Mapping[str, int], stem_of: Mapping[str, str], small: frozenset[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in [word for word in terms if word not in small] or terms:
        found[stem_of[word]] = found.get(stem_of[word], 0) + terms[word]
    return found
