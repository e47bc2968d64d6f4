"""The paper's retrieval metrics for questions with several aspects, with the expected values of a random ranking.

The share of the wanted *categories* that a ranking covers is high by chance: 20 random documents cover 56 % of 25 equal
categories. It can only be interpreted next to the value of a random ranking.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb

from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.evaluation import Evaluation, LabelledQuery, comparison_table, weighted_ratio

__all__ = ["multi_aspect_table", "random_baseline"]


def random_baseline(
    queries: Sequence[LabelledQuery], category_of: Mapping[str, str], k: int | None = None, weight: float = 2.0
) -> Evaluation:
    """The exact expected scores of a random ranking on the metrics of `multi_aspect_metrics`.

    With N documents, N_c of them in category c, and k places, a wanted document is found with probability k / N, and
    category c covered with probability 1 - C(N - N_c, k) / C(N, k).

    Parameters
    ----------
    queries : with `gold`, ids of documents
    category_of : document -> category, for every document that could be found
    k : ranks that count; None for the number of gold documents
    weight : weight of success relative to category in the weighted ratio

    Raises
    ------
    ConfigurationError
        If a question has no gold, or gold without a category.
    """
    sizes = Counter(category_of.values())
    total = sum(sizes.values())
    success, category = [], []
    for query in queries:
        unknown = [item for item in query.gold if item not in category_of]
        if unknown or not query.gold:
            raise ConfigurationError(f"Question {query.id!r} has no gold, or gold without a category: {unknown[:3]}.")
        places = min(k or len(set(query.gold)), total)
        wanted = {category_of[item] for item in query.gold}
        missed = [comb(total - sizes[name], places) / comb(total, places) for name in sorted(wanted)]
        success.append(places / total)
        category.append(1 - sum(missed) / len(missed))
    scores = {
        "success@n": tuple(success),
        "category@n": tuple(category),
        "weighted@n": tuple(weighted_ratio(s, c, weight) for s, c in zip(success, category, strict=True)),
    }
    return Evaluation("random", tuple(query.id for query in queries), scores)


def multi_aspect_table(
    evaluations: Sequence[Evaluation], queries: Sequence[LabelledQuery], category_of: Mapping[str, str]
) -> str:
    """Success, category and weighted ratio of several systems as a markdown table, with chance in the last row.

    Parameters
    ----------
    evaluations : of `evaluate_retriever(..., metrics=multi_aspect_metrics(category_of))`
    """
    chance = random_baseline(queries, category_of)
    return comparison_table([*evaluations, chance], list(chance.scores))
