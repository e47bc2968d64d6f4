"""Why a fact path was found: its key point, the seed that reached it, what each of its cells contributed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llama_index.pgrag.mind_map import Path
from llama_index.pgrag.ranking import Exploration, Merged
from llama_index.pgrag.walk import Control

__all__ = ["CellSupport", "PathExplanation", "explain_paths"]


@dataclass(frozen=True)
class CellSupport:
    """A cell of a path: its text, its cosine to the key point, and its control value.

    Attributes
    ----------
    weight : 1 supports the seed, 0.5 does so by half, 0 is a reject; None where no seed reached the path
    """

    text: str
    cosine: float
    weight: float | None


@dataclass(frozen=True)
class PathExplanation:
    """Why a fact path is in the answer.

    Attributes
    ----------
    path, score : the path, and its score as the retriever gives it
    reason : how its mind map became a candidate: "seed topic", "topic walk", "fact walk", "fact" or "lead"
    key_point : the key point that it is nearest to, or that the seed was found by
    cosine : of key point and path
    seed : the path of the seed that gave it most; None if no seed reached it
    support : what all seeds together gave it
    cells : from the topic to the fact
    nodes, documents : its sources
    """

    path: Path
    score: float
    reason: str
    key_point: str
    cosine: float
    seed: Path | None
    support: float
    cells: list[CellSupport]
    nodes: list[str]
    documents: list[str]


def explain_paths(
    found: Exploration, results: Sequence[Merged], key_points: Sequence[str], control: Control
) -> list[PathExplanation]:
    """One explanation a result, in their order."""
    template, walked = found.template, found.walked
    row_of = {fact.id: row for row, fact in enumerate(template.facts)}
    reasons = {candidate.topic_id: candidate.reason for candidate in found.candidates}
    explained = []
    for result in results:
        row = row_of[result.fact.id]
        leaf = len(result.fact.path) - 1
        point = int(np.argmax(found.sims[:, row, leaf]))
        seed: int | None = None
        support = 0.0
        if walked is not None and walked.scores[row] > 0:
            gave = walked.stained[:, :, row]
            point, place = (int(i) for i in np.unravel_index(int(np.argmax(gave)), gave.shape))
            seed, support = int(walked.seeds[point, place]), float(walked.scores[row])
        sims = found.sims[point, row, : leaf + 1]
        weights: list[float | None] = [None] * (leaf + 1)
        if seed is not None:
            level = found.sims[point, seed, len(template.facts[seed].path) - 1]
            weights = [float(weight) for weight in control.weights(sims, np.asarray(level))]
        cells = [CellSupport(*cell) for cell in zip(result.fact.path, sims.tolist(), weights, strict=True)]
        explained.append(
            PathExplanation(
                path=result.fact.path,
                score=result.score,
                reason=reasons[result.fact.topic_id],
                key_point=key_points[point],
                cosine=float(sims[leaf]),
                seed=None if seed is None else template.facts[seed].path,
                support=support,
                cells=cells,
                nodes=list(dict.fromkeys(fact.node_id for fact in result.facts)),
                documents=list(dict.fromkeys(fact.document for fact in result.facts if fact.document is not None)),
            )
        )
    return explained
