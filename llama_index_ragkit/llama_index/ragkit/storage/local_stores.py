"""`LocalStores`: the words and the graph of an index in the memory of this process."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from numpy.typing import NDArray

from llama_index.ragkit.steps import immediate
from llama_index.ragkit.storage.graph.local_graph import LocalGraph
from llama_index.ragkit.storage.labels import CountedTexts, LabelledTexts
from llama_index.ragkit.text.lexical_index import FullScore, LexicalIndex
from llama_index.ragkit.vectors.kernels import largest

__all__ = ["LocalStores", "LocalWords"]


class LocalWords:
    """The :class:`~llama_index.ragkit.storage.interface.Words` of a lexical index, which a write replaces.

    Parameters
    ----------
    index : what there is at first
    """

    def __init__(self, index: LexicalIndex | None = None) -> None:
        self._index = index or LexicalIndex()
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalWords, (self._index,)

    def __len__(self) -> int:
        return len(self._index)

    def changed(self, removed: Collection[str], added: Mapping[str, Mapping[str, int]]) -> None:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.changed`."""
        words = {name: {term: count for term, count in terms.items() if count} for name, terms in added.items()}
        with self._lock:
            self._index = self._index.changed(removed, words)

    def load(self, texts: Mapping[str, str] | LexicalIndex) -> None:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.load`."""
        with self._lock:
            self._index = texts if isinstance(texts, LexicalIndex) else LexicalIndex.of(texts)

    def passing(self, filters: MetadataFilters, few: int) -> CountedTexts | None:
        """None: labels are not kept."""
        return None

    def scores(self, question: str, limit: int, only: CountedTexts | None = None) -> dict[str, float]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.scores`."""
        index = self._counted(only)
        found: list[tuple[float, str]] = []
        for ids, scores in zip(index.ids, index.scores(question), strict=True):
            found += ((-scores[row], ids[row]) for row in _best(scores, limit).tolist())
        return {name: float(-score) for score, name in sorted(found)[:limit]}

    def scores_of(
        self, ids: Sequence[str], questions: Sequence[str], only: CountedTexts | None = None
    ) -> list[dict[str, float]]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.scores_of`."""
        index = self._counted(only)
        rows, found = index.rows_of(ids), []
        for question in questions:
            scores = np.zeros(len(ids))
            for of_block, own in zip(index.scores(question), rows, strict=True):
                scores += np.where(own >= 0, of_block[own], 0.0)  # each text is in one block
            found.append({name: score for name, score in zip(ids, scores.tolist(), strict=True) if score})
        return found

    def full_scores(self, questions: Sequence[str], only: CountedTexts | None = None) -> list[FullScore]:
        """See :meth:`~llama_index.ragkit.storage.interface.Words.full_scores`."""
        return self._counted(only).full_scores(questions)

    def whole(self) -> LexicalIndex:
        """All texts."""
        return self._index

    def _counted(self, only: CountedTexts | None) -> LexicalIndex:
        if only is None or isinstance(only, LabelledTexts):  # of which there are none
            return self._index
        return self._index.having(only)


def _best(scores: NDArray[np.float64], limit: int) -> NDArray[np.intp]:
    """The rows with the best scores above 0, and all with the last of these."""
    rows = np.flatnonzero(scores)
    if 0 < limit < len(rows):
        rows = rows[scores[rows] >= scores[rows][largest(scores[rows], limit)].min()]
    return rows


class LocalStores:
    """The :class:`~llama_index.ragkit.storage.interface.Stores` of an index in memory, empty at first."""

    def __init__(self) -> None:
        self._words = LocalWords()
        self._graph = LocalGraph()

    def words(self) -> LocalWords:
        """The words of the chunks."""
        return self._words

    def graph(self) -> LocalGraph:
        """The graph."""
        return self._graph

    def connect(self, store: BasePydanticVectorStore) -> None:
        """Nothing: there are no connections to share."""

    @immediate
    def transaction(self) -> AbstractContextManager[None]:
        """A block of writes; those before an error stay."""
        return nullcontext()

    @immediate
    def snapshot(self) -> AbstractContextManager[None]:
        """A block of reads, each of the latest state."""
        return nullcontext()
