"""`RecordTransform`: records in the metadata of nodes, from an ingestion pipeline to an index."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, TransformComponent

from llama_index.ragkit.extraction.context import Extraction, Record
from llama_index.ragkit.short_repr import ReprText, changed_fields
from llama_index.ragkit.steps import Steps, arun_steps, run_steps

__all__ = ["RecordTransform"]


class RecordTransform(TransformComponent):
    """A transformation that stores the record of a node in its metadata, from which an index takes it."""

    def __repr_args__(self) -> Iterator[tuple[str, ReprText]]:
        """What pydantic shows: the parameters that differ from their defaults."""
        return changed_fields(self)

    @abstractmethod
    def extract(self, nodes: Sequence[BaseNode], *, show_progress: bool | None = None) -> Steps[list[Extraction]]:
        """Extract from nodes: one :class:`Extraction` each, in their order."""

    @property
    def record_key(self) -> str:
        """The metadata key of the record, hidden from the embedding model and the LLM."""
        return f"{type(self).__name__}_record"

    def __call__(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """Put each node's record into its metadata.

        A failed node gets none, and an index tries it again. The user of the cache entries is the node id. Keywords
        other than `show_progress`, which a pipeline passes to all its steps, are ignored.
        """
        return run_steps(self._transform(nodes, kwargs.get("show_progress")))

    async def acall(self, nodes: Sequence[BaseNode], **kwargs: Any) -> Sequence[BaseNode]:
        """As :meth:`__call__`, on the event loop."""
        return await arun_steps(self._transform(nodes, kwargs.get("show_progress")))

    def _transform(self, nodes: Sequence[BaseNode], show_progress: bool | None) -> Steps[Sequence[BaseNode]]:
        for node in nodes:
            self.take_record(node)
        found = yield from self.extract(nodes, show_progress=show_progress)
        key = self.record_key
        for node, extraction in zip(nodes, found, strict=True):
            if extraction.record is not None:
                # New containers, since the nodes of one document share these lists.
                node.metadata = {**node.metadata, key: extraction.record}
                node.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, key]
                node.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, key]
        return nodes

    def take_record(self, node: BaseNode) -> Record | None:
        """Remove the record and every trace of it from a node, and return it; None if there is none."""
        key = self.record_key
        if key not in node.metadata:
            return None
        record = node.metadata[key]
        node.metadata = {name: value for name, value in node.metadata.items() if name != key}
        node.excluded_embed_metadata_keys = [name for name in node.excluded_embed_metadata_keys if name != key]
        node.excluded_llm_metadata_keys = [name for name in node.excluded_llm_metadata_keys if name != key]
        return record if isinstance(record, dict) else None
