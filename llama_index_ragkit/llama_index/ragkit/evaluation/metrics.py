"""Ranking metrics, as pure functions of a ranking and its gold ids.

A *ranking* is a sequence of ids, best first. A repeated id counts at its first position only: the
ranking `a, a, b` is `a, b`. *Gold* is the collection of ids that answer the question; order and repetitions in it do
not matter, and an empty one is an error, since the metrics are undefined then. Every metric lies in [0, 1], higher is
better.

Where any document of a topic counts as a hit, convert the ranking with :func:`as_labels` first and pass topics as gold.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from math import log2
from typing import TypeVar

from llama_index.ragkit.errors import ConfigurationError

__all__ = [
    "all_recall_at_k",
    "as_labels",
    "category_ratio",
    "ndcg_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "success_ratio",
    "weighted_ratio",
]

Id = TypeVar("Id", bound=Hashable)


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
