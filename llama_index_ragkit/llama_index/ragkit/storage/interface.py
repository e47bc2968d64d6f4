"""Where an index is stored, as its builder and its searches see it: vectors, words, a graph.

Each part has two implementations that give the same answers, and the same tests check both. `VectorSpace`, `LocalWords`
and `LocalGraph` are in this process, and exact. `StoredSpace`, `SQLLexicalIndex` and `SQLGraphRows` are in an SQL
database and vector stores of the user. :class:`~llama_index.ragkit.Records` are the same in both. Opening the storage
of an index chooses one of the two; code that is built on a part does not ask which.

The `whole()` of a part is all of it, as an immutable value that later writes do not change, or None if it is not held
in memory. A search that needs all of a part can use only `whole()`; if that is None, it must raise an error that names
itself.

One writer writes at a time. A reader sees a part as it was before or after a write, never within one. To read data that
belong together in several parts, use :meth:`Stores.snapshot`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from llama_index.core.vector_stores.types import BasePydanticVectorStore, MetadataFilters
from numpy.typing import NDArray

from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.graph.interface import GraphRows
from llama_index.ragkit.storage.labels import CountedTexts
from llama_index.ragkit.storage.selection import EVERYTHING, Selection
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.text.lexical_index import FullScore, LexicalIndex
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["Space", "Stores", "Words"]


class Space(Protocol):
    """The vectors of one kind of thing, such as chunks or summaries, by id, with what filters need.

    Rows are read as a :class:`~llama_index.ragkit.Snapshot`, in no order, which is searched like a whole space. Unknown
    ids are left out.

    Raises
    ------
    ConfigurationError, StorageError, EmbeddingError
        If a filter cannot be compared with the value of a row; if a store fails; if vectors to be stored are not finite
        or not of the length of the others.
    """

    def put(self, rows: SpaceRows) -> Steps[None]:
        """Add rows, replacing those of the same id."""

    def remove(self, ids: Iterable[str]) -> Steps[None]:
        """Delete rows."""

    def fetch(self, ids: Iterable[str], selection: Selection = EVERYTHING) -> Steps[Snapshot]:
        """The rows of those ids that count."""

    def vectors_of(self, ids: Iterable[str]) -> Steps[dict[str, NDArray[np.float32]]]:
        """The vectors of rows that exist, by id in the given order, where the id of a row says what its vector is."""

    def described(self, ids: Iterable[str] | None = None, selection: Selection = EVERYTHING) -> Steps[Snapshot]:
        """As :meth:`fetch`, without vectors: what the result has for them means nothing. All rows if `ids` is None."""

    def near(self, vectors: NDArray[np.float32], wanted: int, selection: Selection = EVERYTHING) -> Steps[Snapshot]:
        """Rows that count, among them the nearest to each of some vectors by cosine, as far as the space finds them.

        A search of these for `wanted` rows or fewer then gives the same result as a search of the whole space, with the
        same scores. An approximate vector store may miss rows.

        Parameters
        ----------
        vectors : shape (q, dimension)
        wanted : how many for each vector, at least 1
        selection : which rows count; if it names the only ones, the result has all of these
        """

    def whole(self) -> Snapshot | None:
        """All rows, or None."""


class Words(Protocol):
    """The words of texts, by id; scores are those of BM25.

    Its methods compute, or wait for a database: :func:`~llama_index.ragkit.offload` runs them beside an event loop.

    Raises
    ------
    StorageError
        If a database fails.
    """

    def __len__(self) -> int:
        """How many texts there are."""

    def changed(self, removed: Collection[str], added: Mapping[str, Mapping[str, int]]) -> None:
        """Remove texts and add others, which replace those of the same id; all of it, or nothing if it raises.

        Parameters
        ----------
        removed : unknown ids are ignored
        added : id -> how often the text has each term, see
            :func:`~llama_index.ragkit.text.lexical_index.lexical_terms`; labels of a text 0 times
        """

    def load(self, texts: Mapping[str, str] | LexicalIndex) -> None:
        """Replace all texts by these, if words are held in memory; a database does not change.

        Parameters
        ----------
        texts : id -> its terms, each as often as the text has it, with a space between two of them; or an index of them
        """

    def passing(self, filters: MetadataFilters, few: int) -> CountedTexts | None:
        """The texts that pass a filter, by the labels that they were stored with.

        Parameters
        ----------
        few : up to this many are given by their ids, and may include texts that do not pass

        Returns
        -------
        None if labels do not tell. In this process they never do, since filters are checked by metadata there.
        """

    def scores(self, question: str, limit: int, only: CountedTexts | None = None) -> dict[str, float]:
        """The texts with the best scores, best first, equal ones by id; none without a word of the question.

        Parameters
        ----------
        limit : how many at most, at least 0
        only : the texts that count, with scores as if there were no others; None for all

        Returns
        -------
        Scores, more than 0, by id.
        """

    def scores_of(
        self, ids: Sequence[str], questions: Sequence[str], only: CountedTexts | None = None
    ) -> list[dict[str, float]]:
        """The scores of some texts for each of several questions; `ids` are among those of `only`, see :meth:`scores`.

        Returns
        -------
        Scores, more than 0, by id in no order; one mapping a question.
        """

    def full_scores(self, questions: Sequence[str], only: CountedTexts | None = None) -> list[FullScore]:
        """For each question, the score of a text of mean length that has each word of a sentence of it once, and that
        length.
        """

    def whole(self) -> LexicalIndex | None:
        """All texts, or None."""


class Stores(Protocol):
    """Where the words and the graph of one index are stored."""

    def words(self) -> Words:
        """The words of the chunks."""

    def graph(self) -> GraphRows:
        """The graph."""

    def connect(self, store: BasePydanticVectorStore) -> None:
        """Let another vector store of the user share the connections of these, if it can."""

    def transaction(self) -> Steps[AbstractContextManager[None]]:
        """A block whose writes are all made; if it raises, a database makes none of them.

        In this process, and for records in a store without transactions, the writes before the error stay: repeat the
        write, or open the index again.
        """

    def snapshot(self) -> Steps[AbstractContextManager[None]]:
        """A block whose reads of a database all see the same state.

        In this process that is what the `whole()` of each part is for.
        """
