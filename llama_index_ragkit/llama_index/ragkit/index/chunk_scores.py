"""`ChunkScores`: what a method says about chunks beside their nearness to a question, and the sum of several."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.vectors.question_scores import Nearness
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["ChunkScores", "SharedQuestion", "Structure", "summed"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Structure:
    """What a method adds to the nearness of chunks, or all of their scores.

    Attributes
    ----------
    scores : shape (n,), in standard deviations of nearness, as far as the method trusts them for this question
    evidence : what they rest on, such as "names"; two walks over the same names are not two witnesses
    beside_others : the part of them that counts beside a stronger structure on the same evidence, in [0, 1]; a higher
        part is a stronger structure
    """

    scores: Floats
    evidence: str
    beside_others: float = 1.0


@dataclass(frozen=True)
class ChunkScores:
    """What a method says about the chunks that it has read for a question.

    Attributes
    ----------
    chunks : the chunks, n rows
    nearness : shape (n,), of the texts as they are, -inf for chunks that may not be shown; None where the method
        compares other texts, such as chunks with headers: its structures are then all of its scores, nearness included
    structures : what it adds
    """

    chunks: Snapshot
    nearness: Floats | None
    structures: Sequence[Structure]


@dataclass
class SharedQuestion:
    """What the indexes of one question need not compute twice.

    Attributes
    ----------
    vectors : of the question, by the identity of the embedding model
    near : the rows, the weight of words and the nearness of the last index that computed it
    """

    vectors: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    near: tuple[Sequence[str], float, Nearness] | None = None


def summed(found: Mapping[str, ChunkScores], sentences: int = 1) -> tuple[list[str], Floats, dict[str, Floats]]:
    """Chunks, their nearness, and what each index adds to it, in standard deviations.

    An index that is served from stores has not read every chunk; the others get the least that it gives. Structures
    that rest on one evidence are not independent, so those of weaker walks count only in part.

    The names in a question of s sentences, such as a story, are not one chain, and a walk from all of them leads to few
    of its subjects. Where the aspects of the question vote, walks count 1 / s.

    Parameters
    ----------
    found : by name of the index; at least one has a nearness
    sentences : s

    Returns
    -------
    ids : of the chunks that may be shown
    nearness : shape (chunks,)
    added : name -> shape (chunks,)
    """
    near: dict[str, float] = {}
    for scores in (each for each in found.values() if each.nearness is not None):
        near.update((i, s) for i, s in zip(scores.chunks.ids, scores.nearness.tolist(), strict=True) if s > -np.inf)  # type: ignore[union-attr]
    ids = list(near)
    nearness = np.fromiter(near.values(), np.float64, len(near))
    strongest: dict[str, float] = {}
    for each in (each for scores in found.values() for each in scores.structures):
        strongest[each.evidence] = max(each.beside_others, strongest.get(each.evidence, 0.0))
    added = {}
    for name, scores in found.items():
        total = np.zeros(len(ids))
        rows = scores.chunks.rows_of(ids)
        for each in scores.structures:
            least = float(each.scores[np.isfinite(each.scores)].min(initial=np.inf))
            own = np.where(rows >= 0, each.scores[rows], -np.inf)
            own = np.where(np.isfinite(own), own, least if np.isfinite(least) else 0.0)
            if scores.nearness is None:
                own = np.where(rows >= 0, own - nearness, np.minimum(0.0, own - nearness))
            part = each.beside_others if each.beside_others < strongest[each.evidence] else 1.0
            total += part / (sentences if each.evidence == "names" and "votes" in strongest else 1) * own
        added[name] = total
    return ids, nearness, added
