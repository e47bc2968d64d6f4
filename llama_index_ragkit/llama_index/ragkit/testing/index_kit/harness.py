"""What you supply to hold an index against the kit, and what every test of the kit uses."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from llama_index.core import Document, StorageContext, load_index_from_storage, load_indices_from_storage
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.indices.base import BaseIndex
from llama_index.core.schema import BaseNode

from llama_index.ragkit.testing.corpus import QUESTION, texts_and_scores
from llama_index.ragkit.testing.models import HashEmbedding

__all__ = ["Index", "IndexHarness", "SyncOrAsync", "both_ways", "call", "reopened"]

Index = BaseIndex[Any]
SyncOrAsync = Literal["sync", "async"]
both_ways = pytest.mark.parametrize("how", ["sync", "async"])


class IndexHarness:
    """What a test class says about its index. Every capability class of the kit derives from it.

    Set `index_class`, and override the methods whose default does not fit. The tests build many small indexes,
    and call no model but those given here.

    Attributes
    ----------
    index_class : the class that is held against the kit
    """

    index_class: ClassVar[type[Index]]

    def components(self) -> dict[str, Any]:
        """Keywords for building and loading the index, besides `embed_model`: an extractor, a summarizer [none]."""
        return {}

    def embed_model(self, **options: Any) -> HashEmbedding:
        """The embedding model, with the options of :class:`HashEmbedding`; override for a subclass of it."""
        return HashEmbedding(**options)

    def options(self, **given: Any) -> dict[str, Any]:
        """All keywords for building and loading the index; the given ones come last."""
        return {"embed_model": self.embed_model(), **self.components(), **given}

    def build(self, nodes: Sequence[BaseNode], **options: Any) -> Index:
        """A new index of nodes."""
        return self.index_class(nodes=nodes, **self.options(**options))

    def from_documents(self, documents: Sequence[Document], **options: Any) -> Index:
        """A new index of documents."""
        return self.index_class.from_documents(documents, **self.options(**options))

    async def afrom_documents(self, documents: Sequence[Document], **options: Any) -> Index:
        """A new index of documents, made asynchronously; core's base class has no such method."""
        index: Index = await self.index_class.afrom_documents(  # type: ignore[attr-defined]
            documents, **self.options(**options)
        )
        return index

    def load(self, context: StorageContext, index_id: str | None = None, **options: Any) -> Index:
        """An index of a storage context."""
        index: Index = load_index_from_storage(context, index_id, **self.options(**options))
        return index

    def reloaded(self, index: Index, folder: Path, **options: Any) -> Index:
        """A stored index as a new process would load it: persisted in a folder, and read from there."""
        index.storage_context.persist(str(folder))
        return self.load(reopened(folder), **options)

    def load_all(self, context: StorageContext, **options: Any) -> list[Index]:
        """All indexes of a storage context."""
        indexes: list[Index] = load_indices_from_storage(context, **self.options(**options))
        return indexes

    def retriever(self, index: Index, **options: Any) -> BaseRetriever:
        """A retriever whose results are, or contain, the source nodes; override it if this takes an option."""
        return index.as_retriever(**options)

    def rebuild(self, index: Index) -> None:
        """Called before an index that has grown is compared with one built at once [does nothing].

        Override it for a method that promises equality only after a rebuild, such as one that clusters.
        """

    def ask(self, index: Index, question: str = QUESTION, top_k: int = 50, **options: Any) -> list[tuple[str, float]]:
        """Texts and scores of what the index retrieves, in its order."""
        return texts_and_scores(self.retriever(index, similarity_top_k=top_k, **options).retrieve(question))


def call(how: SyncOrAsync, index: Any, method: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method, or its asynchronous counterpart on an event loop of its own."""
    if how == "sync":
        return getattr(index, method)(*args, **kwargs)
    return asyncio.run(getattr(index, f"a{method}")(*args, **kwargs))


def reopened(folder: Path) -> StorageContext:
    """The storage context of a folder, as a new process would read it."""
    return StorageContext.from_defaults(persist_dir=str(folder))
