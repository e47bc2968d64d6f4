"""One search: the walk from a cue, the scores of passages, and what an explanation needs to know."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from llama_index.hipporag.linking import Cue
from llama_index.hipporag.local_push import PUSH_FROM, Pushed, refinements, settled
from llama_index.hipporag.memory import Memory
from llama_index.hipporag.options import Options
from llama_index.hipporag.pagerank import Walk, pagerank
from llama_index.hipporag.ranking import combine, passage_seeds
from llama_index.hipporag.scoring import (
    best,
    by_length,
    geometric_mean,
    min_max,
    nearness,
    passage_scores,
    share_of_best,
)
from llama_index.hipporag.state import HippoRAGState

__all__ = ["Found", "needs_dense", "search_many"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Reset = tuple[Ints, Floats]

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
    walked : (p,), what the walk gave each passage as a share of the best, in [0, 1]; None after a fallback
    cosines : (p,), of question and passage; None where they were not needed
    scores : (p,), the final ones, in [0, 1]
    """

    state: HippoRAGState
    memory: Memory
    allowed: Mask | None
    cue: Cue
    nodes: Ints
    active: Floats
    walked: Floats | None
    cosines: Floats | None
    scores: Floats

    def ranking(self, k: int) -> Iterator[tuple[str, float]]:
        """The k best passages, and after them the rest: a node may be gone, or too long for a budget."""
        records = self.state.chunks.records
        total = len(records) if self.allowed is None else int(self.allowed.sum())
        given = 0
        while given < total:
            rows = best(self.scores, k, lambda row: (records[row].key, records[row].id), self.allowed)
            for row, score in rows[given:]:
                yield records[row].id, score
            given, k = len(rows), 4 * k


def search_many(
    state: HippoRAGState,
    memory: Memory,
    allowed: Mask | None,
    cues: Sequence[Cue],
    cosines: Sequence[Floats | None],
    options: Options,
    wanted: int,
) -> list[Found]:
    """Answer many questions: in a small graph their walks are one sparse product, in a large one each stays near.

    Parameters
    ----------
    cosines : for each question the cosines of all passages, where the options ask for them or nothing links
    wanted : passages of each answer that must come in the right order
    """
    score = partial(_score, state, memory, allowed, options)
    walking = [i for i, cue in enumerate(cues) if not cue.reason]
    found = {i: score(cue, cosines[i], None, None) for i, cue in enumerate(cues) if cue.reason}
    if walking:
        weight = options.subject_weight if options.passage_nodes else None
        walk = memory.walk(options.edges, options.synonyms, weight)
        resets = [_reset(memory, allowed, cues[i], cosines[i], options) for i in walking]
        shared = {i: _shared(memory, walk, allowed, cues[i], options) for i in walking}
        if len(walk) < PUSH_FROM:
            for i, reached in zip(walking, _walk_all(walk, resets, options.damping), strict=True):
                found[i] = score(cues[i], cosines[i], reached, shared[i])
        else:
            for i, (nodes, weights) in zip(walking, resets, strict=True):
                for pushed in refinements(walk, nodes, weights, damping=options.damping):
                    found[i] = score(cues[i], cosines[i], (pushed.nodes, pushed.scores), shared[i])
                    if settled(
                        found[i].scores, wanted, partial(_doubts, memory, walk, pushed, options, found[i].scores)
                    ):
                        break
    return [found[i] for i in range(len(cues))]


def _shared(memory: Memory, walk: Walk, allowed: Mask | None, cue: Cue, options: Options) -> Floats | None:
    """How well each passage, shape (p,), is reached from every linked phrase; None where it is not asked for."""
    if not options.conjunction or len(cue.weights) < 2:
        return None
    starts = [(np.array([row], np.int64), np.ones(1)) for row in cue.weights]
    shares = [
        share_of_best(_heard(memory, reached, options), allowed) for reached in _walk_all(walk, starts, options.damping)
    ]
    return share_of_best(geometric_mean(shares), allowed)


def _walk_all(walk: Walk, resets: Sequence[Reset], damping: float) -> Iterator[Reset]:
    """The nodes that each walk reaches and their probabilities: exactly, or roughly in a large graph."""
    if len(walk) >= PUSH_FROM:
        for nodes, weights in resets:
            pushed = next(refinements(walk, nodes, weights, damping=damping))
            yield pushed.nodes, pushed.scores
        return
    for start in range(0, len(resets), _WALKS_AT_ONCE):
        block = resets[start : start + _WALKS_AT_ONCE]
        dense = np.zeros((len(block), len(walk)))
        for row, (nodes, weights) in zip(dense, block, strict=True):
            row[nodes] = weights
        for scores in pagerank(walk, dense, damping=damping):
            nodes = np.flatnonzero(scores).astype(np.int64)
            yield nodes, scores[nodes]


def _reset(memory: Memory, allowed: Mask | None, cue: Cue, cosines: Floats | None, options: Options) -> Reset:
    """Where a walk starts: phrases by weight, and passages (nodes after the phrases) as `passage_seeds` says."""
    n = memory.shape[1]
    nodes = np.fromiter(cue.weights, np.int64, len(cue.weights))
    weights = np.fromiter(cue.weights.values(), np.float64, len(cue.weights))
    if options.passage_seeds == "none" or cosines is None:
        return nodes, weights
    if options.passage_seeds == "each":
        rows, near = np.arange(cosines.size), min_max(cosines, allowed) * options.passage_seed_weight
    else:
        chosen = np.arange(cosines.size) if allowed is None else np.flatnonzero(allowed)
        places, near = passage_seeds(cosines[chosen])
        rows, near = chosen[places], near * options.passage_seed_weight
    return np.concatenate([nodes, rows + n]), np.concatenate([weights, near])


def _score(
    state: HippoRAGState,
    memory: Memory,
    allowed: Mask | None,
    options: Options,
    cue: Cue,
    cosines: Floats | None,
    reached: Reset | None,
    shared: Floats | None,
) -> Found:
    """The answer from where a walk got to; without a walk by nearness alone."""
    p, n, _ = memory.shape
    if reached is None:
        scores = np.zeros(p) if cosines is None else nearness(cosines)
        return Found(state, memory, allowed, cue, np.empty(0, np.int64), np.empty(0), None, cosines, scores)
    nodes, values = reached
    passages = nodes >= n
    raw = _heard(memory, reached, options)
    if shared is not None:
        raw = share_of_best(raw, allowed) ** (1 - options.conjunction) * shared**options.conjunction
    scores = walked = share_of_best(raw, allowed)
    if cosines is not None and options.ensemble == "product":
        scores = combine(cosines, walked, options.walk_share)
    elif cosines is not None and (
        options.ensemble == "average"
        or (options.ensemble == "uncertainty" and cue.weakest <= options.recognition_threshold)
    ):
        parts = min_max(raw, allowed), min_max(cosines, allowed)
        scores = options.walk_share * parts[0] + (1 - options.walk_share) * parts[1]
    return Found(state, memory, allowed, cue, nodes[~passages], values[~passages], walked, cosines, scores)


def _heard(memory: Memory, reached: Reset, options: Options, rows: Ints | None = None) -> Floats:
    """What a walk brings each passage, or those in `rows`: as a node of the graph, or by way of its phrases."""
    nodes, values = reached
    p, n, _ = memory.shape
    if not options.passage_nodes:
        return passage_scores(memory, nodes, values, options.counted, options.length_normalization, rows)
    raw = np.zeros(p)
    raw[nodes[nodes >= n] - n] = values[nodes >= n]
    return by_length(memory, raw if rows is None else raw[rows], options.length_normalization, rows)


def _doubts(memory: Memory, walk: Walk, pushed: Pushed, options: Options, scores: Floats, rows: Ints) -> Floats:
    """By how much the scores of passages are likely to be wrong after a walk that was not the finest."""
    everywhere = np.arange(len(walk)), pushed.doubt * walk.ordinary
    heard, doubts = (_heard(memory, reached, options, rows) for reached in (pushed[:2], everywhere))
    shares = np.divide(doubts, heard, out=np.zeros_like(heard), where=heard > 0)
    return scores[rows] * shares * (options.walk_share if options.ensemble == "product" else 1.0)  # of a power: less


def needs_dense(cue: Cue, options: Options) -> bool:
    """Whether a question needs the cosines of all passages."""
    return bool(cue.reason) or options.passage_seeds != "none" or options.ensemble != "none"
