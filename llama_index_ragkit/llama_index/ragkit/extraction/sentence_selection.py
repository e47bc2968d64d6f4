"""Selection of sentences by their vectors, for extractive summaries, and vectors of their words.

With unit vectors `v_i`, weights `w_j`, similarity `s_ij = max(0, v_i . v_j)` and
`b_j` the similarity of sentence j to the nearest chosen sentence (0 while there is none), the gain of a candidate i is

    gain(i) = sum_j  w_j * max(0, s_ij - redundancy * b_j)

and the greedy algorithm repeatedly takes the sentence of largest ``gain(i) / cost(i) ** 0.3`` that fits the remaining
budget.

- At redundancy 1 this is the facility location function ``sum_j w_j max_{i in S} s_ij`` under a knapsack
  budget, with the cost-scaled greedy of Lin & Bilmes ("A Class of Submodular Functions for Document
  Summarization", ACL 2011, sections 4 and 5; the exponent is their r). Content that is already covered adds no gain,
  so the function itself penalises redundancy.
- At redundancy 0 it is the weighted degree centrality of a sentence, the continuous form of LexRank's
  (Erkan & Radev, JAIR 22, 2004, section 3.2), without regard to repetition.

Deviations: the greedy set is not compared with the best single sentence (with an exponent below 1 there is no
guarantee either way); the exponent is fixed.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.text.function_words import FUNCTION_WORDS, function_words, written_language
from llama_index.ragkit.text.lexical_index import lexical_terms
from llama_index.ragkit.text.stems import stems
from llama_index.ragkit.validation import check_count, check_number

__all__ = ["MAX_CANDIDATES", "check_selection", "select_sentences", "word_vectors"]

MAX_CANDIDATES = 1000
# 0 favours long sentences, 1 short ones; of 0, .3, .5 and 1, 0.3 retrieved a cluster's members best.
_COST_EXPONENT = 0.3
_SAME = 1 - 1e-6  # cosine from which two sentences are one
_DECIMALS = 10  # hides the effect of the number of BLAS threads on products

_MOST_STEMS = 4096  # columns; the stems in the fewest sentences are left out


def select_sentences(
    vectors: ArrayLike,
    costs: Sequence[float],
    budget: float,
    *,
    weights: Sequence[float] | None = None,
    redundancy: float = 1.0,
    max_sentences: int | None = None,
) -> list[int]:
    """Choose sentences by coverage under a budget, as the module docstring describes.

    The choice does not depend on the order of the rows. Above `MAX_CANDIDATES` sentences only those that
    are nearest to the weighted mean of all are considered, so that time grows linearly with the rows.

    Parameters
    ----------
    vectors : array_like, shape (n, d), one row per sentence, of any norm
    costs : n costs above 0, such as tokens
    budget : maximum total cost
    weights : n weights above 0, the importance of covering each sentence; None for equal ones
    redundancy : in [0, 1], how strongly covered content is discounted
    max_sentences : how many to choose at most; None for no limit

    Returns
    -------
    indices of the chosen rows, in the order of choice: at least one (if no row fits the budget, the one of
    largest gain per cost alone), none twice, none equal to another chosen one; empty if there are no rows

    Raises
    ------
    ConfigurationError
        If lengths differ, a cost or weight is not above 0, or a parameter is out of range.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    n = len(costs)
    if n == 0:
        return []
    check_selection(max_sentences, redundancy)
    cost = np.asarray(costs, dtype=np.float64)
    weight = np.ones(n) if weights is None else np.asarray(weights, dtype=np.float64)
    if rows.ndim != 2 or len(rows) != n or len(weight) != n:
        raise ConfigurationError(f"vectors {rows.shape}, costs ({n},) and weights {weight.shape} do not match.")
    if not (np.isfinite(rows).all() and (cost > 0).all() and (weight > 0).all()):
        raise ConfigurationError("vectors must be finite; costs and weights must be above 0.")
    # Sums depend in their last bits on the order of their terms, so sort the rows first.
    order = sorted(range(n), key=lambda i: (cost[i], weight[i], rows[i].tobytes()))
    rows, cost, weight = rows[order], cost[order], weight[order]
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    if n > MAX_CANDIDATES:
        central = np.sort(np.argsort(-(rows @ (weight @ rows)).round(_DECIMALS), kind="stable")[:MAX_CANDIDATES])
        order, rows, cost, weight = [order[i] for i in central], rows[central], cost[central], weight[central]
    similarity = np.maximum((rows @ rows.T).round(_DECIMALS), 0)
    limit = n if max_sentences is None else max_sentences
    return [order[i] for i in _greedy(similarity, weight, cost, budget, redundancy, limit)]


def check_selection(max_sentences: int | None, redundancy: float) -> None:
    """Reject parameters of :func:`select_sentences` that are out of range."""
    check_number("redundancy", redundancy, 0, 1)
    check_count("max_sentences", max_sentences, 1, none_ok=True)


def _greedy(
    similarity: NDArray[np.float64],
    weight: NDArray[np.float64],
    cost: NDArray[np.float64],
    budget: float,
    redundancy: float,
    limit: int,
) -> list[int]:
    """Lazy greedy (Minoux 1978): gains only decrease as sentences are chosen, so an old gain is an upper bound."""
    scale = cost**_COST_EXPONENT
    covered = np.zeros(len(cost))

    def gain(i: int) -> float:
        return float((weight * np.maximum(similarity[i] - redundancy * covered, 0)).sum() / scale[i])

    first = (weight * similarity).sum(axis=1) / scale  # while nothing is covered
    heap = list(zip((-first).tolist(), range(len(cost)), strict=True))
    heapify(heap)
    if not (cost <= budget).any():
        return [heap[0][1]]
    chosen: list[int] = []
    while heap and len(chosen) < limit:
        _, i = heappop(heap)
        if cost[i] > budget or covered[i] >= _SAME:
            continue  # the remaining budget only decreases
        now = (-gain(i), i)
        if heap and now > heap[0]:
            heappush(heap, now)
            continue
        if chosen and now[0] >= 0:
            break  # everything left is already covered
        chosen.append(i)
        budget -= cost[i]
        np.maximum(covered, similarity[i], out=covered)
    return chosen


def word_vectors(sentences: Sequence[str], language: str | None = None) -> NDArray[np.float32]:
    """Vectors of sentences, shape (len(sentences), number of stems), without function words if there are others.

    The column of a stem holds ``(1 + log c) log(1 + n / d)`` for a sentence with c words of this stem, if d of n
    sentences have one. These are the vectors that LexRank compares (Erkan & Radev, JAIR 22, 2004, section 3), with
    logarithms of counts.

    `language` is the ISO 639-1 code of the stems; None to find it by the function words of the sentences.

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
