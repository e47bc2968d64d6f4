"""Sampling of the documents for multi-aspect questions: one document from each of n categories."""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence

from llama_index.ragkit.errors import ConfigurationError

__all__ = ["sample_aspects"]


def sample_aspects(
    category_of: Mapping[str, str], aspects: Sequence[int], per_count: int = 25, seed: int = 0
) -> list[tuple[str, ...]]:
    """Sets of documents to write questions about (paper, section 3: "Multi-Aspect Query Generation").

    For each number n of aspects, `per_count` sets are drawn, each with n documents of n different categories.

    Parameters
    ----------
    category_of : document -> category
    aspects : numbers of aspects, each at least 1
    seed : the same seed gives the same sets, whatever the order of the mapping

    Raises
    ------
    ConfigurationError
        If there are fewer categories than aspects, or a number is below 1.
    """
    members: dict[str, list[str]] = defaultdict(list)
    for document in sorted(category_of):
        members[category_of[document]].append(document)
    wrong = [n for n in aspects if not 1 <= n <= len(members)]
    if wrong or per_count < 1:
        raise ConfigurationError(
            f"A question with n aspects needs n categories, but there are {len(members)}: aspects must be 1 to "
            f"{len(members)} and per_count at least 1, not {wrong or per_count}."
        )
    draw = random.Random(seed)
    categories = sorted(members)
    return [
        tuple(draw.choice(members[category]) for category in draw.sample(categories, n))
        for n in aspects
        for _ in range(per_count)
    ]
