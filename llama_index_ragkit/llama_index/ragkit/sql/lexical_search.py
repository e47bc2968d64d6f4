"""Find the best texts of a lexical index in a database from the postings of few stems and the words of few texts.

Postings are read from the rarest stem on. The stems that are left can add at most the sum of their weights, times k1 +
1, to a score. Once the scores of enough texts are beyond that bound, no further text can be among the best. Of the
texts found, those that still can be are read with all their words. This is MaxScore (Turtle and Flood, 1995, Query
Evaluation: Strategies and Optimizations, Information Processing & Management 31(6)) with two deviations. Common stems
are looked up in the words of a text instead of their postings. The postings of a further stem are read if they leave so
many fewer texts to read that this saves time. The result is exact.

Memory is bounded by the postings of a span of texts, however many texts there are.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.sql.lexical_records import SPAN, Block, postings_in
from llama_index.ragkit.sql.lexical_rows import AskedStem, IndexSize, LexicalRows
from llama_index.ragkit.storage.labels import LabelledTexts
from llama_index.ragkit.text.lexical_index import BM25_K1, length_norms, stem_scores

__all__ = ["TIED", "best_texts", "text_scores", "times_among"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TIED = 250
"""Texts beyond the best that are considered because they may tie with the last of these."""

_POSTINGS_A_TEXT = 100  # postings read in the time that it takes to read a text
_AT_ONCE = 1 << 15  # postings of stems read together
_FEWEST = 256  # texts read at first, then twice as many each time
_ROUNDING = 1e-9  # relative: at first, scores are added up in another order


def text_scores(words: Ints, times_of: Floats, weights: Sequence[float], mean: float) -> Floats:
    """The scores of texts, shape (m,), added up in the order of the question, as the in-memory index does.

    Parameters
    ----------
    words : (m,) the number of words of each
    times_of : (m, number of stems), how often they have each stem of the question
    """
    scores = np.zeros(len(words))
    for place, weight in enumerate(weights):
        times = times_of[:, place]
        here = np.flatnonzero(times)
        scores[here] += stem_scores(weight, times[here], length_norms(words[here].astype(np.float32), mean))
    return scores


def times_among(rows: LexicalRows, stems: Sequence[AskedStem], texts: LabelledTexts) -> Floats:
    """How often each of some texts has each stem, shape (n, number of stems); counts those that have it.

    Reads the words of these texts, or the postings of the stems, whichever takes less time.
    """
    found = np.zeros((len(texts), len(stems)))
    place_of = {word: place for place, stem in enumerate(stems) for word in stem.words}
    if sum(stem.texts for stem in stems) > _POSTINGS_A_TEXT * len(texts):
        read = rows.texts(texts.numbers.tolist())
        found[np.searchsorted(texts.numbers, read.numbers)] = read.times(stems)
    else:
        for word, numbers, records in rows.postings(place_of):
            here = np.isin(numbers, texts.numbers)
            found[np.searchsorted(texts.numbers, numbers[here]), place_of[word]] += records["times"][here]
    having = np.count_nonzero(found, axis=0).tolist()
    texts.having.update((stem.words, count) for stem, count in zip(stems, having, strict=True))
    return found


def best_texts(
    rows: LexicalRows, stems: Sequence[AskedStem], weights: Sequence[float], size: IndexSize, limit: int
) -> dict[str, float]:
    """The best texts of an index, `limit` at least 1, and those that tie with them, by id, in any order."""
    asked, end = _Asked(stems, weights, size.mean, limit), size.next
    lowest, parts = np.empty(0), [(np.empty(0, np.int64), np.empty(0))]
    for first in range(0, end, SPAN):
        span = _Span(asked, first, min(SPAN, end - first), lowest)
        parts.append(_read(rows, asked, span, span.size / end))
        lowest = span.lowest
    numbers, bounds = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _decided(rows, asked, numbers, bounds)


class _Asked(NamedTuple):
    """The arguments of :func:`best_texts`."""

    stems: Sequence[AskedStem]
    weights: Sequence[float]
    mean: float
    limit: int


class _Span:
    """The scores of a span of texts, from the stems read so far.

    Attributes
    ----------
    first, size : numbers from `first`, a multiple of `SPAN`, to `first + size`
    lowest : lower bounds of the scores of the best texts, at most `limit`, in this span and those before
    threshold : the lowest of these, or 0 while there are fewer
    """

    def __init__(self, asked: _Asked, first: int, size: int, lowest: Floats) -> None:
        self._asked, self.first, self.size = asked, first, size
        self._scores, self._times = np.zeros(size), np.zeros(size)
        self._before, self._best = lowest, np.empty(0, np.int64)
        self._settle(self._best)

    def add(self, place: int, blocks: Sequence[Block]) -> None:
        """Add the scores of a stem, from all blocks of its words in the span."""
        records = postings_in(blocks)
        rows, words = records["row"].astype(np.int64), records["words"].astype(np.float32)
        times = records["times"].astype(np.float64)
        if len(self._asked.stems[place].words) > 1:
            np.add.at(self._times, rows, times)
            times = self._times[rows]
            self._times[rows] = 0.0
        # A text with several words of the stem is in `rows` that often, with the same sum each time.
        scores = self._scores[rows] + stem_scores(
            self._asked.weights[place], times, length_norms(words, self._asked.mean)
        )
        self._scores[rows] = scores
        self._settle(rows[scores > self.threshold])

    def _settle(self, rows: Ints) -> None:
        """Find the best texts among the earlier ones and those whose scores grew."""
        limit = self._asked.limit
        rows = np.union1d(self._best, rows)
        scores = self._scores[rows]
        if len(rows) > limit:
            kept = np.argpartition(-scores, limit - 1)[:limit]
            rows, scores = rows[kept], scores[kept]
        self._best, self.lowest = rows, np.concatenate([self._before, scores])
        if len(self.lowest) > limit:
            self.lowest = np.partition(self.lowest, -limit)[-limit:]
        self.threshold = float(self.lowest.min()) if len(self.lowest) == limit else 0.0

    def reachable(self, rest: float) -> NDArray[np.bool_]:
        """Which texts can be among the best if other stems add at most `rest` to a score."""
        least = self.threshold - rest
        return self._scores >= least - _ROUNDING * self.threshold if least > 0 else self._scores > 0

    def candidates(self, rest: float) -> tuple[Ints, Floats]:
        """These texts, by number, and upper bounds of their scores."""
        rows = np.flatnonzero(self.reachable(rest))
        scores = self._scores[rows]
        most = self._asked.limit + TIED
        if not rest and len(rows) > most:
            cut = np.partition(scores, -most)[-most]
            better, tied = np.flatnonzero(scores > cut), np.flatnonzero(scores == cut)
            kept = np.sort(np.concatenate([better, tied[: most - len(better)]]))
            rows, scores = rows[kept], scores[kept]
        return self.first + rows, scores + rest


def _read(rows: LexicalRows, asked: _Asked, span: _Span, share: float) -> tuple[Ints, Floats]:
    """Read the postings of a span until few texts can be among the best; returns these, and upper bounds of their
    scores.
    """
    left = deque(sorted((i for i, stem in enumerate(asked.stems) if stem.texts), key=lambda i: asked.stems[i].texts))
    rest = (BM25_K1 + 1) * sum(asked.weights[place] for place in left)
    while left:
        if rest < span.threshold:
            count = max(int(np.count_nonzero(span.reachable(rest))), asked.limit)
            if asked.stems[left[0]].texts * share > _POSTINGS_A_TEXT * count:
                break
        some = [left.popleft()]
        postings = asked.stems[some[0]].texts * share
        while left and (postings := postings + asked.stems[left[0]].texts * share) <= _AT_ONCE:
            some.append(left.popleft())
        place_of = {word: place for place in some for word in asked.stems[place].words}
        blocks: dict[int, list[Block]] = {place: [] for place in some}
        for block in rows.blocks(place_of, span.first, span.first + SPAN):
            blocks[place_of[block.word]].append(block)
        for place in some:
            span.add(place, blocks[place])
        rest = (BM25_K1 + 1) * sum(asked.weights[place] for place in left)
    return span.candidates(rest)


def _decided(rows: LexicalRows, asked: _Asked, numbers: Ints, bounds: Floats) -> dict[str, float]:
    """The best of some texts by their scores; reads texts in the order of `bounds`, while that changes the best."""
    order = np.argsort(-bounds, kind="stable")
    found: dict[str, float] = {}
    done, worst = 0, 0.0
    while done < len(order):
        if len(found) >= asked.limit:
            worst = float(np.partition(list(found.values()), -asked.limit)[-asked.limit])
        left = bounds[order[done:]]
        size = min(int(np.count_nonzero(left >= worst * (1 - _ROUNDING))), max(_FEWEST, asked.limit, 2 * done))
        if left[0] <= worst * (1 + _ROUNDING):  # the others can at best tie
            size = min(size, asked.limit + TIED - done)
        if size <= 0:
            break
        texts = rows.texts(numbers[order[done : done + size]].tolist())
        scores = text_scores(texts.words, texts.times(asked.stems), asked.weights, asked.mean)
        found.update(zip(texts.ids, scores.tolist(), strict=True))
        done += size
    return found
