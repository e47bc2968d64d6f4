"""The default ranking, which needs no LLM: seed passages, and the combination of walk and nearness.

1. The phrases of the graph that occur in the question are linked (`llama_index.ragkit.text.known_names`).
2. A walk starts from them, each with the weight 1 / (number of passages with it), and from the passages nearest to the
   question, with a total weight of `passage_seed_weight`: much less than a name in one or two passages, and more than a
   word in hundreds.
3. The score of a passage is its nearness to the question, dense and lexical together, plus the logarithm of its share
   of the walk, which counts as far as the walk can be trusted (:func:`walk_trust`).
"""

import numpy as np

from llama_index.ragkit.vectors.walk_trust import FLOOR, PASSAGE_SEEDS, combine, gain, lead, passage_seeds, trust

__all__ = [
    "FLOOR",
    "PASSAGE_SEEDS",
    "UNTRUSTED",
    "WALK_WEIGHT",
    "combine",
    "gain",
    "passage_seeds",
    "trust",
    "walk_trust",
]

WALK_WEIGHT = 7.0  # of a walk that is trusted fully
_LEAD_WEIGHT = 0.15  # per standard deviation by which the nearest passage is ahead
UNTRUSTED = "the walk does not reach the passage that is nearest to the question, or leads elsewhere than its words"


def walk_trust(nearness: np.ndarray, walked: np.ndarray, rarity: float) -> float:
    """How far to trust a walk for a question, in [0, 1].

    The further the nearest passage is ahead of the others, the more it counts whether the walk reaches it: a chain
    begins there, and a passage that has everything in the question answers it without a chain.

    Parameters
    ----------
    nearness, walked : see :func:`~llama_index.ragkit.vectors.walk_trust.trust`
    rarity : :func:`~llama_index.ragkit.vectors.walk_trust.rarity` of the rarest name from which the walk starts
    """
    return rarity * trust(nearness, walked, _LEAD_WEIGHT * lead(nearness))
