"""`IndexStorage`: the struct, records, manifest and vector spaces of one index in a storage context."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from llama_index.core.schema import BaseNode, Document
from llama_index.core.storage.docstore.utils import json_to_doc
from llama_index.core.storage.storage_context import StorageContext
from numpy.typing import NDArray

from llama_index.ragkit.core_internals import docstore_tables
from llama_index.ragkit.errors import ConcurrentWriteError, ConfigurationError
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.commits import Commits, may_be_writing
from llama_index.ragkit.storage.docstore import delete_from_docstore, describe_documents
from llama_index.ragkit.storage.external_store import ExternalVectorStore
from llama_index.ragkit.storage.interface import Space, Stores, Vectors
from llama_index.ragkit.storage.local_stores import LocalStores
from llama_index.ragkit.storage.local_vectors import LocalVectors
from llama_index.ragkit.storage.manifest import Manifest, NodeEntry
from llama_index.ragkit.storage.many_keys import get_keys
from llama_index.ragkit.storage.node_hashes import NodeHashes
from llama_index.ragkit.storage.nodes import sort_key
from llama_index.ragkit.storage.opening import CHUNKS, new_spaces, new_uid, open_records, open_spaces
from llama_index.ragkit.storage.persisted_states import remember
from llama_index.ragkit.storage.records import Records
from llama_index.ragkit.storage.state_arrays import StateArrays
from llama_index.ragkit.storage.stored_space import StoredSpace
from llama_index.ragkit.storage.stored_vectors import StoredVectors
from llama_index.ragkit.storage.struct import DerivedStruct
from llama_index.ragkit.storage.vector_spaces import SpaceRows
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["IndexStorage"]


@dataclass(frozen=True)
class IndexStorage:
    """Everything that one index stores.

    Attributes
    ----------
    context : the user's storage context
    struct : parameters and bookkeeping, in the index store
    records : named collections of JSON records, in the key-value store of the document store
    manifest : which documents and nodes the index holds
    commits : the beginning and the end of each write
    vectors : its vector spaces by name; "chunks" holds the embeddings of the nodes
    stores : where words and graph are
    arrays : what an index in memory makes of its records; None in stores
    """

    context: StorageContext
    struct: DerivedStruct
    records: Records
    manifest: Manifest
    commits: Commits
    vectors: Vectors
    stores: Stores = field(default_factory=LocalStores)
    arrays: StateArrays | None = None

    @classmethod
    def create(
        cls,
        context: StorageContext,
        method: str,
        space_names: Sequence[str],
        struct: DerivedStruct,
        external: ExternalVectorStore | None,
    ) -> "IndexStorage":
        """The empty storage of a new index; nothing is written yet."""
        struct.uid = new_uid()
        records = open_records(context, method, struct)
        spaces = new_spaces(context, method, space_names, struct, records)
        return cls._local(context, struct, records, LocalVectors(struct, spaces, external))

    @classmethod
    def open(
        cls, context: StorageContext, method: str, struct: DerivedStruct, external: ExternalVectorStore | None
    ) -> Steps["IndexStorage"]:
        """The storage of a stored index, after a check that its parts belong together."""
        records = open_records(context, method, struct)
        spaces = yield from open_spaces(context, struct, records)
        remember(context, {struct.index_id: struct.token})
        records.paused = yield from may_be_writing(records)  # what a write has done so far must not be repaired
        return cls._local(context, struct, records, LocalVectors(struct, spaces, external))

    @classmethod
    def _local(
        cls, context: StorageContext, struct: DerivedStruct, records: Records, vectors: LocalVectors
    ) -> "IndexStorage":
        manifest = Manifest(records)
        commits = Commits(context, records, manifest, struct)
        arrays = StateArrays(records, struct, vectors)
        return cls(context, struct, records, manifest, commits, vectors, arrays=arrays)

    @classmethod
    def in_stores(
        cls,
        context: StorageContext,
        struct: DerivedStruct,
        records: Records,
        opened: Callable[[Iterable[str]], Mapping[str, StoredSpace]],
        stores: Stores,
    ) -> "IndexStorage":
        """The storage of an index that is served from stores, new or not; nothing is read or written yet.

        Parameters
        ----------
        opened : names -> the spaces
        """
        manifest = Manifest(records)
        commits = Commits(context, records, manifest, struct, is_shared=True)
        vectors = StoredVectors(struct, records, commits, opened, stores.transaction)
        return cls(context, struct, records, manifest, commits, vectors, stores)

    def space(self, name: str = CHUNKS) -> Space:
        """A vector space, wherever it is."""
        return self.vectors.space(name)

    def add_space(self, name: str) -> None:
        """Keep vectors of a further kind, from the commit of the write on within which this is called.

        Call it in a write of its own, unless the index is new. A write may end early, and vectors that it put into a
        space which the index is not known to have would then stay.
        """
        self.vectors.add_space(name)

    @property
    def external(self) -> ExternalVectorStore | None:
        """The user's own vector store that chunks are written to as well, if there is one."""
        return self.vectors.external

    @property
    def is_whole(self) -> bool:
        """Whether all of the index is in memory: the `whole()` of its parts."""
        return self.space().whole() is not None

    @property
    def is_empty(self) -> bool:
        """Whether the index has no chunks."""
        return self.vectors.is_empty

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

    def rows_matching(self, nodes: Sequence[BaseNode]) -> Steps[Snapshot]:
        """The rows of nodes, and of the chunks that others of them are copies of; all rows where they are in memory.

        What the result has for vectors may mean nothing.
        """
        whole = self.space().whole()
        if whole is not None:
            return whole
        found = yield from self.space().described(node.node_id for node in nodes)
        unknown = [node.hash for node in nodes if node.node_id not in found]
        if not unknown:
            return found
        copied = yield from NodeHashes(self.records).nodes_with(unknown)
        return found.joined((yield from self.space().described(node_id for node_id in copied if node_id not in found)))

    def cache_user(self, name: str) -> str:
        """The user name of a node or summary of this index in an extraction cache."""
        return f"{self.struct.uid}:{name}"

    # -- a write from begin to commit -----------------------------------------------------------------

    def begin(self, documents: Collection[str] = (), nodes: Collection[str] = ()) -> Steps[None]:
        """A write begins: documents and nodes count as unfinished until it is committed."""
        yield from self.commits.begin(documents, nodes)
        yield from self.vectors.begin()

    def commit(self, documents: Collection[str] = (), nodes: Collection[str] = ()) -> Steps[None]:
        """The write has ended: store a new generation, with the documents and nodes that are finished."""
        try:
            yield from self.commits.commit(documents, nodes)
        except ConcurrentWriteError:
            yield from self.vectors.abandon()
            raise
        self.vectors.tag()
        yield from self.commits.publish()

    def catch_up(self, *, abandoned: bool) -> Steps[None]:
        """Before a write, take up what other processes have written, and wait for one that is writing.

        Parameters
        ----------
        abandoned : whether a write of this object has ended early
        """
        if self.commits.is_shared:
            yield from self.commits.wait()
            yield from self.commits.refresh(abandoned=abandoned)
            yield from self.vectors.settle()

    def recover(self) -> Steps[None]:
        """Read again what a write that ended without a commit may have changed in the stores."""
        self.records.paused = False
        yield from self.commits.recover()
        yield from self.vectors.reload()
        self.vectors.tag()

    def settle(self) -> Steps[None]:
        """After a commit, delete what no committed write needs any more."""
        yield from self.vectors.settle()

    # -- nodes ----------------------------------------------------------------------------------------

    def get_node(self, node_id: str) -> Steps[BaseNode | None]:
        """A node from the docstore, or None when another index has deleted it there."""
        docstore = self.context.docstore
        return (yield from call(docstore.get_document, docstore.aget_document, node_id, raise_error=False))

    def get_nodes(self, node_ids: Sequence[str]) -> Steps[dict[str, BaseNode]]:
        """Those nodes that the docstore has, in one call where the store can."""
        tables = docstore_tables(self.context.docstore)
        found = yield from get_keys(tables.kvstore, node_ids, tables.nodes)
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
        mirrored : whether the nodes are written to a vector store of the user's as well, which must not have them yet
        """
        rows = SpaceRows(
            ids=[node.node_id for node in nodes],
            vectors=vectors,
            keys=[sort_key(node) for node in nodes],
            ref_doc_ids=[node.ref_doc_id for node in nodes],
            # The ids that core's own stores put beside the metadata, so that the same filters work.
            metadatas=[{**node.metadata, "doc_id": node.ref_doc_id, "ref_doc_id": node.ref_doc_id} for node in nodes],
        )
        yield from self.vectors.put_chunks(rows, nodes if mirrored else ())

    def remove_chunks(self, entries: Mapping[str, NodeEntry]) -> Steps[None]:
        """Delete rows of the space of the chunks."""

        def others(documents: Sequence[str]) -> Steps[list[BaseNode]]:
            """The other nodes of documents that are in the index."""
            rows, stay = self.snapshot(), []
            for document in documents:
                for node_id in (yield from self.manifest.nodes_of(document)) or []:
                    node = (yield from self.get_node(node_id)) if node_id not in entries and node_id in rows else None
                    stay += [] if node is None else [node]
            return stay

        yield from self.vectors.remove_chunks(entries, others)

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
