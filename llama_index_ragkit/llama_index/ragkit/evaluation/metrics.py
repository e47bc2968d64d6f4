"""Ranking metrics, as pure functions of a ranking and its gold ids.

A *ranking* is a sequence of ids, best first. A repeated id counts at its first position only: the
ranking `a, a, b` is `a, b`. *Gold* is the collection of ids that answer the question; order and repetitions in it do
not matter, and an empty one is an error, since the metrics are undefined then. Every metric lies in [0, 1], higher is
better.

Where any document of a topic counts as a hit, convert the ranking with :func:`as_labels` first and pass topics as gold.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from math import log2
from typing import Literal, TypeVar

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation.results import Evaluation, LabelledQuery

__all__ = [
    "Metric",
    "all_recall_at_k",
    "as_labels",
    "category_ratio",
    "check_queries",
    "multi_aspect_metrics",
    "ndcg_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "retrieval_metrics",
    "score_rankings",
    "success_ratio",
    "weighted_ratio",
]

Id = TypeVar("Id", bound=Hashable)

Metric = Callable[[Sequence[str], Collection[str]], float]


def recall_at_k(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Share of the gold among the first `k` of the ranking: ``|gold & top k| / |gold|``."""
    wanted = _gold(gold)
    return len(wanted & set(_top(ranking, k))) / len(wanted)


def all_recall_at_k(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """1.0 if all of the gold is among the first `k` of the ranking, else 0.0."""
    return float(_gold(gold) <= set(_top(ranking, k)))


def reciprocal_rank(ranking: Sequence[Hashable], gold: Collection[Hashable]) -> float:
    """1 / rank of the first gold id (rank 1 is the best), 0.0 if there is none. Its mean is the MRR."""
    wanted = _gold(gold)
    return next((1 / rank for rank, item in enumerate(dict.fromkeys(ranking), start=1) if item in wanted), 0.0)


def ndcg_at_k(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Normalised discounted cumulative gain with binary relevance (Järvelin & Kekäläinen 2002, TOIS 20(4)).

    ``sum over gold at rank r <= k of 1 / log2(r + 1)``, divided by the same sum of a perfect ranking,
    which starts with ``min(k, |gold|)`` gold ids.
    """
    wanted = _gold(gold)
    gain = sum(1 / log2(rank + 1) for rank, item in enumerate(_top(ranking, k), start=1) if item in wanted)
    return gain / sum(1 / log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))


def success_ratio(ranking: Sequence[Hashable], gold: Collection[Hashable], k: int | None = None) -> float:
    """Recall at `k` (Multi-Head RAG, Besta et al. 2024, section 3, "Retrieval Success Ratio").

    Without `k`, it is the number of gold ids n: the share of the n documents found in the top n.
    """
    return recall_at_k(ranking, gold, len(_gold(gold)) if k is None else k)


def category_ratio(
    ranking: Sequence[Id], gold: Collection[Id], category_of: Mapping[Id, Hashable], k: int | None = None
) -> float:
    """Share of the gold's categories that the first `k` of the ranking cover: ``|C(gold) & C(top k)| / |C(gold)|``.

    The paper's wording ("all retrieved documents that belong to the categories") could exceed 1; this is
    the coverage that its code measures. Its chance level is high: with 25 equal categories, 20 random documents cover
    56 % of them, so report a random ranking beside it.

    Parameters
    ----------
    category_of : category of every gold id; ranked ids without one cover nothing
    k : number of ranks; None for the number of gold ids

    Raises
    ------
    ConfigurationError
        If the gold is empty, or a gold id has no category.
    """
    wanted = _gold(gold)
    missing = sorted(str(item) for item in wanted if item not in category_of)
    if missing:
        raise ConfigurationError(
            f"No category is known for the gold ids {', '.join(missing[:5])}: complete category_of."
        )
    categories = {category_of[item] for item in wanted}
    top = _top(ranking, len(wanted) if k is None else k)
    return len(categories & {category_of[item] for item in top if item in category_of}) / len(categories)


def weighted_ratio(success: float, category: float, weight: float = 2.0) -> float:
    """``(weight * success + category) / (weight + 1)``, the combination of both ratios in Multi-Head RAG."""
    if weight < 0:
        raise ConfigurationError(f"weight must be at least 0, not {weight}.")
    return (weight * success + category) / (weight + 1)


def as_labels(ranking: Iterable[Id], label_of: Mapping[Id, Hashable]) -> list[Hashable]:
    """The ranking with the first document of every label replaced by the label, for labels as gold.

    Later documents of a label keep their rank and id, and are no hits: `k` still counts documents.
    Labels must not equal ids of documents.

    >>> as_labels(["d1", "d2", "d3"], {"d1": "tea", "d2": "tea", "d3": "rice"})
    ['tea', 'd2', 'rice']
    """
    seen: set[Hashable] = set()
    out: list[Hashable] = []
    for item in dict.fromkeys(ranking):
        label = label_of.get(item)
        if label is None or label in seen:
            out.append(item)
        else:
            seen.add(label)
            out.append(label)
    return out


def _gold(gold: Collection[Id]) -> set[Id]:
    if isinstance(gold, str):
        raise ConfigurationError(f"gold must be a collection of ids, not the string {gold!r}: pass [{gold!r}].")
    wanted = set(gold)
    if not wanted:
        raise ConfigurationError(
            "gold is empty: a question without any relevant document cannot be scored; leave it out."
        )
    return wanted


def _top(ranking: Sequence[Id], k: int) -> list[Id]:
    if k < 1:
        raise ConfigurationError(f"k must be at least 1, not {k}.")
    return list(dict.fromkeys(ranking))[:k]


def retrieval_metrics(ks: Sequence[int] = (2, 5, 10)) -> dict[str, Metric]:
    """`R@k`, `all@k` and `nDCG@k` for every k, and `MRR`."""
    metrics: dict[str, Metric] = {}
    for name, function in (("R", recall_at_k), ("all", all_recall_at_k), ("nDCG", ndcg_at_k)):
        metrics.update({f"{name}@{k}": partial(function, k=k) for k in ks})
    metrics["MRR"] = reciprocal_rank
    return metrics


def multi_aspect_metrics(category_of: Mapping[str, str], weight: float = 2.0) -> dict[str, Metric]:
    """The ratios of Multi-Head RAG at n, the number of gold ids: `success@n`, `category@n`, `weighted@n`."""

    def weighted(ranking: Sequence[str], gold: Collection[str]) -> float:
        return weighted_ratio(success_ratio(ranking, gold), category_ratio(ranking, gold, category_of), weight)

    return {
        "success@n": success_ratio,
        "category@n": lambda ranking, gold: category_ratio(ranking, gold, category_of),
        "weighted@n": weighted,
    }


def score_rankings(
    name: str,
    rankings: Mapping[str, Sequence[str]],
    queries: Sequence[LabelledQuery],
    metrics: Mapping[str, Metric] | None = None,
) -> Evaluation:
    """Score existing rankings, given by the ids of their questions; a question without a ranking is an error."""
    queries = check_queries(queries, "gold")
    missing = [query.id for query in queries if query.id not in rankings]
    if missing:
        raise ConfigurationError(f"{name!r} has no ranking for {len(missing)} questions, such as {missing[:3]}.")
    scores = {
        metric: tuple(score(rankings[query.id], query.gold) for query in queries)
        for metric, score in (retrieval_metrics() if metrics is None else metrics).items()
    }
    return Evaluation(name, tuple(query.id for query in queries), scores)


def check_queries(
    queries: Iterable[LabelledQuery], needed: Literal["gold", "answers", "options"]
) -> list[LabelledQuery]:
    """The questions; those that cannot be scored are refused: none at all, two with the same id, or one without what is
    `needed`.
    """
    queries = list(queries)
    if not queries:
        raise ConfigurationError("There are no questions to evaluate.")
    seen: set[str] = set()
    for query in queries:
        if query.id in seen:
            raise ConfigurationError(f"Two questions have the id {query.id!r}; scores are joined by id.")
        seen.add(query.id)
        if not getattr(query, needed):
            raise ConfigurationError(
                f"The question {query.id!r} has no {needed}: leave it out, since it cannot be scored."
            )
    return queries
