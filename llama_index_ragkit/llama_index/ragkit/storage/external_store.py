"""The user's own vector store, to which chunks are written as well, and its errors."""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

import numpy as np
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from numpy.typing import NDArray

from llama_index.ragkit.adapter_internals import is_pgvector, lacks_async_client, renew_connections
from llama_index.ragkit.errors import ConfigurationError, StorageError, UnsupportedStoreError
from llama_index.ragkit.forks import renew_in_children
from llama_index.ragkit.redaction import redact
from llama_index.ragkit.short_repr import ShortRepr
from llama_index.ragkit.steps import Steps, call, gather, offload
from llama_index.ragkit.storage.postgres_vectors import PostgresVectors
from llama_index.ragkit.vectors.filters import relaxed
from llama_index.ragkit.vectors.matrix_vector_store import MatrixVectorStore

__all__ = ["AT_ONCE", "QUOTING", "ExternalVectorStore", "search_at_once"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

AT_ONCE = 4  # calls of one kind beside each other
_LEAST_PART = 500  # rows

_NO_DOCUMENT = "None"  # what core writes for a node without a document

# Adapters that hand keys, values and ids to their engine apart from any statement. Others may format them into one, as
# those of LanceDB and Milvus do, so no text of a user's that would need quoting is given to them.
_APART = frozenset(
    {
        "llama_index.core.vector_stores.simple",
        "llama_index.vector_stores.chroma.base",
        "llama_index.vector_stores.qdrant.base",
    }
)
_IDS_APART = _APART | {
    "llama_index.ragkit.vectors.matrix_vector_store",
    "llama_index.vector_stores.faiss.base",
    "llama_index.vector_stores.postgres.base",
}
QUOTING = re.compile("['\"`\\\\\x00-\x1f\x7f]")  # what can end a quoted text, or escape its end


class ExternalVectorStore(ShortRepr):
    """A vector store of the user that complete nodes are written to, so a plain `VectorStoreIndex` over it works.

    Any error of the store is raised as a `StorageError` that names the store and describes the state of the write. Its
    cause is the original error. In a forked process a store that uses SQLAlchemy or HTTPX makes its own connections.

    Parameters
    ----------
    store : follows the documented contract of the base class and supports deletes

    Attributes
    ----------
    vectors_of : ids -> the vectors that the store has for nodes; None if these are the vectors of the chunks

    Raises
    ------
    UnsupportedStoreError
        If its `delete` raises `NotImplementedError`.
    """

    def __init__(self, store: BasePydanticVectorStore) -> None:
        self.store = store
        self.vectors_of: Callable[[Sequence[str]], NDArray[np.float32]] | None = None
        self._postgres = PostgresVectors(store)
        self._delete_verified = False
        renew_in_children(store, renew_connections)
        if self._postgres.is_usable:  # it can delete, and would look for the document in the whole table
            return
        try:
            store.delete(str(uuid4()))
        except NotImplementedError as error:
            raise self._cannot_delete(error) from None
        except Exception as error:  # many stores refuse to delete before their first row; see `add`
            logger.debug("%s.delete on an empty store: %s", self._name, self._reason(error))

    @property
    def is_flat(self) -> bool:
        """Whether the store takes no lists as metadata."""
        return bool(getattr(self.store, "flat_metadata", False))

    @property
    def _made(self) -> BasePydanticVectorStore:
        return getattr(self.store, "made", self.store)

    @property
    def _module(self) -> str:
        return type(self._made).__module__

    def add(self, nodes: Sequence[BaseNode], vectors: NDArray[np.float32]) -> Steps[None]:
        """Write nodes, one row of `vectors` each; the store must not hold their ids yet.

        Some adapters implement `delete` but fail when it is called. So the first write of a process tries a delete
        after the first row.
        """
        self._check_ids([*(node.node_id for node in nodes), *(node.ref_doc_id or "" for node in nodes)])
        done = 0
        if not self._delete_verified and len(nodes):
            yield from self._add(nodes[:1], vectors[:1])
            yield from self._try_deletes()
            self._delete_verified = True
            done = 1
        nodes, vectors = nodes[done:], vectors[done:]
        if not self._postgres.is_usable:  # other stores may be bound to this thread
            if len(nodes):
                yield from self._add(nodes, vectors)
            return
        # PostgreSQL keeps up the index of the vectors with each row: many rows take all of its processors.
        size = max(_LEAST_PART, -(-len(nodes) // AT_ONCE))
        jobs = [
            partial(self._add_part, nodes[start : start + size], vectors[start : start + size])
            for start in range(0, len(nodes), size)
        ]
        for each in (yield from gather(jobs, AT_ONCE)):
            each.unwrap()

    def _add_part(self, nodes: Sequence[BaseNode], vectors: NDArray[np.float32]) -> Steps[None]:
        if (yield from offload(self._postgres.add, nodes, vectors)) is None:
            yield from self._add(nodes, vectors)

    def _add(self, nodes: Sequence[BaseNode], vectors: NDArray[np.float32]) -> Steps[None]:
        rows = [
            node.model_copy(update={"embedding": vector.tolist()}) for node, vector in zip(nodes, vectors, strict=True)
        ]
        try:
            yield from self._call(self.store.add, self.store.async_add, rows)
        except Exception as error:
            then = (
                "The write is incomplete. Remove the cause, then call refresh_ref_docs() with the same documents to "
                "resume it."
            )
            raise self._failed(f"store {len(rows)} chunks", error, then) from error

    def add_vectors(
        self,
        ids: Sequence[str],
        vectors: NDArray[np.float32],
        metadatas: Sequence[dict[str, Any]] = (),
        document: str | None = None,
    ) -> Steps[None]:
        """Write rows without a node; :meth:`delete_vectors` removes them.

        Parameters
        ----------
        document : of which they are rows, so that :meth:`delete_document` removes them together; a store that
            does not delete by row (:meth:`check_deletes`) must have None: each is a document of its own
        """
        rows = [
            TextNode(
                id_=row_id,
                metadata=metadata,
                relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=document or row_id)},
            )
            for row_id, metadata in zip(ids, metadatas or [{}] * len(ids), strict=True)
        ]
        yield from self.add(rows, vectors)

    def check_deletes(self) -> Steps[None]:
        """Check that the store, which has had a row, deletes by row as well as by document; not all do."""
        if not (yield from self._try_deletes(by_document=True)):
            raise UnsupportedStoreError(
                f"{self._name} deletes only whole documents. An index whose vectors it holds needs a store that "
                "deletes rows by their ids as well: take one that implements delete_nodes(node_ids), or pass it as "
                "vector_store= of an index in memory."
            )

    def delete_document(self, document: str) -> Steps[None]:
        """Delete all rows of a document; an unknown one is ignored."""
        try:
            yield from self._call(self.store.delete, self.store.adelete, document)
        except Exception as error:
            then = "What a write that ended early has stored is still there. Remove the cause, then repeat the call."
            raise self._failed("delete by document", error, then) from error

    def delete_where(self, key: str, value: str) -> Steps[None]:
        """Delete all rows with a value in their metadata, where the store can; not all can.

        Parameters
        ----------
        value : of letters and digits, since adapters format it into statements
        """
        filters = MetadataFilters(filters=[MetadataFilter(key=key, value=value)])
        try:
            yield from self._call(self.store.delete_nodes, self.store.adelete_nodes, filters=filters)
        except Exception as error:
            logger.debug("%s.delete_nodes by a filter: %s", self._name, self._reason(error))

    def delete_vectors(self, ids: Sequence[str]) -> Steps[None]:
        """Delete rows of :meth:`add_vectors`; unknown ids are ignored."""
        yield from self.delete(ids, ids, (), lambda _: np.empty((0, 0), np.float32))

    def delete(
        self,
        ids: Sequence[str],
        documents: Iterable[str],
        stay: Sequence[BaseNode],
        vectors_of: Callable[[Sequence[str]], NDArray[np.float32]],
    ) -> Steps[None]:
        """Delete rows; unknown ids are ignored.

        Parameters
        ----------
        documents : ref_doc_ids of the rows ("None" for none), for a store that does not delete by row
        stay : the other nodes of those documents, which must be written to such a store again
        """
        documents = sorted(documents)
        then = "They are still in the index. Remove the cause, then delete them again."
        try:
            by_row = yield from self._delete_rows(list(ids))
        except Exception as error:
            # Qdrant rejects even deletes of ids that it refuses to store, but can delete by their document.
            if _NO_DOCUMENT in documents:
                raise self._failed(f"delete {len(ids)} chunks", error, then) from error
            by_row = False
        try:
            self._check_ids(() if by_row else documents)
            for document in () if by_row else documents:
                yield from self._call(self.store.delete, self.store.adelete, document)
        except Exception as error:
            raise self._failed(f"delete {len(ids)} chunks", error, then) from error
        if not by_row and stay:
            yield from self.add(stay, vectors_of([node.node_id for node in stay]))

    def search(
        self,
        vectors: NDArray[np.float32],
        top_k: int,
        own: MetadataFilter | None = None,
        filters: MetadataFilters | None = None,
    ) -> Steps[list[list[str]]]:
        """Ids of the rows nearest to each of some vectors, shape (n, dimension), searched for one after the other.

        Scores are not given: their meaning differs between stores.

        Parameters
        ----------
        own : a filter that the store applies if it has filters at all; it needs no quoting
        filters : a filter of the user's, of which the store checks what it can. The rows found need not pass it
        """
        asked = _joined(own, relaxed(filters, "as JSON"))
        if (found := (yield from offload(self._postgres.search, vectors, top_k, asked))) is not None:
            return found
        if type(self._made) is MatrixVectorStore:
            try:
                return (yield from offload(_nearest, self._made, vectors, top_k, own, filters))
            except Exception as error:
                raise self._failed("be searched", error) from error
        pushed = relaxed(filters, "as text") if self._module in _APART and not self.is_flat else None
        tries = list({repr(each): each for each in (_joined(own, pushed), _joined(own, None), None)}.values())
        found = []
        for vector in vectors:
            found.append((yield from self._search(vector, top_k, tries)))
        return found

    def _search(
        self, vector: NDArray[np.float32], top_k: int, tries: Sequence[MetadataFilters | None]
    ) -> Steps[list[str]]:
        """The rows of the first of some filters that the store does not refuse as one that it does not have."""
        for filters in tries:
            query = VectorStoreQuery(query_embedding=vector.tolist(), similarity_top_k=top_k, filters=filters)
            try:
                result = yield from self._call(self.store.query, self.store.aquery, query)
            except Warning:  # LanceDB's adapter raises one if it finds nothing
                return []
            except Exception as error:
                if filters is not None and type(error) in (NotImplementedError, ValueError):
                    continue
                raise self._failed("be searched", error) from error
            break
        return list(result.ids) if result.ids is not None else [node.node_id for node in result.nodes or []]

    def fetch_vectors(self, ids: Sequence[str]) -> Steps[dict[str, NDArray[np.float32]]]:
        """The vectors of rows by id, as far as the store returns them."""
        if (found := (yield from offload(self._postgres.fetch, ids))) is not None:
            return found
        try:
            nodes = yield from self._call(self.store.get_nodes, self.store.aget_nodes, list(ids))
        except NotImplementedError:
            return {}
        except Exception as error:
            raise self._failed(f"read {len(ids)} rows", error) from error
        return {node.node_id: np.asarray(node.embedding, np.float32) for node in nodes if node.embedding is not None}

    def _delete_rows(self, ids: list[str]) -> Steps[bool]:
        """Whether the store deletes by row; not all do."""
        self._check_ids(ids)
        try:
            yield from self._call(self.store.delete_nodes, self.store.adelete_nodes, ids)
        except NotImplementedError:
            return False
        return True

    def _try_deletes(self, *, by_document: bool = False) -> Steps[bool]:
        """Delete an unknown row; by document, too, or if the store does not delete by row. Whether it does."""
        unknown = str(uuid4())
        try:
            by_row = yield from self._delete_rows([unknown])
            if by_document or not by_row:
                yield from self._call(self.store.delete, self.store.adelete, unknown)
        except Exception as error:
            raise self._cannot_delete(error) from error
        return by_row

    def _check_ids(self, ids: Iterable[str]) -> None:
        bad = None if self._module in _IDS_APART else next(filter(QUOTING.search, ids), None)
        if bad is not None:
            raise UnsupportedStoreError(
                f"The id {bad[:80]!r} has a quotation mark, a backslash or a control character, and {self._name} "
                "may put ids into the text of a statement. Give the document and its nodes other ids, leave out "
                "vector_store=, or use PGVectorStore, QdrantVectorStore or ChromaVectorStore."
            )

    def _call(self, fn: Callable[P, T], afn: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
        """Call a method of the store.

        The asynchronous methods of a `PGVectorStore` have connections of their own, which belong to one event loop: its
        other methods run in threads. A `QdrantVectorStore` that lacks the client for these is called without; it may be
        bound to this thread.
        """
        if is_pgvector(self._made):
            return (yield from offload(fn, *args, **kwargs))
        if lacks_async_client(self._made):
            return fn(*args, **kwargs)
        return (yield from call(fn, afn, *args, **kwargs))

    def _failed(self, what: str, error: Exception, then: str = "") -> StorageError:
        return StorageError(f"{self._name} could not {what}. {self._reason(error)} {then}".rstrip())

    def _cannot_delete(self, error: Exception) -> UnsupportedStoreError:
        return UnsupportedStoreError(
            f"{self._name} cannot delete, so no document could be removed from the index. {self._reason(error)} "
            "Leave out vector_store= to keep the vectors in the storage context, or pass a store that implements "
            "delete(ref_doc_id)."
        )

    @property
    def _name(self) -> str:
        return type(self.store).__name__

    def _reason(self, error: Exception) -> str:
        text = redact(str(error).strip(), self.store)
        reason = text.splitlines()[0][:300] if text else ""
        if not reason:
            return f"It raised {type(error).__name__}."
        return f"Its error: {type(error).__name__}: {reason.rstrip('.')}."


def _nearest(
    store: MatrixVectorStore,
    vectors: NDArray[np.float32],
    top_k: int,
    own: MetadataFilter | None,
    filters: MetadataFilters | None,
) -> list[list[str]]:
    """The ids of :meth:`ExternalVectorStore.search` in a store that compares as the index does; no node is made."""
    try:
        found = store.query_many(vectors, top_k, filters=_joined(own, relaxed(filters, "as here")))
    except ConfigurationError:  # a row has a value of another type; it may be the row of another index
        found = store.query_many(vectors, top_k, filters=_joined(own, None))
    return [hits.ids for hits in found]


def _joined(own: MetadataFilter | None, filters: MetadataFilters | None) -> MetadataFilters | None:
    parts = [part for part in (own, filters) if part is not None]
    return MetadataFilters(filters=parts) if parts else None


def search_at_once(searches: Sequence[Callable[[], Steps[list[list[str]]]]]) -> Steps[list[list[str]]]:
    """The results of several searches together, some of which run beside each other.

    While a store on a server works on one of them, the rows of another are read. The first error is raised.
    """
    return [ids for each in (yield from gather(searches, AT_ONCE)) for ids in each.unwrap()]
