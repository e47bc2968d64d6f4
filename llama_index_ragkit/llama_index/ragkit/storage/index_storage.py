"""`IndexStorage`: the struct, records, manifest, vector spaces and nodes of one index in a storage context."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from llama_index.core.schema import BaseNode, Document
from llama_index.core.storage.docstore.utils import json_to_doc
from llama_index.core.storage.storage_context import StorageContext
from numpy.typing import NDArray

from llama_index.ragkit.core_internals import docstore_tables
from llama_index.ragkit.errors import ConfigurationError
from llama_index.ragkit.nested_arrays import Arrays
from llama_index.ragkit.steps import Steps, call, immediate
from llama_index.ragkit.storage.commits import Commits
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.interface import Space, Stores
from llama_index.ragkit.storage.manifest import Manifest, NodeEntry
from llama_index.ragkit.storage.nodes import sort_key
from llama_index.ragkit.storage.opening import CHUNKS
from llama_index.ragkit.storage.records import Records, delete_from_docstore, describe_documents, get_keys
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["IndexStorage"]


class IndexStorage(ABC):
    """Everything that one index stores.

    Attributes
    ----------
    context : the user's storage context
    struct : parameters and bookkeeping, in the index store
    records : named collections of JSON records, in the key-value store of the document store
    manifest : which documents and nodes the index holds
    commits : the beginning and the end of each write
    stores : where words and graph are
    external : the user's own vector store that chunks are written to as well, if there is one
    """

    external: ExternalVectorStore | None = None

    def __init__(
        self,
        context: StorageContext,
        struct: DerivedStruct,
        records: Records,
        stores: Stores,
        *,
        is_shared: bool = False,
    ) -> None:
        self.context, self.struct, self.records, self.stores = context, struct, records, stores
        self._docstore = docstore_tables(context.docstore)
        self.manifest = Manifest(records)
        self.commits = Commits(context, records, self.manifest, struct, is_shared=is_shared)

    @abstractmethod
    def space(self, name: str = CHUNKS) -> Space:
        """A vector space; "chunks" holds the embeddings of the nodes."""

    def add_space(self, name: str) -> None:  # noqa: B027
        """Keep vectors of a further kind, from the commit of the write on within which this is called.

        Call it in a write of its own, unless the index is new. A write may end early, and vectors that it put into a
        space which the index is not known to have would then stay. In memory all spaces are there from the start.
        """

    @property
    def is_whole(self) -> bool:
        """Whether all of the index is in memory: the `whole()` of its parts."""
        return self.space().whole() is not None

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether the index has no chunks, as far as this process knows."""

    def snapshot(self, space: str = CHUNKS) -> Snapshot:
        """The rows of a space as they are now.

        Raises
        ------
        ConfigurationError
            If the index is served from stores.
        """
        rows = self.space(space).whole()
        if rows is None:
            raise ConfigurationError(
                "The index is served from stores, and this needs all of it in memory. Ask it through a retriever, or "
                "build it over a storage context without vectors=."
            )
        return rows

    def rows_of(self, node_ids: Sequence[str]) -> Steps[Snapshot]:
        """A snapshot that has the rows of those chunks that exist, and perhaps others."""
        whole = self.space().whole()
        return (yield from self.space().fetch(node_ids)) if whole is None else whole

    @abstractmethod
    def rows_matching(self, nodes: Sequence[BaseNode]) -> Steps[Snapshot]:
        """The rows of nodes, and of the chunks that others of them are copies of; all rows where they are in memory.

        What the result has for vectors may mean nothing.
        """

    @immediate
    def arrays(self, source: str) -> Arrays:
        """What was made of the records at the last commit, mapped from their file; none if there is nothing."""
        return {}

    @immediate
    def about_arrays(self, source: str) -> dict[str, object] | None:
        """What arrays of the last commit say of themselves; None while a write has not ended, and without arrays."""
        return None

    def cache_user(self, name: str) -> str:
        """The user name of a node or summary of this index in an extraction cache."""
        return f"{self.struct.uid}:{name}"

    # -- a write from begin to commit -----------------------------------------------------------------

    def begin(self, documents: Collection[str] = (), nodes: Collection[str] = ()) -> Steps[None]:
        """A write begins: documents and nodes count as unfinished until it is committed."""
        yield from self.commits.begin(documents, nodes)

    def commit(self, documents: Collection[str] = (), nodes: Collection[str] = ()) -> Steps[None]:
        """The write has ended: store a new generation, with the documents and nodes that are finished."""
        yield from self.commits.commit(documents, nodes)
        yield from self.commits.publish()

    @immediate  # noqa: B027
    def catch_up(self, *, abandoned: bool) -> None:
        """Before a write, take up what other processes have written, and wait for one that is writing; `abandoned` says
        whether a write of this object has ended early.
        """

    def recover(self) -> Steps[None]:
        """Read again what a write that ended without a commit may have changed in the stores."""
        self.records.paused = False
        yield from self.commits.recover()

    @immediate  # noqa: B027
    def settle(self) -> None:
        """After a commit, delete what no committed write needs any more."""

    # -- nodes ----------------------------------------------------------------------------------------

    def get_node(self, node_id: str) -> Steps[BaseNode | None]:
        """A node from the docstore, or None when another index has deleted it there."""
        docstore = self.context.docstore
        return (yield from call(docstore.get_document, docstore.aget_document, node_id, raise_error=False))

    def get_nodes(self, node_ids: Sequence[str]) -> Steps[dict[str, BaseNode]]:
        """Those nodes that the docstore has, in one call where the store can."""
        found = yield from get_keys(self._docstore.kvstore, node_ids, self._docstore.nodes)
        return {node_id: json_to_doc(stored) for node_id, stored in found.items()}

    def add_to_docstore(self, nodes: Sequence[BaseNode]) -> Steps[None]:
        """Write nodes to the docstore unchanged except that their embeddings are removed."""
        docstore = self.context.docstore
        bare = [node if node.embedding is None else node.model_copy(update={"embedding": None}) for node in nodes]
        if bare:
            yield from call(docstore.add_documents, docstore.async_add_documents, bare, allow_update=True)

    def delete_from_docstore(self, node_ids: Sequence[str], ref_doc_ids: Sequence[str]) -> Steps[None]:
        """Delete nodes, and whole documents, from the docstore."""
        yield from delete_from_docstore(self.context.docstore, node_ids, ref_doc_ids)

    def put_chunks(
        self, nodes: Sequence[BaseNode], vectors: NDArray[np.float32], *, mirrored: bool = True
    ) -> Steps[None]:
        """Add rows to the space of the chunks, replacing those of the same id.

        Parameters
        ----------
        mirrored : whether the nodes are written to a vector store of the user's as well, which must not have them yet:
            some stores would keep both versions
        """
        if self.external is not None and nodes and mirrored:
            yield from self.external.add(nodes, vectors)
        rows = SpaceRows(
            ids=[node.node_id for node in nodes],
            vectors=vectors,
            keys=[sort_key(node) for node in nodes],
            ref_doc_ids=[node.ref_doc_id for node in nodes],
            # The ids that core's own stores put beside the metadata, so that the same filters work.
            metadatas=[{**node.metadata, "doc_id": node.ref_doc_id, "ref_doc_id": node.ref_doc_id} for node in nodes],
        )
        yield from self._put_chunks(rows)

    def _put_chunks(self, rows: SpaceRows) -> Steps[None]:
        yield from self.space().put(rows)

    @abstractmethod
    def remove_chunks(self, entries: Mapping[str, NodeEntry]) -> Steps[None]:
        """Delete rows of the space of the chunks."""

    def finish(self, documents: Sequence[Document], nodes: Sequence[BaseNode]) -> Steps[None]:
        """Store the hashes of completely written documents, and the metadata of the first of their `nodes`, in the
        manifest and where core looks for them.
        """
        docstore = self.context.docstore
        metadata = {document.id_: document.metadata for document in documents}
        metadata.update({node.ref_doc_id: node.metadata for node in reversed(nodes) if node.ref_doc_id in metadata})
        yield from self.manifest.finish(documents, metadata)
        yield from describe_documents(docstore, metadata)
        for document in documents:
            yield from call(docstore.set_document_hash, docstore.aset_document_hash, document.id_, document.hash)
