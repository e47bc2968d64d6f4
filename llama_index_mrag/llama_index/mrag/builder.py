"""The builder of MRAG: updates the sums behind the importance scores and the user's vector stores at each write."""

from collections.abc import Sequence

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.mrag.config import MRAGConfig
from llama_index.mrag.head_stores import head_row_id
from llama_index.mrag.index_heads import IndexHeads
from llama_index.mrag.state import MRAGState
from llama_index.ragkit import Builder, Change, IndexStorage, Resources, Steps, offload

__all__ = ["MRAGBuilder"]


class MRAGBuilder(Builder[MRAGConfig, MRAGState]):
    """Keeps the sums over the heads, and the head stores, up to date.

    Parameters
    ----------
    storage, resources, config : see :class:`~llama_index.ragkit.Builder`
    head_stores : see :class:`~llama_index.mrag.index_heads.IndexHeads`
    """

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        config: MRAGConfig,
        head_stores: Sequence[BasePydanticVectorStore] | None = None,
    ) -> None:
        super().__init__(storage, resources, config)
        self._heads = IndexHeads(storage, resources, head_stores, head_row_id)

    def check_embed_model(self) -> None:
        """Reject a model with another number of heads, or with other layers or pooling."""
        self._heads.check_embed_model()

    def check_write(self) -> None:
        """Reject a write that would leave the head stores out of date."""
        self._heads.check_write()

    def load(self) -> Steps[MRAGState]:
        """Load the state from the stored vectors."""
        chunks = self.storage.snapshot()
        return (yield from offload(MRAGState.of, chunks, self._heads.number(chunks.dim), self._heads.stores))

    def apply(self, state: MRAGState, change: Change) -> Steps[MRAGState]:
        """Return the state after a write, and update the head stores."""
        chunks = self.storage.snapshot()
        heads = self._heads.determine(chunks.dim)
        yield from self._heads.write(change)
        touched = dict.fromkeys([*change.removed, *(node.node_id for node in change.added)])
        state = yield from offload(state.changed, chunks, touched, heads)
        self.storage.struct.counters["heads"] = state.heads
        return state
