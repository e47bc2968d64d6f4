"""What the packages need from a vector store, in one class to inherit from."""

from llama_index.ragkit.testing.store_kit.vector_lifecycle import VectorAsyncTests
from llama_index.ragkit.testing.store_kit.vector_reads import VectorQueryTests
from llama_index.ragkit.testing.store_kit.vector_writes import VectorAddTests, VectorDeleteTests

__all__ = ["VectorStoreConformance"]


class VectorStoreConformance(VectorAddTests, VectorQueryTests, VectorDeleteTests, VectorAsyncTests):
    """The part of `BasePydanticVectorStore` on which an index with `vector_store=` relies.

    Rows are written with `add` and `async_add`, never under an id that the store holds. They are deleted with
    `delete_nodes` if the store has it (`VectorDeleteNodesTests`), otherwise document by document with `delete`, which
    every store must have. A query gives candidates in order of nearness; their scores are not used. A plain
    `VectorStoreIndex` over the store also needs `VectorTextTests`.

    Further capabilities have separate classes. In addition to this class, inherit those that the store has:
    `VectorTextTests`, `VectorReplaceTests`, `VectorDeleteNodesTests`, `VectorGetNodesTests`, `VectorNodeIdTests`,
    `VectorDocumentIdTests`, `VectorFilterTests` or `VectorNestedFilterTests`, `VectorEmptyTests`,
    `VectorClearTests`, `VectorThreadTests`, `VectorPersistTests`.
    """
