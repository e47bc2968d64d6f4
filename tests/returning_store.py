"""A vector store that returns vectors by id as they were written, so that they are kept nowhere else."""

from typing import Any

from llama_index.core.schema import BaseNode

from llama_index.ragkit import MatrixVectorStore

__all__ = ["ReturningStore"]


class ReturningStore(MatrixVectorStore):
    """Returns vectors by id as they were written."""

    def get_nodes(self, node_ids: Any = None, filters: Any = None) -> list[BaseNode]:
        rows = self.snapshot()
        return [
            node.model_copy(update={"embedding": rows.vectors_of([node.node_id])[0].tolist()})
            for node in super().get_nodes(node_ids, filters)
        ]
