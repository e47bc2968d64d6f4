"""One search: the walk from a cue, the scores of passages, and what an explanation needs to know."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.linking import Cue
from llama_index.hipporag.memory import Memory
from llama_index.hipporag.options import Options
from llama_index.hipporag.pagerank import pagerank
from llama_index.hipporag.scoring import SHARPNESS, best, by_length, log_mixed, passage_scores, scaled
from llama_index.hipporag.state import HippoRAGState

__all__ = ["Found", "needs_dense", "search_many"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_WALKS_AT_ONCE = 32  # bounds the memory of many questions over a large graph


@dataclass(frozen=True)
class Found:
    """The answer to one question, over all passages.

    Attributes
    ----------
    state, memory : what was asked: all, and the part that the filters let pass
    allowed : (p,), passages that may be returned; None for all
    cue : what the walk started from
    nodes, active : phrases that the walk reached (rows), and their probabilities; empty after a fallback
    walked : (p,), scores of the walk alone, in [0, 1]; None after a fallback
    dense : (p,), cosines scaled to [0, 1]; None where they were not needed
    scores : (p,), the final ones, in [0, 1]
    """

    state: HippoRAGState
    memory: Memory
    allowed: Mask | None
    cue: Cue
    nodes: NDArray[np.int64]
    active: Floats
    walked: Floats | None
    dense: Floats | None
    scores: Floats

    def ranking(self, k: int) -> Iterator[tuple[str, float]]:
        """The k best passages, and after them the rest: a node may be gone, or too long for a budget."""
        chunks = self.state.chunks
        total = len(chunks) if self.allowed is None else int(self.allowed.sum())
        given = 0
        while given < total:
            rows = best(self.scores, k, [record.key for record in chunks.records], self.allowed)
            for row, score in rows[given:]:
                yield chunks.records[row].id, score
            given, k = len(rows), 4 * k


def search_many(
    state: HippoRAGState,
    memory: Memory,
    allowed: Mask | None,
    cues: Sequence[Cue],
    cosines: Sequence[Floats | None],
    options: Options,
) -> list[Found]:
    """Answer many questions: the walks go through the graph together.

    Parameters
    ----------
    cosines : for each question the cosines of all passages, where the options ask for them or nothing links
    """
    p, n, _ = memory.shape
    dense = [None if part is None else scaled(part, allowed) for part in cosines]
    walking = [i for i, cue in enumerate(cues) if not cue.reason]
    answers: dict[int, Floats] = {}
    weight = options.subject_weight if options.passage_nodes else None
    walk = memory.walk(options.edges, options.synonyms, weight) if walking else None
    for start in range(0, len(walking), _WALKS_AT_ONCE):
        block = walking[start : start + _WALKS_AT_ONCE]
        resets = np.zeros((len(block), n + p if options.passage_nodes else n))
        for reset, i in zip(resets, block, strict=True):
            reset[:] = reset_of(n, reset.size, cues[i].weights, dense[i], options)
        answers.update(zip(block, pagerank(walk, resets, damping=options.damping), strict=True))  # type: ignore[arg-type]
    return [
        _score(state, memory, allowed, cue, answers.get(i), dense[i], cosines[i], options)
        for i, cue in enumerate(cues)
    ]


def _score(
    state: HippoRAGState,
    memory: Memory,
    allowed: Mask | None,
    cue: Cue,
    walk: Floats | None,
    dense: Floats | None,
    cosines: Floats | None,
    options: Options,
) -> Found:
    p, n, _ = memory.shape
    none = np.empty(0, np.int64)
    if walk is None:
        scores = np.zeros(p) if dense is None else dense
        return Found(state, memory, allowed, cue, none, np.empty(0), None, dense, scores)
    nodes = np.flatnonzero(walk[:n]).astype(np.int64)
    if options.passage_nodes:
        raw = by_length(memory, walk[n:], options.length_normalization)
    else:
        raw = passage_scores(memory, nodes, walk[nodes], options.counted, options.length_normalization)
    walked = scaled(raw, allowed)
    scores = walked
    if cosines is not None and dense is not None:
        if options.ensemble == "log":
            scores = scaled(log_mixed(raw, cosines, options.ensemble_weight), allowed)
        elif options.ensemble == "average" or cue.weakest <= options.recognition_threshold:
            scores = scaled((1 - options.ensemble_weight) * walked + options.ensemble_weight * dense, allowed)
    return Found(state, memory, allowed, cue, nodes, walk[nodes], walked, dense, scores)


def reset_of(
    n: int, size: int, weights: Mapping[int, float], dense: Floats | None, options: Options
) -> Floats:
    """Where a walk starts, shape (size,): phrases by weight, and passages as `passage_seeds` says.

    Parameters
    ----------
    n : number of phrases; passages follow them
    """
    reset = np.zeros(size)
    reset[list(weights)] = list(weights.values())
    if options.passage_seeds == "each" and dense is not None:
        reset[n:] = dense * options.passage_seed_weight
    elif options.passage_seeds == "share" and dense is not None:
        near = dense**SHARPNESS
        reset *= (1 - options.passage_seed_weight) / reset.sum()
        if near.sum() > 0:
            reset[n:] = near * (options.passage_seed_weight / near.sum())
    return reset


def needs_dense(cue: Cue, options: Options) -> bool:
    """Whether a question needs the cosines of all passages."""
    return bool(cue.reason) or options.passage_seeds != "none" or options.ensemble != "none"
