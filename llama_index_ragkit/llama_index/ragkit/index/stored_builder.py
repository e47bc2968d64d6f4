"""`StoredBuilder`: a builder of a method whose index may be served from stores."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from llama_index.ragkit.index.builder import Builder, Config, State
from llama_index.ragkit.index.contents import ViewContents
from llama_index.ragkit.steps import Steps, offload
from llama_index.ragkit.storage.labels import LabelledTexts
from llama_index.ragkit.storage.opening import CHUNKS
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.selection import Selection, select_stored
from llama_index.ragkit.storage.stored_chunks import ChunkView, StoredChunks

__all__ = ["StoredBuilder"]


class StoredBuilder(Builder[Config, State]):
    """Derives and stores the data of a method, and reads of it what one question needs.

    Where the index is served from stores, its state is empty: :meth:`load` reads nothing, and :meth:`view` gives the
    state for one question, in which the method searches as it does in that of an index in memory. A method that has
    one builder for both gives all of the index there (:meth:`~llama_index.ragkit.Space.whole`).

    Rows are written such that a write that was killed may be repeated.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.Builder`

    Attributes
    ----------
    spaces : the vector spaces that are kept in stores
    few : chunks that pass a filter, up to which a question reads all of them: what is derived from them together, such
        as a mean, is then that of an index of these alone
    waits_for_all : whether what is derived depends on which nodes are given together. These are written in parts; the
        builder derives it with the last of them (`Change.more`), or by :meth:`derive_waiting` if that never comes
    """

    spaces: ClassVar[tuple[str, ...]] = (CHUNKS,)
    few: ClassVar[int] = 500
    waits_for_all: ClassVar[bool] = False

    @property
    def chunks(self) -> StoredChunks:
        """The chunks, by their vectors and by their words."""
        return StoredChunks(self.storage.stored[CHUNKS], self.terms.words if self.keeps_terms else None)

    def select(self, given: Selection, few: int | None = None) -> Steps[Selection]:
        """Which chunks count: as their ids where these are known, or few pass the filter, or there are few.

        Parameters
        ----------
        few : see the attribute, which is the default
        """
        found = yield from select_stored(self.storage.manifest, given.filters, given.only, given.documents)
        if found.filters is None:
            return found
        if found.only is None:
            most = self.few if few is None else few
            texts = yield from offload(self.terms.words.passing, found.filters, most)
            few_at_all = self.storage.struct.counters.get(CHUNKS, 0) <= most
            if isinstance(texts, LabelledTexts) or (texts is None and not few_at_all):
                return replace(found, texts=texts)
            found = replace(found, only=texts)
        rows = yield from self.storage.space().described(found.only, found)
        return Selection(only=rows.ids)

    def view(
        self, question: str, vector: NDArray[np.float32], wanted: int, selection: Selection
    ) -> Steps[ViewContents[State]]:
        """What a question is answered from.

        Parameters
        ----------
        vector : of the question, shape (dimension,)
        wanted : how many chunks will be shown
        selection : which chunks count
        """
        near = yield from self.chunks.view(question, vector, wanted, selection)
        state, near = yield from self.state_for(question, vector, wanted, near, selection)
        return ViewContents(state, question, near, self.chunks, selection, self.state_of, self.find_further)

    def state_for(
        self, question: str, vector: NDArray[np.float32], wanted: int, near: ChunkView, selection: Selection
    ) -> Steps[tuple[State, ChunkView]]:
        """The state for a question, and its chunks: those near to it, and others that the method needs.

        Parameters
        ----------
        vector, wanted, selection : see :meth:`view`
        near : the chunks near to the question
        """
        return (yield from self.state_of(near, selection)), near

    def derive_waiting(self, state: State) -> Steps[State]:
        """Derive what waits for a last part that has not come, and return the new state."""
        return state
        yield

    @abstractmethod
    def state_of(self, near: ChunkView, selection: Selection) -> Steps[State]:
        """The state for a question, from the chunks near to it."""

    def find_further(
        self, vectors: NDArray[np.float32], wanted: int, selection: Selection
    ) -> Steps[Mapping[str, Record] | None]:
        """Records of chunks near to parts of a question that the method finds in stores of its own.

        None if it has none: the chunks whose vectors are near to these are found then.

        Parameters
        ----------
        vectors : of the parts, shape (n, dimension)
        wanted : how many count for each
        """
        return None
        yield
