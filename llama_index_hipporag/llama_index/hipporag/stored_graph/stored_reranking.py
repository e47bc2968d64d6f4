"""Reranking by a walk in a stored graph: that of :func:`~llama_index.hipporag.search.passage_scores.rescored`."""

from collections.abc import Sequence

import numpy as np

from llama_index.hipporag.config import SearchConfig
from llama_index.hipporag.graph.passage_edges import passage_number
from llama_index.hipporag.pagerank.frontier import frontiers
from llama_index.hipporag.search.passage_scores import best_first, rank_shares
from llama_index.hipporag.search.question_graph import QuestionGraph
from llama_index.hipporag.stored_graph.stored_search import scores_of
from llama_index.hipporag.text.normalization import Normalizer

__all__ = ["rescored_in_store"]


def rescored_in_store(
    graph: QuestionGraph,
    question: str,
    passages: Sequence[str | None],
    node_weight: float,
    normalizer: Normalizer = "unicode",
    *,
    by_terms: bool = True,
) -> list[tuple[int, float]]:
    """Rerank passages by a walk from the phrases of a question and from the passages themselves.

    Parameters
    ----------
    graph : read for this question alone
    question : "" for a walk from the passages alone
    passages : ids in their original order, repetitions allowed; None for an unknown one
    node_weight : share of the reset distribution for the passages, in proportion to 1 / rank
    by_terms : whether the graph has terms in lower case

    Returns
    -------
    (position in `passages`, score in [0, 1]) in the new order. Unknown passages keep their positions, with the score of
    the one before them.
    """
    places = [place for place, passage in enumerate(passages) if passage is not None]
    numbers = np.array([passage_number(passages[place] or "") for place in places], np.int64)
    if not places:
        return best_first(len(passages), places, np.empty(0))
    defaults = SearchConfig()
    links = graph.links(question, normalizer, defaults.node_specificity, by_terms) if question else []
    weights = {link.row: link.weight for link in links if link.weight > 0}
    shares = rank_shares(places) * (node_weight if weights else 1.0)
    phrases = np.array(list(weights.values()))
    if weights:
        phrases *= (1 - node_weight) / phrases.sum()
    nodes = np.concatenate([np.array(list(weights), np.int64), numbers])
    *_, estimate = frontiers(graph.fetch, nodes, np.concatenate([phrases, shares]), damping=defaults.damping)
    return best_first(len(passages), places, scores_of(estimate, numbers))
