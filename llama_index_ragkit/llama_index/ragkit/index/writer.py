"""`IndexWriter`: the writes of an index as steps, in an order that survives a killed process.

A write computes embeddings and extractions before it changes anything. Then it begins (the struct is stored, marked as
building), stores, derives, deletes, and commits: hashes of documents, the generation in every part, the struct. A
process that dies in between leaves a struct marked as building and documents without a hash, which `refresh_ref_docs`
writes again.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Generic

import numpy as np
from llama_index.core.schema import BaseNode, Document
from numpy.typing import NDArray

from llama_index.ragkit.errors import CacheRequiredError, ExtractorMismatchError, UnsupportedStoreError
from llama_index.ragkit.index.builder import Builder, State
from llama_index.ragkit.index.change import Change
from llama_index.ragkit.index.last_query import LastQuery
from llama_index.ragkit.index.resources import Resources
from llama_index.ragkit.index.write_plan import GivenNode, plan_write
from llama_index.ragkit.llm.embeddings import as_matrix, check_model, describe_model
from llama_index.ragkit.lock import WriterLock
from llama_index.ragkit.steps import Steps, call
from llama_index.ragkit.storage.index_storage import IndexStorage
from llama_index.ragkit.storage.manifest import NodeEntry
from llama_index.ragkit.storage.nodes import embed_text, refuse_lone_surrogates, sort_key
from llama_index.ragkit.storage.records import Record
from llama_index.ragkit.vectors.snapshot import Snapshot

__all__ = ["IndexWriter"]

logger = logging.getLogger(__name__)

Vectors = Mapping[str, NDArray[np.float32]]


class IndexWriter(Generic[State]):
    """Performs the writes of one index, one at a time, and holds the state that queries read.

    Parameters
    ----------
    storage : the storage of the index
    resources : models, extractor, cache
    builder : the builder of the method
    parameters : the parameters of the method, which each write stores
    state : the stored state

    Attributes
    ----------
    state : the state of the last write, immutable; replaced as a whole
    last_query : the last query of a retriever; dropped when nodes are removed, since its page would show them
    """

    def __init__(
        self,
        storage: IndexStorage,
        resources: Resources,
        builder: Builder[Any, State],
        parameters: Mapping[str, Any],
        method: str,
        state: State,
    ) -> None:
        self._storage = storage
        self._resources = resources
        self._builder = builder
        self._parameters = parameters
        self._method = method
        self._lock = WriterLock()
        self._model_checked = False
        self.state = state
        self.last_query: LastQuery | None = None

    # -- checks -----------------------------------------------------------------------------------------

    def check_embed_model(self) -> Steps[None]:
        """Reject an embedding model other than that of the build; called before the first search and the first write.

        Raises
        ------
        EmbeddingModelMismatchError
        """
        if not self._model_checked:
            known = self._storage.struct.embedding
            yield from check_model(self._resources.embed_model, known)
            self._model_checked = bool(known)
        self._builder.check_embed_model()

    def _check_write(self) -> None:
        struct = self._storage.struct
        if not len(self._storage.snapshot()):
            struct.components = {}  # nothing is stored yet that other components have produced
        components = {role: part.fingerprint for role, part in self._resources.components.items()}
        for role, fingerprint in {**components, **self._builder.fingerprints}.items():
            stored = struct.components.setdefault(role, fingerprint)
            if stored != fingerprint:
                raise ExtractorMismatchError(
                    f"The index was built with the {role} {stored}; a write with {fingerprint} would mix two kinds of "
                    f"results. Pass {role}= of the build, or build a new index."
                )
        if struct.params.get("mirrored") and self._storage.external is None:
            raise UnsupportedStoreError(
                "The index also writes its chunks to a separate vector store, which this storage context lacks. "
                "Pass vector_store= of the build."
            )
        self._builder.check_write()

    def _check_delete(self) -> None:
        if self._storage.struct.cached and not self._resources.cache_given:
            raise CacheRequiredError(
                "The index was built with cache=, and deletes must clear that cache too. Pass cache= of the "
                "build. Nothing was changed."
            )
        self._builder.check_write()

    # -- writes -----------------------------------------------------------------------------------------

    def write(
        self,
        nodes: Sequence[BaseNode],
        documents: Sequence[Document] = (),
        *,
        replace: bool = False,
        again: Collection[str] = (),
    ) -> Steps[None]:
        """Store nodes.

        Parameters
        ----------
        documents : the documents of which the nodes are a complete set; their hashes are stored at the end
        replace : whether other nodes of `documents` are removed
        again : ids to process again although they did not change
        """
        storage = self._storage
        with (yield from self._lock.acquire()):
            self._check_write()
            refuse_lone_surrogates(nodes)
            nodes, given = self._without_records(nodes)
            known = yield from storage.manifest.entries_of(node.node_id for node in nodes)
            stored = (yield from storage.manifest.entries_of_documents(documents)) if replace else None
            rows = storage.snapshot()
            plan = plan_write(
                [GivenNode(node.node_id, sort_key(node), bool(embed_text(node))) for node in nodes],
                known,
                rows,
                stored=stored,
                again=again,
            )
            if plan.removed:
                self._check_delete()
            node_of = {node.node_id: node for node in nodes}
            todo = [node_of[node_id] for node_id in plan.write]
            vectors = yield from self._embed(todo, rows, plan.repeated)
            # Extractions of an incomplete write are reused.
            entries = {**(yield from self._extract([node_of[i] for i in plan.read], given, nodes)), **plan.reused}

            storage.struct.cached |= self._resources.cache_given
            yield from storage.begin()
            yield from storage.manifest.begin(documents)
            yield from storage.add_to_docstore(nodes)
            yield from storage.remove_chunks(plan.removed)
            yield from storage.manifest.add(entries, {node.node_id: node.metadata for node in todo})
            added = sorted((node for node in todo if node.node_id in vectors), key=sort_key)
            new = [node for node in added if node.node_id not in plan.repeated]
            yield from storage.put_chunks(new, _stacked(new, vectors))
            change = Change(
                added=added,
                vectors=_stacked(added, vectors),
                records={node_id: entry.record for node_id, entry in entries.items() if entry.record},
                removed=list(plan.removed),
                repeated=plan.repeated,
            )
            yield from self._finish(
                change,
                removed=plan.obsolete,
                replaced=plan.replaced,
                entries=entries,
                documents=documents,
                from_docstore=list(plan.obsolete),
            )

    def delete(self, node_ids: Sequence[str], *, from_docstore: bool, ref_doc_ids: Sequence[str] = ()) -> Steps[None]:
        """Delete nodes, and whole documents, with everything derived from them."""
        storage = self._storage
        with (yield from self._lock.acquire()):
            entries = yield from storage.manifest.entries_of(node_ids)
            if entries:
                self._check_delete()
            yield from storage.begin()
            yield from storage.remove_chunks(entries)
            yield from self._finish(
                Change(removed=list(entries)),
                removed=entries,
                whole=ref_doc_ids,
                from_docstore=list(node_ids) if from_docstore else None,
            )

    def delete_document(self, ref_doc_id: str, *, from_docstore: bool) -> Steps[None]:
        """Delete a document, by the manifest: another index may have deleted it from the docstore before."""
        node_ids = yield from self._storage.manifest.nodes_of(ref_doc_id)
        docstore = self._storage.context.docstore
        shared = yield from call(docstore.get_ref_doc_info, docstore.aget_ref_doc_info, ref_doc_id)
        if node_ids is None and (shared is None or not from_docstore):
            logger.warning("ref_doc_id %s not found, nothing deleted.", ref_doc_id)
        else:
            yield from self.delete(node_ids or [], from_docstore=from_docstore, ref_doc_ids=[ref_doc_id])

    def revise(self, work: Callable[[State], Steps[State]]) -> Steps[None]:
        """Change derived data while the nodes stay the same; if that fails, the stored state is loaded."""
        with (yield from self._lock.acquire()):
            self._check_write()
            yield from self.check_embed_model()
            yield from self._storage.begin()
            failure: Exception | None = None
            try:
                self.state = yield from work(self.state)
            except Exception as error:
                failure = error
                self.state = yield from self._builder.load()
            yield from self._storage.commit()
            if failure is not None:
                raise failure

    def retry_failed(self) -> Steps[int]:
        """Retry failed nodes, then other failures; returns the number of remaining failures."""
        manifest = self._storage.manifest
        failed = [node_id for node_id, entry in (yield from manifest.entries()).items() if entry.error is not None]
        nodes = []
        for node_id in failed:
            node = yield from self._storage.get_node(node_id)
            nodes += [] if node is None else [node]
        if nodes:
            yield from self.write(nodes, again=set(failed))
        if self._builder.failures(self.state):
            yield from self.revise(self._builder.retry)
        left = sum(entry.error is not None for entry in (yield from manifest.entries()).values())
        return left + self._builder.failures(self.state)

    # -- the parts of a write ---------------------------------------------------------------------------

    def _without_records(self, nodes: Sequence[BaseNode]) -> tuple[list[BaseNode], dict[str, Record]]:
        """Nodes for the docstore, the last of each id, and the extractions in their metadata."""
        extractor = self._resources.extractor
        given: dict[str, Record] = {}
        plain: dict[str, BaseNode] = {}
        for node in nodes:
            if extractor is not None and extractor.record_key in node.metadata:
                node = node.model_copy(deep=True)
                record = extractor.take_record(node)
                if record is not None:
                    given[node.node_id] = record
            plain[node.node_id] = node
        return list(plain.values()), given

    def _embed(self, nodes: Sequence[BaseNode], rows: Snapshot, stored: Collection[str]) -> Steps[Vectors]:
        """Vectors by node id. Nodes without text have none; existing and stored embeddings are reused."""
        with_text = [node for node in nodes if node.embedding is not None or embed_text(node)]
        if not with_text:
            return {}
        yield from self.check_embed_model()
        struct = self._storage.struct
        if not struct.embedding:
            struct.embedding = yield from describe_model(self._resources.embed_model)
        vectors: dict[str, Any] = {n.node_id: n.get_embedding() for n in with_text if n.embedding is not None}
        vectors.update({node_id: rows.vectors_of([node_id])[0] for node_id in stored if node_id in rows})
        bare = [node for node in with_text if node.node_id not in vectors]
        embedded = yield from self._resources.embed([embed_text(node) for node in bare])
        vectors.update({node.node_id: vector for node, vector in zip(bare, embedded, strict=True)})
        ordered = [vectors[node.node_id] for node in with_text]
        matrix = as_matrix(ordered, [embed_text(node) for node in with_text], struct.embedding["dimension"])
        return {node.node_id: row for node, row in zip(with_text, matrix, strict=True)}

    def _extract(
        self, nodes: Sequence[BaseNode], given: Mapping[str, Record], written: Sequence[BaseNode]
    ) -> Steps[dict[str, NodeEntry]]:
        """Manifest entries by node id, with the results of the extractor.

        Parameters
        ----------
        written : all nodes of the write, among them unchanged ones
        """
        entries = {node.node_id: NodeEntry(node.ref_doc_id, sort_key(node), given.get(node.node_id)) for node in nodes}
        todo = [node for node in nodes if node.node_id not in given and embed_text(node)]
        if self._resources.extractor is None or not todo:
            return entries
        for found in (yield from self._resources.extract(todo, self._storage.cache_user, written)):
            old = entries[found.node_id]
            entries[found.node_id] = NodeEntry(
                old.ref_doc_id, old.key, found.record, found.error, list(found.cache_keys)
            )
        return entries

    def _finish(
        self,
        change: Change,
        *,
        removed: Mapping[str, NodeEntry],
        replaced: Mapping[str, NodeEntry] | None = None,
        entries: Mapping[str, NodeEntry] | None = None,
        documents: Sequence[Document] = (),
        whole: Sequence[str] = (),
        from_docstore: Sequence[str] | None = None,
    ) -> Steps[None]:
        """Derive, delete, and commit.

        The manifest entries are deleted last, so that a delete that was killed can be repeated. When the derivation
        fails, the stored data are kept and committed as an incomplete write: `documents` get no hash, so that
        `refresh_ref_docs` writes them again.

        Parameters
        ----------
        removed : entries of removed nodes, without those that are replaced
        replaced, entries : old and new entries of nodes that were written
        whole : documents to remove, whatever nodes they have
        from_docstore : nodes to delete there too; None leaves the docstore unchanged
        """
        storage = self._storage
        struct = storage.struct
        if self._parameters:
            struct.params[self._method] = {**struct.params.get(self._method, {}), **self._parameters}
        failure: Exception | None = None
        try:
            self.state = yield from self._builder.apply(self.state, change)
        except Exception as error:
            failure = error
            self.state = yield from self._builder.load()
        if change.removed:
            self.last_query = None
        entries = dict(entries or {})
        unused = {}
        for node_id, entry in {**removed, **(replaced or {})}.items():
            used = entries[node_id].cache_keys if node_id in entries else []
            unused[storage.cache_user(node_id)] = [key for key in entry.cache_keys if key not in used]
        yield from self._resources.release(unused)
        yield from storage.manifest.remove(dict(removed), whole)
        if from_docstore is not None:
            yield from storage.delete_from_docstore(from_docstore, whole)
        if failure is None:
            yield from storage.manifest.complete(entries)
            yield from storage.finish(documents)
        struct.counters["chunks"] = len(storage.snapshot())
        yield from storage.commit(building=failure is not None)
        if failure is not None:
            raise failure


def _stacked(nodes: Sequence[BaseNode], vectors: Vectors) -> NDArray[np.float32]:
    return np.stack([vectors[node.node_id] for node in nodes]) if nodes else Change().vectors
