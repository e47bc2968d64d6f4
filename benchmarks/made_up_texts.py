"""Made-up texts whose words are as frequent as those of a natural language."""

import numpy as np

__all__ = ["zipf_words"]

VOCABULARY = 60_000


def zipf_words(rng: np.random.Generator, count: int) -> str:
    """So many words, with frequencies by Zipf's law."""
    ranks = np.minimum((VOCABULARY + 1) ** rng.random(count), VOCABULARY).astype(int)
    return " ".join(f"w{rank:x}q" for rank in ranks)
