"""`IndexHeads`: the number of heads of an index's vectors, the model that splits them, and the head stores."""

from collections.abc import Callable, Sequence
from typing import Any

from llama_index.core.vector_stores.types import BasePydanticVectorStore

from llama_index.mrag.embedding import with_heads
from llama_index.mrag.head_stores import HeadStores
from llama_index.mrag.heads.splitting import split_heads
from llama_index.ragkit import Change, Steps
from llama_index.ragkit.errors import EmbeddingModelMismatchError, UnsupportedStoreError
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.index_storage import IndexStorage

__all__ = ["IndexHeads"]


class IndexHeads:
    """The heads of an index, which its struct describes; determined from the first vector.

    Parameters
    ----------
    storage, resources : of the index
    head_stores : the user's vector stores, one per head, which receive the heads of all nodes; None for none
    row_id : id of a node -> id of its rows in these stores, a UUID

    Attributes
    ----------
    stores : the stores; None for none

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
        head_stores: Sequence[BasePydanticVectorStore] | None,
        row_id: Callable[[str], str],
    ) -> None:
        self._storage = storage
        self._resources = resources
        self.stores: HeadStores | None = None
        if head_stores is not None:
            self.stores = HeadStores([ExternalVectorStore(store) for store in head_stores], row_id)

    @property
    def described(self) -> dict[str, Any]:
        """The description of the heads in the struct."""
        struct, needed = self._storage.struct, {"heads": int, "model": dict, "stores": bool}
        has_own = "own" in struct.parameters_of("mrag", needed)
        return struct.parameters_of("mrag", {**needed, "own": int} if has_own else needed)

    @property
    def own(self) -> int:
        """Numbers of a vector before its heads: the model's own embedding. An older index has none."""
        own: int = self.described.get("own", 0)
        return own

    def number(self, dimension: int | None) -> int:
        """The number of heads; 0 without vectors.

        A build in memory that was killed after it stored its vectors has stored no number; then it is the model's.
        """
        if not dimension:
            return 0
        known = self.described["heads"]
        return known or with_heads(self._resources.embed_model).heads_of(dimension)

    def determine(self, dimension: int | None) -> int:
        """The number of heads, which is stored in the struct with the first vectors."""
        described = self.described
        if not described["heads"] and dimension:
            model = with_heads(self._resources.embed_model)
            described["heads"], described["own"] = model.heads_of(dimension), model.own_of(dimension)
            described["model"] = model.fingerprint
        return int(described["heads"])

    def check_embed_model(self) -> None:
        """Reject a model with another number of heads, or with other layers or pooling."""
        described, dimension = self.described, self._storage.struct.embedding.get("dimension")
        if not described["heads"] or not dimension:
            return
        model = with_heads(self._resources.embed_model, described["heads"])
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
        if self.described["stores"] != (self.stores is not None):
            raise UnsupportedStoreError(
                "The index also keeps its heads in head stores: pass the same head_stores= as for the build."
                if self.described["stores"]
                else "The index was built without head_stores=; the stores passed lack its nodes. Build a new index."
            )

    def write(self, change: Change) -> Steps[None]:
        """Update the head stores, if there are any."""
        if self.stores is None:
            return
        heads = self.described["heads"]
        self.stores.check(heads)
        added = [node.node_id for node in change.added]
        yield from self.stores.remove(change.removed)
        if added:
            yield from self.stores.discard(added)
            yield from self.stores.put(added, split_heads(change.vectors, heads, self.own))
