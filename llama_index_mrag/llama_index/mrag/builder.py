"""`MRAGBuilder`: keeps the sums over the heads and the head stores up to date, and reads what questions need."""

from collections.abc import Mapping, Sequence

import numpy as np
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray

from llama_index.mrag.config import MRAGConfig
from llama_index.mrag.head_stores import head_row_id
from llama_index.mrag.heads.importance import HeadSums
from llama_index.mrag.heads.splitting import split_heads
from llama_index.mrag.index_heads import IndexHeads
from llama_index.mrag.state import MRAGState
from llama_index.ragkit import Builder, Change, Selection, Steps, offload
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.stored_chunks import ChunkView

__all__ = ["MRAGBuilder"]

_SUMS = "head_sums"


class MRAGBuilder(Builder[MRAGConfig, MRAGState]):
    """Keeps the sums over the heads of all nodes, and the head stores, up to date.

    A state of the whole index has the sums. An index that is served from stores has no such state; its sums are a
    record, which a write changes together with everything else or not at all. Heads then vote among the nodes near to
    the question, those with words of one of its aspects, and those that the head stores find for the aspect. Without
    head stores these are the nodes near to the aspect by the whole vector.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.Builder`
    head_stores : see :class:`~llama_index.mrag.index_heads.IndexHeads`

    Raises
    ------
    ConfigurationError
        If `dtype` is "float16" for an index in vector stores, which decide themselves how vectors are stored.
    """

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        config: MRAGConfig,
        head_stores: Sequence[BasePydanticVectorStore] | None = None,
    ) -> None:
        super().__init__(storage, resources, config)
        in_stores = storage.space().whole() is None
        if in_stores and config.dtype != "float32":
            raise ConfigurationError(
                "The vector stores of the storage context decide how vectors are stored: leave out "
                f"dtype={config.dtype!r}."
            )
        for store in head_stores or ():
            storage.stores.connect(store)
        row_id = self.chunks.space.key if in_stores else head_row_id
        self._heads = IndexHeads(storage, resources, head_stores, row_id)

    def check_embed_model(self) -> None:
        """Reject a model with another number of heads, or with other layers or pooling."""
        self._heads.check_embed_model()

    def check_write(self) -> None:
        """Reject a write that would leave the head stores out of date."""
        self._heads.check_write()

    # -- writing ------------------------------------------------------------------------------------

    def load(self) -> Steps[MRAGState]:
        """The whole index if it is in memory, else an empty state."""
        chunks = self.storage.space().whole()
        if chunks is None:
            return MRAGState()
        return (
            yield from offload(
                MRAGState.of, chunks, self._heads.number(chunks.dim), self._heads.stores, own=self._heads.own
            )
        )

    def arrays_of(self, state: MRAGState) -> Arrays:
        """The lengths of all heads of all vectors, and their sums."""
        sums = state.sums
        return {"inverse": state.inverse, "norms": sums.norms, "units": sums.units}

    def load_arrays(self, arrays: Arrays) -> MRAGState | None:
        """The state of :meth:`arrays_of`; None if the arrays have another number of vectors or heads."""
        chunks = self.storage.snapshot()
        heads, inverse = self._heads.number(chunks.dim), arrays["inverse"]
        if not heads or inverse.shape != (heads, len(chunks)):
            return None
        sums = HeadSums(len(chunks), arrays["norms"], arrays["units"])
        return MRAGState(chunks, heads, sums, inverse, self._heads.stores, self._heads.own)

    def apply(self, state: MRAGState, change: Change) -> Steps[MRAGState]:
        """Bring the sums and the head stores up to date."""
        chunks, dimension = self.storage.space().whole(), self.storage.struct.embedding.get("dimension")
        if not dimension or not (change.added or change.removed):
            return state
        heads = self.storage.struct.counters["heads"] = self._heads.determine(dimension)
        if chunks is None:
            sums = yield from offload(
                _changed, (yield from self._stored_sums(heads, dimension)), change, heads, self._heads.own
            )
            yield from self.storage.records.put(_SUMS, [(_SUMS, sums.to_record())])
        yield from self._heads.write(change)
        if chunks is None:
            return state
        touched = [*change.removed, *(node.node_id for node in change.added)]
        return (yield from offload(state.changed, chunks, touched, heads, self._heads.own))

    # -- reading ------------------------------------------------------------------------------------

    def sums(self, state: MRAGState) -> Steps[HeadSums]:
        """The sums over all nodes, as last committed by any process.

        Parameters
        ----------
        state : that of the last write
        """
        if self.storage.space().whole() is not None:
            return state.sums
        yield from self.storage.commits.refresh()
        dimension = self.storage.struct.embedding.get("dimension", 0)
        return (yield from self._stored_sums(self._heads.number(dimension), dimension))

    def _stored_sums(self, heads: int, dimension: int) -> Steps[HeadSums]:
        record = yield from self.storage.records.get(_SUMS, _SUMS)
        size = (dimension - self._heads.own) // max(1, heads)
        return HeadSums.empty(heads, size) if record is None else HeadSums.from_record(record)

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[MRAGState]:
        """The nodes near to a question, with the sums over all nodes, or over those that the selection names."""
        dimension = near.rows.dim or 0
        heads = self._heads.number(dimension)
        sums = (yield from self._stored_sums(heads, dimension)) if selection.only is None else None
        return (yield from offload(MRAGState.of, near.rows, heads, None, sums, self._heads.own))

    def find_further(
        self, vectors: NDArray[np.float32], wanted: int, selection: Selection
    ) -> Steps[Mapping[str, Record] | None]:
        """The nodes that the head stores find for the aspects of a question."""
        if self._heads.stores is None:
            return None
        keys = yield from self._heads.stores.row_ids(vectors, wanted, self._heads.own)
        return (yield from self.chunks.space.records_keyed(keys, selection))


def _changed(sums: HeadSums, change: Change, heads: int, own: int) -> HeadSums:
    gone = [node_id for node_id in change.removed if node_id in change.before]
    if gone:
        sums = sums.remove(split_heads(change.before.vectors_of(gone), heads, own))
    # Repeated nodes were counted by the write that stored them.
    new = [place for place, node in enumerate(change.added) if node.node_id not in change.repeated]
    return sums.add(split_heads(change.vectors[new], heads, own)) if new else sums
