"""The order of the fact paths that answer a question.

Vectors and nodes give the best paths (:mod:`~llama_index.pgrag.search.ranking`). Two criteria that need their texts, or
the other paths, then rank these:

- *Words.* The BM25 score of a path among the best paths counts in addition to its cosine. Its weight is that of BM25 in
  the nearness of nodes, which is larger if the cosines of the question cannot be trusted.
- *Repetition.* If a walk over names is trusted, the facts of an answer lie in several of the nodes to which it leads,
  but the best of these nodes alone may have more facts than are wanted. So each further fact of a node counts less, as
  far as the walk counts.

Neither is in the paper.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from llama_index.pgrag.state import PseudoGraph
from llama_index.ragkit.text.lexical_index import scores_of_few
from llama_index.ragkit.text.lexical_terms import lexical_terms
from llama_index.ragkit.vectors.nearness import standardised
from llama_index.ragkit.vectors.question_scores import best_rows, sorted_rows

__all__ = ["REPEATED", "rank_paths"]

Floats = NDArray[np.float64]

REPEATED = 2.0
"""Penalty of a path for each earlier fact of the same node, in units of the weight of the walk over names."""

_WORDS = 200  # paths whose words are compared; takes about 10 ms


def rank_paths(
    graph: PseudoGraph, scores: Floats, count: int, question: str, lexical_weight: float, repeated: float
) -> list[tuple[int, float]]:
    """The best paths with their scores, best first; equal scores in the canonical order.

    Parameters
    ----------
    scores : shape (facts,), without their words; -inf for facts that are not results
    count : number of paths to rank
    question : the text with which facts are compared
    lexical_weight : weight of BM25 for this question, in [0, 1]; `scores` already have the cosines with the rest
    repeated : penalty for each earlier fact of the same node, at least 0
    """
    rows = best_rows(scores, count, graph.facts)
    found = scores[rows]
    if lexical_weight and rows:
        *words, none = _words(graph, rows[:_WORDS], question)
        found[:_WORDS] += lexical_weight * np.array(words)
        found[_WORDS:] += lexical_weight * none
    ranked = dict(zip(rows, found.tolist(), strict=True))
    if repeated:
        taken: Counter[int] = Counter()
        for row in sorted_rows(ranked, graph.facts):
            node = int(graph.node_rows[row])
            ranked[row] -= repeated * taken[node]
            taken[node] += 1
    return [(row, ranked[row]) for row in sorted_rows(ranked, graph.facts)]


def _words(graph: PseudoGraph, rows: Sequence[int], question: str) -> Floats:
    """The BM25 scores of some paths among each other, in standard deviations of the hundred best, and as the last one
    the score of a path without a word of the question; zeros if no path has such a word.
    """
    facts = [graph.fact(graph.facts.ids[row]) for row in rows]
    found = scores_of_few([graph.terms.get(fact.id) or lexical_terms(fact.text) for fact in facts], question)
    return standardised(np.append(found, 0.0), by=found) if found.any() else np.zeros(len(rows) + 1)
