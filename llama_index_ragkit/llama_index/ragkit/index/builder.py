"""`Builder`: loads the state of a method and updates it when nodes change."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from llama_index.core.schema import BaseNode

from llama_index.ragkit.index.change import Change
from llama_index.ragkit.index.failure import Failure
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.steps import Steps
from llama_index.ragkit.storage.chunk_terms import ChunkTerms
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.nodes import embed_text
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.text.lexical_terms import lexical_terms
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["Builder", "Config", "IndexState", "State", "SummaryBuilder"]


class IndexState(Protocol):
    """The interface of every method's state: the chunks that it was built from.

    A state is immutable. A write builds a new one, and a query uses one throughout.
    """

    @property
    def chunks(self) -> Snapshot:
        """The rows of the space "chunks" that the state was built from."""


Config = TypeVar("Config")
State = TypeVar("State", bound=IndexState)


class Builder(ABC, Generic[Config, State]):
    """Derives and stores the data of a method, and returns the state that queries read.

    :meth:`apply` deletes everything that refers to removed nodes before it calls a model or stores anything, so that a
    write that is killed leaves nothing of a deleted document behind; :meth:`load` repairs the remains of such a write.

    A subclass may take further keywords of its index that are neither parameters nor common to all methods.

    Parameters
    ----------
    storage : the storage of the index
    resources : models, extractor, cache
    config : the parameters of the method

    Attributes
    ----------
    keeps_terms : whether the index keeps the :meth:`terms_of` chunks; not for a method that searches other texts
    lexical_source : what :meth:`terms_of` counts, stored with the terms: where another version counted something else,
        they are made again when an index is loaded; in stores they stay as they are
    embeds_chunks : whether chunks are embedded as they are before :meth:`apply`. Without, they have no rows until the
        builder puts them. A vector store of the user's gets complete chunks: with one, they are embedded all the same
    terms : keeps the words of the chunks
    """

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
        """The stored state."""

    def prepare(self, change: Change) -> Steps[None]:
        """Call the models for a change, and store nothing: :meth:`apply` follows at once, in a write that other
        processes wait for. If one of them is first, the write is planned again, and this is called again.
        """
        return
        yield

    @abstractmethod
    def apply(self, state: State, change: Change) -> Steps[State]:
        """Store what is derived from a change, and return the new state."""

    def terms_of(self, node: BaseNode, record: Record | None) -> Counter[str]:
        """The terms that a chunk is found by, each with its number: those of the text that is embedded.

        Parameters
        ----------
        record : what the extractor read from the node; None if it failed, or there is none
        """
        return lexical_terms(embed_text(node))

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

    def retry(self, state: State) -> Steps[State]:
        """Retry failures other than those of node extraction, and return the new state."""
        return state
        yield

    def failures(self, state: State) -> Sequence[Failure]:
        """Failures other than those of node extraction."""
        return ()


class SummaryBuilder(Builder[Config, State]):
    """A builder that writes summaries."""

    @abstractmethod
    def write_missing(self, state: State) -> Steps[State]:
        """Write the summaries that are missing after a delete or a failure."""

    @abstractmethod
    def rebuild(self, state: State) -> Steps[State]:
        """Recompute what is summarised, as a build from all documents at once would."""

    @abstractmethod
    def missing(self, state: State) -> int:
        """Number of missing summaries."""
