"""Named sets of metrics, and the scoring of existing rankings."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Literal

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation.metrics import (
    all_recall_at_k,
    category_ratio,
    ndcg_at_k,
    recall_at_k,
    reciprocal_rank,
    success_ratio,
    weighted_ratio,
)
from llama_index.ragkit.evaluation.results import Evaluation, LabelledQuery

__all__ = ["Metric", "check_queries", "multi_aspect_metrics", "retrieval_metrics", "score_rankings"]

Metric = Callable[[Sequence[str], Collection[str]], float]


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
    check_queries(queries, "gold")
    missing = [query.id for query in queries if query.id not in rankings]
    if missing:
        raise ConfigurationError(f"{name!r} has no ranking for {len(missing)} questions, such as {missing[:3]}.")
    scores = {
        metric: tuple(score(rankings[query.id], query.gold) for query in queries)
        for metric, score in (retrieval_metrics() if metrics is None else metrics).items()
    }
    return Evaluation(name, tuple(query.id for query in queries), scores)


def check_queries(queries: Sequence[LabelledQuery], needed: Literal["gold", "answers", "options"]) -> None:
    """Reject questions that cannot be scored: none at all, two with the same id, or one without what is `needed`."""
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
