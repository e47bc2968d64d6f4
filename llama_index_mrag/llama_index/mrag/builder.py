"""`MRAGBuilder`: keeps the heads of an index, their sums and the head stores, and reads what questions need."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from llama_index.core.vector_stores.types import BasePydanticVectorStore
from numpy.typing import NDArray

from llama_index.mrag.config import MRAGConfig
from llama_index.mrag.embedding import with_heads
from llama_index.mrag.head_stores import HeadStores, head_row_id
from llama_index.mrag.heads.importance import HeadSums
from llama_index.mrag.heads.splitting import split_heads
from llama_index.mrag.state import MRAGState
from llama_index.ragkit import Builder, Change, Selection, Steps, offload
from llama_index.ragkit.errors import ConfigurationError, EmbeddingModelMismatchError, UnsupportedStoreError
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.storage.stored_chunks import ChunkView

__all__ = ["MRAGBuilder"]

_SUMS = "head_sums"


class MRAGBuilder(Builder[MRAGConfig, MRAGState]):
    """Keeps the sums over the heads of all nodes, and the head stores, up to date.

    The struct of the index describes the heads, which are determined from the first vector. A state of the whole index
    has the sums. An index that is served from stores has no such state; its sums are a record, which a write changes
    together with everything else or not at all. Heads then vote among the nodes near to the question, those with words
    of one of its aspects, and those that the head stores find for the aspect. Without head stores these are the nodes
    near to the aspect by the whole vector.

    Parameters
    ----------
    head_stores : the user's vector stores, one per head, which receive the heads of all nodes; None for none

    Raises
    ------
    ConfigurationError
        If `dtype` is "float16" for an index in vector stores, which decide themselves how vectors are stored; if a
        store is passed twice.
    UnsupportedStoreError
        If a store cannot delete.
    """

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        config: MRAGConfig,
        head_stores: Sequence[BasePydanticVectorStore] | None = None,
    ) -> None:
        super().__init__(storage, resources, config)
        in_stores = not storage.is_whole
        if in_stores and config.dtype != "float32":
            raise ConfigurationError(
                "The vector stores of the storage context decide how vectors are stored: leave out "
                f"dtype={config.dtype!r}."
            )
        self._stores: HeadStores | None = None
        if head_stores is not None:
            for store in head_stores:
                storage.stores.connect(store)
            row_id = self.chunks.space.key if in_stores else head_row_id
            self._stores = HeadStores([ExternalVectorStore(store) for store in head_stores], row_id)

    # -- the heads ----------------------------------------------------------------------------------

    @property
    def _described(self) -> dict[str, Any]:
        """The description of the heads in the struct."""
        struct, needed = self.storage.struct, {"heads": int, "model": dict, "stores": bool}
        has_own = "own" in struct.parameters_of("mrag", needed)
        return struct.parameters_of("mrag", {**needed, "own": int} if has_own else needed)

    @property
    def _own(self) -> int:
        """Numbers of a vector before its heads: the model's own embedding. An older index has none."""
        own: int = self._described.get("own", 0)
        return own

    def _number(self, dimension: int | None) -> int:
        """The number of heads; 0 without vectors.

        A build in memory that was killed after it stored its vectors has stored no number; then it is the model's.
        """
        if not dimension:
            return 0
        return self._described["heads"] or with_heads(self.resources.embed_model).heads_of(dimension)

    def _determine(self, dimension: int) -> int:
        """The number of heads, which is stored in the struct with the first vectors."""
        described = self._described
        if not described["heads"]:
            model = with_heads(self.resources.embed_model)
            described["heads"], described["own"] = model.heads_of(dimension), model.own_of(dimension)
            described["model"] = model.fingerprint
        return int(described["heads"])

    def check_embed_model(self) -> None:
        """Reject a model with another number of heads, or with other layers or pooling."""
        described, dimension = self._described, self.storage.struct.embedding.get("dimension")
        if not described["heads"] or not dimension:
            return
        model = with_heads(self.resources.embed_model, described["heads"])
        heads = model.heads_of(dimension)
        if heads != described["heads"]:
            raise EmbeddingModelMismatchError(
                f"The index was built with vectors of {described['heads']} heads; the embedding model splits them into "
                f"{heads}. Pass the same embed_model= as for the build."
            )
        given, built = model.fingerprint, described["model"]
        if given and built and given != built:
            raise EmbeddingModelMismatchError(
                f"The index was built with an embedding model of {built}; this one has {given}. Pass the same "
                "embed_model= as for the build."
            )

    def check_write(self) -> None:
        """Reject a write that would leave the head stores out of date."""
        has_stores = self._described["stores"]
        if has_stores != (self._stores is not None):
            raise UnsupportedStoreError(
                "The index also keeps its heads in head stores: pass the same head_stores= as for the build."
                if has_stores
                else "The index was built without head_stores=; the stores passed lack its nodes. Build a new index."
            )

    # -- writing ------------------------------------------------------------------------------------

    def load(self) -> Steps[MRAGState]:
        """The whole index if it is in memory, else an empty state."""
        chunks = self.storage.space().whole()
        if chunks is None:
            return MRAGState()
        return (yield from offload(MRAGState.of, chunks, self._number(chunks.dim), self._stores, own=self._own))

    def arrays_of(self, state: MRAGState) -> Arrays:
        """The lengths of all heads of all vectors, and their sums."""
        sums = state.sums
        return {"inverse": state.inverse, "norms": sums.norms, "units": sums.units}

    def load_arrays(self, arrays: Arrays) -> MRAGState | None:
        """The state of :meth:`arrays_of`; None if the arrays have another number of vectors or heads."""
        chunks = self.storage.snapshot()
        heads, inverse = self._number(chunks.dim), arrays["inverse"]
        if not heads or inverse.shape != (heads, len(chunks)):
            return None
        sums = HeadSums(len(chunks), arrays["norms"], arrays["units"])
        return MRAGState(chunks, heads, sums, inverse, self._stores, self._own)

    def apply(self, state: MRAGState, change: Change) -> Steps[MRAGState]:
        """Bring the sums and the head stores up to date."""
        chunks, dimension = self.storage.space().whole(), self.storage.struct.embedding.get("dimension")
        if not dimension or not (change.added or change.removed):
            return state
        heads = self.storage.struct.counters["heads"] = self._determine(dimension)
        if chunks is None:
            sums = yield from offload(
                _changed, (yield from self._stored_sums(heads, dimension)), change, heads, self._own
            )
            yield from self.storage.records.put(_SUMS, [(_SUMS, sums.to_record())])
        added = [node.node_id for node in change.added]
        if self._stores is not None:
            self._stores.check(heads)
            yield from self._stores.remove(change.removed)
            if added:
                yield from self._stores.discard(added)
                yield from self._stores.put(added, split_heads(change.vectors, heads, self._own))
        if chunks is None:
            return state
        return (yield from offload(state.changed, chunks, [*change.removed, *added], heads, self._own))

    # -- reading ------------------------------------------------------------------------------------

    def sums(self, state: MRAGState) -> Steps[HeadSums]:
        """The sums over all nodes, as last committed by any process; `state` is that of the last write."""
        if self.storage.is_whole:
            return state.sums
        yield from self.storage.commits.refresh()
        dimension = self.storage.struct.embedding.get("dimension", 0)
        return (yield from self._stored_sums(self._number(dimension), dimension))

    def _stored_sums(self, heads: int, dimension: int) -> Steps[HeadSums]:
        record = yield from self.storage.records.get(_SUMS, _SUMS)
        size = (dimension - self._own) // max(1, heads)
        return HeadSums.empty(heads, size) if record is None else HeadSums.from_record(record)

    def state_of(self, near: ChunkView, selection: Selection) -> Steps[MRAGState]:
        """The nodes near to a question, with the sums over all nodes, or over those that the selection names."""
        dimension = near.rows.dim or 0
        heads = self._number(dimension)
        sums = (yield from self._stored_sums(heads, dimension)) if selection.only is None else None
        return (yield from offload(MRAGState.of, near.rows, heads, None, sums, self._own))

    def find_further(
        self, vectors: NDArray[np.float32], wanted: int, selection: Selection
    ) -> Steps[Mapping[str, Record] | None]:
        """The nodes that the head stores find for the aspects of a question."""
        if self._stores is None:
            return None
        keys = yield from self._stores.row_ids(vectors, wanted, self._own)
        return (yield from self.chunks.space.records_keyed(keys, selection))


def _changed(sums: HeadSums, change: Change, heads: int, own: int) -> HeadSums:
    gone = [node_id for node_id in change.removed if node_id in change.before]
    if gone:
        sums = sums.remove(split_heads(change.before.vectors_of(gone), heads, own))
    # Repeated nodes were counted by the write that stored them.
    new = [place for place, node in enumerate(change.added) if node.node_id not in change.repeated]
    return sums.add(split_heads(change.vectors[new], heads, own)) if new else sums
