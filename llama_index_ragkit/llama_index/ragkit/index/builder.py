"""`Builder`: derives and stores the data of a method from a `Change`, and reads what queries need of it."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Generic, cast

import numpy as np
from llama_index.core.schema import BaseNode
from numpy.typing import NDArray

from llama_index.ragkit.index.contents import Config, State, ViewContents
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import Steps, immediate, offload
from llama_index.ragkit.storage.chunk_terms import ChunkTerms
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.labels import LabelledTexts
from llama_index.ragkit.storage.nodes import embed_text
from llama_index.ragkit.storage.opening import CHUNKS
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.selection import Selection, select_stored
from llama_index.ragkit.storage.stored_chunks import ChunkView, StoredChunks
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.text.lexical_index import lexical_terms
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["Builder", "Change", "Failure", "SummaryBuilder", "stand_ins"]

_NAMED = 5  # ids that are listed


@dataclass(frozen=True)
class Failure:
    """A step that failed after all retries.

    Attributes
    ----------
    node_id : the node, summary or document that the step was for
    step : the step that failed: the prompt, or else the kind of the component
    reason : why it failed
    by : the class that did the step without an LLM, if one did; "extract" for a report of Graph RAG, made of statements
    """

    node_id: str
    step: str
    reason: str
    by: str = ""


def stand_ins(failures: Sequence[Failure]) -> dict[str, str]:
    """What stood in without an LLM -> how often, and for which nodes first."""
    of: dict[str, list[str]] = {}
    for failure in failures:
        if failure.by:
            of.setdefault(failure.by, []).append(failure.node_id)
    return {
        by: f"{len(ids)}: {', '.join(ids[:_NAMED])}{', ...' if len(ids) > _NAMED else ''}" for by, ids in of.items()
    }


@dataclass(frozen=True)
class Change:
    """The nodes that were added, changed or removed in one write.

    Attributes
    ----------
    added : nodes with text to derive from, in canonical order; their rows are in the space "chunks"
    vectors : one row for each of `added`
    records : results of the extractor by node id; nodes that it failed at, or found nothing in, are missing
    removed : ids of nodes whose rows were deleted from the space "chunks"; a node that changed is in both
    before : a snapshot that has these rows, and perhaps others
    repeated : ids of `added` that did not change: an earlier, incomplete write may have derived something from them
        already
    more : whether more nodes that were given together with these follow in later writes
    """

    added: Sequence[BaseNode] = ()
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    records: dict[str, Record] = field(default_factory=dict)
    removed: Sequence[str] = ()
    before: Snapshot = field(default_factory=Snapshot.empty)
    repeated: Collection[str] = ()
    more: bool = False


class Builder(ABC, Generic[Config, State]):
    """Derives and stores the data of a method, and reads what queries need of it.

    If an index is in memory, :meth:`load` returns the state of all of it, which every query reads and every write
    advances. If it is served from stores, that state is empty, and :meth:`view` gives the state for one question, which
    the method searches in the same way. Write rows so that a write that was killed can be repeated.

    :meth:`apply` deletes everything that refers to removed nodes before it calls a model or stores anything. So a write
    that is killed leaves nothing of a deleted document behind. :meth:`load` repairs the remains of such a write.

    A subclass may take further keywords of its index that are neither parameters nor common to all methods.

    Parameters
    ----------
    storage : the storage of the index
    resources : models, extractor, cache
    config : the parameters of the method

    Attributes
    ----------
    spaces : the vector spaces that are kept in stores
    few : if at most this many chunks pass a filter, a question reads all of them. Whatever is derived from them
        together, such as a mean, is then the same as in an index of only these
    waits_for_all : whether the derived data depend on which nodes are given together. Such nodes are written in parts.
        The builder derives the data with the last part (`Change.more`), or by :meth:`derive_waiting` if that never
        comes
    keeps_terms : whether the index keeps the :meth:`terms_of` chunks; not for a method that searches other texts
    lexical_source : what :meth:`terms_of` counts, stored with the terms: where another version counted something else,
        they are made again when an index is loaded; in stores they stay as they are
    embeds_chunks : whether chunks are embedded as they are before :meth:`apply`. Without, they have no rows until the
        builder puts them. A vector store of the user's gets complete chunks: with one, they are embedded all the same
    terms : keeps the words of the chunks
    """

    spaces: ClassVar[tuple[str, ...]] = (CHUNKS,)
    few: ClassVar[int] = 500
    waits_for_all: ClassVar[bool] = False
    keeps_terms: ClassVar[bool] = True
    lexical_source: ClassVar[str] = "text"
    embeds_chunks: ClassVar[bool] = True

    def __init__(self, storage: IndexStorage, resources: Resources, config: Config) -> None:
        self.storage = storage
        self.resources = resources
        self.config = config
        self.terms = ChunkTerms(storage, self.lexical_source, self.terms_of)

    @abstractmethod
    def load(self) -> Steps[State]:
        """The stored state.

        Where records belong to another state, since a write ended early or an earlier version wrote them, note it
        (`Records.note_repairs`): the next write stores them before :meth:`apply`.
        """

    def arrays_of(self, state: State) -> Arrays:
        """The state as arrays, none of which changes, for :meth:`load_arrays`; none if it is read from records.

        Where an index is in memory, they are written beside its records, so that it opens without reading these. They
        may depend only on what is stored: an index that is opened with other parameters gets the same arrays. This is
        not called while records are to be repaired.
        """
        return {}

    def load_arrays(self, arrays: Arrays) -> State | None:
        """The state of the arrays of :meth:`arrays_of`, mapped from a file; None if they do not fit what is stored."""
        return None

    @immediate
    def prepare(self, change: Change) -> None:
        """Call the models for a change, and store nothing: :meth:`apply` follows at once, in a write that other
        processes wait for. If one of them is first, the write is planned again, and this is called again.
        """

    @abstractmethod
    def apply(self, state: State, change: Change) -> Steps[State]:
        """Store the data derived from a change, and return the new state."""

    def terms_of(self, node: BaseNode, record: Record | None) -> Counter[str]:
        """The terms by which a chunk is found, with their counts: those of the embedded text.

        Parameters
        ----------
        record : the extractor's result for the node; None if it failed, or if there is no extractor
        """
        return lexical_terms(embed_text(node))

    @property
    def chunks(self) -> StoredChunks:
        """The chunks, by their vectors and by their words."""
        return StoredChunks(cast(StoredSpace, self.storage.space()), self.terms.words if self.keeps_terms else None)

    def searched(self, change: Change) -> tuple[Sequence[BaseNode], Sequence[str], NDArray[np.float32]]:
        """The new chunks of a change that is prepared, the texts by which they are searched, and the vectors of these.

        Chunks whose texts were not embedded are left out.
        """
        return change.added, [embed_text(node) for node in change.added], change.vectors

    def select(self, given: Selection, few: int | None = None) -> Steps[Selection]:
        """Which chunks count: as their ids where these are known, or few pass the filter, or there are few.

        Parameters
        ----------
        few : see the attribute, which is the default
        """
        found = yield from select_stored(self.storage.manifest, given)
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
        advantage = self.storage.struct.advantage
        return ViewContents(state, question, near, self.chunks, selection, self.state_of, self.find_further, advantage)

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

    @immediate
    def derive_waiting(self, state: State) -> State:
        """Derive what waits for a last part that has not come, and return the new state."""
        return state

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[State]:
        """The state for a question, from the chunks near to it; a method without it is served only from memory."""
        raise NotImplementedError

    @immediate
    def find_further(
        self, vectors: NDArray[np.float32], wanted: int, selection: Selection
    ) -> Mapping[str, Record] | None:
        """Records of chunks near to parts of a question that the method finds in stores of its own.

        None if it has none: the chunks whose vectors are near to these are found then.

        Parameters
        ----------
        vectors : of the parts, shape (n, dimension)
        wanted : how many count for each
        """
        return None

    @property
    def fingerprints(self) -> Mapping[str, dict[str, str]]:
        """Role -> fingerprint of the builder's own components, which later writes must share."""
        return {}

    @property
    def summarizes(self) -> bool:
        """Whether a write calls the summarizer, if there is one."""
        return True

    def check_write(self) -> None:
        """Raise if the index lacks a component that a write or delete needs."""

    def check_embed_model(self) -> None:
        """Raise if the embedding model does not match the stored data, for reasons that its vectors do not reveal."""

    @immediate
    def retry(self, state: State) -> State:
        """Retry all failures except those of node extraction, and return the new state."""
        return state

    def failures(self, state: State) -> Sequence[Failure]:
        """All failures except those of node extraction."""
        return ()


class SummaryBuilder(Builder[Config, State]):
    """A builder that writes summaries."""

    @abstractmethod
    def write_missing(self, state: State) -> Steps[State]:
        """Write the summaries that are missing after a delete or a failure."""

    @abstractmethod
    def rebuild(self, state: State) -> Steps[State]:
        """Recompute the summarised groups as a build from all documents at once would."""

    @abstractmethod
    def missing(self, state: State) -> int:
        """Number of missing summaries."""
