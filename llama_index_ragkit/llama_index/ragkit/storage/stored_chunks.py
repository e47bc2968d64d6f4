"""`StoredChunks`: the part of the chunks that one question needs, from stores that hold all of them.

The nearness of a chunk to a question (:mod:`llama_index.ragkit.vectors.question_scores`) is standardised by the hundred
best cosines and the hundred best lexical scores. So a view with all of these gives its chunks exactly the nearness that
a search over all chunks gives. A chunk is left out only if it is beyond the candidates in both parts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.steps import Steps, gather, offload
from llama_index.ragkit.storage.interface import Words
from llama_index.ragkit.storage.labels import CountedTexts
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.selection import EVERYTHING, Selection
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.text.lexical_index import NOT_KNOWN, FullScore
from llama_index.ragkit.vectors.question_scores import NEAREST
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["ChunkView", "StoredChunks"]

_MORE = 4  # times as many are asked for while too few pass the filters
_MOST = 16_000


@dataclass(frozen=True)
class ChunkView:
    """The chunks near a question."""

    rows: Snapshot  # their vectors and metadata, in unspecified order
    lexical: NDArray[np.float64]  # shape (n,), their BM25 scores
    # that of a chunk of mean length that has each word of a sentence of the question once, and that length
    full_score: FullScore = NOT_KNOWN


@dataclass(frozen=True)
class StoredChunks:
    """Chunks in stores.

    Attributes
    ----------
    space : their vectors
    terms : their words; None for a search by vectors alone
    """

    space: StoredSpace
    terms: Words | None = None

    def view(
        self, question: str, vector: NDArray[np.float32], wanted: int, selection: Selection = EVERYTHING
    ) -> Steps[ChunkView]:
        """The chunks near a question by their vectors or by their words.

        Parameters
        ----------
        vector : of the question, shape (dimension,)
        wanted : how many chunks will be shown; at least 100 by vectors and as many by words are looked for
        selection : which chunks count. Others are left out, and do not count for how rare a word is, unless the lexical
            index cannot tell which pass the filter

        Raises
        ------
        StorageError, ConfigurationError
            If a store fails; if a filter cannot be compared with the value of a chunk.
        """
        count = max(wanted, NEAREST)
        near = partial(self.space.records_near, vector, count, selection)
        scores: Mapping[str, float] = {}
        if self.terms is None:
            records = yield from near()
        elif selection.only is not None:
            records = yield from near()
            ids = [record["id"] for record in records.values()]
            scores = yield from offload(self.terms.scores, question, len(ids), ids)
        else:
            # Beside each other: the one waits for the index of the vectors, the other for postings.
            searches: list[Callable[[], Steps[Any]]] = [
                near,
                partial(self._by_words, self.terms, question, count, selection),
            ]
            by_vectors, (by_words, scores) = (found.unwrap() for found in (yield from gather(searches, len(searches))))
            records = {**by_vectors, **by_words}
            others = [record["id"] for record in by_vectors.values() if record["id"] not in scores]
            if len(scores) >= count:  # otherwise no other text has a word of the question
                (scores_of_others,) = yield from offload(self.terms.scores_of, others, [question], _counted(selection))
                scores = {**scores, **scores_of_others}
        rows = yield from self.space.rows(records)
        (full_score,) = yield from offload(self.full_scores, [question], selection)
        return ChunkView(rows, _aligned(scores, rows.ids), full_score)

    def records_by_words(
        self, text: str, wanted: int, selection: Selection = EVERYTHING
    ) -> Steps[Mapping[str, Record]]:
        """The records of the chunks with the best lexical scores for a text."""
        if self.terms is None:
            return {}
        records, _ = yield from self._by_words(self.terms, text, wanted, selection)
        return records

    def lexical_scores(
        self, ids: Sequence[str], texts: Sequence[str], selection: Selection = EVERYTHING
    ) -> list[NDArray[np.float64]]:
        """The lexical scores of chunks for each of several texts, in the order of `ids`; read at once."""
        if self.terms is None or not texts:
            return [np.zeros(len(ids)) for _ in texts]
        return [_aligned(scores, ids) for scores in self.terms.scores_of(ids, texts, _counted(selection))]

    def full_scores(self, texts: Sequence[str], selection: Selection = EVERYTHING) -> list[FullScore]:
        """For each text, the score of a chunk of mean length that has each word of it once, and that length."""
        if self.terms is None:
            return [NOT_KNOWN for _ in texts]
        return self.terms.full_scores(texts, _counted(selection))

    def _by_words(
        self, terms: Words, question: str, count: int, selection: Selection
    ) -> Steps[tuple[Mapping[str, Record], Mapping[str, float]]]:
        """The records of the chunks with the best lexical scores, of those that count, and the scores of all found."""
        limit = count
        while True:
            scores = yield from offload(terms.scores, question, limit, _counted(selection))
            records = yield from self.space.records_of(scores, selection)
            if selection.is_whole or len(records) >= count or len(scores) < limit or limit >= _MOST:
                return records, scores
            limit = min(_MORE * limit, _MOST)

    def including(
        self, view: ChunkView, question: str, ids: Sequence[str], selection: Selection = EVERYTHING
    ) -> Steps[ChunkView]:
        """A view with further chunks, of those that count."""
        records = yield from self.space.records_of([row_id for row_id in ids if row_id not in view.rows], selection)
        return (yield from self.joined(view, question, records, selection))

    def joined(
        self, view: ChunkView, question: str, records: Mapping[str, Record], selection: Selection = EVERYTHING
    ) -> Steps[ChunkView]:
        """A view with the rows of records that count; vectors of those that it has are not read again."""
        new = {key: record for key, record in records.items() if record["id"] not in view.rows}
        others = yield from self.space.rows(new)
        if not len(others):
            return view
        (words,) = yield from offload(self.lexical_scores, others.ids, [question], selection)
        return replace(view, rows=view.rows.joined(others), lexical=np.concatenate([view.lexical, words]))


def _counted(selection: Selection) -> CountedTexts | None:
    """The texts of the lexical index that count; None for all, or where it cannot tell."""
    return selection.texts if selection.only is None else selection.only


def _aligned(scores: Mapping[str, float], ids: Sequence[str]) -> NDArray[np.float64]:
    return np.array([scores.get(row_id, 0.0) for row_id in ids])
