"""The default ranking, which needs no LLM: seed passages, and the combination of walk and nearness.

1. The phrases of the graph that occur in the question are linked (`llama_index.ragkit.text.known_names`).
2. A walk starts from them, each with the weight 1 / (number of passages with it), and from the passages nearest to the
   question, with a total weight of `passage_seed_weight`: much less than a name in one or two passages, and more than a
   word in hundreds.
3. The score of a passage is its nearness to the question, dense and lexical together, plus the logarithm of its share
   of the walk, which counts as far as the walk can be trusted (:mod:`llama_index.ragkit.vectors.walk_trust`).
"""

from llama_index.ragkit.vectors.walk_trust import FLOOR, PASSAGE_SEEDS, combine, gain, passage_seeds, trust

__all__ = ["FLOOR", "PASSAGE_SEEDS", "UNTRUSTED", "WALK_WEIGHT", "combine", "gain", "passage_seeds", "trust"]

WALK_WEIGHT = 7.0  # of a walk that is trusted fully
UNTRUSTED = "the walk does not reach the passage that is nearest to the question, or leads elsewhere than its words"
