"""What a query reads: the state of a method, over all of an index in memory or the part that one question needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.steps import Steps, gather, immediate
from llama_index.ragkit.storage.external_store import AT_ONCE
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.selection import Selection
from llama_index.ragkit.storage.stored_chunks import ChunkView, StoredChunks
from llama_index.ragkit.text.lexical_index import AlignedWords, FullScore, LexicalIndex
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["Config", "IndexContents", "IndexState", "State", "ViewContents"]


class IndexState(Protocol):
    """The interface of every method's state: the chunks that it was built from.

    A state is immutable. A write builds a new one, and a query uses one throughout.
    """

    @property
    def chunks(self) -> Snapshot:
        """The rows of the space "chunks" that the state was built from."""


Config = TypeVar("Config")


State = TypeVar("State", bound=IndexState)


@dataclass(frozen=True)
class IndexContents(Generic[State]):
    """The state of the method, and the words of its chunks; a write replaces them as a whole.

    Attributes
    ----------
    state : the state of the method
    lexical : the words of the chunks of that state
    advantage : of words over cosines, see :class:`~llama_index.ragkit.text.lexical_index.FullScore`
    """

    state: State
    lexical: LexicalIndex
    advantage: float = 0.0

    @cached_property
    def _words(self) -> AlignedWords:
        chunks = self.state.chunks
        return AlignedWords(self.lexical, chunks.rows_of, len(chunks))

    def lexical_scores(self, question: str, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """The BM25 score of each chunk, shape (n,); 0 without a word of the question.

        Parameters
        ----------
        allowed : shape (n,), the chunks that count: others score 0, and these as if there were no others; None for all
        """
        return self._words.scores(question, allowed)

    def scored(self, question: str, allowed: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.float64], FullScore]:
        """Both :meth:`lexical_scores` and the one of :meth:`full_scores`; the words are looked up once."""
        scores, full_score = self._words.scored(question, allowed)
        return scores, full_score._replace(advantage=self.advantage)

    def full_scores(self, texts: Sequence[str], allowed: NDArray[np.bool_] | None = None) -> list[FullScore]:
        """For each text, the BM25 score of a chunk of mean length that has each word of it once, and that length.

        Parameters
        ----------
        allowed : see :meth:`lexical_scores`
        """
        return self._words.full_scores(texts, allowed)

    @immediate
    def including(self, texts: Sequence[str], vectors: NDArray[np.float32], wanted: int) -> "IndexContents[State]":
        """The same: all chunks are there."""
        return self


@dataclass(frozen=True)
class ViewContents(Generic[State]):
    """The state for one question to an index that is served from stores, whose chunks may all be shown.

    Attributes
    ----------
    state : the state of the method
    question : the question
    near : the chunks of the state
    stored : all chunks of the index
    selection : which of them count
    make_state : the state over some chunks
    find_further : the records of chunks that the method finds for some vectors in stores of its own; None without such
    advantage : of words over cosines
    texts : further texts that chunks are near to
    """

    state: State
    question: str
    near: ChunkView
    stored: StoredChunks
    selection: Selection
    make_state: Callable[[ChunkView, Selection], Steps[State]]
    find_further: Callable[[NDArray[np.float32], int, Selection], Steps[Mapping[str, Record] | None]]
    advantage: float = 0.0
    texts: Sequence[str] = ()

    @cached_property
    def _lexical_of_texts(self) -> dict[str, NDArray[np.float64]]:
        """The scores of the chunks for each of the further texts, read at once."""
        scores = self.stored.lexical_scores(self.near.rows.ids, self.texts, self.selection)
        return dict(zip(self.texts, scores, strict=True))

    def lexical_scores(self, question: str, allowed: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """As :meth:`IndexContents.lexical_scores`, for the question and the further texts; how rare a word is, is
        counted over all chunks of the index.
        """
        scores = self.near.lexical if question == self.question else self._lexical_of_texts[question]
        return scores if allowed is None else np.where(allowed, scores, 0.0)

    def scored(self, question: str, allowed: NDArray[np.bool_] | None = None) -> tuple[NDArray[np.float64], FullScore]:
        """Both :meth:`lexical_scores` and the one of :meth:`full_scores`."""
        known = question == self.question
        (full_score,) = [self.near.full_score] if known else self.full_scores([question])
        return self.lexical_scores(question, allowed), full_score._replace(advantage=self.advantage)

    def full_scores(self, texts: Sequence[str], allowed: NDArray[np.bool_] | None = None) -> list[FullScore]:
        """As :meth:`IndexContents.full_scores`; how rare a word is, is counted over all chunks of the index."""
        return self.stored.full_scores(texts, self.selection)

    def including(
        self, texts: Sequence[str], vectors: NDArray[np.float32], wanted: int
    ) -> Steps["ViewContents[State]"]:
        """With the chunks near to further texts, such as the aspects of the question.

        Parameters
        ----------
        vectors : of the texts, shape (number of texts, dimension)
        wanted : how many chunks count for each

        Raises
        ------
        StorageError, ConfigurationError
            See :meth:`~llama_index.ragkit.storage.stored_chunks.StoredChunks.view`.
        """
        further = list(dict.fromkeys(text for text in texts if text != self.question))
        if self.selection.only is not None:  # all that count are there
            return replace(self, texts=further)
        by_words = [partial(self.stored.records_by_words, text, wanted, self.selection) for text in further]
        outcomes = yield from gather([partial(self._by_vectors, texts, vectors, wanted), *by_words], AT_ONCE)
        found = {key: record for outcome in outcomes for key, record in outcome.unwrap().items()}
        near = yield from self.stored.joined(self.near, self.question, found, self.selection)
        return replace(self, state=(yield from self.make_state(near, self.selection)), near=near, texts=further)

    def _by_vectors(
        self, texts: Sequence[str], vectors: NDArray[np.float32], wanted: int
    ) -> Steps[Mapping[str, Record]]:
        """The records of the chunks near to further texts by their vectors, or as the method finds them."""
        by_method = yield from self.find_further(vectors, wanted, self.selection)
        if by_method is not None:
            return by_method
        others = [vector for text, vector in zip(texts, vectors, strict=True) if text != self.question]
        found = yield from self.stored.space.records_near_each(others, wanted, self.selection)
        return {key: record for records in found for key, record in records.items()}
