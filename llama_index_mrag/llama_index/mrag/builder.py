"""The builder of MRAG: updates the sums behind the importance scores and the user's vector stores at each write."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.mrag.config import MRAGConfig
from llama_index.mrag.embedding import HeadEmbedding, with_heads
from llama_index.mrag.head_stores import HeadStores
from llama_index.mrag.heads.splitting import split_heads
from llama_index.mrag.state import MRAGState
from llama_index.ragkit import Builder, Change, ExternalVectorStore, IndexStorage, Resources, Snapshot, Steps, offload
from llama_index.ragkit.errors import EmbeddingModelMismatchError, UnsupportedStoreError

__all__ = ["MRAGBuilder"]


class MRAGBuilder(Builder[MRAGConfig, MRAGState]):
    """Determines the number of heads from the first vector, and keeps the sums over the heads up to date.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.Builder`
    head_stores : the user's vector stores, one per head, which receive the heads of all nodes; None for none

    Raises
    ------
    ConfigurationError
        If a store is passed twice.
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
        self._head_stores = (
            None if head_stores is None else HeadStores([ExternalVectorStore(store) for store in head_stores])
        )

    @property
    def _stored(self) -> dict[str, Any]:
        """The stored number of heads and fingerprint of the model, determined from the first vector."""
        stored: dict[str, Any] = self.storage.struct.params["mrag"]
        return stored

    @property
    def _embed_model(self) -> HeadEmbedding:
        return with_heads(self.resources.embed_model, self._stored["heads"])

    # -- checks -------------------------------------------------------------------------------------

    def check_embed_model(self) -> None:
        """Reject a model with another number of heads, or with other layers or pooling."""
        stored = self._stored
        if not stored["heads"]:
            return
        model = self._embed_model
        heads = model.heads_of(self.storage.struct.embedding["dimension"])
        if heads != stored["heads"]:
            raise EmbeddingModelMismatchError(
                f"The index was built with vectors of {stored['heads']} heads; the embedding model splits them into "
                f"{heads}. Pass the same embed_model= as for the build."
            )
        given, built = model.fingerprint, stored["model"]
        if given and built and given != built:
            raise EmbeddingModelMismatchError(
                f"The index was built with an embedding model of {built}; this one has {given}. Pass the same "
                "embed_model= as for the build."
            )

    def check_write(self) -> None:
        """Reject a write that would leave the head stores out of date."""
        if self._stored["stores"] != (self._head_stores is not None):
            raise UnsupportedStoreError(
                "The index also keeps its heads in head stores: pass the same head_stores= as for the build."
                if self._stored["stores"]
                else "The index was built without head_stores=; the stores passed lack its nodes. Build a new index."
            )

    # -- the state ----------------------------------------------------------------------------------

    def load(self) -> Steps[MRAGState]:
        """Load the state from the stored vectors.

        A build that was killed between its vectors and its end has stored no number of heads; it is that of the model.
        """
        chunks = self.storage.snapshot()
        heads = self._stored["heads"] or (self._embed_model.heads_of(chunks.dim or 0) if len(chunks) else 0)
        return (yield from offload(MRAGState.of, chunks, heads, self._head_stores))

    def apply(self, state: MRAGState, change: Change) -> Steps[MRAGState]:
        """Return the state after a write, and update the head stores."""
        chunks, stored = self.storage.snapshot(), self._stored
        if not stored["heads"] and len(chunks):
            stored["heads"] = self._embed_model.heads_of(chunks.dim or 0)
            stored["model"] = self._embed_model.fingerprint
        touched = list(dict.fromkeys([*change.removed, *(node.node_id for node in change.added)]))
        if self._head_stores is not None:
            yield from self._write_heads(self._head_stores, chunks, touched, stored["heads"])
        state = yield from offload(state.changed, chunks, touched, stored["heads"])
        self.storage.struct.counters["heads"] = state.heads
        return state

    def _write_heads(self, stores: HeadStores, chunks: Snapshot, touched: Sequence[str], heads: int) -> Steps[None]:
        stores.check(heads)
        yield from stores.remove(touched)
        present = [node_id for node_id in touched if node_id in chunks]
        if present:
            yield from stores.put(present, split_heads(chunks.vectors_of(present), heads))
